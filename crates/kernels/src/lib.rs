//! The ops of diptych: each computes values of given shapes, by kernels for GPUs and by Rust on the CPU.
//!
//! It promises no API: programs use the crate `diptych`, which exports what is for them.

#![recursion_limit = "256"]
#![cfg_attr(optimize_attribute, feature(optimize_attribute))]
#![warn(unreachable_pub)]
// The library answers with an error; it does not stop the program.
#![warn(clippy::expect_used, clippy::panic, clippy::todo, clippy::unimplemented, clippy::unwrap_used)]
// Its tests may do all that `clippy.toml` lists.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

// The crates below, by their modules.
use diptych_base::*;
use diptych_emit::*;

pub mod cpu;
pub mod ops;
#[cfg(test)]
mod texts;
