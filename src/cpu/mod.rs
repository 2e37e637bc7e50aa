//! The op set on the CPU, in f32: what a machine without a GPU runs.
//!
//! Each op is a kernel made once from its shapes and constants (`new` checks and lays out the
//! weights) and run many times on NHWC host slices. The op's precision is not looked at: storage
//! and arithmetic are f32.
//!
//! | op | how |
//! |---|---|
//! | pointwise | the matrix product `[n h w, c] x [c, oc]`, the weights packed once |
//! | conv2d | the same over the windows where they lie, between rows padded with zeros; one input channel per group is a depthwise |
//! | depthwise | vectors of channels, four pixels at a time |
//! | separable | rows of the depthwise convolution, and their matrix product while a core's cache holds them |
//! | gemm | the matrix product, with transposition, leading dimensions, `alpha` and `beta` |
//!
//! Work is cut into blocks of rows that fit a core's cache, run by rayon's current pool; bias,
//! activation and residual are applied before the sums leave their registers, or while the block is
//! in that cache.

mod conv2d;
mod depthwise;
mod gemm;
mod pointwise;
mod separable;

mod blocks;
mod panels;
mod product;
mod tail;
mod tile;

pub use conv2d::Conv2dKernel;
pub use depthwise::DepthwiseKernel;
pub use gemm::GemmKernel;
pub use pointwise::PointwiseKernel;
pub use separable::{SeparableConstants, SeparableKernel};

use crate::error::{Error, Result};

/// Refuses a slice of another length than the shapes say.
fn check_len(op: &'static str, what: &str, found: usize, wanted: usize) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    Err(Error::input(format!("{op} {what}"), format!("{found} values"), format!("{wanted}")))
}
