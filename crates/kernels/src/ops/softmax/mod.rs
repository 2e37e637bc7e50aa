//! `y[k] = exp(beta * (x[k] - m)) / sum_j exp(beta * (x[j] - m))` along one axis, `m` the largest `x[j]`; or its
//! logarithm
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | any | rows, or C4 where the axis is the channels |
//! | `y` | that of `x` | as `x` |
//!
//! Sums are in f32 in every precision.
//!
//! A NaN makes its line NaN, and so do an infinite largest element and a line of negative infinities; beside others a
//! negative infinity is 0, or its logarithm.

mod examples;
mod nest;
mod operator;
mod oracle;
mod plan;

pub(super) use examples::{NUMBERS, examples};
pub(super) use plan::LARGEST_EXPONENT;

use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Bits;
use crate::error::{Error, Result};
use crate::ops::reduce::{around, named};

const OP: &str = "softmax";

/// Options of a softmax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Softmax {
    /// The axis along which the results add up to 1; a negative one counts from the last.
    pub axis: isize,
    /// The factor of the exponent, finite and not negative.
    pub beta: Bits,
    /// Whether the result is the logarithm.
    pub log: bool,
}

impl Default for Softmax {
    /// Along the last axis, with a factor of 1.
    fn default() -> Self {
        Softmax { axis: -1, beta: Bits(1.0), log: false }
    }
}

/// A softmax of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SoftmaxOp {
    dims: Dims,
    axis: usize,
    beta: Bits,
    log: bool,
    precision: Precision,
}

impl SoftmaxOp {
    /// Checks the axis and the factor.
    ///
    /// # Errors
    /// If the axis is beyond the rank, the shape too large, or the factor negative or not finite.
    pub fn new(dims: Dims, options: &Softmax, precision: Precision) -> Result<Self> {
        dims.checked_or_empty(OP)?;
        let named = named(OP, &[options.axis], dims.rank())?;
        let axis = named.iter().position(|named| *named).unwrap_or_default();
        let beta = options.beta.0;
        if !beta.is_finite() || beta < 0.0 {
            return Err(Error::shape(OP, format!("a factor of {beta}"), "one from 0 on"));
        }
        let precision = precision.with_f32_sums();
        Ok(SoftmaxOp { dims, axis, beta: options.beta, log: options.log, precision })
    }

    /// Extents before, along and behind the axis.
    fn extents(&self) -> [usize; 3] {
        around(&self.dims, self.axis)
    }
}
