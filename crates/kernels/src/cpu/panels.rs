//! A constant right operand, packed once, and the micro-kernel that multiplies rows with it.
//!
//! A panel is `V` vectors of neighbouring columns, their values for one `k` side by side, `k` after
//! `k`. The micro-kernel holds the sums of up to [`HEIGHTS`] rows of a panel in registers: a vector of the
//! panel is loaded once for all rows, a value of a row once for all vectors. The left operand is
//! read where it lies, so that a convolution's windows need not be gathered. Bias, bounds and
//! residual are applied before the sums leave their registers (Goto and van de Geijn, *Anatomy of
//! High-Performance Matrix Multiplication*, 2008; Dukhan, *The Indirect Convolution Algorithm*,
//! 2019).
//!
//! The last vector ends with the last column: where the columns are no multiple of a vector's lanes, its
//! first ones are computed and stored twice, which is faster than to store a part of a vector.

use super::aligned::Aligned;
use super::arch::Arch;
use super::finish::Finish;
use super::micro::{Block, Kernel, LINE, Rows, VECTORS, VectorSpan};
use super::shelf::Shelf;
use super::tile::Tile;
use pulp::{Simd, WithSimd};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Most rows whose sums are held in registers: of machines with 32 vector registers, and of others.
/// WebAssembly does not say which it runs on: four rows of two vectors, with what they are multiplied with, are within the 15 that
/// engines give on x86.
const HEIGHTS: [usize; 2] = if cfg!(target_family = "wasm") { [4, 4] } else { [MAX_HEIGHT, 6] };

/// The highest micro-kernel.
const MAX_HEIGHT: usize = if cfg!(target_family = "wasm") { 6 } else { 12 };

/// Values that a core's own caches may still hold when they are wanted again.
const NEARBY: usize = 64 * 1024;

/// Rows of a panel that are packed together.
const PACKED_ROWS: usize = 32;

/// The column in a slot of the panels: the last vector ends with the last column, if there are as many columns as
/// lanes.
fn column_of(slot: usize, columns: usize, lanes: usize) -> Option<usize> {
    let first = slot - slot % lanes;
    let column =
        if first + lanes > columns && columns >= lanes { columns - lanes } else { first } + slot % lanes;
    (column < columns).then_some(column)
}

/// The values of a matrix of `depth x columns`.
#[derive(Debug)]
pub(crate) enum Weights<'w> {
    /// Column after column.
    Columns(Cow<'w, [f32]>),
    /// Row after row.
    Rows(Cow<'w, [f32]>),
}

impl<'w> From<Cow<'w, [f32]>> for Weights<'w> {
    fn from(columns: Cow<'w, [f32]>) -> Self {
        Weights::Columns(columns)
    }
}

impl From<Vec<f32>> for Weights<'_> {
    fn from(columns: Vec<f32>) -> Self {
        Weights::Columns(columns.into())
    }
}

impl<'w> From<&'w [f32]> for Weights<'w> {
    fn from(columns: &'w [f32]) -> Self {
        Weights::Columns(columns.into())
    }
}

/// Packs `weights` whose rows lie one behind the other.
fn pack_rows(weights: &[f32], values: &mut [f32], [depth, columns, lanes]: [usize; 3]) {
    let width = VECTORS * lanes;
    for (panel, values) in values.chunks_mut((depth * width).max(1)).enumerate() {
        let own = values.len() / depth.max(1);
        // The columns of the panel: vectors of neighbours.
        let first = |vector: usize| column_of(panel * width + vector * lanes, columns, lanes);
        let vectors: Vec<Option<usize>> = (0..own.div_ceil(lanes)).map(first).collect();
        for (row, values) in values.chunks_mut(own.max(1)).enumerate() {
            let Some(source) = weights.get(row * columns..(row + 1) * columns) else { continue };
            for (to, column) in values.chunks_mut(lanes).zip(&vectors) {
                let Some(from) = column.and_then(|column| source.get(column..)) else { continue };
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
        }
    }
}

/// A matrix of `depth x columns`, packed.
#[derive(Debug, Clone)]
pub(crate) struct Panels {
    depth: usize,
    columns: usize,
    /// Panel after panel; with fewer columns than lanes, those beyond the last are zeros.
    values: Arc<Aligned>,
    /// What the sums begin with, laid out as the panels' columns.
    bias: Vec<f32>,
    /// The activation's slopes, as many, if it has any.
    slopes: Vec<f32>,
    /// Columns of a panel. The last has half as many where that is enough.
    width: usize,
    height: usize,
    arch: Arch,
}

impl Panels {
    /// Packs `weights`; their number is checked by the caller. Sums begin
    /// with `bias`, if there is one. `name` says on the shelf which of the op's constants they are, and how they lie.
    pub(crate) fn new<'w, W: Into<Weights<'w>>>(
        [depth, columns]: [usize; 2],
        weights: impl FnOnce() -> W,
        bias_of: Option<&[f32]>,
        (shelf, name): (Shelf<'_>, &str),
    ) -> Self {
        let (arch, lanes) = lanes_for(Some(columns));
        let (_, registers) = arch.dispatch(Machine);
        let width = VECTORS * lanes;
        let padded = columns.next_multiple_of(lanes);
        let values = shelf.packed(name, [depth, columns, lanes], || {
            let weights = weights().into();
            let mut values = Aligned::zeros(depth * padded);
            match weights {
                Weights::Columns(weights) => {
                    arch.dispatch(Pack { weights: &weights, values: &mut values, depth, columns });
                }
                Weights::Rows(weights) => pack_rows(&weights, &mut values, [depth, columns, lanes]),
            }
            values
        });
        let height = HEIGHTS[usize::from(registers < 32)];
        let (bias, slopes) = (vec![0.0; padded], Vec::new());
        let mut panels = Panels { depth, columns, values, bias, slopes, width, height, arch };
        if let Some(bias) = bias_of {
            panels.bias = panels.laid_out(bias);
        }
        panels
    }

    /// One value for each column, laid out as the panels' columns are.
    fn laid_out(&self, values: &[f32]) -> Vec<f32> {
        let column = |slot| column_of(slot, self.columns, self.width / VECTORS);
        let value = |slot| column(slot).and_then(|column| values.get(column)).copied().unwrap_or(0.0);
        (0..self.bias.len()).map(value).collect()
    }

    /// The slopes of the columns, for [`After::Slopes`].
    pub(crate) fn with_slopes(mut self, slopes: &[f32]) -> Self {
        self.slopes = self.laid_out(slopes);
        self
    }

    /// Columns of a panel: what a cut between columns should be a multiple of.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Writes the products of `rows` with `columns` (whole panels, or up to the last column), which
    /// are the columns of `dst` from `at` on.
    pub(crate) fn multiply(
        &self,
        rows: Rows<'_>,
        columns: Range<usize>,
        dst: &mut Tile<'_>,
        at: usize,
        finish: Finish<'_>,
    ) {
        let lanes = self.width / VECTORS;
        let count = (rows.lines * rows.per_line).max(1);
        // Each panel is read for all rows before the next: the rows stay in the second-level cache.
        for column in columns.clone().step_by(self.width) {
            let padded = (columns.end - column).next_multiple_of(lanes).min(self.width);
            // Where vectors lie in the tile. The last may begin in front of it.
            let vectors = [0, lanes].map(|lane| {
                let first =
                    column_of(column + lane.min(padded - lanes), self.columns, lanes).unwrap_or(column);
                let skipped = columns.start.saturating_sub(first);
                let taken = lanes.min(columns.end - first).saturating_sub(skipped);
                VectorSpan { first: at + first + skipped - columns.start, skipped, taken }
            });
            let next = self.next(column + padded, columns.end);
            let block = Block {
                rows,
                line: 0,
                row: 0,
                blocks: 0,
                panel: self
                    .values
                    .get(column * self.depth..(column + padded) * self.depth)
                    .unwrap_or_default(),
                next,
                ahead: next.len() / LINE / count * LINE,
                bias: self.bias.get(column..column + padded).unwrap_or_default(),
                slopes: self.slopes.get(column..column + padded).unwrap_or_default(),
                dst,
                vectors,
                finish,
            };
            self.panel(block, padded / lanes);
        }
    }

    /// The panel of `column`, before column `end`, if all panels are more than a core's own caches may hold.
    fn next(&self, column: usize, end: usize) -> &[f32] {
        if self.values.len() < NEARBY || column >= end {
            return &[];
        }
        let last = (column + self.width).min(self.bias.len());
        self.values.get(column * self.depth..last * self.depth).unwrap_or_default()
    }

    /// Cuts each line into blocks of nearly the same height.
    fn panel(&self, mut block: Block<'_, '_>, vectors: usize) {
        let per_line = block.rows.per_line;
        // With one vector a row, twice as many rows fit.
        let height = if vectors == 1 { MAX_HEIGHT } else { self.height };
        let blocks = per_line.div_ceil(height);
        let (low, higher) = (per_line / blocks.max(1), per_line % blocks.max(1));
        for line in 0..block.rows.lines {
            block.line = line;
            block.row = 0;
            for (height, blocks) in [(low + 1, higher), (low, blocks - higher)] {
                block.blocks = blocks;
                self.dispatch(&mut block, height, vectors);
                block.row += height * blocks;
            }
        }
    }

    /// Runs the micro-kernel of this height and width.
    fn dispatch(&self, block: &mut Block<'_, '_>, height: usize, vectors: usize) {
        macro_rules! heights {
            ($($height:literal)*) => {
                match (height, vectors) {
                    $(
                        ($height, 1) => self.arch.dispatch(Kernel::<$height, 1>(block)),
                        ($height, 2) => self.arch.dispatch(Kernel::<$height, 2>(block)),
                    )*
                    _ => {}
                }
            };
        }
        // Each is a kernel of several kilobytes, which a page downloads.
        #[cfg(target_family = "wasm")]
        heights!(1 2 3 4 5 6);
        #[cfg(not(target_family = "wasm"))]
        heights!(1 2 3 4 5 6 7 8 9 10 11 12);
    }
}

/// The instruction set for rows of `columns` values, or of any number of them, and its lanes: where the widest
/// vectors would leave a fifth of their lanes idle that the next narrower ones use, these.
pub(crate) fn lanes_for(columns: Option<usize>) -> (Arch, usize) {
    let widest = Arch::new();
    let (lanes, _) = widest.dispatch(Machine);
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
    let _ = columns;
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    if let (Some(columns), Arch::V4(_), Some(v3)) = (columns, widest, pulp::x86::V3::try_new()) {
        let (narrower, (fewer, _)) = (Arch::V3(v3), Arch::V3(v3).dispatch(Machine));
        if 5 * columns.next_multiple_of(fewer) <= 4 * columns.next_multiple_of(lanes) {
            return (narrower, fewer);
        }
    }
    (widest, lanes)
}

/// Lays `columns x depth` weights out as panels.
struct Pack<'a> {
    weights: &'a [f32],
    values: &'a mut [f32],
    depth: usize,
    columns: usize,
}

impl WithSimd for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Pack { weights, values, depth, columns } = self;
        let width = VECTORS * S::F32_LANES;
        for (panel, values) in values.chunks_mut(depth * width).enumerate() {
            let own = values.len() / depth;
            // A few rows of a panel at a time, which the first-level cache holds.
            for (block, values) in values.chunks_mut(PACKED_ROWS * own).enumerate() {
                for slot in 0..own {
                    let Some(column) = column_of(panel * width + slot, columns, S::F32_LANES) else {
                        continue;
                    };
                    let first = column * depth + block * PACKED_ROWS;
                    let weights = weights.get(first..first + values.len() / own).unwrap_or_default();
                    // Indices, not iterators: whether those are inlined depends on the profile.
                    for row in 0..weights.len() {
                        values[row * own + slot] = weights[row];
                    }
                }
            }
        }
    }
}

/// The lanes of a vector and the number of registers.
struct Machine;

impl WithSimd for Machine {
    type Output = (usize, usize);

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        (S::F32_LANES, S::REGISTER_COUNT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::finish::After;

    /// Small integers, so that sums are exact in any order.
    fn numbers(len: usize) -> Vec<f32> {
        (0..len).map(|index| (index * 7 % 11) as f32 - 5.0).collect()
    }

    #[test]
    fn heights_widths_lines_and_taps_agree_with_plain_loops() {
        let (depth, lines) = (6, 2);
        for columns in [1, 7, 16, 17, 33, 70] {
            let (weights, bias) = (numbers(columns * depth), numbers(columns));
            let panels = Panels::new([depth, columns], || &weights[..], Some(&bias), (Shelf::default(), ""));
            for per_line in 1..=27 {
                // Two taps of three values, five apart; rows four apart; lines with a gap.
                let line_stride = 4 * per_line + 9;
                let src = numbers(1 + lines * line_stride);
                let rows = Rows {
                    src: &src,
                    first: 1,
                    lines,
                    line_stride,
                    per_line,
                    row_stride: 4,
                    taps: &[0, 5],
                    values: 3,
                };
                let count = lines * per_line;
                let residual = numbers(count * columns);
                let both = [false, true].map(|first| {
                    let mut dst = vec![f32::NAN; count * columns];
                    let after = After::Bounds([-20.0, 30.0]);
                    let finish = Finish { after, residual: Some(&residual), first, stride: columns };
                    let mut tile = Tile::Rows { data: &mut dst, columns };
                    panels.multiply(rows, 0..columns, &mut tile, 0, finish);
                    dst
                });
                for index in 0..count * columns {
                    let (row, column) = (index / columns, index % columns);
                    let first = 1 + row / per_line * line_stride + row % per_line * 4;
                    let value = |k: usize| src[first + k / 3 * 5 + k % 3];
                    let sum: f32 = (0..depth).map(|k| value(k) * weights[column * depth + k]).sum();
                    let (sum, residual) = (sum + bias[column], residual[index]);
                    let wanted = [sum.clamp(-20.0, 30.0) + residual, (sum + residual).clamp(-20.0, 30.0)];
                    let found = [both[0][index], both[1][index]];
                    assert_eq!(found, wanted, "row {row}, column {column}, {columns} x {per_line}");
                }
            }
        }
    }

    #[test]
    fn parts_of_rows_and_slopes_agree_with_whole_rows_and_bounds() {
        let (depth, count) = (5, 13);
        for columns in [3, 16, 21, 40, 47, 75] {
            let (weights, residual) = (numbers(columns * depth), numbers(count * columns));
            // With slopes of zero it is a ReLU.
            let panels = Panels::new([depth, columns], || &weights[..], None, (Shelf::default(), ""))
                .with_slopes(&vec![0.0; columns]);
            let src = numbers(count * depth);
            let rows = Rows {
                src: &src,
                first: 0,
                lines: 1,
                line_stride: 0,
                per_line: count,
                row_stride: depth,
                taps: &[0],
                values: depth,
            };
            let mut whole = vec![f32::NAN; count * columns];
            let after = After::Bounds([0.0, f32::INFINITY]);
            let finish = Finish { after, residual: Some(&residual), first: false, stride: columns };
            let mut tile = Tile::Rows { data: &mut whole, columns };
            panels.multiply(rows, 0..columns, &mut tile, 0, finish);
            let mut apart = vec![f32::NAN; count * columns];
            let width = panels.width();
            for first in (0..columns).step_by(width) {
                let part = first..columns.min(first + width);
                let parts = apart.chunks_mut(columns).map(|row| &mut row[part.clone()]);
                let mut tile = Tile::Parts(parts.collect());
                let residual = Some(&residual[first..]);
                let finish = Finish { after: After::Slopes, residual, first: false, stride: columns };
                panels.multiply(rows, part.clone(), &mut tile, 0, finish);
            }
            assert_eq!(apart, whole, "{columns} columns");
        }
    }
}
