//! `y[i]` = number `i` of a stream that a key and the node's own number begin
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `key` (`src`) | 4 words: two of the seed, two that count runs | u32 |
//! | `y` | any | rows |
//!
//! The words come from Philox4x32-10 (`philox.rs`), whose key is the seed xor the node's number, and whose counter is the
//! number of four elements and that of the run. Each element follows from its place alone, so that invocations share
//! nothing. The numbers are made of the words by operations whose results are the same on every device, to the bit
//! (`exact.rs`).
//!
//! | distribution | words for an element | it is |
//! |---|---|---|
//! | uniform | 1 | `low + (high - low) u`, `u` a multiple of 2^-24 in [0, 1); below `high` |
//! | normal | 2 for 2 | `mean + deviation z`, by Box and Muller; `z` is at most 6.7 |
//! | Gumbel | 1 | `-ln(-ln u)` |
//!
//! The op makes the key of the next run as well: the same with its run counted.

mod exact;
mod examples;
mod operator;
mod oracle;
mod philox;
mod rows;

pub(super) use examples::{NUMBERS, examples};
pub use operator::{NextKey, Numbered};

use crate::dims::Dims;
use crate::emit::Bits;
use crate::error::{Error, Result};

const OP: &str = "random";

/// Words of a key.
pub const KEY: usize = 4;

/// What is made of the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Draw {
    /// The key of the next run.
    Next,
    Uniform {
        low: Bits,
        high: Bits,
    },
    Normal {
        mean: Bits,
        deviation: Bits,
    },
    Gumbel,
}

/// A distribution of random numbers, and a number that tells a node's stream from others.
///
/// ```
/// use diptych::nn::Random;
///
/// let noise = Random::normal(0.0, 0.1).seed(7);
/// assert_ne!(noise, Random::normal(0.0, 0.1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Random {
    draw: Draw,
    seed: u64,
}

impl Random {
    /// Numbers from `low` on and below `high`, each range of them as likely as any other of its length. They are
    /// multiples of `(high - low) / 2^24`, rounded.
    ///
    /// ```
    /// use diptych::nn::Random;
    ///
    /// let dice = Random::uniform(1.0, 7.0); // to be rounded down
    /// # let _ = dice;
    /// ```
    pub const fn uniform(low: f32, high: f32) -> Self {
        Random { draw: Draw::Uniform { low: Bits(low), high: Bits(high) }, seed: 0 }
    }

    /// Normally distributed numbers.
    ///
    /// ```
    /// use diptych::nn::Random;
    ///
    /// let noise = Random::normal(0.0, 0.1);
    /// # let _ = noise;
    /// ```
    pub const fn normal(mean: f32, deviation: f32) -> Self {
        Random { draw: Draw::Normal { mean: Bits(mean), deviation: Bits(deviation) }, seed: 0 }
    }

    /// Numbers of the standard Gumbel distribution. Added to logarithms of weights, they make the place of the largest
    /// sum a draw by these weights.
    ///
    /// ```
    /// use diptych::nn::Random;
    ///
    /// let noise = Random::gumbel();
    /// # let _ = noise;
    /// ```
    pub const fn gumbel() -> Self {
        Random { draw: Draw::Gumbel, seed: 0 }
    }

    /// The random numbers of a seed of their own, beside the session's (`SessionOptions::seed`).
    ///
    /// ```
    /// use diptych::nn::Random;
    ///
    /// assert_ne!(Random::gumbel().seed(1), Random::gumbel().seed(2));
    /// ```
    #[must_use]
    pub const fn seed(self, seed: u64) -> Self {
        Random { seed, ..self }
    }

    /// The number of the stream of a node of this name.
    #[doc(hidden)]
    pub fn stream(&self, name: &str) -> u64 {
        // FNV-1a.
        let bytes = name.bytes().chain(self.seed.to_le_bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        mixed(hash)
    }
}

/// A number of which each bit depends on all of another one's: the end of SplitMix64.
pub const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Two words of a number, the low one first.
pub const fn words(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

/// Random numbers of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RandomOp {
    draw: Draw,
    stream: u64,
    output: Dims,
}

impl RandomOp {
    /// Numbers of `options` in `output`, of this stream.
    ///
    /// # Errors
    /// If the distribution has no such numbers, or there are too many.
    pub fn new(options: Random, stream: u64, output: Dims) -> Result<Self> {
        let refused = |found: String, wanted: &str| Err(Error::shape(OP, found, wanted));
        match options.draw {
            Draw::Uniform { low: Bits(low), high: Bits(high) } => {
                let span = high - low;
                if !span.is_finite() || span < 0.0 {
                    let wanted = "finite ends, the lower one first";
                    return refused(format!("uniform numbers from {low} to {high}"), wanted);
                }
            }
            Draw::Normal { mean: Bits(mean), deviation: Bits(deviation) } => {
                if !mean.is_finite() || !deviation.is_finite() || deviation < 0.0 {
                    let found = format!("normal numbers of mean {mean} and deviation {deviation}");
                    return refused(found, "finite ones, and a deviation that is not negative");
                }
            }
            Draw::Next | Draw::Gumbel => (),
        }
        output.checked_or_empty(OP)?;
        Ok(RandomOp { draw: options.draw, stream, output })
    }

    /// What makes the key of the next run.
    pub(crate) fn next_key() -> Result<Self> {
        Ok(RandomOp { draw: Draw::Next, stream: 0, output: Dims::new(&[KEY])? })
    }

    /// The largest uniform number: below `high`, and no subnormal one, which a device may take for 0.
    fn end(low: f32, high: f32) -> f32 {
        let below = high.next_down();
        let below = match below.is_subnormal() {
            true if high > 0.0 => 0.0,
            true => -f32::MIN_POSITIVE,
            false => below,
        };
        below.max(low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_are_none_are_refused() {
        let text = |options: Random| {
            let dims = Dims::new(&[3]).expect("small");
            RandomOp::new(options, 0, dims).expect_err("refused").to_string()
        };
        assert!(text(Random::uniform(1.0, 0.0)).contains("from 1 to 0"));
        assert!(text(Random::uniform(f32::NAN, 0.0)).contains("NaN"));
        assert!(text(Random::uniform(f32::MIN, f32::MAX)).contains("finite ends"));
        assert!(text(Random::normal(0.0, -1.0)).contains("deviation -1"));
        assert!(text(Random::normal(f32::INFINITY, 1.0)).contains("mean inf"));
    }

    #[test]
    fn the_largest_uniform_number_is_below_the_end() {
        assert_eq!(RandomOp::end(0.0, 1.0), 1.0 - 2f32.powi(-24));
        assert_eq!(RandomOp::end(-2.0, -1.0), -1.0 - 2f32.powi(-23));
        assert_eq!(RandomOp::end(-1.0, 0.0), -f32::MIN_POSITIVE);
        assert_eq!(RandomOp::end(-1.0, -0.0), -f32::MIN_POSITIVE);
        assert_eq!(RandomOp::end(5.0, 5.0), 5.0);
        assert_eq!(RandomOp::end(0.0, f32::MIN_POSITIVE), 0.0);
    }

    #[test]
    fn streams_follow_from_names_and_seeds() {
        let of = |name: &str, seed: u64| Random::gumbel().seed(seed).stream(name);
        let all = [of("a", 0), of("b", 0), of("a", 1), of("ab", 0), of("", 0), of("", 1 << 63)];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[..index].contains(one), "{all:x?}");
        }
        assert_eq!(of("a", 1), all[2]);
    }
}
