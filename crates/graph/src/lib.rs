//! Networks of diptych: graphs of operators, their values and the shapes of these.
//!
//! It promises no API: programs use the crate `diptych`, which exports what is for them.

#![warn(unreachable_pub)]
// The library answers with an error; it does not stop the program.
#![warn(clippy::expect_used, clippy::panic, clippy::todo, clippy::unimplemented, clippy::unwrap_used)]
// Its tests may do all that `clippy.toml` lists.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

// The crates below, by their modules.
use diptych_base::*;
use diptych_emit::*;
use diptych_kernels::*;

pub mod compute;
pub mod graph;
pub mod source;
