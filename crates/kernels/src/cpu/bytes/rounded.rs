//! Rows of packed weights, and rows of numbers that are rounded to bytes to be multiplied with them.

use super::nearest;

/// Numbers of a row that share a scale.
pub(crate) const GROUP: usize = 32;

/// Words of the widest vector: rows are laid out in whole ones.
pub(super) const WIDEST: usize = 16;

/// A row of weights, packed in words of 32 bits from the lowest on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackedRow<'a> {
    pub(crate) words: &'a [u32],
    /// Words that share a scale and a zero point.
    pub(crate) block_words: usize,
    pub(crate) scales: &'a [f32],
    /// A zero point for each block, or one for all.
    pub(crate) zeros: &'a [f32],
}

impl PackedRow<'_> {
    /// The value of the block of a word; the last one's for words beyond.
    #[inline(always)]
    pub(super) fn of_word(&self, values: &[f32], word: usize) -> f32 {
        let block = word / self.block_words.max(1);
        values.get(block).or(values.last()).copied().unwrap_or(0.0)
    }
}

/// A row of numbers that were rounded to bytes, in the order of packed weights: integer `j` of each word is in plane `j % planes`.
#[derive(Debug, Clone, Default)]
pub(crate) struct RoundedRow {
    /// Bits of a weight: 4 or 8.
    pub(super) bits: usize,
    /// For weights of 4 bits the numbers that the lower halves of bytes are multiplied with, and then those of the upper halves.
    pub(super) bytes: Vec<i8>,
    /// By word: the scale, and the sum of the bytes.
    pub(super) scales: Vec<f32>,
    pub(super) sums: Vec<f32>,
}

impl RoundedRow {
    /// `x` rounded, for so many words of weights of 4 or 8 bits.
    pub(crate) fn new(x: &[f32], bits: usize, words: usize) -> Self {
        let (planes, words) = (8 / bits.max(1), words.next_multiple_of(WIDEST));
        let per_word = 32 / bits.max(1);
        let mut row = RoundedRow {
            bits,
            bytes: vec![0; 4 * words * planes],
            scales: vec![0.0; words],
            sums: vec![0.0; words],
        };
        for (group, x) in x.chunks(GROUP).enumerate() {
            // A NaN stays, and makes all products none by the scale.
            let largest = x.iter().fold(0.0f32, |most, value| {
                let size = value.abs();
                if most.is_nan() || size <= most { most } else { size }
            });
            let inverse = 127.0 / largest;
            // Numbers so small that they have no such inverse are nothing.
            let [scale, factor] =
                if inverse == f32::INFINITY { [0.0; 2] } else { [largest / 127.0, inverse] };
            for (at, &value) in x.iter().enumerate() {
                let number = group * GROUP + at;
                let byte = nearest(value * factor).clamp(-127, 127);
                let (word, within) = (number / per_word, number % per_word);
                let place = 4 * words * (within % planes) + 4 * word + within / planes;
                let to = (row.bytes.get_mut(place), row.sums.get_mut(word), row.scales.get_mut(word));
                if let (Some(to), Some(sum), Some(own)) = to {
                    (*to, *own) = (byte as i8, scale);
                    *sum += byte as f32;
                }
            }
        }
        row
    }

    /// The largest error of each number by rounding: half of its group's scale.
    pub(crate) fn errors(x: &[f32]) -> impl Iterator<Item = f64> + '_ {
        x.chunks(GROUP).flat_map(|group| {
            let largest = group.iter().fold(0.0f32, |most, value| most.max(value.abs()));
            // One more in a thousand: the scale itself and its inverse are rounded.
            let error = 1.001 * f64::from(largest) / 254.0 + 64.0 * f64::from(f32::MIN_POSITIVE);
            group.iter().map(move |_| error)
        })
    }
}
