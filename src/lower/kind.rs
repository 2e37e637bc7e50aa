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

/// Whether what is stored as `stored` begins with the bytes that it would have as `wanted`: a pixel in C4 is its
/// channels in order, and zeros up to a whole slice.
pub(super) fn same_bytes(stored: &Kind, wanted: &Kind) -> bool {
    let pixels = |(_, shape, dtype): &Kind| shape.h * shape.w == 1 && *dtype == DType::F32;
    let whole = |shape: &Shape| shape.c.is_multiple_of(4);
    match (stored.0, wanted.0) {
        (Form::C4, Form::Rows) => {
            pixels(stored)
                && stored.1.elements() == wanted.1.elements()
                && (whole(&stored.1) || stored.1.n == 1)
        }
        (Form::Rows, Form::C4) => {
            pixels(wanted) && stored.1.elements() == wanted.1.elements() && whole(&wanted.1)
        }
        _ => false,
    }
}

/// Bytes of a value that is stored as `kind`.
pub(super) fn stored_bytes((form, shape, dtype): Kind) -> usize {
    match form {
        Form::Rows => 4 * shape.elements(),
        Form::C4 | Form::Image => Layout::C4.elements(&shape) * dtype.bytes(),
    }
}
