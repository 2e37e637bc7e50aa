//! What the crates of diptych have in common: errors, types of elements, extents, tensors of the host, and what the host
//! offers (memory, threads, clocks, files).
//!
//! It promises no API: programs use the crate `diptych`, which exports what is for them.

#![warn(unreachable_pub)]
// The library answers with an error; it does not stop the program.
#![warn(clippy::expect_used, clippy::panic, clippy::todo, clippy::unimplemented, clippy::unwrap_used)]
// Its tests may do all that `clippy.toml` lists.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod alloc;
pub mod clock;
pub mod dims;
pub mod disk;
pub mod dtype;
pub mod erf;
pub mod error;
pub mod file;
pub mod host;
pub mod layout;
pub mod parallel;
pub mod random;
pub mod shape;
pub mod sorted;
pub mod sync;
pub mod task;
pub mod unwind;
pub mod vector;
pub mod word;
