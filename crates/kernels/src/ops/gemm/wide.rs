//! `wide`: products on OpenCL drivers that run kernels on a CPU, in vectors of
//! sixteen floats. Staging would copy what a cache already holds.

use super::GemmOp;
use super::arguments::preference;
use crate::dtype::Precision;
use crate::emit::Dialect;
use crate::layout::Layout;
use crate::limits::{Family, Limits};
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;

/// Vectors of sixteen columns, rows: as many sums as there are registers of that length, or half as
/// long ones.
const TILES: [[u32; 3]; 5] = [[2, 8, 1], [4, 6, 1], [2, 4, 1], [1, 8, 1], [1, 4, 1]];

/// Cores, where the driver does not report them.
const ASSUMED_CORES: u32 = 4;
/// Cycles that a work-group takes to begin.
const WORK_GROUP_CYCLES: f64 = 2000.0;

#[derive(Debug)]
pub(super) struct Wide;

impl Kernel<GemmOp> for Wide {
    fn entry(&self) -> VariantEntry {
        VariantEntry::opencl(
            "wide",
            include_str!("../../../cl/gemm/wide.cl"),
            "WGSL has no vectors longer than four",
        )
        .listed_as(Layout::Nhwc)
        .by_estimate()
    }

    fn offers(&self, op: &GemmOp, limits: &Limits) -> Vec<Offer> {
        offers(preference::WIDE, TILES.into_iter().filter(|_| self.obstacle(op, limits).is_none()))
    }

    fn grid(&self, op: &GemmOp, tile: [u32; 3]) -> [u32; 3] {
        op.grid_of(tile, [16, 1, 1])
    }

    fn obstacle(&self, op: &GemmOp, limits: &Limits) -> Option<String> {
        if limits.dialect != Dialect::OpenClC || limits.family != Family::CpuDriver {
            return Some("wide is for OpenCL drivers that run kernels on a CPU".to_owned());
        }
        if op.precision != Precision::F32 {
            return Some(format!("wide computes in f32, not in {}", op.precision));
        }
        if op.n < 16 || !op.n.is_multiple_of(16) {
            return Some(format!("it needs whole vectors of 16 columns, n is {}", op.n));
        }
        op.vec4_obstacle()
    }

    /// Rows that read the same columns of B follow each other.
    fn work_groups(&self, _op: &GemmOp, _tile: [u32; 3]) -> Vec<[u32; 3]> {
        [[1, 16, 1], [1, 8, 1], [2, 8, 1], [1, 32, 1], [1, 4, 1], [4, 4, 1]].to_vec()
    }

    fn constants(&self, op: &GemmOp, choice: &Choice, _limits: &Limits) -> Constants {
        op.constants(choice)
    }

    /// Cycles until the last core is done: a product of vectors takes one, a load half of one.
    fn estimate(&self, op: &GemmOp, choice: &Choice, limits: &Limits) -> Option<f64> {
        let [columns, rows, _] = choice.tile.map(|extent| extent.max(1));
        let [x, y, _] = choice.work_group.map(|extent| extent.max(1));
        let across = op.n.div_ceil(16 * (columns * x) as usize);
        let groups = (across * op.m.div_ceil((rows * y) as usize) * op.batch) as f64;
        let (columns, rows) = (f64::from(columns), f64::from(rows));
        let term = columns * rows + (columns + rows) / 2.0;
        let each = term * op.k as f64 * f64::from(x * y) + WORK_GROUP_CYCLES;
        Some(each * (groups / f64::from(limits.compute_units.unwrap_or(ASSUMED_CORES).max(1))).ceil())
    }
}
