#![doc = include_str!("../README.md")]
#![warn(clippy::expect_used, clippy::panic, clippy::unwrap_used, missing_docs, unreachable_pub)]
#![expect(non_snake_case, reason = "the names of the functions are ONNX Runtime's")]

mod api;
mod binding;
mod config;
mod element;
mod environment;
mod identity;
mod info;
mod memory;
mod metadata;
mod options;
mod pointers;
mod run;
mod run_options;
mod session;
mod status;
mod tensor;

pub use api::api;
