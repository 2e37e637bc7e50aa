//! What `random` gives, in f64: the words are exact, and what is made of them is off by some units of the last bit.

use super::philox::philox;
use super::{Draw, RandomOp, words};
use crate::dtype::DType;
use crate::emit::{Bits, Operand};
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;

/// Units of the last bit that a logarithm, and what is made of a logarithm and an angle, may be off: each takes a few dozen
/// sums and products, most of them of what counts little.
const UNITS: f64 = 16.0;

/// What a word stands for in (0, 1).
fn share(word: u32) -> f64 {
    if word == 0 { 2f64.powi(-33) } else { f64::from(word) * 2f64.powi(-32) }
}

impl RandomOp {
    /// The key as words.
    fn key(operands: &Operands<'_>) -> [u32; 4] {
        let given = get(operands, Operand::Src).unwrap_or_default();
        std::array::from_fn(|word| given.get(word).map_or(0, |word| word.to_bits()))
    }

    pub(super) fn answer(&self, operands: &Operands<'_>) -> Reference {
        let key = Self::key(operands);
        if self.draw == Draw::Next {
            let [low, high] = words((u64::from(key[3]) << 32 | u64::from(key[2])).wrapping_add(1));
            return Reference::exact([key[0], key[1], low, high].into_iter().map(f64::from));
        }
        let stream = words(self.stream);
        let own = [key[0] ^ stream[0], key[1] ^ stream[1]];
        let unit = 2.0 * DType::F32.unit_roundoff();
        let (mut value, mut bound) = (Vec::new(), Vec::new());
        for element in 0..self.output.elements() {
            let lane = element % 4;
            let drawn = philox([(element / 4) as u32, 0, key[2], key[3]], own);
            let (exact, off) = match self.draw {
                Draw::Uniform { low: Bits(low), high: Bits(high) } => {
                    let u = f64::from(drawn[lane] >> 8) * 2f64.powi(-24);
                    let span = f64::from(high - low);
                    let exact = f64::from(low) + span * u;
                    // The product and the sum are rounded; the largest numbers may be one below the end.
                    (exact.min(Self::end(low, high).into()), unit * (span * u + exact.abs()))
                }
                Draw::Normal { mean: Bits(mean), deviation: Bits(deviation) } => {
                    let [radius, angle] = if lane < 2 { [drawn[0], drawn[1]] } else { [drawn[2], drawn[3]] };
                    let length = (-2.0 * (-share(radius)).ln_1p()).sqrt();
                    let angle = share(angle) * std::f64::consts::TAU;
                    let turned = if lane % 2 == 0 { angle.cos() } else { angle.sin() };
                    let spread = f64::from(deviation) * length;
                    let exact = f64::from(mean) + spread * turned;
                    (exact, unit * (UNITS * spread + exact.abs()))
                }
                Draw::Gumbel | Draw::Next => {
                    let rest = -(-share(drawn[lane])).ln_1p();
                    (-rest.ln(), unit * UNITS * rest.ln().abs().max(1.0))
                }
            };
            value.push(exact);
            bound.push(off);
        }
        Reference::Bounded { value, bound }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Random;
    use super::*;
    use crate::dims::Dims;
    use crate::ops::operands::of as operands;

    fn value(options: Random, key: [u32; 4]) -> Vec<f64> {
        let op = RandomOp::new(options, 0, Dims::new(&[6]).expect("small")).expect("a distribution");
        let key = key.map(f32::from_bits);
        op.answer(&operands(&[(Operand::Src, &key)])).value().to_vec()
    }

    #[test]
    fn elements_follow_from_the_known_answers() {
        // The words of counter 0 and key 0.
        let drawn = [0x6627_e8d5u32, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
        let found = value(Random::uniform(0.0, 1.0), [0; 4]);
        for (found, word) in found.iter().zip(drawn) {
            assert!((found - f64::from(word) / 4_294_967_296.0).abs() < 6e-8, "{found} of {word:x}");
        }
        let found = value(Random::normal(1.0, 2.0), [0; 4]);
        let [u, v] = [drawn[0], drawn[1]].map(|word| f64::from(word) / 4_294_967_296.0);
        let length = (-2.0 * (1.0 - u).ln()).sqrt();
        let wanted = [(std::f64::consts::TAU * v).cos(), (std::f64::consts::TAU * v).sin()];
        assert!((found[0] - (1.0 + 2.0 * length * wanted[0])).abs() < 1e-9);
        assert!((found[1] - (1.0 + 2.0 * length * wanted[1])).abs() < 1e-9);
        let found = value(Random::gumbel(), [0; 4]);
        assert!((found[0] + (-(1.0 - u).ln()).ln()).abs() < 1e-9);
    }

    #[test]
    fn the_next_key_counts_its_run() {
        let next = |key: [u32; 4]| {
            let op = RandomOp::next_key().expect("a key");
            let key = key.map(f32::from_bits);
            op.answer(&operands(&[(Operand::Src, &key)])).value().to_vec()
        };
        assert_eq!(next([5, 6, 7, 8]), [5.0, 6.0, 8.0, 8.0]);
        assert_eq!(next([5, 6, u32::MAX, 8]), [5.0, 6.0, 0.0, 9.0]);
    }
}
