//! Devices of diptych: what wgpu and OpenCL have in common, their drivers, and the cache of compiled kernels.
//!
//! It promises no API: programs use the crate `diptych`, which exports what is for them.

#![warn(unreachable_pub)]
// The library answers with an error; it does not stop the program.
#![warn(clippy::expect_used, clippy::panic, clippy::todo, clippy::unimplemented, clippy::unwrap_used)]
// Its tests may do all that `clippy.toml` lists.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(
    not(any(feature = "wgpu", feature = "opencl")),
    expect(unused, reason = "no API, so no device has a value")
)]

// The crates below, by their modules.
use diptych_base::*;
use diptych_emit::*;

pub mod device;
