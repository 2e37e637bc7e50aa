//! The threads of a module whose memory they share: `package/threads.js` starts them.

use diptych_kernels::cpu::workers;
use wasm_bindgen::prelude::*;

/// What a helper shares with the thread that started it.
#[wasm_bindgen]
pub fn shared_memory() -> JsValue {
    wasm_bindgen::memory()
}

/// The module, compiled.
#[wasm_bindgen]
pub fn compiled_module() -> JsValue {
    wasm_bindgen::module()
}

/// Says how many threads networks may have, the caller's included.
#[wasm_bindgen]
pub fn set_threads(threads: usize) {
    workers::set_threads(threads);
}

/// Helps with what other threads run, and does not return.
#[wasm_bindgen]
pub fn help() {
    workers::help();
}
