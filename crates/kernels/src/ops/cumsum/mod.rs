//! `y[o, i, n] = sum of x[o, j, n] over j <= i`
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `o extent n`, `o` and `n` any axes | rows |
//! | `y` | the same | rows |
//!
//! Exclusive sums are over `j < i`, reversed ones over `j >= i` or `j > i`.
//!
//! A NaN makes all sums behind it NaN, and so do infinities of both signs. Sums of integers are exact, and wrap.

mod examples;
mod nest;
mod operator;
mod oracle;
mod rows;

pub(super) use examples::{NUMBERS, examples};

use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::Result;

const OP: &str = "cumsum";

/// Options of running sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CumSum {
    /// The axis that is summed along; a negative one counts from the last.
    pub axis: isize,
    /// Whether a sum leaves out the element itself.
    pub exclusive: bool,
    /// Whether sums begin at the end.
    pub reverse: bool,
}

/// Running sums of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CumSumOp {
    dims: Dims,
    axis: usize,
    exclusive: bool,
    reverse: bool,
    /// The type of the words.
    dtype: DType,
}

impl CumSumOp {
    /// The sums along an axis of `dims`.
    ///
    /// # Errors
    /// If there is no such axis.
    pub fn new(dims: Dims, options: CumSum) -> Result<Self> {
        let CumSum { axis, exclusive, reverse } = options;
        Ok(CumSumOp { dims, axis: dims.axis(OP, axis)?, exclusive, reverse, dtype: DType::F32 })
    }

    /// The running sums of words of another type.
    fn of(self, dtype: DType) -> Self {
        CumSumOp { dtype, ..self }
    }

    /// Terms of the longest sum.
    fn extent(&self) -> usize {
        self.dims.extents()[self.axis]
    }

    /// Elements from one term to the next.
    fn inner(&self) -> usize {
        self.dims.extents()[self.axis + 1..].iter().product()
    }
}
