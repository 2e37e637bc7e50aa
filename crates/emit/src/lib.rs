//! A kernel's description becomes its text, in WGSL or in OpenCL C; and the limits of the devices that texts are for.
//!
//! It promises no API: programs use the crate `diptych`, which exports what is for them.

#![warn(unreachable_pub)]
// The library answers with an error; it does not stop the program.
#![warn(clippy::expect_used, clippy::panic, clippy::todo, clippy::unimplemented, clippy::unwrap_used)]
// Its tests may do all that `clippy.toml` lists.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

// The crate below, by its modules.
use diptych_base::*;

pub mod emit;
pub mod limits;
