//! How integers of few bits are packed in words of 32.

/// Integers of `bits`, 1 to 32, in a word.
pub(super) const fn per_word(bits: usize) -> usize {
    match bits {
        1..=32 => 32 / bits,
        _ => 1,
    }
}

/// Words of `count` integers of `bits`.
pub const fn packed_words(bits: usize, count: usize) -> usize {
    count.div_ceil(per_word(bits))
}

/// Rows of `columns` integers of `bits`, 2, 4 or 8, in words: the first in the lowest bits. Each row begins with a word.
pub fn pack(bits: usize, columns: usize, values: &[u8]) -> Vec<u32> {
    if bits == 8 && columns.is_multiple_of(4) {
        return values.as_chunks::<4>().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect();
    }
    let word = |values: &[u8]| {
        values.iter().rev().fold(0u32, |word, &value| word << bits | u32::from(value) & ((1 << bits) - 1))
    };
    values.chunks(columns.max(1)).flat_map(|row| row.chunks(per_word(bits))).map(word).collect()
}

/// Integer `index` of a row of words.
pub(super) fn unpacked(bits: usize, words: &[f32], index: usize) -> u32 {
    let per_word = per_word(bits);
    let word = words.get(index / per_word).map_or(0, |word| word.to_bits());
    word >> (bits * (index % per_word)) & ((1 << bits) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_packed_from_the_lowest_bits_and_come_back() {
        assert_eq!(pack(4, 3, &[1, 2, 3, 15, 0, 9]), [0x321, 0x90f]);
        assert_eq!(pack(8, 5, &[1, 2, 3, 4, 5]), [0x0403_0201, 5]);
        assert_eq!(pack(2, 2, &[3, 1]), [0b0111]);
        for bits in [2, 4, 8] {
            let values: Vec<u8> = (0..75).map(|index| (index * 37 % (1 << bits)) as u8).collect();
            let words: Vec<f32> = pack(bits, 25, &values).into_iter().map(f32::from_bits).collect();
            assert_eq!(words.len(), 3 * packed_words(bits, 25));
            for (index, &value) in values.iter().enumerate() {
                let row = &words[index / 25 * packed_words(bits, 25)..];
                assert_eq!(unpacked(bits, row, index % 25), u32::from(value), "{bits} bits, {index}");
            }
        }
    }
}
