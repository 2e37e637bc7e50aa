//! `y[r] = [scale, zero, 1 / scale]` of each row `r` of `x`: how its numbers are rounded to bytes at a run
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `.. c` | rows of f32 |
//! | `y` | `.. 3` | rows of f32 |
//!
//! With `low = min(0, least x)` and `high = max(0, largest x)`, both rules have steps of `(high - low) / 255`, and steps of 1 for a
//! row of zeros. A byte stands for the number `scale * (byte - zero)`.
//!
//! | [`RangeRule`] | `zero` | as |
//! |---|---|---|
//! | `Nearer` | `round(-low / scale)` or `round(255 - high / scale)`: the one whose end is computed with the smaller error | XNNPACK's `qd8` |
//! | `Low` | `round(-low / scale)` | ONNX's `DynamicQuantizeLinear` |
//!
//! Halves are rounded to even numbers. The result of a row with a NaN is any.

mod examples;
mod group;
mod operator;
mod rows;

pub(super) use examples::{NUMBERS, examples};

use crate::dims::Dims;
use crate::error::{Error, Result};

const OP: &str = "dynamic_range";

/// Numbers of a row of the result.
pub const NUMBERS_OF_RANGE: usize = 3;

/// Ranges made of numbers in [-1, 1), as an op that rounds by ranges is checked with: the zero point is a whole number of a byte. Where
/// numbers are divided by the scale it is a power of two, by which every device divides alike.
pub(super) fn usual_ranges(noise: &[f32], divides: bool) -> Vec<f32> {
    let ranges = noise.len() / NUMBERS_OF_RANGE;
    let range = |value: &f32| {
        let scale = if divides { (6.0 * value).floor().exp2() / 64.0 } else { (value + 1.5) / 128.0 };
        [scale, ((value + 1.0) * 127.5).floor(), 1.0 / scale]
    };
    noise.iter().take(ranges).flat_map(range).collect()
}

/// How the byte that stands for 0 is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RangeRule {
    /// From the end of the range that is computed with the smaller error, as XNNPACK does.
    Nearer,
    /// From the lower end, as ONNX says.
    Low,
}

/// Options of a range that is found at each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DynamicRange {
    /// How the byte that stands for 0 is found.
    pub rule: RangeRule,
}

/// Ranges of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DynamicRangeOp {
    source: Dims,
    target: Dims,
    rule: RangeRule,
}

impl DynamicRangeOp {
    /// The ranges of rows of extents `source`.
    ///
    /// # Errors
    /// If there is no axis.
    pub fn new(source: Dims, DynamicRange { rule }: DynamicRange) -> Result<Self> {
        let Some((_, outer)) = source.extents().split_last() else {
            return Err(Error::shape(OP, "a value without axes", "at least one axis, along which rows lie"));
        };
        let target = Dims::new(&[outer, &[NUMBERS_OF_RANGE]].concat())?;
        Ok(DynamicRangeOp { source, target, rule })
    }

    /// Elements of a row.
    fn count(&self) -> usize {
        self.source.extents().last().copied().unwrap_or(1)
    }

    /// How many rows there are.
    fn rows(&self) -> usize {
        self.target.elements() / NUMBERS_OF_RANGE
    }

    /// The result of a row whose numbers, and 0, are from `low` to `high`.
    fn of_ends(&self, [low, high]: [f32; 2]) -> [f32; NUMBERS_OF_RANGE] {
        if low == high {
            return [1.0, self.zero([0.0; 2]), 1.0];
        }
        match self.rule {
            RangeRule::Nearer => {
                let steps = 255.0 / (high - low);
                let scale = 1.0 / steps;
                [scale, self.zero([low * steps, high * steps]), 1.0 / scale]
            }
            RangeRule::Low => {
                let scale = (high - low) / 255.0;
                [scale, self.zero([low / scale, high / scale]), 1.0 / scale]
            }
        }
    }

    /// The byte that stands for 0 where the ends are so many steps away from it, before it is rounded.
    fn unrounded(&self, [low, high]: [f32; 2]) -> f32 {
        let zero = match self.rule {
            // The bytes of this rule are signed, and 128 is added at the end: so are the differences rounded.
            RangeRule::Nearer if (low - 128.0) + (high + 127.0) <= 0.0 => (127.0 - high) + 128.0,
            RangeRule::Nearer => (-128.0 - low) + 128.0,
            RangeRule::Low => -low,
        };
        zero.clamp(0.0, 255.0)
    }

    fn zero(&self, ends: [f32; 2]) -> f32 {
        self.unrounded(ends).round_ties_even()
    }
}
