//! `split`: products of few elements, from operands that are read element by element: transposed, or of
//! extents that are no multiple of four.
//!
//! A tile is groups of four columns, rows, and splits of the sum; a work-group is as deep as the splits.

use super::GemmOp;
use super::arguments::{preference, staged};
use crate::emit::Binding;
use crate::layout::Layout;
use crate::limits::Limits;
use crate::limits::machine::Machine;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, local_obstacle};
use crate::sorted;

/// The most rows of a tile.
const ROWS: usize = 8;

/// The least terms of a slice of the sum: below, adding the slices up takes as long as summing them.
const TERMS: usize = 2;

/// The most invocations of a work-group that is offered: what drivers compile kernels for.
const INVOCATIONS: u32 = 256;

/// Invocations of a work-group side by side, the default first.
const WIDTHS: [u32; 4] = [4, 2, 1, 8];

/// Whether one invocation for each eight rows of four columns leaves most of a device idle.
fn is_small(op: &GemmOp, limits: &Limits) -> bool {
    let tiles = (op.n.div_ceil(4) * op.m.div_ceil(8) * op.batch) as u64;
    Machine::of(limits).is_none_or(|machine| tiles < machine.busy())
}

#[derive(Debug)]
pub(super) struct Split;

impl Kernel<GemmOp> for Split {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("split", crate::emit::text!("../../../shaders/gemm/split.wgsl"))
            .listed_as(Layout::Nhwc)
    }

    /// Where the sums are long enough to be split. None if a whole device has enough to do without.
    fn offers(&self, op: &GemmOp, limits: &Limits) -> Vec<Offer> {
        if self.obstacle(op, limits).is_some() || !is_small(op, limits) {
            return Vec::new();
        }
        let rows = op.m.next_power_of_two().min(ROWS) as u32;
        let tiles = [[1, rows, 64], [1, rows, 32], [1, rows, 16], [1, rows, 8]];
        let long = tiles.into_iter().filter(|tile| op.k >= TERMS * tile[2] as usize);
        offers(staged(preference::SPLIT, limits), long)
    }

    fn grid(&self, op: &GemmOp, tile: [u32; 3]) -> [u32; 3] {
        op.grid_of(tile, [4, 1, 1])
    }

    fn obstacle(&self, op: &GemmOp, limits: &Limits) -> Option<String> {
        op.scalar_obstacle(limits)
    }

    fn choice_obstacle(&self, op: &GemmOp, choice: &Choice, limits: &Limits) -> Option<String> {
        let ([columns4, rows, splits], [x, y, depth]) = (choice.tile, choice.work_group);
        if depth != splits {
            return Some(format!("the work-group is {depth} deep, {splits} splits need {splits}"));
        }
        let vec4s = u64::from(splits / 2 * x * y) * u64::from(columns4 * rows);
        let bytes = vec4s * 4 * op.precision.accumulator().bytes() as u64;
        local_obstacle(bytes, limits)
    }

    /// With the rows of `B` as columns, neighbours along the sum read side by side.
    fn work_groups(&self, op: &GemmOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        let mut widths = WIDTHS.to_vec();
        if op.transpose_b {
            sorted::sort(&mut widths, Ord::cmp);
        }
        let sizes = widths.into_iter().map(|x| [x, 1, tile[2]]);
        sizes.filter(|size| size.iter().product::<u32>() <= INVOCATIONS).collect()
    }

    fn untuned(&self, op: &GemmOp, limits: &Limits) -> bool {
        limits.family.has_local_memory() && !op.is_for_matrix_unit(limits)
    }

    fn bindings(&self, op: &GemmOp, _choice: &Choice) -> Vec<Binding> {
        op.element_bindings()
    }

    fn params(&self, op: &GemmOp, _choice: &Choice) -> Params {
        op.element_params()
    }

    fn constants(&self, op: &GemmOp, choice: &Choice, _limits: &Limits) -> Constants {
        let ([columns4, rows, splits], [x, y, _]) = (choice.tile, choice.work_group);
        let own = [("SPLITS", splits), ("THREADS", x * y), ("STAGED", splits / 2 * x * y * columns4 * rows)];
        op.constants_and(choice, &own)
    }
}
