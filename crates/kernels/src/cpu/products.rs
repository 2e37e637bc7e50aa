//! Sums of products of vectors that lie at regular distances: the micro-kernel of a depthwise convolution.

use pulp::Simd;

/// Rows of groups of sums, of which vector `v` of group `p` of row `r` is the sum over lines `a` and columns `b` of
/// `src[first + r * row + p * step + v * lanes + a * line[0] + b * column[0]..]`
/// ` * weights[place + v * lanes + a * line[1] + b * column[1]..]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Products<'a> {
    pub(crate) src: &'a [f32],
    pub(crate) weights: &'a [f32],
    pub(crate) rows: usize,
    /// The groups of a row.
    pub(crate) count: usize,
    /// The vectors of a group.
    pub(crate) vectors: usize,
    pub(crate) first: usize,
    pub(crate) row: usize,
    pub(crate) step: usize,
    pub(crate) place: usize,
    pub(crate) lines: usize,
    pub(crate) line: [usize; 2],
    pub(crate) columns: usize,
    pub(crate) column: [usize; 2],
}

/// What becomes of a sum.
pub(crate) trait Store<S: Simd> {
    /// What the sums of vector `v` of each group begin with.
    fn begin(&self, simd: S, v: usize) -> S::f32s;

    /// Takes the sum of vector `v` of group `p` of row `row`.
    fn store(&mut self, simd: S, row: usize, p: usize, v: usize, sum: S::f32s);
}

/// The sums of the same vector of so many groups, each a variable of its own as in [`super::panels`].
macro_rules! sums {
    ($($name:ident: $($index:literal $sum:ident $values:ident)*;)*) => {$(
        /// Computes the sums of as many groups of row `row` as the name says, from group `done` on, vector after vector.
        ///
        /// # Safety
        /// [`Products::within`] must hold for vectors of `S`, and there must be so many groups.
        #[inline(always)]
        unsafe fn $name<S: Simd>(&self, simd: S, row: usize, done: usize, store: &mut impl Store<S>) {
            let first = self.first + row * self.row + done * self.step;
            for v in 0..self.vectors {
                let begin = store.begin(simd, v);
                $(let mut $sum = begin;)*
                for a in 0..self.lines {
                    let first = first + v * S::F32_LANES + a * self.line[0];
                    // SAFETY: rows, groups, vectors, lines and columns go up to their numbers, so `within` holds
                    // what is read below within the two slices, and so the places that it is read from.
                    unsafe {
                        $(let $values = self.src.as_ptr().add(first + $index * self.step);)*
                        let place = self.place + v * S::F32_LANES + a * self.line[1];
                        let weights = self.weights.as_ptr().add(place);
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
                $(store.store(simd, row, done + $index, v, $sum);)*
            }
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
    fn within(&self, lanes: usize) -> bool {
        let Products { row, step, line, column, .. } = *self;
        let counts = [self.rows, self.count, self.vectors, self.lines, self.columns];
        let end = |first: usize, steps: [usize; 5]| {
            let mut end = first.checked_add(lanes);
            for (count, step) in counts.into_iter().zip(steps) {
                end = count.saturating_sub(1).checked_mul(step).and_then(|way| end?.checked_add(way));
            }
            end
        };
        end(self.first, [row, step, lanes, line[0], column[0]]).is_some_and(|end| end <= self.src.len())
            && end(self.place, [0, 0, lanes, line[1], column[1]]).is_some_and(|end| end <= self.weights.len())
    }

    /// Hands each sum to `store`. Lanes for which `src` has no values are what the sum began with.
    #[inline(always)]
    pub(crate) fn each<S: Simd>(&self, simd: S, store: &mut impl Store<S>) {
        if !self.within(S::F32_LANES) {
            return self.checked(simd, store);
        }
        for row in 0..self.rows {
            let mut done = 0;
            while done < self.count {
                let together = (self.count - done).min(8);
                // SAFETY: `within` holds, and so many groups are left. The test below runs every number of groups
                // up to the ends of the slices.
                unsafe {
                    match together {
                        8 => self.eight(simd, row, done, store),
                        7 => self.seven(simd, row, done, store),
                        6 => self.six(simd, row, done, store),
                        5 => self.five(simd, row, done, store),
                        4 => self.four(simd, row, done, store),
                        3 => self.three(simd, row, done, store),
                        2 => self.two(simd, row, done, store),
                        _ => self.one(simd, row, done, store),
                    }
                }
                done += together;
            }
        }
    }

    /// [`Products::each`] where the slices may end before a vector does: what lies beyond them counts as 0.
    #[inline(always)]
    fn checked<S: Simd>(&self, simd: S, store: &mut impl Store<S>) {
        for index in 0..self.rows * self.count * self.vectors {
            let (group, v) = (index / self.vectors, index % self.vectors);
            let (row, p) = (group / self.count, group % self.count);
            let first = self.first + row * self.row + p * self.step + v * S::F32_LANES;
            let mut sum = store.begin(simd, v);
            for a in 0..self.lines {
                for b in 0..self.columns {
                    let src = first + a * self.line[0] + b * self.column[0];
                    let weight = self.place + v * S::F32_LANES + a * self.line[1] + b * self.column[1];
                    let (value, weight) = (load(simd, self.src, src), load(simd, self.weights, weight));
                    sum = simd.mul_add_e_f32s(value, weight, sum);
                }
            }
            store.store(simd, row, p, v, sum);
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

    /// The sums in order.
    struct All<'a>(&'a mut Vec<f32>);

    impl<S: Simd> Store<S> for All<'_> {
        #[inline(always)]
        fn begin(&self, simd: S, v: usize) -> S::f32s {
            simd.splat_f32s(1.0 + v as f32)
        }

        #[inline(always)]
        fn store(&mut self, simd: S, _: usize, _: usize, _: usize, sum: S::f32s) {
            let first = self.0.len();
            self.0.resize(first + S::F32_LANES, f32::NAN);
            store(simd, self.0, first, S::F32_LANES, sum);
        }
    }

    struct Each<'a>(Products<'a>, &'a mut Vec<f32>);

    impl WithSimd for Each<'_> {
        type Output = usize;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> usize {
            self.0.each(simd, &mut All(self.1));
            S::F32_LANES
        }
    }

    #[test]
    fn sums_end_where_their_slices_do() {
        let (rows, row, lines, columns, step, vectors) = (2, 50, 2, 3, 2, 2);
        let (line, column) = ([7, 37], [1, 2]);
        for count in 1..=19 {
            for missing in [0, 1, 5, 40] {
                let len = row + (count - 1) * step + 7 + 2 + 2 * 16 - missing;
                let src: Vec<f32> = (0..len).map(|x| (x % 13) as f32).collect();
                let weights: Vec<f32> = (0..80 - missing).map(|x| (x % 7) as f32 - 3.0).collect();
                let (src_of, weights_of) = (&src, &weights);
                let products = Products {
                    src: src_of,
                    weights: weights_of,
                    rows,
                    count,
                    vectors,
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
                let lanes = Arch::new().dispatch(Each(products, &mut found));
                assert_eq!(found.len(), rows * count * vectors * lanes);
                let mut sums = vec![f32::NAN; found.len()];
                for r in 0..rows {
                    for p in 0..count {
                        for v in 0..vectors {
                            for lane in 0..lanes {
                                let taps = (0..lines).flat_map(|a| (0..columns).map(move |b| (a, b)));
                                let products = taps.map(|(a, b)| {
                                    let at = v * lanes + lane;
                                    let value =
                                        src.get(r * row + p * step + at + a * line[0] + b * column[0]);
                                    let weight = weights.get(at + a * line[1] + b * column[1]);
                                    value.unwrap_or(&0.0) * weight.unwrap_or(&0.0)
                                });
                                let sum = 1.0 + v as f32 + products.sum::<f32>();
                                // A row's groups go eight by eight, each vector for all of them.
                                sums[((r * count + p) * vectors + v) * lanes + lane] = sum;
                            }
                        }
                    }
                }
                let sorted = |mut values: Vec<f32>| {
                    values.sort_by(f32::total_cmp);
                    values
                };
                assert_eq!(sorted(found), sorted(sums), "{count} groups, {missing} missing");
            }
        }
    }
}
