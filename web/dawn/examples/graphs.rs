//! Random graphs in WebAssembly.

#![cfg(target_family = "wasm")]
