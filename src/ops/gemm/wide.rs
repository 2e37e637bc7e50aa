//! The geometry of `wide`: products on OpenCL drivers that run kernels on a CPU, in vectors of
//! sixteen floats. Staging would copy what a cache already holds.

use super::GemmOp;
use crate::dtype::Precision;
use crate::emit::Dialect;
use crate::limits::{Family, Limits};
use crate::ops::plan::Choice;

/// Vectors of sixteen columns, rows: as many sums as there are registers of that length, or half as
/// long ones.
pub(super) const TILES: [[u32; 3]; 5] = [[2, 8, 1], [4, 6, 1], [2, 4, 1], [1, 8, 1], [1, 4, 1]];

/// Cores, where the driver does not tell.
const CORES: u32 = 4;
/// Cycles that a work-group takes to begin.
const BEGIN: f64 = 2000.0;

/// Work-groups, the default first: rows that read the same columns of B follow each other.
pub(super) fn work_groups() -> Vec<[u32; 3]> {
    [[1, 16, 1], [1, 8, 1], [2, 8, 1], [1, 32, 1], [1, 4, 1], [4, 4, 1]].to_vec()
}

impl GemmOp {
    /// Cycles until the last core is done: a product of vectors takes one, a load half of one.
    pub(super) fn wide_cycles(&self, choice: &Choice, limits: &Limits) -> f64 {
        let [columns, rows, _] = choice.tile.map(|extent| extent.max(1));
        let [x, y, _] = choice.work_group.map(|extent| extent.max(1));
        let across = self.n.div_ceil(16 * (columns * x) as usize);
        let groups = (across * self.m.div_ceil((rows * y) as usize) * self.batch) as f64;
        let (columns, rows) = (f64::from(columns), f64::from(rows));
        let term = columns * rows + (columns + rows) / 2.0;
        let each = term * self.k as f64 * f64::from(x * y) + BEGIN;
        each * (groups / f64::from(limits.compute_units.unwrap_or(CORES).max(1))).ceil()
    }

    /// Why `wide` cannot serve, if it cannot.
    pub(super) fn wide_obstacle(&self, limits: &Limits) -> Option<String> {
        if limits.dialect != Dialect::OpenClC || limits.family != Family::CpuDriver {
            return Some("wide is for OpenCL drivers that run kernels on a CPU".to_owned());
        }
        if self.precision != Precision::F32 {
            return Some(format!("wide computes in f32, not in {}", self.precision));
        }
        if self.n < 16 || !self.n.is_multiple_of(16) {
            return Some(format!("it needs whole vectors of 16 columns, n is {}", self.n));
        }
        self.vec4_obstacle()
    }
}
