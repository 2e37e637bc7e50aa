//! The micro-kernel that multiplies rows with a panel: [`super::panels`].

use super::finish::{After, Finish};
use super::tile::Tile;
use pulp::{Simd, WithSimd};

/// Vectors of a panel.
pub(super) const VECTORS: usize = 2;

/// The most lanes of a vector.
const MAX_LANES: usize = 16;

/// Values of a cache line.
pub(super) const LINE: usize = 16;

/// `blocks` blocks of rows, one after the other within a line, and one panel.
pub(super) struct Block<'a, 'd> {
    pub(super) rows: Rows<'a>,
    pub(super) line: usize,
    /// First row, within the line.
    pub(super) row: usize,
    pub(super) blocks: usize,
    pub(super) panel: &'a [f32],
    /// The panel that comes next.
    pub(super) next: &'a [f32],
    /// Values of it that each row brings near, in whole cache lines.
    pub(super) ahead: usize,
    pub(super) bias: &'a [f32],
    pub(super) slopes: &'a [f32],
    pub(super) dst: &'a mut Tile<'d>,
    /// Where the panel's vectors lie in the tile; with one vector, twice the same.
    pub(super) vectors: [VectorSpan; VECTORS],
    pub(super) finish: Finish<'a>,
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

/// Where a vector lies in a row of the tile.
#[derive(Debug, Clone, Copy)]
pub(super) struct VectorSpan {
    #[doc(hidden)]
    pub first: usize,
    /// Lanes in front of the tile.
    pub(super) skipped: usize,
    /// Lanes within it.
    pub(super) taken: usize,
}

/// The micro-kernel: `M` rows, `V` vectors of columns.
pub(super) struct Kernel<'b, 'a, 'd, const M: usize, const V: usize>(pub(super) &'b mut Block<'a, 'd>);

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
                if panel.len() < taps.len().saturating_mul(run) {
                    return;
                }
                let whole = block.whole(S::F32_LANES);
                let [place, next] = block.vectors.map(|vector| vector.first);
                let end = place.max(next).saturating_add(S::F32_LANES);
                let slopes = block.slopes::<S, V>(simd);
                let mut next_row = block.row;
                let end_row = next_row + block.blocks * $height;
                while next_row < end_row {
                    let row = next_row;
                    next_row += $height;
                    let first = block.rows.first + block.line * block.rows.line_stride + row * row_stride;
                    // What is written, and a share of the next panel, comes to the cache while the sums are computed.
                    if let Tile::Rows { data, columns } = &*block.dst {
                        let row = (block.line * block.rows.per_line + row) * *columns;
                        let target = data.as_ptr().wrapping_add(row);
                        $(
                            fetch(target.wrapping_add($row * *columns + place), false);
                            if V == 2 {
                                fetch(target.wrapping_add($row * *columns + next), false);
                            }
                        )*
                    }
                    let [mut ahead, ahead_end] = block.ahead(row, $height);
                    $(let (mut $sum, mut $other) = (bias[0], bias[V - 1]);)*
                    // Plain loops: a compiler may leave the functions of iterators outside of one as long as this.
                    let (mut tap, mut columns) = (0, panel.as_ptr());
                    while let Some(offset) = taps.get(tap) {
                        // One check for all rows.
                        let reach = row_stride.saturating_mul($height - 1).saturating_add(run);
                        let start = first + offset;
                        let Some(src) = src.get(start..start.saturating_add(reach)) else { return };
                        $(let $values = src.as_ptr().wrapping_add($row * row_stride);)*
                        let mut k = 0;
                        // One step at a time: where several were written one after the other, WebAssembly's compilers kept so
                        // many values at once that an x86 CPU's registers did not hold them, and a step took 1.6 times as long.
                        while k < run {
                            if ahead < ahead_end {
                                fetch(ahead, true);
                                ahead = ahead.wrapping_add(LINE);
                            }
                            // SAFETY: the panel has as many vectors as there are values, which was checked above.
                            let own = unsafe { *columns };
                            columns = columns.wrapping_add(1);
                            $(
                                // SAFETY: `k` is less than `run`, so the place lies within `reach` values.
                                let value = simd.splat_f32s(unsafe { *$values.add(k) });
                                $sum = simd.mul_add_e_f32s(value, own[0], $sum);
                                if V == 2 {
                                    $other = simd.mul_add_e_f32s(value, own[V - 1], $other);
                                }
                            )*
                            k += 1;
                        }
                        tap += 1;
                    }
                    let row = block.line * block.rows.per_line + row;
                    let Finish { after, residual, first, stride: apart } = block.finish;
                    // Beyond the last vector of the tile there may be too few values for whole ones.
                    let targets = match block.dst {
                        Tile::Rows { data, columns } if whole => {
                            let reach = columns.saturating_mul($height - 1).saturating_add(end);
                            let start = row * *columns;
                            data.get_mut(start..start.saturating_add(reach)).map(|data| (data, *columns))
                        }
                        _ => None,
                    };
                    let residuals = match residual {
                        None => Some(None),
                        Some(values) => {
                            let reach = apart.saturating_mul($height - 1).saturating_add(end);
                            values.get(row * apart..(row * apart).saturating_add(reach)).map(Some)
                        }
                    };
                    let (Some((data, stride)), Some(residual)) = (targets, residuals) else {
                        $(block.store::<S, V>(simd, row + $row, [$sum, $other], slopes);)*
                        continue;
                    };
                    let (data, residual) = (data.as_mut_ptr(), residual.map(<[f32]>::as_ptr));
                    $(
                        // SAFETY: row and vectors lie within `reach` values of both slices.
                        unsafe {
                            let row = data.add($row * stride);
                            let residual = match residual {
                                Some(values) => Some(values.add($row * apart)),
                                None => None,
                            };
                            let sum = finished(simd, $sum, after, slopes[0], residual, place, first);
                            row.add(place).cast::<S::f32s>().write_unaligned(sum);
                            if V == 2 {
                                let sum = finished(simd, $other, after, slopes[1], residual, next, first);
                                row.add(next).cast::<S::f32s>().write_unaligned(sum);
                            }
                        }
                    )*
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
/// `residual` must have a vector of `S` at `place`.
#[inline(always)]
unsafe fn finished<S: Simd>(
    simd: S,
    sum: S::f32s,
    after: After,
    slope: S::f32s,
    residual: Option<*const f32>,
    place: usize,
    first: bool,
) -> S::f32s {
    let Some(residual) = residual else { return after.apply(simd, sum, slope) };
    // SAFETY: there is a vector.
    let residual = unsafe { residual.add(place).cast::<S::f32s>().read_unaligned() };
    with_residual(simd, sum, after, slope, residual, first)
}

#[inline(always)]
fn with_residual<S: Simd>(
    simd: S,
    sum: S::f32s,
    after: After,
    slope: S::f32s,
    residual: S::f32s,
    first: bool,
) -> S::f32s {
    if first {
        after.apply(simd, simd.add_f32s(sum, residual), slope)
    } else {
        simd.add_f32s(after.apply(simd, sum, slope), residual)
    }
}

impl Block<'_, '_> {
    /// The share of the next panel that the `height` rows from `row` on bring near: where it begins and ends.
    #[inline(always)]
    fn ahead(&self, row: usize, height: usize) -> [*const f32; 2] {
        let done = self.line * self.rows.per_line + row;
        [done, done + height].map(|rows| self.next.as_ptr().wrapping_add(rows * self.ahead))
    }

    /// Whether vectors are stored whole. One that has fewer columns than lanes is, if it is all that the tile's rows
    /// have: what it stores beyond a row is stored again with the next one.
    fn whole(&self, lanes: usize) -> bool {
        let all = self.vectors.iter().all(|vector| vector.taken == lanes);
        let VectorSpan { skipped, taken, .. } = self.vectors[0];
        let only = matches!(&*self.dst, Tile::Rows { columns, .. } if *columns == taken && skipped == 0);
        all || only
    }

    /// The slopes of the panel's columns; zeros where it has none.
    #[inline(always)]
    fn slopes<S: Simd, const V: usize>(&self, simd: S) -> [S::f32s; 2] {
        match S::as_simd_f32s(self.slopes).0.first_chunk::<V>() {
            Some(slopes) => [slopes[0], slopes[V - 1]],
            None => [simd.splat_f32s(0.0); 2],
        }
    }

    /// Finishes and stores the sums of one row.
    #[inline(always)]
    fn store<S: Simd, const V: usize>(
        &mut self,
        simd: S,
        row: usize,
        sums: [S::f32s; 2],
        slopes: [S::f32s; 2],
    ) {
        let Finish { after, residual, first, stride } = self.finish;
        for vector in 0..V {
            let VectorSpan { first: place, skipped, taken } = self.vectors[vector];
            let lanes = skipped..skipped + taken;
            // A part of a vector goes by way of memory.
            let mut part = [0.0; MAX_LANES];
            let sum = match residual {
                None => after.apply(simd, sums[vector], slopes[vector]),
                Some(values) => {
                    let start = row * stride + place;
                    let (Some(values), Some(slots)) =
                        (values.get(start..start + taken), part.get_mut(lanes.clone()))
                    else {
                        return;
                    };
                    slots.copy_from_slice(values);
                    let Some(residual) = S::as_simd_f32s(&part).0.first() else { return };
                    with_residual(simd, sums[vector], after, slopes[vector], *residual, first)
                }
            };
            let Some(whole) = S::as_mut_simd_f32s(&mut part).0.first_mut() else { return };
            *whole = sum;
            let dst = self.dst.row(row).get_mut(place..place + taken);
            if let (Some(dst), Some(values)) = (dst, part.get(lanes)) {
                dst.copy_from_slice(values);
            }
        }
    }
}

/// Asks for the cache line at `place` to be brought to the nearest cache, soon to be read or written; or, if it is for
/// `later`, to the next one. Nothing is touched: any address will do.
#[inline(always)]
fn fetch(place: *const f32, later: bool) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: an address that is not mapped is left alone.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        match later {
            false => _mm_prefetch::<_MM_HINT_T0>(place.cast()),
            true => _mm_prefetch::<_MM_HINT_T1>(place.cast()),
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (place, later);
}
