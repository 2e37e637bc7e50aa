//! What a web page's JavaScript calls of the crate `diptych`, beneath `package/index.js`.
//!
//! Inputs and outputs are typed arrays; what else goes either way is JSON, which the package reads and writes.
//! Errors are JavaScript `Error`s with the crate's message.

#![cfg(target_family = "wasm")]

mod adopt;
mod engine;
mod json;
mod network;
mod tuning;

pub use engine::Engine;
pub use network::Network;

use wasm_bindgen::{JsCast, JsValue};

/// A JavaScript `Error` with the message of the crate's error, or of whatever else has one.
fn error(error: impl std::fmt::Display) -> JsValue {
    js_sys::Error::new(&error.to_string()).into()
}

/// What a JavaScript exception says.
fn message(thrown: &JsValue) -> String {
    match thrown.dyn_ref::<js_sys::Error>() {
        Some(error) => error.message().into(),
        None => format!("{thrown:?}"),
    }
}
