//! A constant right operand, packed once, and the micro-kernel that multiplies rows with it.
//!
//! A panel is `V` vectors of neighbouring columns, their values for one `k` side by side, `k` after
//! `k`. The micro-kernel holds the sums of up to [`HEIGHTS`] rows of a panel in registers: a vector of the
//! panel is loaded once for all rows, a value of a row once for all vectors. The left operand is
//! read where it lies, so that a convolution's windows need not be gathered. Bias, bounds and
//! residual are applied before the sums leave their registers (Goto and van de Geijn, *Anatomy of
//! High-Performance Matrix Multiplication*, 2008; Dukhan, *The Indirect Convolution Algorithm*,
//! 2019).

use super::aligned::Aligned;
use super::tail::After;
use super::tile::Tile;
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Vectors of a panel.
const VECTORS: usize = 2;

/// Most rows whose sums are held in registers: of machines with 32 vector registers, and of others.
const HEIGHTS: [usize; 2] = [MAX_HEIGHT, 6];

/// The highest micro-kernel.
const MAX_HEIGHT: usize = 12;

/// A matrix of `depth x columns`, packed.
#[derive(Debug, Clone)]
pub(crate) struct Panels {
    depth: usize,
    /// Panel after panel; the columns beyond the last are zeros.
    values: Aligned,
    /// What the sums begin with, as long as the panels are wide.
    bias: Vec<f32>,
    /// The activation's slopes, as many, if it has any.
    slopes: Vec<f32>,
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
    pub(crate) after: After,
    /// Added last, or first of all; laid out as the whole rows of the destination, `stride` apart, from the
    /// tile's first row on.
    pub(crate) residual: Option<&'a [f32]>,
    /// Whether the residual is added before the activation.
    pub(crate) first: bool,
    pub(crate) stride: usize,
}

impl Panels {
    /// Packs `weights`, which is `columns x depth`; its length is checked by the caller. Sums begin
    /// with `bias`, if there is one.
    pub(crate) fn new(depth: usize, columns: usize, weights: &[f32], bias: Option<&[f32]>) -> Self {
        let (arch, lanes) = lanes_for(Some(columns));
        let (_, registers) = arch.dispatch(Machine);
        let width = VECTORS * lanes;
        let padded = columns.next_multiple_of(lanes);
        let mut values = Aligned::zeros(depth * padded);
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
        Panels { depth, values, bias, slopes: Vec::new(), width, height, arch }
    }

    /// The slopes of the columns, for [`After::Slopes`].
    pub(crate) fn with_slopes(mut self, slopes: &[f32]) -> Self {
        self.slopes = slopes.to_vec();
        self.slopes.resize(self.bias.len(), 0.0);
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
                slopes: self.slopes.get(column..column + padded).unwrap_or_default(),
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
        heights!(1 2 3 4 5 6 7 8 9 10 11 12);
    }
}

/// The instruction set for rows of `columns` values, or of any number of them, and its lanes: where the widest
/// vectors would leave a fifth of their lanes idle that the next narrower ones use, these.
pub(crate) fn lanes_for(columns: Option<usize>) -> (Arch, usize) {
    let widest = Arch::new();
    let (lanes, _) = widest.dispatch(Machine);
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    if let (Some(columns), Arch::V4(_), Some(v3)) = (columns, widest, pulp::x86::V3::try_new()) {
        let (narrower, (fewer, _)) = (Arch::V3(v3), Arch::V3(v3).dispatch(Machine));
        if 5 * columns.next_multiple_of(fewer) <= 4 * columns.next_multiple_of(lanes) {
            return (narrower, fewer);
        }
    }
    (widest, lanes)
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
    slopes: &'a [f32],
    dst: &'a mut Tile<'d>,
    /// Columns of the panel that there are.
    columns: usize,
    /// Their place in the tile.
    at: usize,
    finish: Finish<'a>,
}

/// The micro-kernel: `M` rows, `V` vectors of columns.
struct Kernel<'b, 'a, 'd, const M: usize, const V: usize>(&'b mut Block<'a, 'd>);

/// The micro-kernel of each height, with the names of its rows' values and sums.
///
/// Each sum is a variable of its own: whether an array lies in registers depends on what the compiler has
/// inlined when it looks, and so on the profile and the number of crates.
macro_rules! kernels {
    ($($height:literal: $($row:literal $values:ident $sum:ident $other:ident),*;)*) => {$(
        impl<const V: usize> WithSimd for Kernel<'_, '_, '_, $height, V> {
            type Output = ();

            #[inline(always)]
            fn with_simd<S: Simd>(self, simd: S) {
                let block = self.0;
                let Rows { src, row_stride, taps, values: run, .. } = block.rows;
                let panel = S::as_simd_f32s(block.panel).0.as_chunks::<V>().0;
                let Some(bias) = S::as_simd_f32s(block.bias).0.first_chunk::<V>() else { return };
                let plain = block.plain(V * S::F32_LANES);
                for index in 0..block.blocks {
                    let row = block.row + index * $height;
                    let first = block.rows.first + block.line * block.rows.line_stride + row * row_stride;
                    $(let (mut $sum, mut $other) = (bias[0], bias[V - 1]);)*
                    for (tap, panel) in taps.iter().zip(panel.chunks_exact(run)) {
                        // One check for all rows.
                        let reach = row_stride.saturating_mul($height - 1).saturating_add(run);
                        let start = first + tap;
                        let Some(src) = src.get(start..start.saturating_add(reach)) else { return };
                        $(let $values = src.as_ptr().wrapping_add($row * row_stride);)*
                        for (k, columns) in panel.iter().enumerate() {
                            $(
                                // SAFETY: `k` is less than `run`, so the place lies within `reach` values.
                                let value = simd.splat_f32s(unsafe { *$values.add(k) });
                                $sum = simd.mul_add_e_f32s(value, columns[0], $sum);
                                if V == 2 {
                                    $other = simd.mul_add_e_f32s(value, columns[V - 1], $other);
                                }
                            )*
                        }
                    }
                    let row = block.line * block.rows.per_line + row;
                    match block.dst {
                        Tile::Rows { data, columns } if plain => {
                            let start = row * *columns + block.at;
                            let reach = columns.saturating_mul($height - 1).saturating_add(V * S::F32_LANES);
                            let Some(data) = data.get_mut(start..start.saturating_add(reach)) else { return };
                            let (stride, data) = (*columns, data.as_mut_ptr());
                            let Finish { after, residual, first, stride: apart } = block.finish;
                            let residual = match residual {
                                None => None,
                                Some(values) => {
                                    let reach = apart.saturating_mul($height - 1);
                                    let reach = reach.saturating_add(V * S::F32_LANES);
                                    let start = row * apart + block.at;
                                    let values = values.get(start..start.saturating_add(reach));
                                    let Some(values) = values else { return };
                                    Some(values.as_ptr())
                                }
                            };
                            $(
                                // SAFETY: row and vectors lie within `reach` values of both slices.
                                unsafe {
                                    let row = data.add($row * stride);
                                    let residual = match residual {
                                        Some(values) => Some(values.add($row * apart)),
                                        None => None,
                                    };
                                    let sum = finished(simd, $sum, after, residual, first);
                                    row.cast::<S::f32s>().write_unaligned(sum);
                                    if V == 2 {
                                        let residual = match residual {
                                            Some(values) => Some(values.add(S::F32_LANES)),
                                            None => None,
                                        };
                                        let sum = finished(simd, $other, after, residual, first);
                                        row.add(S::F32_LANES).cast::<S::f32s>().write_unaligned(sum);
                                    }
                                }
                            )*
                        }
                        _ => {
                            $(block.store::<S, V>(simd, row + $row, [$sum, $other]);)*
                        }
                    }
                }
            }
        }
    )*};
}

kernels! {
    1: 0 x0 a0 b0;
    2: 0 x0 a0 b0, 1 x1 a1 b1;
    3: 0 x0 a0 b0, 1 x1 a1 b1, 2 x2 a2 b2;
    4: 0 x0 a0 b0, 1 x1 a1 b1, 2 x2 a2 b2, 3 x3 a3 b3;
    5: 0 x0 a0 b0, 1 x1 a1 b1, 2 x2 a2 b2, 3 x3 a3 b3, 4 x4 a4 b4;
    6: 0 x0 a0 b0, 1 x1 a1 b1, 2 x2 a2 b2, 3 x3 a3 b3, 4 x4 a4 b4, 5 x5 a5 b5;
    7: 0 x0 a0 b0, 1 x1 a1 b1, 2 x2 a2 b2, 3 x3 a3 b3, 4 x4 a4 b4, 5 x5 a5 b5, 6 x6 a6 b6;
    8: 0 x0 a0 b0, 1 x1 a1 b1, 2 x2 a2 b2, 3 x3 a3 b3, 4 x4 a4 b4, 5 x5 a5 b5, 6 x6 a6 b6, 7 x7 a7 b7;
    9: 0 x0 a0 b0, 1 x1 a1 b1, 2 x2 a2 b2, 3 x3 a3 b3, 4 x4 a4 b4, 5 x5 a5 b5, 6 x6 a6 b6, 7 x7 a7 b7,
        8 x8 a8 b8;
    10: 0 x0 a0 b0, 1 x1 a1 b1, 2 x2 a2 b2, 3 x3 a3 b3, 4 x4 a4 b4, 5 x5 a5 b5, 6 x6 a6 b6, 7 x7 a7 b7,
        8 x8 a8 b8, 9 x9 a9 b9;
    11: 0 x0 a0 b0, 1 x1 a1 b1, 2 x2 a2 b2, 3 x3 a3 b3, 4 x4 a4 b4, 5 x5 a5 b5, 6 x6 a6 b6, 7 x7 a7 b7,
        8 x8 a8 b8, 9 x9 a9 b9, 10 x10 a10 b10;
    12: 0 x0 a0 b0, 1 x1 a1 b1, 2 x2 a2 b2, 3 x3 a3 b3, 4 x4 a4 b4, 5 x5 a5 b5, 6 x6 a6 b6, 7 x7 a7 b7,
        8 x8 a8 b8, 9 x9 a9 b9, 10 x10 a10 b10, 11 x11 a11 b11;
}

/// A sum after activation and residual.
///
/// # Safety
/// `residual` must be that of a vector of `S`.
#[inline(always)]
unsafe fn finished<S: Simd>(
    simd: S,
    sum: S::f32s,
    after: After,
    residual: Option<*const f32>,
    first: bool,
) -> S::f32s {
    let none = simd.splat_f32s(0.0);
    let Some(residual) = residual else { return after.apply(simd, sum, none) };
    // SAFETY: it is a vector's.
    let residual = unsafe { residual.cast::<S::f32s>().read_unaligned() };
    if first {
        after.apply(simd, simd.add_f32s(sum, residual), none)
    } else {
        simd.add_f32s(after.apply(simd, sum, none), residual)
    }
}

impl Block<'_, '_> {
    /// Whether sums of `width` columns are stored as whole vectors and have no slopes of their own.
    fn plain(&self, width: usize) -> bool {
        self.columns == width && self.slopes.is_empty()
    }

    /// Finishes and stores the sums of one row.
    #[inline(always)]
    fn store<S: Simd, const V: usize>(&mut self, simd: S, row: usize, sums: [S::f32s; 2]) {
        let Finish { after, residual, first, stride } = self.finish;
        let Some(dst) = self.dst.row(row).get_mut(self.at..self.at + self.columns) else { return };
        let (whole, rest) = S::as_mut_simd_f32s(dst);
        let slopes = S::as_simd_f32s(self.slopes).0;
        let start = row * stride + self.at;
        for vector in 0..V {
            let slope = match slopes.get(vector) {
                Some(slope) => *slope,
                None => simd.splat_f32s(0.0),
            };
            let sum = match residual {
                None => after.apply(simd, sums[vector], slope),
                Some(values) => {
                    let values = values.get(start..start + self.columns).unwrap_or_default();
                    let (all, rest) = S::as_simd_f32s(values);
                    let residual = match all.get(vector) {
                        Some(whole) => *whole,
                        None => simd.partial_load_f32s(rest),
                    };
                    if first {
                        after.apply(simd, simd.add_f32s(sums[vector], residual), slope)
                    } else {
                        simd.add_f32s(after.apply(simd, sums[vector], slope), residual)
                    }
                }
            };
            match whole.get_mut(vector) {
                Some(whole) => *whole = sum,
                None => simd.partial_store_f32s(rest, sum),
            }
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
}
