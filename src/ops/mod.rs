//! The op set: an op and its shapes in, kernel specs and grids out. Pure: nothing here talks to a
//! device.
//!
//! Each op is a folder with its maths and shape rule (`mod.rs`), its kernel variants (`plan.rs`)
//! and a naive double-precision oracle (`oracle.rs`). Its templates live in folders of the same
//! name under `shaders/` and `cl/`.

pub mod conv2d;
pub mod convert;
pub mod depthwise;
pub mod gemm;
pub mod pointwise;
pub mod separable;

mod convolution;
mod effort;
mod plan;
mod problem;
mod registry;
mod spec;
mod split;
mod tiled;
mod tolerance;

pub use convolution::{Convolution, Inputs};
pub use effort::Effort;
pub use plan::{Choice, Launch, Op, Reference};
pub(crate) use problem::EXTENTS;
#[cfg(test)]
pub(crate) use registry::ACTIVATIONS;
pub use registry::{Examples, OpEntry, VariantEntry, all};
