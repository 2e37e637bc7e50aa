//! `y[o, d, n] = on if index[o, n] = d, else off`
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `index` (`src`) | `o n`, each of them any axes | rows |
//! | `y` | `o depth n` | rows |
//!
//! An index is an f32 that holds an integer; one that is not within the depth has no `on`.
//!
//! A NaN has no `on`.

mod examples;
mod operator;
mod oracle;
mod plan;

pub(super) use examples::{NUMBERS, examples};

use crate::dims::Dims;
use crate::emit::Bits;
use crate::error::{Error, Result};

const OP: &str = "one_hot";

/// The largest depth: f32 has no whole number for every index beyond.
const MAX_DEPTH: usize = 1 << 24;

/// Options of an encoding of indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OneHot {
    /// The extent of the new axis.
    pub depth: usize,
    /// The value at an index.
    pub on: Bits,
    /// The value elsewhere.
    pub off: Bits,
    /// Where the new axis is in the result; a negative one counts from the last.
    pub axis: isize,
}

/// An encoding of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OneHotOp {
    indices: Dims,
    target: Dims,
    axis: usize,
    on: Bits,
    off: Bits,
}

impl OneHotOp {
    /// `indices` with a new axis.
    ///
    /// # Errors
    /// If the result does not have such an axis, or too many, or the depth is too large.
    pub fn new(indices: Dims, options: OneHot) -> Result<Self> {
        let OneHot { depth, on, off, axis } = options;
        let rank = indices.rank();
        let place = if axis < 0 { axis.checked_add_unsigned(rank + 1) } else { Some(axis) };
        let place = place.and_then(|place| usize::try_from(place).ok()).filter(|place| *place <= rank);
        let axis = place.ok_or_else(|| {
            Error::shape(OP, format!("axis {axis} for {indices}"), format!("-{} to {rank}", rank + 1))
        })?;
        if depth > MAX_DEPTH {
            let found = format!("a depth of {depth}");
            return Err(Error::shape(OP, found, format!("at most {MAX_DEPTH}, as f32 counts")));
        }
        let (outer, inner) = indices.extents().split_at(axis);
        let target = Dims::new(&[outer, &[depth], inner].concat())?;
        Ok(OneHotOp { indices, target, axis, on, off })
    }

    fn depth(&self) -> usize {
        self.target.extents()[self.axis]
    }

    /// The elements behind one another in the result that have the same place in the new axis.
    fn inner(&self) -> usize {
        self.target.extents()[self.axis + 1..].iter().product()
    }
}
