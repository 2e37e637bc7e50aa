//! Messages in the words of the package: the library's name Rust's methods and fields.

use pyo3::prelude::*;
use std::borrow::Cow;

/// What the library's messages name, and what a program in Python calls it. Longer texts come before their beginnings.
const NAMES: &[(&str, &str)] = &[
    (
        "a tensor of this input in FastestOptions::inputs, of the extents to measure",
        "the extents to measure in dims",
    ),
    ("LoadOptions::files", "files"),
    ("in the load options", "in dims"),
    ("Session::carry runs it", "a session without caches runs it"),
    ("this session carries outputs (Session::carry)", "this session carries outputs"),
    ("the graph was not kept (SessionOptions::keep_graph)", "the graph was not kept"),
    ("LoadOptions::dimensions", "dims"),
    ("SessionOptions::dimensions", "dims"),
    ("LoadOptions::values", "values"),
    ("SessionOptions::open", "dims"),
    ("BatchOptions::", ""),
    ("Caches::new", "caches"),
    (" (Caches::with_masks)", ""),
    ("Session::cache", "caches"),
    ("Session::reset", "Session.reset"),
    ("Session::rebuild", "Session.restore"),
];

/// A message of the library in these words.
pub(crate) fn in_python(message: &str) -> Cow<'_, str> {
    diptych::internals::package::worded(message, NAMES)
}

/// [`in_python`], for tests.
#[pyfunction]
pub(crate) fn worded(message: &str) -> Cow<'_, str> {
    in_python(message)
}
