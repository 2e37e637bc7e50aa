//! Files of networks become graphs of diptych: TensorFlow Lite, ONNX, and weights in safetensors.
//!
//! It promises no API: programs use the crate `diptych`, which exports what is for them.

#![recursion_limit = "256"]
#![warn(unreachable_pub)]
// The library answers with an error; it does not stop the program.
#![warn(clippy::expect_used, clippy::panic, clippy::todo, clippy::unimplemented, clippy::unwrap_used)]
// Its tests may do all that `clippy.toml` lists.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

// The crates below, by their modules.
use diptych_base::*;
#[cfg(any(feature = "tflite", feature = "onnx"))]
use {diptych_emit::*, diptych_graph::*, diptych_kernels::*};

#[cfg(any(feature = "tflite", feature = "onnx"))]
pub mod model;
pub mod weights;
