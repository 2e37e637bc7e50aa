//! `thin`: products of few rows, which take the time that B takes to be read.
//!
//! A tile is groups of four columns, rows, and splits of the sum; a work-group is as deep as the
//! splits and narrow, so that there are enough of them: 64 bytes of a row of B side by side.

use super::arguments::{preference, staged};
use super::staging::{ahead, shared};
use super::{GemmOp, effort};
use crate::emit::{Dialect, Operand};
use crate::layout::Layout;
use crate::limits::{Family, Limits};
use crate::ops::effort::Effort;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::{self, Registers};
use crate::ops::spec::local_obstacle;

/// The most rows of a tile, and of a product. On an H200 sixteen rows, which two tiles share, took less
/// than `tiled`; up to 32 it is offered to the tuner, and estimated as if each tile read B.
const ROWS: usize = 8;
const MAX_ROWS: usize = 4 * ROWS;

/// Invocations of a work-group side by side, the default first.
const WIDTHS: [u32; 5] = [4, 8, 2, 16, 1];

/// The most rows of `A` that are computed where they are read. A work-group of 16 columns computes a row's element for 16 weights. A
/// gate takes some 40 operations, so that four rows take 10 for each weight beside the 8 of its products. An H200 does 28 while
/// it reads a half, and most GPUs do more: beyond this, what is computed anew would take longer than the weights.
const COMPUTED_ROWS: usize = 4;

/// The most invocations of a work-group that is offered: what drivers compile kernels for.
const INVOCATIONS: u32 = 256;

/// Vec4s that a work-group keeps: its rows of A twice over, then partial sums.
pub(super) fn kept(choice: &Choice, dialect: Dialect) -> u32 {
    let ([columns4, rows, splits], [x, y, _]) = (choice.tile, choice.work_group);
    let partial_sums = splits / 2 * x * y * columns4 * rows;
    let window = if shared(choice.tile) { 2 * rows * splits * ahead(choice.tile, dialect) } else { 0 };
    partial_sums.max(window)
}

/// Vec4s of A that an invocation reads at a time, where the work-group keeps its rows of it.
fn loads_of_a(choice: &Choice, dialect: Dialect) -> u32 {
    (choice.tile[1] * ahead(choice.tile, dialect)).div_ceil(choice.work_group[0])
}

impl GemmOp {
    /// Whether there are so few rows that most of a matrix instruction's would be missing.
    pub(super) const fn few_rows(&self) -> bool {
        self.m <= 2 * ROWS
    }
}

#[derive(Debug)]
pub(super) struct Thin;

impl Kernel<GemmOp> for Thin {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("thin", crate::emit::text!("../../../shaders/gemm/thin.wgsl"))
            .listed_as(Layout::Nhwc)
            .by_estimate()
    }

    /// Tiles of all rows, up to eight. None if `tiled` reads B as seldom.
    fn offers(&self, op: &GemmOp, limits: &Limits) -> Vec<Offer> {
        if op.m > MAX_ROWS || op.vec4_obstacle().is_some() {
            return Vec::new();
        }
        let rows = op.m.next_power_of_two().min(ROWS) as u32;
        let tiles = [[1, rows, 64], [1, rows, 32], [1, rows, 16], [2, rows, 32], [1, rows, 8]];
        offers(staged(preference::THIN, limits), tiles)
    }

    /// Honeykrisp's compiler also keeps the vec4s of A that are on their way, and where they are read and put.
    fn registers(&self, _op: &GemmOp, choice: &Choice, limits: &Limits) -> Option<Registers> {
        let on_their_way = if limits.family == Family::Apple && shared(choice.tile) {
            8 * loads_of_a(choice, limits.dialect)
        } else {
            0
        };
        let sums = registers::of_product(choice.tile[0], choice.tile[1]);
        Some(Registers::with_barriers(sums + on_their_way))
    }

    fn grid(&self, op: &GemmOp, tile: [u32; 3]) -> [u32; 3] {
        op.grid_of(tile, [4, 1, 1])
    }

    /// Elements of `A` are computed while `B` is waited for, by each work-group anew.
    fn takes_prologue(&self, op: &GemmOp, operand: Operand, _choice: &Choice) -> bool {
        operand == Operand::A && op.m <= COMPUTED_ROWS
    }

    fn obstacle(&self, op: &GemmOp, _limits: &Limits) -> Option<String> {
        op.vec4_obstacle()
    }

    fn choice_obstacle(&self, op: &GemmOp, choice: &Choice, limits: &Limits) -> Option<String> {
        let ([.., splits], [_, y, depth]) = (choice.tile, choice.work_group);
        if depth != splits {
            return Some(format!("the work-group is {depth} deep, {splits} splits need {splits}"));
        }
        if y != 1 && shared(choice.tile) {
            return Some(format!("the work-group has {y} rows of tiles, one shares its rows of A"));
        }
        let vec4s = u64::from(kept(choice, limits.dialect));
        let bytes = vec4s * 4 * op.precision.accumulator().bytes() as u64;
        local_obstacle(bytes, limits)
    }

    fn work_groups(&self, _op: &GemmOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        // With few rows, half as many work-groups of whole lines of B.
        let widths = if tile[1] < 4 && shared(tile) { [8, 4, 2, 16, 1] } else { WIDTHS };
        let sizes = widths.map(|x| [x, 1, tile[2]]).into_iter();
        sizes.filter(|size| size.iter().product::<u32>() <= INVOCATIONS).collect()
    }

    fn constants(&self, op: &GemmOp, choice: &Choice, limits: &Limits) -> Constants {
        let ([.., splits], [x, y, _]) = (choice.tile, choice.work_group);
        let ahead = ahead(choice.tile, limits.dialect);
        let own = [
            ("SPLITS", splits),
            ("AHEAD", ahead),
            ("SHARED", u32::from(shared(choice.tile))),
            ("WINDOW", ahead * splits),
            ("LOADS_A", loads_of_a(choice, limits.dialect)),
            ("THREADS", x * y),
            ("STAGED", kept(choice, limits.dialect)),
        ];
        op.constants_and(choice, &own)
    }

    fn effort(&self, op: &GemmOp, choice: &Choice, limits: &Limits) -> Option<Effort> {
        Some(effort::thin(op, choice, limits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::ops::gemm::Gemm;
    use crate::ops::registers::obstacle;

    /// What spills by Mesa 25.0.7's compiler.
    #[test]
    fn narrow_work_groups_of_eight_rows_spill_on_apple() {
        let op = GemmOp::new(8, 32, 32, 1, &Gemm::default(), false, false, Precision::F32);
        let op = op.expect("sizes are accepted");
        let apple = Limits { family: Family::Apple, ..Limits::webgpu() };
        let spills = |limits: &Limits, rows: u32, x: u32| {
            let choice = Choice::new("thin", [1, rows, 8], [x, 1, 8]);
            let registers = Thin.registers(&op, &choice, limits).expect("it has a count");
            obstacle(registers, &choice, limits).is_some()
        };
        assert!([1, 2].into_iter().all(|x| spills(&apple, 8, x)));
        assert!([4, 8, 16].into_iter().all(|x| !spills(&apple, 8, x)) && !spills(&apple, 4, 1));
        let adreno = Limits { family: Family::Adreno(630), ..Limits::webgpu() };
        assert!(!spills(&adreno, 8, 2));
    }
}
