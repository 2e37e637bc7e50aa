//! `direct`: a work-group sums whole rows of the product from global memory, keeps them in local memory, and computes the nest there.
//!
//! A tile is groups of four columns, rows, and splits of the sum. A work-group is as wide as the columns need, and as deep as the
//! splits. Its invocations share the rows of the nest, as many each as a power of two.

use super::sharing::Sharing;
use super::{GemmRowsOp, matrix};
use crate::emit::{Binding, Body};
use crate::limits::Limits;
use crate::ops::definition::Definition;
use crate::ops::effort::{Effort, groups};
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::{self, Registers};
use crate::ops::spec::{Params, extent, local_obstacle};

/// Rows and splits of the sum.
const TILES: [[u32; 2]; 6] = [[4, 4], [4, 8], [8, 4], [8, 8], [4, 2], [8, 2]];

/// Groups of four columns of an invocation.
const COLUMNS: [u32; 3] = [1, 2, 3];

/// Invocations of a work-group: what drivers compile kernels for, and fewer than two waves of most GPUs.
const INVOCATIONS: [u32; 2] = [64, 256];

/// Groups of four terms that an invocation sums at a time.
const AHEAD: u32 = 2;

/// Invocations along the columns.
fn wide(op: &GemmRowsOp, tile: [u32; 3]) -> u32 {
    extent(op.product.n() / 4).div_ceil(tile[0].max(1))
}

fn sharing(op: &GemmRowsOp, tile: [u32; 3]) -> Sharing {
    op.sharing(tile[1], wide(op, tile) * tile[2])
}

/// Vec4s of local memory for the rows of the product, and before for the sums of splits.
fn staged(op: &GemmRowsOp, [columns4, rows, splits]: [u32; 3]) -> u32 {
    let sums = splits / 2 * wide(op, [columns4, rows, splits]) * columns4 * rows;
    sums.max(rows * extent(op.product.n() / 4))
}

fn local_bytes(op: &GemmRowsOp, tile: [u32; 3]) -> u32 {
    op.local_bytes_of(staged(op, tile), sharing(op, tile))
}

/// Registers of an invocation.
fn wanted([columns4, rows, _]: [u32; 3], limits: &Limits) -> u32 {
    registers::of_steps(columns4, rows, AHEAD, limits)
}

#[derive(Debug)]
pub(super) struct Direct;

impl Kernel<GemmRowsOp> for Direct {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("direct", crate::emit::text!("../../../shaders/gemm_rows/direct.wgsl"))
            .in_rows()
            .by_estimate()
    }

    fn offers(&self, op: &GemmRowsOp, limits: &Limits) -> Vec<Offer> {
        let tiles =
            COLUMNS.into_iter().flat_map(|columns| TILES.map(|[rows, splits]| [columns, rows, splits]));
        let [least, most] = INVOCATIONS;
        let most = most.min(limits.max_invocations);
        let fits = |tile: &[u32; 3]| {
            let all = wide(op, *tile) * tile[2];
            let registers = wanted(*tile, limits);
            (tile[1]..=most).contains(&all)
                && local_obstacle(local_bytes(op, *tile).into(), limits).is_none()
                && limits.registers(all, true).is_none_or(|most| registers <= most)
        };
        let all: Vec<[u32; 3]> = tiles.filter(fits).collect();
        // Small work-groups where there are no others.
        let enough = |tile: &[u32; 3]| wide(op, *tile) * tile[2] >= least;
        let some = all.iter().any(enough);
        offers(matrix::LAST, all.into_iter().filter(|tile| !some || enough(tile)))
    }

    fn grid(&self, op: &GemmRowsOp, tile: [u32; 3]) -> [u32; 3] {
        [wide(op, tile), extent(op.product.m()).div_ceil(tile[1]), tile[2]]
    }

    fn work_groups(&self, op: &GemmRowsOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        vec![[wide(op, tile), 1, tile[2]]]
    }

    fn choice_obstacle(&self, op: &GemmRowsOp, choice: &Choice, _limits: &Limits) -> Option<String> {
        let wanted = self.work_groups(op, choice.tile);
        (!wanted.contains(&choice.work_group))
            .then(|| format!("a work-group of {:?}, its tile wants {wanted:?}", choice.work_group))
    }

    fn registers(&self, _op: &GemmRowsOp, choice: &Choice, limits: &Limits) -> Option<Registers> {
        Some(Registers::with_barriers(wanted(choice.tile, limits)))
    }

    fn effort(&self, op: &GemmRowsOp, choice: &Choice, _limits: &Limits) -> Option<Effort> {
        let [columns4, rows, splits] = choice.tile;
        let terms4 = extent(op.product.k() / 4).div_ceil(splits.max(1));
        let steps = terms4.div_ceil(AHEAD);
        let terms4 = u64::from(terms4);
        Some(Effort {
            groups: groups(self.grid(op, choice.tile), choice.work_group),
            invocations: choice.work_group.iter().product(),
            registers: 30 + 4 * columns4 * rows + AHEAD * (16 * columns4 + 4 * rows),
            local_bytes: local_bytes(op, choice.tile),
            steps,
            ahead: false,
            barriers: 0,
            multiplies: u64::from(16 * columns4 * rows) * terms4,
            loads: u64::from(4 * columns4 + rows) * terms4,
            staged: 0,
            added: u64::from(splits.ilog2() * columns4 * rows),
            reads: op.product.reads(rows, extent(op.product.n())),
            traffic: op.product.traffic(),
        })
    }

    fn bindings(&self, op: &GemmRowsOp, choice: &Choice) -> Vec<Binding> {
        let own = Definition::bindings(op, choice);
        own.into_iter().chain(op.rows_within(sharing(op, choice.tile), false).bindings).collect()
    }

    fn params(&self, op: &GemmRowsOp, choice: &Choice) -> Params {
        let own = Definition::params(op, choice);
        own.into_iter().chain(op.rows_within(sharing(op, choice.tile), false).params).collect()
    }

    fn body(&self, op: &GemmRowsOp, choice: &Choice) -> Body {
        op.rows_within(sharing(op, choice.tile), false).body
    }

    fn constants(&self, op: &GemmRowsOp, choice: &Choice, _limits: &Limits) -> Constants {
        let [columns4, rows, splits] = choice.tile;
        let wide = wide(op, choice.tile);
        let own =
            [("TILE_X", columns4), ("TILE_Y", rows), ("SPLITS", splits), ("AHEAD", AHEAD), ("THREADS", wide)];
        op.constants_and(&own, staged(op, choice.tile), sharing(op, choice.tile))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::ops::gemm_rows::examples;

    #[test]
    fn every_row_of_the_nest_has_invocations_and_local_memory() {
        for op in examples(Precision::F32).expect("examples") {
            let own = op.as_any().downcast_ref::<GemmRowsOp>().expect("what it is");
            for Offer { tile, .. } in Direct.offers(own, &Limits::webgpu()) {
                let [columns4, rows, splits] = tile;
                let (wide, Sharing { lanes, slots }) = (wide(own, tile), sharing(own, tile));
                assert!(4 * columns4 * wide >= extent(own.product.n()), "{tile:?}");
                assert!(rows * lanes <= wide * splits && slots >= rows * lanes, "{tile:?}");
                assert!(4 * staged(own, tile) >= rows * extent(own.product.n()), "{tile:?}");
            }
        }
    }
}
