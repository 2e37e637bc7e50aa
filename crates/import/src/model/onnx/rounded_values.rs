//! What is known of integers that floats are rounded to at each run.

use crate::graph::Value;
use std::collections::HashMap;

/// What `DynamicQuantizeLinear` rounded.
#[derive(Debug, Clone)]
pub(super) struct Rounded {
    /// The floats, stored as the integers are.
    pub(super) x: Value,
    pub(super) ranges: Value,
    /// The zero point's value.
    pub(super) zero: Value,
}

/// What is known of integers that floats are rounded to at each run.
#[derive(Debug, Default)]
pub(super) struct RoundedValues {
    /// Values of integers that floats were rounded to by their own range.
    pub(super) rounded: HashMap<Value, Rounded>,
    /// The bytes of values with their ranges.
    pub(super) at_run: HashMap<(Value, Value), Value>,
}
