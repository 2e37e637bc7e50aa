//! Philox4x32-10: four random words from a counter of four words and a key of two.
//!
//! Source: Salmon, Moraes, Dror and Shaw, *Parallel Random Numbers: As Easy as 1, 2, 3*, 2011.

/// Rounds.
const ROUNDS: usize = 10;

/// What the first and the third word of the counter are multiplied by.
const FACTORS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];

/// What the key's words grow by from round to round: the golden ratio, and the root of 3 less 1.
const STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// The words of `counter`.
pub(super) fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let (mut counter, mut key) = (counter, key);
    for _ in 0..ROUNDS {
        let [a, b, c, d] = counter;
        let product = |word: u32, factor: u32| u64::from(word) * u64::from(factor);
        let [first, third] = [product(a, FACTORS[0]), product(c, FACTORS[1])];
        counter = [
            (third >> 32) as u32 ^ b ^ key[0],
            third as u32,
            (first >> 32) as u32 ^ d ^ key[1],
            first as u32,
        ];
        key = [key[0].wrapping_add(STEPS[0]), key[1].wrapping_add(STEPS[1])];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers that its authors' library, Random123, comes with (`kat_vectors`).
    #[test]
    fn known_answers_are_given() {
        let ones = u32::MAX;
        for (counter, key, wanted) in [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([ones; 4], [ones; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ] {
            assert_eq!(philox(counter, key), wanted);
        }
    }
}
