//! `row`: a work-group of `tile[0]` invocations has `tile[1]` queries of a head of keys; rows of any length.

use super::{AttentionOp, Sizes, effort};
use crate::emit::Binding;
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::effort::Effort;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::Registers;
use crate::ops::spec::{Params, extent, local_obstacle};

/// Invocations of a work-group, and queries that it has.
const TILES: [[u32; 3]; 6] = [[256, 1, 1], [128, 1, 1], [64, 1, 1], [64, 4, 1], [128, 4, 1], [64, 2, 1]];

/// Slices of a work-group, at most: what is joined at the end.
const MOST_SLICES: usize = 32;

/// Units that an invocation has on their way, at most.
const MOST_LOADS: usize = 8;

/// Units that an invocation has on their way, of a work-group of `size`: a third to a half of its registers hold them.
fn loads(size: usize, limits: &Limits) -> usize {
    match limits.registers(extent(size), true) {
        Some(..64) => 2,
        Some(64) => 4,
        _ => MOST_LOADS,
    }
}

#[derive(Debug)]
pub(super) struct Row;

/// How the invocations share values: units side by side, slices of keys, and columns of an invocation.
fn shared(op: &AttentionOp, size: usize) -> [usize; 3] {
    let units = op.sizes.width / op.lanes();
    let wide = units.min(size);
    [wide, (size / wide).clamp(1, MOST_SLICES), units.div_ceil(wide)]
}

/// Elements of f32 that a work-group keeps: of queries, shares, partial results, and sums to be joined.
fn kept(op: &AttentionOp, tile: [u32; 3]) -> [usize; 4] {
    let [size, rows, _] = tile.map(|extent| extent as usize);
    let [wide, slices, _] = shared(op, size);
    [rows * op.sizes.depth, rows * size, 16 * rows, (wide * (slices - 1)).max(1) * op.lanes()]
}

impl Kernel<AttentionOp> for Row {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("row", crate::emit::text!("../../../shaders/attention/row.wgsl"))
            .listed_as(Layout::Nhwc)
            .by_estimate()
            .of_tile()
    }

    fn offers(&self, op: &AttentionOp, _limits: &Limits) -> Vec<Offer> {
        let rows = extent(op.all_rows());
        offers(1, TILES.into_iter().filter(|tile| tile[1] == 1 || tile[1] < 2 * rows))
    }

    fn grid(&self, op: &AttentionOp, tile: [u32; 3]) -> [u32; 3] {
        let all = extent(op.sizes.batch * op.sizes.heads);
        [tile[0] * extent(op.parts), extent(op.all_rows()).div_ceil(tile[1]), all]
    }

    fn obstacle(&self, op: &AttentionOp, _limits: &Limits) -> Option<String> {
        op.count_obstacle()
    }

    fn choice_obstacle(&self, op: &AttentionOp, choice: &Choice, limits: &Limits) -> Option<String> {
        let bytes = 4 * kept(op, choice.tile).iter().sum::<usize>() as u64;
        local_obstacle(bytes, limits)
    }

    /// Not known well enough to refuse a choice: compilers keep more or fewer loads under way.
    fn registers(&self, _op: &AttentionOp, _choice: &Choice, _limits: &Limits) -> Option<Registers> {
        None
    }

    fn effort(&self, op: &AttentionOp, choice: &Choice, _limits: &Limits) -> Option<Effort> {
        let [_, slices, columns] = shared(op, choice.tile[0] as usize).map(extent);
        let bytes = 4 * extent(kept(op, choice.tile).iter().sum());
        Some(effort::row(op, choice, self.grid(op, choice.tile), bytes, [slices, columns]))
    }

    fn bindings(&self, op: &AttentionOp, _choice: &Choice) -> Vec<Binding> {
        op.bindings(op.lanes())
    }

    fn params(&self, op: &AttentionOp, _choice: &Choice) -> Params {
        op.params(op.lanes())
    }

    fn constants(&self, op: &AttentionOp, choice: &Choice, limits: &Limits) -> Constants {
        let (size, lanes) = (choice.tile[0] as usize, op.lanes());
        let [wide, slices, columns] = shared(op, size);
        let [queries, shares, partial, joined] = kept(op, choice.tile);
        let Sizes { depth, width, .. } = op.sizes;
        let most = loads(size, limits);
        let fewer = (most < MOST_LOADS).then_some(("LOADS", most));
        let of_tile = [
            ("LANES", lanes),
            ("SIZE", size),
            ("ROWS", choice.tile[1] as usize),
            ("D", depth / lanes),
            ("E", width / lanes),
            ("AHEAD", (depth / lanes).min(most)),
            ("WIDE", wide),
            ("SLICES", slices),
            ("COLUMNS", columns),
            ("QUERIES", queries / lanes),
            ("SHARES", shares),
            ("PARTIAL", partial),
            ("JOINED", joined / lanes),
        ];
        op.constants(&of_tile.into_iter().chain(fewer).collect::<Vec<_>>())
    }
}
