//! Packed integers as vectors of floats, plane by plane: a vector of words, shifted by `j` integers, has integer `j` of each
//! word in its lanes. What they are multiplied with is laid out in the same order once, so that no lane has to move.
//!
//! An integer `q` below 2^23 is the mantissa of the float `2^23 + q`: it is a float after one `or`, and less the zero point
//! after one exact subtraction.

use crate::cpu::products::load;
use pulp::{Simd, WithSimd};

/// The float `2^23`, and its bits.
const LARGE: f32 = 8_388_608.0;
const LARGE_BITS: u32 = 0x4b00_0000;

/// Rows that are multiplied with a vector of integers at a time.
pub(super) const ROWS: usize = 4;

/// How many words there are, and how they are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planes {
    pub(super) bits: usize,
    /// Integers of a row.
    pub(super) k: usize,
    /// Words of a row, and of a block.
    pub(super) words: usize,
    pub(super) block_words: usize,
    /// Blocks of a row.
    pub(super) blocks: usize,
    /// Lanes of a vector.
    pub(super) lanes: usize,
}

impl Planes {
    pub(super) fn per_word(&self) -> usize {
        super::packing::per_word(self.bits)
    }

    /// Vectors of words of a row.
    fn groups(&self) -> usize {
        self.words.div_ceil(self.lanes)
    }

    /// The block of a word: most have a power of two of words, and a division takes as long as several vectors.
    #[inline(always)]
    fn block_of(&self, word: usize) -> usize {
        match self.block_words.is_power_of_two() {
            true => word >> self.block_words.trailing_zeros(),
            false => word / self.block_words,
        }
    }

    /// Values of a row that is laid out: whole vectors of words.
    pub(super) fn row(&self) -> usize {
        self.groups() * self.lanes * self.per_word()
    }

    /// Lays out rows of `k` values, `side` of them side by side: value `l * per_word + j` of a vector of words becomes lane
    /// `l` of vector `j`, and the same vectors of these rows follow each other. Zeros where a row ends.
    pub(super) fn lay_out(&self, x: &[f32], side: usize, to: &mut [f32]) {
        let (per_word, lanes) = (self.per_word(), self.lanes);
        to.fill(0.0);
        for (row, x) in x.chunks(self.k).take(side).enumerate() {
            for (group, x) in x.chunks(lanes * per_word).enumerate() {
                for (lane, x) in x.chunks(per_word).enumerate() {
                    for (plane, &value) in x.iter().enumerate() {
                        let vector = (group * per_word + plane) * side + row;
                        if let Some(slot) = to.get_mut(vector * lanes + lane) {
                            *slot = value;
                        }
                    }
                }
            }
        }
    }
}

/// The zero points of the blocks of a row of weights.
#[derive(Debug, Clone, Copy)]
pub(super) enum RowZeros<'a> {
    /// One for all.
    Same(f32),
    /// One for each block.
    Each(&'a [f32]),
}

/// A row of weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packed<'a> {
    pub(super) words: &'a [u32],
    pub(super) scales: &'a [f32],
    pub(super) zeros: RowZeros<'a>,
}

/// The numbers of the lanes of the widest vectors.
const LANES: [f32; 16] =
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0];

impl Planes {
    /// A value of each lane's block, of the vector of words from `word` on.
    #[inline(always)]
    fn of_blocks<S: Simd>(&self, simd: S, values: &[f32], word: usize) -> S::f32s {
        let last = self.blocks - 1;
        let value = |block: usize| values.get(block.min(last)).copied().unwrap_or(0.0);
        let (first, end) = (self.block_of(word), self.block_of(word + S::F32_LANES - 1));
        let mut vector = simd.splat_f32s(value(first));
        if first >= last {
            return vector;
        }
        let numbers = load(simd, &LANES, 0);
        for block in first + 1..=end {
            let begins = simd.splat_f32s((block * self.block_words - word) as f32);
            vector =
                simd.select_f32s(simd.less_than_f32s(numbers, begins), vector, simd.splat_f32s(value(block)));
        }
        vector
    }

    /// The zero points of the lanes of the vector of words from `word` on.
    #[inline(always)]
    fn zeros<S: Simd>(&self, simd: S, zeros: RowZeros<'_>, word: usize) -> S::f32s {
        match zeros {
            RowZeros::Same(zero) => simd.splat_f32s(zero),
            RowZeros::Each(zeros) => self.of_blocks(simd, zeros, word),
        }
    }
}

/// Integer `plane` of each word less its zero point. If the zero points are whole, both differences are exact as one.
#[inline(always)]
fn integers<S: Simd>(simd: S, words: S::u32s, mask: u32, zero: S::f32s) -> S::f32s {
    let bits = simd.or_u32s(simd.and_u32s(words, simd.splat_u32s(mask)), simd.splat_u32s(LARGE_BITS));
    simd.sub_f32s(simd.transmute_f32s_u32s(bits), zero)
}

/// The vector of words from `word` on; zeros where they end.
#[inline(always)]
fn words<S: Simd>(simd: S, row: &[u32], word: usize) -> S::u32s {
    let rest = row.get(word..).unwrap_or_default();
    match rest.get(..S::F32_LANES) {
        Some(whole) => S::as_simd_u32s(whole).0.first().copied().unwrap_or(simd.splat_u32s(0)),
        None => simd.partial_load_u32s(rest),
    }
}

/// The products of `R` rows of `x`, laid out side by side, with a row of weights.
pub(super) struct Dot<'a, const R: usize> {
    pub(super) planes: Planes,
    pub(super) x: &'a [f32],
    pub(super) weights: Packed<'a>,
    /// Whether zero points are whole numbers.
    pub(super) whole: bool,
}

impl<const R: usize> WithSimd for Dot<'_, R> {
    type Output = [f32; R];

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> [f32; R] {
        match self.planes.bits {
            2 => self.sums::<S, 16>(simd),
            4 => self.sums::<S, 8>(simd),
            _ => self.sums::<S, 4>(simd),
        }
    }
}

impl<const R: usize> Dot<'_, R> {
    #[expect(clippy::needless_range_loop, reason = "whether iterators are inlined depends on the profile")]
    #[inline(always)]
    fn sums<S: Simd, const PLANES: usize>(self, simd: S) -> [f32; R] {
        let Dot { planes, x, weights, whole } = self;
        let (mask, shift) = ((1 << planes.bits) - 1, simd.splat_u32s(planes.bits as u32));
        let large = simd.splat_f32s(LARGE);
        let mut sums = [simd.splat_f32s(0.0); R];
        let vectors = S::as_simd_f32s(x).0.as_chunks::<R>().0.as_chunks::<PLANES>().0;
        for group in 0..vectors.len() {
            let (vectors, word) = (&vectors[group], group * S::F32_LANES);
            let mut own = words(simd, weights.words, word);
            let zero = planes.zeros(simd, weights.zeros, word);
            let begin = if whole { simd.add_f32s(large, zero) } else { large };
            let mut parts = [simd.splat_f32s(0.0); R];
            for plane in 0..PLANES {
                let mut integer = integers(simd, own, mask, begin);
                if !whole {
                    integer = simd.sub_f32s(integer, zero);
                }
                for row in 0..R {
                    parts[row] = simd.mul_add_e_f32s(integer, vectors[plane][row], parts[row]);
                }
                own = simd.wrapping_dyn_shr_u32s(own, shift);
            }
            let scale = planes.of_blocks(simd, weights.scales, word);
            for row in 0..R {
                sums[row] = simd.mul_add_e_f32s(scale, parts[row], sums[row]);
            }
        }
        let mut results = [0.0; R];
        for row in 0..R {
            results[row] = simd.reduce_sum_f32s(sums[row]);
        }
        results
    }
}

/// Writes a row of weights as the floats that it stands for, in the order of [`Planes::lay_out`].
pub(super) struct Unpack<'a> {
    pub(super) planes: Planes,
    pub(super) weights: Packed<'a>,
    pub(super) to: &'a mut [f32],
}

impl WithSimd for Unpack<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Unpack { planes, weights, to } = self;
        let (mask, shift) = ((1 << planes.bits) - 1, simd.splat_u32s(planes.bits as u32));
        let large = simd.splat_f32s(LARGE);
        let (vectors, per_word) = (S::as_mut_simd_f32s(to).0, planes.per_word());
        for group in 0..vectors.len() / per_word {
            let word = group * S::F32_LANES;
            let mut own = words(simd, weights.words, word);
            let zero = planes.zeros(simd, weights.zeros, word);
            let scale = planes.of_blocks(simd, weights.scales, word);
            for plane in 0..per_word {
                let integer = simd.sub_f32s(integers(simd, own, mask, large), zero);
                vectors[group * per_word + plane] = simd.mul_f32s(integer, scale);
                own = simd.wrapping_dyn_shr_u32s(own, shift);
            }
        }
    }
}

/// The lanes of a vector.
pub(super) struct Lanes;

impl WithSimd for Lanes {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        S::F32_LANES
    }
}
