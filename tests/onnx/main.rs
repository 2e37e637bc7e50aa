//! ONNX files on every backend: models that others trained, and ONNX's own tests of single operators.
#![cfg(feature = "onnx")]

mod models;
mod node;
mod operators;
#[rustfmt::skip]
mod operators_expected;

#[path = "../posenet/npy.rs"]
mod npy;

#[path = "../models/golden.rs"]
mod golden;

#[path = "../models/absent.rs"]
mod absent;
