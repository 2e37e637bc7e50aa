//! The command line from outside, each command in a module.
//!
//! One program, so that its tests share what they need.

mod article;
mod bench;
mod candidates;
mod check;
mod compile;
mod files;
mod inspect;
mod integers;
mod network;
mod npy;
mod onnx;
mod pipes;
mod random;
mod replay;
mod run;
mod tune;
