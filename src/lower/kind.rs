//! What a value is stored as.

use crate::dtype::DType;
use crate::layout::{Form, Layout};
use crate::shape::Shape;

/// What a value is stored as: its form, its extents as a feature map, and its element type.
pub(super) type Kind = (Form, Shape, DType);

/// Whether what is stored as `one` can be read as `other`. Rows are the same elements in the same order, whatever
/// the extents.
pub(super) fn same_kind(one: &Kind, other: &Kind) -> bool {
    if one.0 == Form::Rows { other.0 == Form::Rows } else { one == other }
}

/// Bytes of a value that is stored as `kind`.
pub(super) fn stored_bytes((form, shape, dtype): Kind) -> usize {
    match form {
        Form::Rows => 4 * shape.elements(),
        Form::C4 | Form::Image => Layout::C4.elements(&shape) * dtype.bytes(),
    }
}
