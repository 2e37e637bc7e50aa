//! Fuzzers of what diptych reads from outside.

mod common;
#[cfg(fuzzing)]
pub mod targets;

pub use common::*;
