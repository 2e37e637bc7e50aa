//! `y[r, c] = clamp(round(x[r, c] / scale) + zero, 0, 255)` as bytes, with the scale and the zero point of the row's range
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `.. c` | rows of f32 |
//! | `ranges` (`arg0`) | `.. 3`, as `dynamic_range` has them | rows of f32 |
//! | `y` | `.. ceil(c / 4)` | rows of words of four bytes (`ops/bytes.rs`) |
//!
//! A range is that of as many neighbouring rows as there are for each. The quotient is the product with the reciprocal, or, where
//! [`DynamicQuantize::divides`], the quotient itself; halves are rounded to even numbers. The bytes beyond the channels are
//! `zero`. The byte of a NaN is any.

mod examples;
mod operator;
mod rows;

pub(super) use examples::{NUMBERS, examples};

use super::bytes;
use super::dynamic_range::NUMBERS_OF_RANGE;
use crate::dims::Dims;
use crate::error::{Error, Result};

const OP: &str = "dynamic_quantize";

/// Options of a conversion of numbers to bytes whose range was found at the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DynamicQuantize {
    /// Whether numbers are divided by the scale, as ONNX says, and not multiplied by its reciprocal, as XNNPACK does.
    pub divides: bool,
}

/// A conversion of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DynamicQuantizeOp {
    source: Dims,
    target: Dims,
    /// The extents of the ranges.
    ranges: Dims,
    divides: bool,
}

impl DynamicQuantizeOp {
    /// Of numbers of extents `source`, with ranges of extents `ranges`.
    ///
    /// # Errors
    /// If there is no axis, or the rows are not as many for each range.
    pub fn new(source: Dims, ranges: Dims, options: DynamicQuantize) -> Result<Self> {
        let target = bytes::packed(OP, source)?;
        let rows = source.elements() / source.extents().last().copied().unwrap_or(1).max(1);
        range_count(OP, ranges, rows)?;
        Ok(DynamicQuantizeOp { source, target, ranges, divides: options.divides })
    }

    fn channels(&self) -> usize {
        self.source.extents().last().copied().unwrap_or(1)
    }

    /// How many ranges there are.
    fn count(&self) -> usize {
        self.ranges.elements() / NUMBERS_OF_RANGE
    }

    /// Neighbouring rows that have one range.
    fn span(&self) -> usize {
        self.target.elements() / self.target.extents().last().copied().unwrap_or(1) / self.count()
    }
}

/// How many ranges a value of these extents has, for so many rows.
///
/// # Errors
/// If these are no ranges, or the rows are not as many for each.
pub(super) fn range_count(op: &'static str, ranges: Dims, rows: usize) -> Result<usize> {
    let count = ranges.elements() / NUMBERS_OF_RANGE;
    if ranges.extents().last() == Some(&NUMBERS_OF_RANGE) && count > 0 && rows.is_multiple_of(count) {
        return Ok(count);
    }
    let found = format!("ranges {ranges} for {rows} rows");
    Err(Error::shape(
        op,
        found,
        "rows of three numbers, each for as many rows (Graph::dynamic_range makes them)",
    ))
}
