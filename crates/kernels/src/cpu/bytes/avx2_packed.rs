//! Products of packed weights with bytes by AVX2: eight words of weights at a time, whose products are numbers of 16 bits.

use super::rounded::{PackedRow, RoundedRow};
use std::arch::x86_64::{
    __m256, __m256i, _mm_loadu_si128, _mm256_add_epi16, _mm256_add_ps, _mm256_and_si256,
    _mm256_castsi256_si128, _mm256_cvtepi8_epi16, _mm256_cvtepi32_ps, _mm256_cvtepu8_epi16,
    _mm256_extracti128_si256, _mm256_hadd_epi32, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_madd_epi16,
    _mm256_maddubs_epi16, _mm256_mul_ps, _mm256_permute4x64_epi64, _mm256_set1_epi8, _mm256_set1_epi16,
    _mm256_set1_ps, _mm256_setzero_ps, _mm256_srli_epi16, _mm256_storeu_ps, _mm256_sub_ps,
};

/// Words of a vector.
const WORDS: usize = 8;

/// The values of the words from `word` on, by the blocks that they belong to.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn of_blocks(row: PackedRow<'_>, values: &[f32], word: usize) -> __m256 {
    if values.len() == 1 || row.block_words.is_multiple_of(WORDS) {
        return _mm256_set1_ps(row.of_word(values, word));
    }
    let each: [f32; WORDS] = std::array::from_fn(|lane| row.of_word(values, word + lane));
    // SAFETY: eight numbers.
    unsafe { _mm256_loadu_ps(each.as_ptr()) }
}

/// The sums of the products of each word's four bytes, of which a product may have 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn of_bytes(weights: __m256i, x: *const i8) -> __m256i {
    // SAFETY: the caller has 32 bytes.
    let [low, high] = unsafe { [_mm_loadu_si128(x.cast()), _mm_loadu_si128(x.add(16).cast())] };
    let low =
        _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm256_castsi256_si128(weights)), _mm256_cvtepi8_epi16(low));
    let above = _mm256_cvtepu8_epi16(_mm256_extracti128_si256::<1>(weights));
    let high = _mm256_madd_epi16(above, _mm256_cvtepi8_epi16(high));
    // Pairs of both, which a horizontal addition leaves in another order.
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_hadd_epi32(low, high))
}

/// The product of a row of weights and a row of bytes.
///
/// # Safety
/// The machine has AVX2; `x` has bytes, scales and sums for whole vectors of the weights' words.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn product(row: PackedRow<'_>, x: &RoundedRow) -> f32 {
    // SAFETY: the caller's; words beyond the last are not read.
    unsafe {
        let row = PackedRow { block_words: row.block_words.max(1), ..row };
        let (lower, upper) = x.bytes.split_at(x.bytes.len() * x.bits / 8);
        let (nibbles, ones) = (_mm256_set1_epi8(15), _mm256_set1_epi16(1));
        let mut sum = _mm256_setzero_ps();
        for word in (0..row.words.len()).step_by(WORDS) {
            let mut last = [0u32; WORDS];
            let own = match row.words.get(word..word + WORDS) {
                Some(own) => own.as_ptr(),
                None => {
                    let rest = row.words.get(word..).unwrap_or_default();
                    last.iter_mut().zip(rest).for_each(|(to, &word)| *to = word);
                    last.as_ptr()
                }
            };
            let weights = _mm256_loadu_si256(own.cast());
            let first = lower.as_ptr().add(4 * word);
            let products = if x.bits == 4 {
                // Of four products of at most 15 x 127 the sum has 16 bits.
                let second = _mm256_loadu_si256(upper.as_ptr().add(4 * word).cast());
                let below = _mm256_and_si256(weights, nibbles);
                let below = _mm256_maddubs_epi16(below, _mm256_loadu_si256(first.cast()));
                let above = _mm256_and_si256(_mm256_srli_epi16::<4>(weights), nibbles);
                let both = _mm256_add_epi16(below, _mm256_maddubs_epi16(above, second));
                _mm256_madd_epi16(both, ones)
            } else {
                of_bytes(weights, first)
            };
            let less =
                _mm256_mul_ps(of_blocks(row, row.zeros, word), _mm256_loadu_ps(x.sums.as_ptr().add(word)));
            let own = _mm256_sub_ps(_mm256_cvtepi32_ps(products), less);
            let scaled = _mm256_mul_ps(own, _mm256_loadu_ps(x.scales.as_ptr().add(word)));
            sum = _mm256_add_ps(sum, _mm256_mul_ps(scaled, of_blocks(row, row.scales, word)));
        }
        let mut lanes = [0.0; WORDS];
        _mm256_storeu_ps(lanes.as_mut_ptr(), sum);
        lanes.iter().sum()
    }
}
