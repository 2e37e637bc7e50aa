//! What a web page's JavaScript calls of the crate `diptych`, beneath `package/index.js`.
//!
//! Inputs and outputs are typed arrays; what else goes either way is JSON, which the package reads and writes.
//! Errors are JavaScript `Error`s with the crate's message.

#![forbid(unsafe_code)]
#![warn(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
#![cfg(target_family = "wasm")]

#[cfg(feature = "gpu")]
mod adopt;
mod arrays;
mod engine;
mod json;
mod names;
mod network;
#[cfg(feature = "gpu")]
mod on_device;
#[cfg(target_feature = "atomics")]
mod threads;
#[cfg(all(feature = "cpu", feature = "gpu"))]
mod tuning;

pub use engine::Engine;
pub use network::Network;
#[cfg(all(feature = "cpu", feature = "gpu"))]
pub use tuning::Tuning;

use wasm_bindgen::prelude::*;

/// A JavaScript `Error` with the message of the crate's error, or of whatever else has one.
fn error(error: impl std::fmt::Display) -> JsValue {
    js_sys::Error::new(&error.to_string()).into()
}

/// A JavaScript `Error` with the message of the crate's error. Its name is `SmallModuleError` if this module lacks what the CPU
/// computes, which a module with all of the crate may have: the name tells the package to load that one.
fn failed(error: diptych::Error) -> JsValue {
    let told = names::in_javascript(&error);
    let lacks = cfg!(not(feature = "cpu")) && told.contains("built without feature `cpu`");
    let told = js_sys::Error::new(&told);
    if lacks {
        told.set_name("SmallModuleError");
    }
    told.into()
}

/// What a JavaScript exception says.
#[cfg(feature = "gpu")]
fn message(thrown: &JsValue) -> String {
    match thrown.dyn_ref::<js_sys::Error>() {
        Some(error) => error.message().into(),
        None => format!("{thrown:?}"),
    }
}
