//! What TensorFlow Lite gives for the files of `layers.rs`: its reference kernels, LiteRT 2.3.

use super::expected::Outputs;

#[rustfmt::skip]
pub(super) const EXPECTED: &[(&str, Outputs)] = &[
];
