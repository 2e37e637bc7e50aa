//! Messages in the words of the package: the library's name Rust's methods and fields.

use pyo3::prelude::*;
use std::borrow::Cow;

/// What the library's messages name, and what a program in Python calls it. Longer texts come before their beginnings.
const NAMES: &[(&str, &str)] = &[
    (
        "a tensor of this input in FastestOptions::inputs, of the extents to measure",
        "the extents to measure in dims",
    ),
    ("the file in LoadOptions::files, or a model", "a model"),
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

/// A message of the library in these words. What it says of the command line's flags is left out.
pub(crate) fn in_python(message: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(message);
    if let Some(start) = text.find("; --value ")
        && let Some(length) = text.get(start..).and_then(|rest| rest.find(')'))
    {
        text.to_mut().replace_range(start..start + length, "");
    }
    for (library, own) in NAMES {
        if text.contains(library) {
            text = text.replace(library, own).into();
        }
    }
    text
}

/// [`in_python`], for tests.
#[pyfunction]
pub(crate) fn worded(message: &str) -> Cow<'_, str> {
    in_python(message)
}
