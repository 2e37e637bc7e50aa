//! What a value is stored as.

use super::step::Part;
use crate::dtype::DType;
use crate::layout::{Form, Layout};
use crate::shape::Shape;

/// What a value is stored as: its form, its extents as a feature map, and its element type.
pub(super) type Kind = (Form, Shape, DType);

/// The shape of a port, and where its value is stored in which forms.
#[cfg(any(feature = "wgpu", feature = "opencl"))]
pub(super) type Forms = (Shape, Vec<(Kind, Part)>);

/// Whether what is stored as `one` can be read as `other`. Rows are the same elements in the same order, whatever
/// the extents.
pub(super) fn same_kind(one: &Kind, other: &Kind) -> bool {
    if one.0.is_rows() { other.0 == one.0 } else { one == other }
}

/// The type of elements of f32 that a device has in rows of this form.
pub(super) const fn of_rows(form: Form) -> DType {
    if matches!(form, Form::HalfRows) { DType::F16 } else { DType::F32 }
}

/// Whether what is stored as `stored` begins with the bytes that it would have as `wanted`: a pixel in C4 is its
/// channels in order, and zeros up to a whole slice.
pub(super) fn same_bytes(stored: &Kind, wanted: &Kind) -> bool {
    let pixels = |(_, shape, dtype): &Kind, rows: Form| shape.h * shape.w == 1 && *dtype == of_rows(rows);
    let whole = |shape: &Shape| shape.c.is_multiple_of(4);
    match (stored.0, wanted.0) {
        (Form::C4, rows) if rows.is_rows() => {
            pixels(stored, rows)
                && stored.1.elements() == wanted.1.elements()
                && (whole(&stored.1) || stored.1.n == 1)
        }
        (rows, Form::C4) if rows.is_rows() => {
            pixels(wanted, rows) && stored.1.elements() == wanted.1.elements() && whole(&wanted.1)
        }
        _ => false,
    }
}

/// Bytes of a value that is stored as `kind`.
pub(super) fn stored_bytes((form, shape, dtype): Kind) -> usize {
    match form {
        Form::Rows => 4 * shape.elements(),
        // Whole words, of which a binding is made.
        Form::HalfRows => (2 * shape.elements()).next_multiple_of(4),
        Form::C4 | Form::Image => Layout::C4.elements(&shape) * dtype.bytes(),
    }
}
