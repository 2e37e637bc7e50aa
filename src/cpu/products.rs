//! Sums of products of vectors that lie at regular distances: the micro-kernel of a depthwise convolution.

use pulp::Simd;

/// Rows of sums, of which number `p` of row `r` is the sum over lines `a` and columns `b` of
/// `src[first + r * row + p * step + a * line[0] + b * column[0]..]`
/// ` * weights[place + a * line[1] + b * column[1]..]`, a vector each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Products<'a> {
    pub(crate) src: &'a [f32],
    pub(crate) weights: &'a [f32],
    pub(crate) rows: usize,
    /// The sums of a row.
    pub(crate) count: usize,
    pub(crate) first: usize,
    pub(crate) row: usize,
    pub(crate) step: usize,
    pub(crate) place: usize,
    pub(crate) lines: usize,
    pub(crate) line: [usize; 2],
    pub(crate) columns: usize,
    pub(crate) column: [usize; 2],
}

/// The sums of so many vectors, each a variable of its own as in [`super::panels`].
macro_rules! sums {
    ($($name:ident: $($index:literal $sum:ident $values:ident)*;)*) => {$(
        /// The sums of a row from number `done` on.
        ///
        /// # Safety
        /// [`Products::within`] must hold for vectors of `S`, and there must be so many sums.
        #[inline(always)]
        unsafe fn $name<S: Simd>(
            &self,
            simd: S,
            begin: S::f32s,
            [row, done]: [usize; 2],
            store: &mut impl FnMut(usize, usize, S::f32s),
        ) {
            $(let mut $sum = begin;)*
            for a in 0..self.lines {
                let first = self.first + row * self.row + done * self.step + a * self.line[0];
                // SAFETY: sums, lines and columns go up to their numbers, so `within` holds what is read below
                // within the two slices, and so the places that it is read from.
                unsafe {
                    $(let $values = self.src.as_ptr().add(first + $index * self.step);)*
                    let weights = self.weights.as_ptr().add(self.place + a * self.line[1]);
                    for b in 0..self.columns {
                        let weight = weights.add(b * self.column[1]).cast::<S::f32s>().read_unaligned();
                        let distance = b * self.column[0];
                        $(
                            let value = $values.add(distance).cast::<S::f32s>().read_unaligned();
                            $sum = simd.mul_add_e_f32s(value, weight, $sum);
                        )*
                    }
                }
            }
            $(store(row, done + $index, $sum);)*
        }
    )*};
}

impl Products<'_> {
    sums! {
        one: 0 s0 x0;
        two: 0 s0 x0 1 s1 x1;
        three: 0 s0 x0 1 s1 x1 2 s2 x2;
        four: 0 s0 x0 1 s1 x1 2 s2 x2 3 s3 x3;
        five: 0 s0 x0 1 s1 x1 2 s2 x2 3 s3 x3 4 s4 x4;
        six: 0 s0 x0 1 s1 x1 2 s2 x2 3 s3 x3 4 s4 x4 5 s5 x5;
        seven: 0 s0 x0 1 s1 x1 2 s2 x2 3 s3 x3 4 s4 x4 5 s5 x5 6 s6 x6;
        eight: 0 s0 x0 1 s1 x1 2 s2 x2 3 s3 x3 4 s4 x4 5 s5 x5 6 s6 x6 7 s7 x7;
    }

    /// Whether all vectors of `lanes` values that are read lie within the two slices.
    #[inline(always)]
    fn within(&self, lanes: usize) -> bool {
        let Products { row, step, line, column, .. } = *self;
        let counts = [self.rows, self.count, self.lines, self.columns].map(|count| count.saturating_sub(1));
        let end = |first: usize, steps: [usize; 4]| {
            let mut end = first.checked_add(lanes);
            for (count, step) in counts.into_iter().zip(steps) {
                end = count.checked_mul(step).and_then(|way| end?.checked_add(way));
            }
            end
        };
        end(self.first, [row, step, line[0], column[0]]).is_some_and(|end| end <= self.src.len())
            && end(self.place, [0, 0, line[1], column[1]]).is_some_and(|end| end <= self.weights.len())
    }

    /// Calls `store` with the row and the number of each sum, begun with `begin`. Lanes for which `src` has no
    /// values are 0 times their weights.
    #[inline(always)]
    pub(crate) fn each<S: Simd>(
        &self,
        simd: S,
        begin: S::f32s,
        mut store: impl FnMut(usize, usize, S::f32s),
    ) {
        let store = &mut store;
        if !self.within(S::F32_LANES) {
            return self.checked(simd, begin, store);
        }
        for row in 0..self.rows {
            let mut done = 0;
            while done < self.count {
                let together = (self.count - done).min(8);
                let first = [row, done];
                // SAFETY: `within` holds, and so many sums are left. `tests` run every number of sums up to the
                // ends of slices.
                unsafe {
                    match together {
                        8 => self.eight(simd, begin, first, store),
                        7 => self.seven(simd, begin, first, store),
                        6 => self.six(simd, begin, first, store),
                        5 => self.five(simd, begin, first, store),
                        4 => self.four(simd, begin, first, store),
                        3 => self.three(simd, begin, first, store),
                        2 => self.two(simd, begin, first, store),
                        _ => self.one(simd, begin, first, store),
                    }
                }
                done += together;
            }
        }
    }

    /// The same where the slices may end before a vector does.
    #[inline(always)]
    fn checked<S: Simd>(&self, simd: S, begin: S::f32s, store: &mut impl FnMut(usize, usize, S::f32s)) {
        for index in 0..self.rows * self.count {
            let (row, p) = (index / self.count, index % self.count);
            let first = self.first + row * self.row + p * self.step;
            let mut sum = begin;
            for a in 0..self.lines {
                for b in 0..self.columns {
                    let src = first + a * self.line[0] + b * self.column[0];
                    let weight = self.place + a * self.line[1] + b * self.column[1];
                    let (value, weight) = (load(simd, self.src, src), load(simd, self.weights, weight));
                    sum = simd.mul_add_e_f32s(value, weight, sum);
                }
            }
            store(row, p, sum);
        }
    }
}

/// The vector of `values` from `start` on; zeros where they end.
#[inline(always)]
pub(crate) fn load<S: Simd>(simd: S, values: &[f32], start: usize) -> S::f32s {
    let values = values.get(start..).unwrap_or_default();
    match values.get(..S::F32_LANES) {
        Some(whole) => match S::as_simd_f32s(whole).0.first() {
            Some(vector) => *vector,
            None => simd.splat_f32s(0.0),
        },
        None => simd.partial_load_f32s(values),
    }
}

/// Stores the first values of a vector at `start`, as many as `lanes`; nothing where `values` ends before.
#[inline(always)]
pub(crate) fn store<S: Simd>(simd: S, values: &mut [f32], start: usize, lanes: usize, vector: S::f32s) {
    let Some(values) = values.get_mut(start..start + lanes) else { return };
    match S::as_mut_simd_f32s(values).0.first_mut() {
        Some(whole) => *whole = vector,
        None => simd.partial_store_f32s(values, vector),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulp::{Arch, WithSimd};

    struct Each<'a>(Products<'a>, &'a mut Vec<f32>);

    impl WithSimd for Each<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Each(products, sums) = self;
            products.each(simd, simd.splat_f32s(1.0), |_, _, sum| {
                sums.extend_from_slice(
                    bytemuck::bytes_of(&sum).chunks_exact(4).map(f32_of).collect::<Vec<_>>().as_slice(),
                );
            });
        }
    }

    fn f32_of(bytes: &[u8]) -> f32 {
        f32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    #[test]
    fn sums_end_where_their_slices_do() {
        for count in 0..=19 {
            for missing in [0, 1, 5, 40] {
                let (rows, row, lines, columns, step) = (2, 50, 2, 3, 2);
                let len = (row + count * step + 7 + 2 + 16usize).saturating_sub(missing);
                let src: Vec<f32> = (0..len).map(|x| (x % 13) as f32).collect();
                let weights: Vec<f32> = (0..16 + 2 * 5).map(|x| (x % 7) as f32 - 3.0).collect();
                let (line, column) = ([7, 5], [1, 2]);
                let products = Products {
                    src: &src,
                    weights: &weights,
                    rows,
                    count,
                    first: 0,
                    row,
                    step,
                    place: 0,
                    lines,
                    line,
                    columns,
                    column,
                };
                let mut found = Vec::new();
                Arch::new().dispatch(Each(products, &mut found));
                let lanes = if count == 0 { 1 } else { found.len() / (rows * count) };
                for (index, found) in found.iter().enumerate() {
                    let (r, p, lane) = (index / lanes / count, index / lanes % count, index % lanes);
                    let taps = (0..lines).flat_map(|a| (0..columns).map(move |b| (a, b)));
                    let products = taps.map(|(a, b)| {
                        let value = src.get(r * row + p * step + a * line[0] + b * column[0] + lane);
                        let weight = weights.get(a * line[1] + b * column[1] + lane);
                        value.unwrap_or(&0.0) * weight.unwrap_or(&0.0)
                    });
                    assert_eq!(*found, 1.0 + products.sum::<f32>(), "{p} of {count}, lane {lane}, {missing}");
                }
            }
        }
    }
}
