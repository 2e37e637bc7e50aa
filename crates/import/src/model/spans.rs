//! Where constants lie in files.

use std::ops::Range;

/// How the elements of a constant are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stored {
    F32,
    F64,
    F16,
    #[cfg_attr(not(feature = "onnx"), expect(dead_code, reason = "a TensorFlow Lite file has none"))]
    Bf16,
    I8,
    U8,
    I16,
    I32,
}

/// Where a constant lies in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) bytes: Range<usize>,
    pub(super) stored: Stored,
}

impl Span {
    /// `part` of `file`; nothing if it is none.
    pub(super) fn of(file: &[u8], part: &[u8], stored: Stored) -> Option<Span> {
        let from = (part.as_ptr() as usize).checked_sub(file.as_ptr() as usize)?;
        let bytes = from..from.checked_add(part.len())?;
        (bytes.end <= file.len()).then_some(Span { bytes, stored })
    }
}

/// Constants of fewer elements are left as they are: factors, bounds and the like, which the network may depend on.
pub(super) const FEWEST: usize = 8;
