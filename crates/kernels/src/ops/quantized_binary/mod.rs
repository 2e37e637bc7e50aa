//! `y = a + b` or `y = a * b`, of bytes
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `a` (`arg0`) | `n .. s` | rows of words of four bytes (`ops/bytes.rs`) |
//! | `b` (`arg1`) | as `a`, or `s`, or `n 1 .. s` | rows of words of four bytes |
//! | `y` | as `a` | rows of words of four bytes |
//!
//! A sum is computed in integers, as XNNPACK does: `m_a = round(r_a 2^k)` and `m_b = round(r_b 2^k)`, where `r_a` and `r_b` are
//! the scales of `a` and `b` over that of `y`, and `k = 20 - floor(log2(max(|r_a|, |r_b|)))`. Then
//! `y = zero + floor(((a - zero_a) m_a + (b - zero_b) m_b) / 2^k + 1/2)`, within the range. A product is
//! `y = zero + round((a - zero_a) (b - zero_b) r)` with `r = r_a r_b` in f32, halves to even numbers.

mod examples;
mod operator;
mod rows;

pub(super) use examples::{NUMBERS, examples};

use super::bytes::ByteRange;
use crate::dims::Dims;
use crate::emit::Bits;
use crate::error::{Error, Result};

const OP: &str = "quantized_binary";

/// What is computed of two quantized values. Ratios are scales of the operands over the result's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuantizedFunction {
    /// The sum, with the ratio of each operand; a negative one subtracts it. The larger one is from `2^-10` to less than
    /// `2^8`, and so is the smaller one.
    Add([Bits; 2]),
    /// The product, with the product of the operands' scales over the result's.
    Mul(Bits),
}

/// Options of a function of two quantized values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuantizedBinary {
    /// What is computed.
    pub function: QuantizedFunction,
    /// The bytes of the operands that stand for 0.
    pub zeros: [u8; 2],
    /// The bytes that results may be.
    pub range: ByteRange,
}

/// The integers that a sum is computed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Multipliers {
    of: [i32; 2],
    shift: u32,
}

/// How a function is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Way {
    Sum(Multipliers),
    Product(Bits),
}

/// A function of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuantizedBinaryOp {
    dims: Dims,
    other: Dims,
    /// The word of `b` for word `i` of `a` is `i / span * row + i % row`.
    row: usize,
    span: usize,
    way: Way,
    zeros: [u8; 2],
    range: ByteRange,
}

/// The exponent of a positive number.
fn exponent(value: f32) -> i32 {
    (value.to_bits() >> 23) as i32 - 127
}

/// The multipliers of two ratios; `None` if one is too large or too small for them.
fn multipliers(ratios: [Bits; 2]) -> Option<Multipliers> {
    let sizes = ratios.map(|Bits(ratio)| ratio.abs());
    let fits = |size: &f32| (1.0 / 1024.0..256.0).contains(size);
    if !sizes.iter().all(fits) {
        return None;
    }
    let shift = 20 - exponent(sizes[0].max(sizes[1]));
    // A power of two moves the exponent alone.
    let whole =
        |Bits(ratio): Bits| (ratio * f32::from_bits(((127 + shift) as u32) << 23)).round_ties_even() as i32;
    Some(Multipliers { of: ratios.map(whole), shift: shift.unsigned_abs() })
}

impl QuantizedBinary {
    /// What two bytes become; `None` if a ratio is beyond its bounds.
    #[doc(hidden)]
    pub fn byte(&self, a: u8, b: u8) -> Option<u8> {
        let one = Dims::new(&[1]).ok()?;
        QuantizedBinaryOp::new(one, one, *self).ok().map(|op| op.byte(a, b))
    }

    /// Whether a sum of values with these ratios can be computed.
    #[doc(hidden)]
    pub fn adds(ratios: [f32; 2]) -> bool {
        multipliers(ratios.map(Bits)).is_some()
    }
}

impl QuantizedBinaryOp {
    /// Of words of these extents.
    ///
    /// # Errors
    /// If the extents do not fit each other, a ratio is beyond its bounds, or the range is empty.
    pub fn new(dims: Dims, other: Dims, options: QuantizedBinary) -> Result<Self> {
        let QuantizedBinary { function, zeros, range } = options;
        range.check(OP)?;
        let (own, last) = (dims.extents(), dims.extents().last().copied().unwrap_or(1));
        let batches = own.first().copied().unwrap_or(1);
        let [row, span] = if other == dims {
            [dims.elements(); 2]
        } else if other.elements() == last && other.extents().last() == Some(&last) {
            [last, dims.elements()]
        } else if other.elements() == batches * last
            && other.extents().first() == Some(&batches)
            && other.extents().last() == Some(&last)
        {
            [last, dims.elements() / batches.max(1)]
        } else {
            let found = format!("words of {dims} and {other}");
            return Err(Error::shape(
                OP,
                found,
                "the same extents, or one row of words for all or for each batch",
            ));
        };
        let way = match function {
            QuantizedFunction::Add(ratios) => Way::Sum(multipliers(ratios).ok_or_else(|| {
                let found = format!("scales of {} and {} times the result's", ratios[0].0, ratios[1].0);
                Error::shape(OP, found, "2^-10 to less than 2^8")
            })?),
            QuantizedFunction::Mul(ratio) if ratio.0.is_finite() => Way::Product(ratio),
            QuantizedFunction::Mul(ratio) => {
                return Err(Error::shape(OP, format!("a ratio of {}", ratio.0), "a number"));
            }
        };
        Ok(QuantizedBinaryOp { dims, other, row, span, way, zeros, range })
    }
}
