//! `y[i] = x[first + i]`: some of a value's rows in a buffer of their own.
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | any | rows |
//! | `y` | any, `first + elements(y) <= elements(x)` | rows |
//!
//! A view costs no kernel where a device can bind it. Where it begins at an element that no binding may
//! begin at, it is copied.
//!
//! Elements are moved as they are, NaN and infinities too.

mod examples;
mod rows;

pub(super) use examples::{NUMBERS, examples};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

const OP: &str = "copy";

/// A copy of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CopyOp {
    source: Shape,
    first: usize,
    target: Shape,
    dtype: DType,
}

impl CopyOp {
    /// The elements of `source` from `first` on, as many as `target` has.
    ///
    /// # Errors
    /// If a shape is empty or too large, or there are not as many elements.
    pub fn new(source: Shape, first: usize, target: Shape) -> Result<Self> {
        source.check(OP)?;
        target.check(OP)?;
        if first.checked_add(target.elements()).is_none_or(|end| end > source.elements()) {
            return Err(Error::shape(
                OP,
                format!("{} elements from element {first} of {source}", target.elements()),
                format!("a range within {}", source.elements()),
            ));
        }
        Ok(CopyOp { source, first, target, dtype: DType::F32 })
    }

    /// The copy of words of another type, or of halves.
    #[must_use]
    pub const fn of(self, dtype: DType) -> Self {
        CopyOp { dtype, ..self }
    }
}
