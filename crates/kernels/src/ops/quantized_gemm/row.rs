//! `row`: products of few rows, which take the time that the weights take to be read.
//!
//! A tile is groups of four columns, rows, and invocations that share a column's sum, each of which takes every so many
//! words of it. A work-group is as wide as these; where there are few, it has several groups of columns.

use super::QuantizedGemmOp;
use crate::dtype::DType;
use crate::emit::{Binding, Element};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::{self, Registers};
use crate::ops::spec::{Params, extent, local_obstacle};

/// The most rows of a tile, and of products that it is preferred for.
const ROWS: usize = 8;
pub(super) const FEW: usize = 2 * ROWS;

/// The most rows that it is offered for.
const MOST: usize = 4 * FEW;

/// Invocations that share a column, the widest first, and those of a work-group.
const SHARING: [u32; 4] = [64, 32, 16, 8];
const INVOCATIONS: u32 = 64;

#[derive(Debug)]
pub(super) struct Row;

impl QuantizedGemmOp {
    /// Words that an invocation reads at once: they have one scale.
    fn unit(&self) -> usize {
        let whole =
            self.words().is_multiple_of(4) && (self.blocks() == 1 || self.block_words().is_multiple_of(4));
        if whole { 4 } else { 1 }
    }
}

/// Vec4s that a work-group keeps: the sums of each invocation.
fn kept(choice: &Choice) -> u32 {
    let ([groups, rows, sharing], [_, y, _]) = (choice.tile, choice.work_group);
    groups * rows * sharing * y
}

impl Kernel<QuantizedGemmOp> for Row {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("row", crate::emit::text!("../../../shaders/quantized_gemm/row.wgsl"))
            .listed_as(Layout::Nhwc)
    }

    /// With so many invocations for a column that each has something to read.
    fn offers(&self, op: &QuantizedGemmOp, _limits: &Limits) -> Vec<Offer> {
        if op.m > MOST {
            return Vec::new();
        }
        let rows = extent(op.m.next_power_of_two().min(ROWS));
        let units = extent(op.words() / op.unit());
        let least = SHARING[SHARING.len() - 1];
        let sharing = SHARING.into_iter().filter(|&sharing| sharing <= units.max(least));
        let tiles = sharing.flat_map(|sharing| [[1, rows, sharing], [2, rows, sharing]]);
        offers(if op.m <= FEW { 0 } else { 2 }, tiles)
    }

    fn registers(&self, _op: &QuantizedGemmOp, choice: &Choice, _limits: &Limits) -> Option<Registers> {
        Some(Registers::with_barriers(registers::of_unpacked(choice.tile[0], choice.tile[1])))
    }

    fn grid(&self, op: &QuantizedGemmOp, tile: [u32; 3]) -> [u32; 3] {
        let [groups, rows, sharing] = tile;
        let wide = sharing.max(1);
        // Along y are groups of columns too: as many rows of tiles as an axis takes along z.
        [wide, extent(op.n).div_ceil(4 * groups.max(1)), extent(op.m).div_ceil(rows.max(1))]
    }

    fn choice_obstacle(&self, _op: &QuantizedGemmOp, choice: &Choice, limits: &Limits) -> Option<String> {
        let ([.., sharing], [x, _, z]) = (choice.tile, choice.work_group);
        if x != sharing || z != 1 {
            let found = choice.work_group;
            return Some(format!("a work-group of {found:?}, wanted {sharing} by any number by 1"));
        }
        let bytes = 16 * u64::from(kept(choice));
        local_obstacle(bytes, limits)
    }

    fn work_groups(&self, _op: &QuantizedGemmOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        let sharing = tile[2].max(1);
        let default = (INVOCATIONS / sharing).max(1);
        let sizes = [default, 2 * default, (default / 2).max(1)];
        let mut sizes: Vec<[u32; 3]> = sizes.into_iter().map(|y| [sharing, y, 1]).collect();
        sizes.dedup();
        sizes
    }

    fn bindings(&self, op: &QuantizedGemmOp, _choice: &Choice) -> Vec<Binding> {
        op.bindings(if op.unit() == 4 { Element::Vec4(DType::U32) } else { Element::Scalar(DType::U32) })
    }

    fn params(&self, op: &QuantizedGemmOp, _choice: &Choice) -> Params {
        op.params(op.words() / op.unit())
    }

    fn constants(&self, op: &QuantizedGemmOp, choice: &Choice, _limits: &Limits) -> Constants {
        let ([groups, rows, sharing], [_, y, _]) = (choice.tile, choice.work_group);
        op.constants(&[
            ("UNIT", extent(op.unit())),
            ("RAGGED", u32::from(!op.k.is_multiple_of(op.unit() * op.per_word()))),
            ("GROUPS", groups),
            ("ROWS", rows),
            ("SHARING", sharing),
            ("SIZE", sharing * y),
            ("KEPT", kept(choice)),
        ])
    }
}
