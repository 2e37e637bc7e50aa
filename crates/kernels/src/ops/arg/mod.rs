//! `y = argmax_k x[k]` along one axis, or `argmin`: the index of the first largest or smallest element, as f32
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | any | rows |
//! | `y` | that of `x` without the axis, or with an extent of 1 there | rows |
//!
//! The first NaN is found where there is one, as NumPy, PyTorch and ONNX's reference find it.

mod cpu;
mod examples;
mod nest;
mod operator;
mod oracle;
mod rows;

pub(super) use examples::{NUMBERS, examples};

use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::reduce::{Reduction, around, named};

const OP: &str = "arg";

/// The longest axis: beyond, f32 has no whole number for every index.
const MAX_EXTENT: usize = 1 << 24;

/// Options of an index of the largest or smallest element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArgReduce {
    /// Whether to find the largest element; else the smallest.
    pub largest: bool,
    /// The axis; a negative one counts from the last.
    pub axis: isize,
    /// Whether the axis stays, with one element.
    pub keep_dims: bool,
}

/// Indices of concrete shapes, in f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArgOp {
    /// `Max` or `Min`.
    reduction: Reduction,
    input: Dims,
    axis: usize,
    output: Dims,
    /// The type of the source's words.
    dtype: DType,
}

impl ArgOp {
    /// Checks the axis.
    ///
    /// # Errors
    /// If the axis is beyond the rank, or an extent too large.
    pub fn new(input: Dims, options: &ArgReduce) -> Result<Self> {
        input.checked_or_empty(OP)?;
        let named = named(OP, &[options.axis], input.rank())?;
        let axis = named.iter().position(|named| *named).unwrap_or_default();
        let mut extents = input.extents().to_vec();
        if extents[axis] > MAX_EXTENT {
            let found = format!("{} elements along axis {axis}", extents[axis]);
            return Err(Error::shape(OP, found, format!("at most {MAX_EXTENT}, as f32 counts")));
        }
        if options.keep_dims {
            extents[axis] = 1;
        } else {
            extents.remove(axis);
        }
        let output = Dims::new(&extents)?;
        let reduction = if options.largest { Reduction::Max } else { Reduction::Min };
        Ok(ArgOp { reduction, input, axis, output, dtype: DType::F32 })
    }

    /// The reduction of words of another type.
    pub(super) fn of(self, dtype: DType) -> Self {
        ArgOp { dtype, ..self }
    }

    /// Extents before, along and behind the axis.
    fn extents(&self) -> [usize; 3] {
        around(&self.input, self.axis)
    }
}
