//! Products of packed weights with bytes by AVX-512 VNNI: sixteen words of weights at a time.

use super::rounded::{PackedRow, RoundedRow};
use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_cvtepi32_ps, _mm512_dpbusd_epi32, _mm512_fmadd_ps, _mm512_fnmadd_ps,
    _mm512_loadu_ps, _mm512_loadu_si512, _mm512_maskz_loadu_epi32, _mm512_maskz_loadu_ps, _mm512_mul_ps,
    _mm512_permutexvar_ps, _mm512_reduce_add_ps, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_set1_ps,
    _mm512_setr_epi32, _mm512_setzero_ps, _mm512_setzero_si512, _mm512_srli_epi16, _mm512_srlv_epi32,
};

/// Words of a vector.
const WORDS: usize = 16;

/// How values of blocks become those of a vector's words: all words of a vector have one block; its blocks are several, each with a
/// power of two of words; others.
const ONE: u8 = 0;
const SEVERAL: u8 = 1;
const OTHERS: u8 = 2;

/// A mask of so many lanes of those that are left.
#[inline(always)]
const fn mask(left: usize) -> u16 {
    if left >= WORDS { u16::MAX } else { (1 << left) - 1 }
}

/// The product of a row of weights and a row of bytes.
///
/// # Safety
/// The machine has AVX-512 F, BW, VL and VNNI; `x` has bytes, scales and sums for whole vectors of the weights' words.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn product(row: PackedRow<'_>, x: &RoundedRow) -> f32 {
    let row = PackedRow { block_words: row.block_words.max(1), ..row };
    let several = WORDS.is_multiple_of(row.block_words);
    // SAFETY: the caller's.
    unsafe {
        match (x.bits, row.zeros.len(), several) {
            _ if row.block_words.is_multiple_of(WORDS) || row.scales.len() == 1 && row.zeros.len() == 1 => {
                match x.bits {
                    4 => sum::<4, ONE, false>(row, x),
                    _ => sum::<8, ONE, false>(row, x),
                }
            }
            (4, 1, true) => sum::<4, SEVERAL, true>(row, x),
            (4, _, true) => sum::<4, SEVERAL, false>(row, x),
            (4, ..) => sum::<4, OTHERS, false>(row, x),
            (_, 1, true) => sum::<8, SEVERAL, true>(row, x),
            (_, _, true) => sum::<8, SEVERAL, false>(row, x),
            _ => sum::<8, OTHERS, false>(row, x),
        }
    }
}

/// The product with weights of so many bits, whose blocks are of this kind. If `SAME`, there is one zero point.
///
/// # Safety
/// That of [`product`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn sum<const BITS: usize, const BLOCKS: u8, const SAME: bool>(
    row: PackedRow<'_>,
    x: &RoundedRow,
) -> f32 {
    let (lower, upper) = x.bytes.split_at(x.bytes.len() * BITS / 8);
    let nibbles = _mm512_set1_epi8(15);
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    // A power of two, where it is used: a division takes as long as several vectors.
    let shift = row.block_words.trailing_zeros();
    let block_of: __m512i = _mm512_srlv_epi32(lanes, _mm512_set1_epi32(shift as i32));
    let same = _mm512_set1_ps(row.zeros.first().copied().unwrap_or(0.0));
    let mut sum = _mm512_setzero_ps();
    let mut word = 0;
    while word < row.words.len() {
        // The values of the vector's words, by the blocks that they belong to.
        let of_words = |values: &[f32]| match BLOCKS {
            ONE => _mm512_set1_ps(row.of_word(values, word)),
            SEVERAL => {
                let left = values.get(word >> shift..).unwrap_or_default();
                // SAFETY: the mask has the values that are there.
                let own = unsafe { _mm512_maskz_loadu_ps(mask(left.len()), left.as_ptr()) };
                _mm512_permutexvar_ps(block_of, own)
            }
            _ => {
                let each: [f32; WORDS] = std::array::from_fn(|lane| row.of_word(values, word + lane));
                // SAFETY: sixteen numbers.
                unsafe { _mm512_loadu_ps(each.as_ptr()) }
            }
        };
        // SAFETY: the caller's; words beyond the last are not read.
        unsafe {
            let mask = mask(row.words.len() - word);
            let weights = _mm512_maskz_loadu_epi32(mask, row.words.as_ptr().add(word).cast());
            let first = _mm512_loadu_si512(lower.as_ptr().add(4 * word).cast());
            let none = _mm512_setzero_si512();
            let products = if BITS == 4 {
                let second = _mm512_loadu_si512(upper.as_ptr().add(4 * word).cast());
                let own = _mm512_dpbusd_epi32(none, _mm512_and_si512(weights, nibbles), first);
                let above = _mm512_and_si512(_mm512_srli_epi16::<4>(weights), nibbles);
                _mm512_dpbusd_epi32(own, above, second)
            } else {
                _mm512_dpbusd_epi32(none, weights, first)
            };
            let zeros = if SAME { same } else { of_words(row.zeros) };
            let sums = _mm512_loadu_ps(x.sums.as_ptr().add(word));
            let own = _mm512_fnmadd_ps(zeros, sums, _mm512_cvtepi32_ps(products));
            let scaled = _mm512_mul_ps(own, _mm512_loadu_ps(x.scales.as_ptr().add(word)));
            sum = _mm512_fmadd_ps(scaled, of_words(row.scales), sum);
        }
        word += WORDS;
    }
    _mm512_reduce_add_ps(sum)
}
