//! `y[.., c] = clamp(round(x[.., c] / scale) + zero, least, most)` as bytes
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `.. c` | rows of f32 |
//! | `y` | `.. ceil(c / 4)` | rows of words of four bytes (`ops/bytes.rs`) |
//!
//! The quotient is the product with the reciprocal of the scale, rounded to f32; halves are rounded to even numbers. The bytes
//! beyond the channels are `zero`. The byte of a NaN is any.

mod examples;
mod nest;
mod operator;
mod rows;

pub(super) use examples::{NUMBERS, examples};

use super::bytes::{self, ByteRange};
use crate::dims::Dims;
use crate::emit::Bits;
use crate::error::{Error, Result};

const OP: &str = "quantize";

/// Options of a conversion of numbers to bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quantize {
    /// What a step from one byte to the next stands for.
    pub scale: Bits,
    /// The bytes that there may be, and the one that stands for 0.
    pub range: ByteRange,
}

/// A conversion of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuantizeOp {
    source: Dims,
    target: Dims,
    /// One over the scale.
    factor: Bits,
    range: ByteRange,
}

impl QuantizeOp {
    /// Of numbers of extents `source`.
    ///
    /// # Errors
    /// If there is no axis, the scale is not positive and finite, or the range is empty.
    pub fn new(source: Dims, options: Quantize) -> Result<Self> {
        let Quantize { scale, range } = options;
        check_scale(OP, scale)?;
        range.check(OP)?;
        Ok(QuantizeOp { source, target: bytes::packed(OP, source)?, factor: Bits(1.0 / scale.0), range })
    }

    fn channels(&self) -> usize {
        self.source.extents().last().copied().unwrap_or(1)
    }
}

/// Refuses a scale that is no positive number.
pub(super) fn check_scale(op: &'static str, Bits(scale): Bits) -> Result<()> {
    if scale > 0.0 && scale.is_finite() && (1.0 / scale).is_finite() {
        return Ok(());
    }
    Err(Error::shape(op, format!("a scale of {scale}"), "a positive number"))
}
