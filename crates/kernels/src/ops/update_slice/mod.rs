//! `y[o, a, n] = u[o, a - at[b], n]` where `u` has such a row, else `x[o, a, n]`: rows written into a value along an axis
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` (`src`) | `o a n`, `o` and `n` any axes | rows |
//! | `u` (`arg0`) | the same with another extent in place of `a` | rows |
//! | `at` (`arg1`) | one element, or as many as the first axis of `o` has: `b` is its index | rows of i32 |
//! | `y` | that of `x` | rows |
//!
//! Rows that would lie outside of `x` are left out: `at` may be negative. Elements are of any type, and are moved as they
//! are. In f16 storage elements of f32 are halves where the rows are of whole vec4s.
//!
//! In place there is no `x`: `y` is what it held before, but for the rows that are written. A network's state that
//! becomes `y` is updated like that where nothing else reads it.

mod examples;
mod operator;
mod rows;

pub(super) use examples::{NUMBERS, examples};

use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::error::{Error, Result};

const OP: &str = "update_slice";

/// Options of an update of a part of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UpdateSlice {
    /// The axis along which the rows lie; a negative one counts from the last.
    pub axis: isize,
}

/// An update of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UpdateSliceOp {
    whole: Dims,
    part: Dims,
    places: Dims,
    axis: usize,
    in_place: bool,
    /// The type of the words.
    dtype: DType,
    precision: Precision,
}

impl UpdateSliceOp {
    /// `part` written into `whole` at `places`.
    ///
    /// # Errors
    /// If there is no such axis, the extents differ along another one, or there is not one place, or one for each
    /// element of the first axis.
    pub fn new(whole: Dims, part: Dims, places: Dims, options: UpdateSlice) -> Result<Self> {
        let axis = whole.axis(OP, options.axis)?;
        let mut others = whole.extents().iter().zip(part.extents()).enumerate();
        if whole.rank() != part.rank() || !others.all(|(at, (own, other))| at == axis || own == other) {
            let wanted = format!("the extents of {whole} but along axis {axis}");
            return Err(Error::shape(OP, format!("rows of {part}"), wanted));
        }
        let count = places.elements();
        let batch = if axis == 0 { 1 } else { whole.extents().first().copied().unwrap_or(1) };
        if count != 1 && count != batch {
            let wanted = if batch == 1 { "1".to_owned() } else { format!("1 or {batch}") };
            return Err(Error::shape(OP, format!("{count} places"), wanted));
        }
        let (dtype, precision) = (DType::F32, Precision::F32);
        Ok(UpdateSliceOp { whole, part, places, axis, in_place: false, dtype, precision })
    }

    /// The update of words of another type.
    fn of(self, dtype: DType) -> Self {
        UpdateSliceOp { dtype, ..self }
    }

    /// The update in another precision: elements of f32 are halves where it stores them.
    fn in_precision(self, precision: Precision) -> Self {
        UpdateSliceOp { precision: precision.with_f32_sums(), ..self }
    }

    /// The update that writes into what is there.
    fn updating(self) -> Self {
        UpdateSliceOp { in_place: true, ..self }
    }

    fn sizes(&self) -> Sizes {
        let product = |extents: &[usize]| extents.iter().product::<usize>();
        let own = self.whole.extents();
        let lines = product(&own[..self.axis]);
        Sizes {
            outer: lines / self.places.elements(),
            extent: own[self.axis],
            rows: self.part.extents()[self.axis],
            inner: product(&own[self.axis + 1..]),
        }
    }
}

/// The extents of an update, several axes taken as one.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    /// Lines that have one place.
    outer: usize,
    /// Rows of a line, and of what is written into it.
    extent: usize,
    pub rows: usize,
    /// Elements of a row.
    inner: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_what_would() {
        let dims = |extents: &[usize]| Dims::new(extents).expect("small");
        let of = |whole: &[usize], part: &[usize], places: &[usize], axis| {
            UpdateSliceOp::new(dims(whole), dims(part), dims(places), UpdateSlice { axis })
        };
        assert!(of(&[2, 3, 5], &[2, 1, 5], &[1], 1).is_ok());
        assert!(of(&[2, 3, 5], &[2, 1, 5], &[2], -2).is_ok());
        assert!(of(&[3, 5], &[7, 5], &[], 0).is_ok());
        for (part, places, axis, wanted) in [
            (&[2, 1, 4][..], &[1][..], 1, "the extents of 2x3x5 but along axis 1"),
            (&[1, 5], &[1], 1, "rows of 1x5"),
            (&[2, 1, 5], &[3], 1, "wanted 1 or 2"),
            (&[1, 3, 5], &[2], 0, "wanted 1"),
            (&[2, 1, 5], &[1], 3, "axis 3"),
        ] {
            let text = of(&[2, 3, 5], part, places, axis).expect_err("refused").to_string();
            assert!(text.contains(wanted), "{text}");
        }
    }
}
