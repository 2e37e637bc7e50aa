//! `y = (x - m) / sqrt(v + epsilon) * scale[c] + bias[c]`, `m` and `v` the mean and the variance over some axes of
//! `x`, `c` the place along the last
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | any | rows, or C4 where the channels stay |
//! | `scale`, `bias` | the last extent of `x` | |
//! | `y` | that of `x` | as `x` |
//!
//! A layer normalisation is one over the last axis, an instance normalisation one over height and width. The
//! variance is the mean of `(x - m)^2`. Sums are in f32 in every precision.

mod cpu;
mod examples;
mod maps;
mod operator;
mod oracle;
mod plan;
mod rows;

pub(super) use examples::{NUMBERS, examples};

use crate::dims::{Dims, MAX_RANK};
use crate::dtype::Precision;
use crate::emit::Bits;
use crate::error::{Error, Result};
use crate::ops::reduce::{Merged, named};

const OP: &str = "normalize";

/// Options of a normalisation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Normalize {
    /// The axes of which mean and variance become 0 and 1: negative ones are counted from the end.
    pub axes: Vec<isize>,
    /// What is added to the variance, finite and larger than 0.
    pub epsilon: Bits,
}

/// A normalisation of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NormalizeOp {
    dims: Dims,
    normalized: [bool; MAX_RANK],
    epsilon: Bits,
    scale: bool,
    bias: bool,
    precision: Precision,
}

impl NormalizeOp {
    /// Checks the axes and `epsilon`; `scale` and `bias` say whether there are such factors and summands.
    ///
    /// # Errors
    /// If an axis is beyond the rank, the shape too large, or `epsilon` not larger than 0.
    pub fn new(
        dims: Dims,
        options: &Normalize,
        scale: bool,
        bias: bool,
        precision: Precision,
    ) -> Result<Self> {
        dims.checked(OP)?;
        let normalized = named(OP, &options.axes, dims.rank())?;
        let epsilon = options.epsilon.0;
        if !epsilon.is_finite() || epsilon < f32::MIN_POSITIVE {
            return Err(Error::shape(OP, format!("an epsilon of {epsilon}"), "one larger than 0"));
        }
        let precision = precision.with_f32_sums();
        Ok(NormalizeOp { dims, normalized, epsilon: options.epsilon, scale, bias, precision })
    }

    /// The axes that kernels of rows loop over; those that are normalised are called reduced.
    fn merged(&self) -> Merged {
        Merged::of(&self.dims, self.normalized)
    }

    fn channels(&self) -> usize {
        self.dims.shape().c
    }
}
