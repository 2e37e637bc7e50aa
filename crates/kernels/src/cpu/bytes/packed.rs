//! Products of rows of packed weights of 4 or 8 bits with rows of numbers that were rounded to bytes.
//!
//! Each 32 numbers of a row share a scale, the largest of them by 127: `x = scale q + e` with `|e| <= scale / 2`. The sum of
//! the products of a word's integers is exact, and so is what the zero point takes from it if that is whole. What follows is in f32:
//! `sum_w (sum_i w[i] q[i] - zero sum_i q[i]) scale_x scale_w` over the words `w`.

use super::Vectors;
use super::rounded::{PackedRow, RoundedRow, WIDEST};
#[cfg(target_arch = "x86_64")]
use super::{avx2_packed, avx512_packed};

impl Vectors {
    /// Whether it has vectors for products of packed weights with bytes.
    pub(crate) const fn has_packed(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx512 | Vectors::Avx2 => true,
            _ => false,
        }
    }

    /// The product of a row of weights and a row of as many numbers.
    pub(crate) fn packed_product(self, weights: PackedRow<'_>, x: &RoundedRow) -> f32 {
        let whole = weights.words.len().next_multiple_of(WIDEST);
        if x.scales.len() < whole || x.sums.len() < whole || x.bytes.len() < 4 * whole * (8 / x.bits.max(1)) {
            return f32::NAN;
        }
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the machine has them, and the row is as long as the weights' whole vectors.
            Vectors::Avx512 => unsafe { avx512_packed::product(weights, x) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the machine has them, and the row is as long as the weights' whole vectors.
            Vectors::Avx2 => unsafe { avx2_packed::product(weights, x) },
            _ => plain(weights, x),
        }
    }
}

/// The product word by word.
fn plain(weights: PackedRow<'_>, x: &RoundedRow) -> f32 {
    let (planes, mask) = (8 / x.bits.max(1), (1u32 << x.bits) - 1);
    let plane = x.bytes.len() / planes;
    let mut sum = 0.0;
    for (word, &packed) in weights.words.iter().enumerate() {
        let mut own = 0;
        for integer in 0..32 / x.bits {
            let place = plane * (integer % planes) + 4 * word + integer / planes;
            let weight = packed >> (x.bits * integer) & mask;
            own += weight as i32 * i32::from(x.bytes[place]);
        }
        let less = weights.of_word(weights.zeros, word) * x.sums[word];
        sum += (own as f32 - less) * x.scales[word] * weights.of_word(weights.scales, word);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_gives_the_product_of_what_was_rounded() {
        for (bits, k, block) in
            [(4, 256, 32), (4, 40, 16), (4, 1000, 64), (8, 64, 32), (8, 52, 4), (4, 8, 8), (8, 768, 768)]
        {
            let per_word = 32 / bits;
            let integers: Vec<u32> = (0..k).map(|at| (at * 37 + at / 5) as u32 % (1 << bits)).collect();
            let words: Vec<u32> = integers
                .chunks(per_word)
                .map(|own| own.iter().rev().fold(0, |word, integer| word << bits | integer))
                .collect();
            let blocks = usize::div_ceil(k, block);
            let scales: Vec<f32> = (0..blocks).map(|block| 0.01 + 0.002 * block as f32).collect();
            let x: Vec<f32> = (0..k).map(|at| ((at * 7919 % 1009) as f32 / 504.5 - 1.0) * 3.0).collect();
            let each: Vec<f32> = (0..blocks).map(|block| 7.0 + (block % 3) as f32).collect();
            for zeros in [&[8.0][..], &each] {
                let row = PackedRow { words: &words, block_words: block / per_word, scales: &scales, zeros };
                let rounded = RoundedRow::new(&x, bits, words.len());
                let (mut exact, mut bound, mut size) = (0.0, 0.0, 0.0);
                for ((at, &x), error) in x.iter().enumerate().zip(RoundedRow::errors(&x)) {
                    let word = at / per_word;
                    let zero = f64::from(row.of_word(zeros, word));
                    let weight = (f64::from(integers[at]) - zero) * f64::from(row.of_word(&scales, word));
                    exact += weight * f64::from(x);
                    bound += weight.abs() * error;
                    size += weight.abs() * f64::from(x.abs());
                }
                bound += 1e-6 * size;
                for vectors in Vectors::all() {
                    let found = f64::from(vectors.packed_product(row, &rounded));
                    let off = (found - exact).abs();
                    assert!(
                        off <= bound,
                        "{vectors:?} {bits} bits, {k} by {block}: {found} {exact} +- {bound}"
                    );
                    assert!(off > 0.0, "nothing was rounded");
                    let plain = f64::from(plain(row, &rounded));
                    assert!((found - plain).abs() <= 1e-5 * size, "{vectors:?}: {found} {plain}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_number_stays_so_and_zeros_are_nothing() {
        let words = vec![0x1234_5678; 32];
        let row = PackedRow { words: &words, block_words: 4, scales: &[0.5; 8], zeros: &[8.0] };
        for vectors in Vectors::all() {
            let product = |x: &[f32]| vectors.packed_product(row, &RoundedRow::new(x, 4, words.len()));
            assert_eq!(product(&[0.0; 256]), 0.0);
            for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut x = vec![1.0; 256];
                x[77] = value;
                assert!(!product(&x).is_finite(), "{vectors:?} {value}");
            }
            // The smallest numbers have no inverse.
            assert!(product(&[f32::from_bits(1); 256]).is_finite());
        }
    }
}
