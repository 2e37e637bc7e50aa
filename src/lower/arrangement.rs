//! How the elements of an application's buffer lie.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::shape::Shape;

/// How the elements of a port's buffer lie: rows or C4, of f32 or f16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrangement {
    pub(crate) layout: Layout,
    pub(crate) dtype: DType,
}

impl Arrangement {
    /// Rows of f32.
    pub(crate) const ROWS: Arrangement = Arrangement { layout: Layout::Nhwc, dtype: DType::F32 };

    /// Rows of f32, which a buffer that cannot be bound is copied from or to.
    pub(crate) fn is_rows(self) -> bool {
        self == Self::ROWS
    }

    /// Bytes of a map of `shape`: rows of f16 are whole vectors of four.
    pub(crate) fn bytes(self, shape: &Shape) -> u64 {
        let elements = match self.layout {
            Layout::C4 => Layout::C4.elements(shape),
            _ if self.dtype == DType::F16 => shape.elements().next_multiple_of(4),
            _ => shape.elements(),
        };
        (elements * self.dtype.bytes()) as u64
    }
}

/// The elements of `shape` as pixels of four channels, in lines that a grid holds where their number allows it.
pub(super) fn vectors(shape: &Shape) -> Shape {
    const LONGEST: usize = 1 << 18;
    let pixels = shape.elements().div_ceil(4);
    let lines = (1..=pixels.isqrt()).find(|&lines| pixels.is_multiple_of(lines) && pixels / lines <= LONGEST);
    let lines = lines.unwrap_or(1);
    Shape::nhwc(1, lines, pixels / lines, 4)
}

/// Checks a port's arrangement.
pub(crate) fn check_arrangement(name: &str, arrangement: Arrangement) -> Result<()> {
    match arrangement.layout {
        Layout::Nhwc | Layout::C4 => Ok(()),
        other => Err(Error::input(format!("buffer of {name:?}"), format!("{other}"), "nhwc or c4")),
    }
}
