//! A constant right operand, packed once, and the micro-kernel that multiplies rows with it.
//!
//! A panel is `V` vectors of neighbouring columns, their values for one `k` side by side, `k` after
//! `k`. The micro-kernel holds the sums of up to [`HEIGHTS`] rows of a panel in registers: a vector of the
//! panel is loaded once for all rows, a value of a row once for all vectors. The left operand is
//! read where it lies, so that a convolution's windows need not be gathered. Bias, bounds and
//! residual are applied before the sums leave their registers (Goto and van de Geijn, *Anatomy of
//! High-Performance Matrix Multiplication*, 2008; Dukhan, *The Indirect Convolution Algorithm*,
//! 2019).

use super::tail::bounded;
use super::tile::Tile;
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Vectors of a panel.
const VECTORS: usize = 2;

/// Most rows whose sums are held in registers: of machines with 32 vector registers, and of others.
const HEIGHTS: [usize; 2] = [12, 6];

/// A matrix of `depth x columns`, packed.
#[derive(Debug, Clone)]
pub(crate) struct Panels {
    depth: usize,
    /// Panel after panel; the columns beyond the last are zeros.
    values: Vec<f32>,
    /// What the sums begin with, as long as the panels are wide.
    bias: Vec<f32>,
    /// Columns of a panel. The last has half as many where that is enough.
    width: usize,
    height: usize,
    arch: Arch,
}

/// The left operand within a slice: `lines` lines of `per_line` rows. A row's values are, tap after
/// tap, the `values` numbers from `first + line * line_stride + row * row_stride + taps[tap]` on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) src: &'a [f32],
    pub(crate) first: usize,
    pub(crate) lines: usize,
    pub(crate) line_stride: usize,
    pub(crate) per_line: usize,
    pub(crate) row_stride: usize,
    pub(crate) taps: &'a [usize],
    pub(crate) values: usize,
}

/// What becomes of sums before they are stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finish<'a> {
    pub(crate) bounds: Option<[f32; 2]>,
    /// Added last, or first of all; laid out as the whole rows of the destination, `stride` apart, from the
    /// tile's first row on.
    pub(crate) residual: Option<&'a [f32]>,
    /// Whether the residual is added before the bounds are applied.
    pub(crate) first: bool,
    pub(crate) stride: usize,
}

impl Panels {
    /// Packs `weights`, which is `columns x depth`; its length is checked by the caller. Sums begin
    /// with `bias`, if there is one.
    pub(crate) fn new(depth: usize, columns: usize, weights: &[f32], bias: Option<&[f32]>) -> Self {
        let arch = Arch::new();
        let (lanes, registers) = arch.dispatch(Machine);
        let width = VECTORS * lanes;
        let padded = columns.next_multiple_of(lanes);
        let mut values = vec![0.0; depth * padded];
        for (panel, weights) in values.chunks_mut(depth * width).zip(weights.chunks(depth * width)) {
            let width = panel.len() / depth;
            for (column, weights) in weights.chunks_exact(depth).enumerate() {
                for (value, slot) in weights.iter().zip(panel.iter_mut().skip(column).step_by(width)) {
                    *slot = *value;
                }
            }
        }
        let mut bias = bias.map(<[f32]>::to_vec).unwrap_or_default();
        bias.resize(padded, 0.0);
        let height = HEIGHTS[usize::from(registers < 32)];
        Panels { depth, values, bias, width, height, arch }
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
        // Each panel is read for all rows before the next: the rows stay in the second-level cache.
        for column in columns.clone().step_by(self.width) {
            let padded = (columns.end - column).next_multiple_of(lanes).min(self.width);
            let block = Block {
                rows,
                line: 0,
                row: 0,
                blocks: 0,
                panel: self
                    .values
                    .get(column * self.depth..(column + padded) * self.depth)
                    .unwrap_or_default(),
                bias: self.bias.get(column..column + padded).unwrap_or_default(),
                dst,
                columns: padded.min(columns.end - column),
                at: at + column - columns.start,
                finish,
            };
            self.panel(block, padded / lanes);
        }
    }

    /// Cuts each line into blocks of nearly the same height.
    fn panel(&self, mut block: Block<'_, '_>, vectors: usize) {
        let per_line = block.rows.per_line;
        let blocks = per_line.div_ceil(self.height);
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
        heights!(1 2 3 4 5 6 7 8 9 10 11 12);
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

/// `blocks` blocks of rows, one after the other within a line, and one panel.
struct Block<'a, 'd> {
    rows: Rows<'a>,
    line: usize,
    /// First row, within the line.
    row: usize,
    blocks: usize,
    panel: &'a [f32],
    bias: &'a [f32],
    dst: &'a mut Tile<'d>,
    /// Columns of the panel that there are.
    columns: usize,
    /// Their place in the tile.
    at: usize,
    finish: Finish<'a>,
}

/// The micro-kernel: `M` rows, `V` vectors of columns.
struct Kernel<'b, 'a, 'd, const M: usize, const V: usize>(&'b mut Block<'a, 'd>);

impl<const M: usize, const V: usize> WithSimd for Kernel<'_, '_, '_, M, V> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let block = self.0;
        let rows = block.rows;
        let panel = S::as_simd_f32s(block.panel).0.as_chunks::<V>().0;
        let Some(bias) = S::as_simd_f32s(block.bias).0.first_chunk::<V>() else { return };
        for index in 0..block.blocks {
            let row = block.row + index * M;
            let first = rows.first + block.line * rows.line_stride + row * rows.row_stride;
            let mut sums = per_row([bias[0], bias[V - 1]]);
            for (tap, panel) in rows.taps.iter().zip(panel.chunks_exact(rows.values)) {
                let src = rows.src.get(first + tap..).unwrap_or_default();
                add_products::<S, M, V>(simd, src, rows.row_stride, panel, &mut sums);
            }
            block.store::<S, M, V>(simd, block.line * rows.per_line + row, &sums);
        }
    }
}

/// One of something for each row that a block may have.
type PerRow<T> = [T; 12];

/// The same for each row.
#[inline(always)]
fn per_row<T: Copy>(one: T) -> PerRow<T> {
    [one, one, one, one, one, one, one, one, one, one, one, one]
}

/// Its body for each row of `0..$rows`, with the row a constant `$row`.
///
/// An array of sums lies in registers only if no index into it is left when the compiler looks, and
/// whether it has unrolled a loop by then depends on the profile: here, and in [`per_row`], there are
/// no loops to unroll.
macro_rules! for_each_row {
    ($rows:ident, $row:ident, $body:block) => {
        for_each_row!($rows, $row, $body, 0 1 2 3 4 5 6 7 8 9 10 11)
    };
    ($rows:ident, $row:ident, $body:block, $($index:literal)*) => {
        $(if $index < $rows {
            const $row: usize = $index;
            $body
        })*
    };
}

/// `sums[m][v] += src[m * stride + k] * panel[k][v]` over all `k` of `panel`.
#[inline(always)]
fn add_products<S: Simd, const M: usize, const V: usize>(
    simd: S,
    src: &[f32],
    stride: usize,
    panel: &[[S::f32s; V]],
    sums: &mut PerRow<[S::f32s; VECTORS]>,
) {
    // Slices of exactly the panel's length: one check for each, none in the loop.
    let mut rows: PerRow<&[f32]> = per_row(&[]);
    for_each_row!(M, ROW, {
        let Some(values) = src.get(ROW * stride..) else { return };
        let Some(values) = values.get(..panel.len()) else { return };
        rows[ROW] = values;
    });
    let mut k = 0;
    while k < panel.len() {
        let columns = &panel[k];
        for_each_row!(M, ROW, {
            let value = simd.splat_f32s(rows[ROW][k]);
            sums[ROW][0] = simd.mul_add_e_f32s(value, columns[0], sums[ROW][0]);
            if V == 2 {
                sums[ROW][1] = simd.mul_add_e_f32s(value, columns[V - 1], sums[ROW][1]);
            }
        });
        k += 1;
    }
}

impl Block<'_, '_> {
    /// Finishes and stores the sums of the tile's rows from `row` on.
    #[inline(always)]
    fn store<S: Simd, const M: usize, const V: usize>(
        &mut self,
        simd: S,
        row: usize,
        sums: &PerRow<[S::f32s; VECTORS]>,
    ) {
        for_each_row!(M, ROW, {
            self.store_vector(simd, row + ROW, 0, sums[ROW][0]);
            if V == 2 {
                self.store_vector(simd, row + ROW, S::F32_LANES, sums[ROW][1]);
            }
        });
    }

    /// Finishes and stores one row's sums of the panel's columns from `column` on.
    #[inline(always)]
    fn store_vector<S: Simd>(&mut self, simd: S, row: usize, column: usize, sum: S::f32s) {
        let Finish { bounds, residual, first, stride } = self.finish;
        let columns = self.at + column..self.at + self.columns.min(column + S::F32_LANES);
        let residual = residual.map(|residual| {
            let start = row * stride;
            let values = residual.get(start + columns.start..start + columns.end).unwrap_or_default();
            simd.partial_load_f32s(values)
        });
        let add = |sum: S::f32s, here: bool| match residual {
            Some(residual) if here => simd.add_f32s(sum, residual),
            _ => sum,
        };
        let sum = add(bounded(simd, add(sum, first), bounds), !first);
        let Some(dst) = self.dst.row(row).get_mut(columns) else { return };
        match S::as_mut_simd_f32s(dst).0.first_mut() {
            Some(whole) => *whole = sum,
            None => simd.partial_store_f32s(dst, sum),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small integers, so that sums are exact in any order.
    fn numbers(len: usize) -> Vec<f32> {
        (0..len).map(|index| (index * 7 % 11) as f32 - 5.0).collect()
    }

    #[test]
    fn heights_widths_lines_and_taps_agree_with_plain_loops() {
        let (depth, lines) = (6, 2);
        for columns in [1, 7, 16, 17, 33, 70] {
            let (weights, bias) = (numbers(columns * depth), numbers(columns));
            let panels = Panels::new(depth, columns, &weights, Some(&bias));
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
                    let bounds = Some([-20.0, 30.0]);
                    let finish = Finish { bounds, residual: Some(&residual), first, stride: columns };
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
}
