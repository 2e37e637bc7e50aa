//! What TensorFlow Lite gives.

/// The extents and elements of each output.
pub(super) type Outputs = &'static [(&'static [usize], &'static [f32])];

pub(super) const EXPECTED: &[(&str, Outputs)] = &[];
