//! What the tests in WebAssembly have in common: devices, and what they say.

#![cfg(target_family = "wasm")]

use diptych::{Backend, Context};
use js_sys::Function;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// A line of output.
    #[wasm_bindgen(js_namespace = console, js_name = log)]
    pub fn say(text: &str);

    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn complain(text: &str);
}

/// Says what went wrong where a module stops: `unreachable` alone says nothing.
pub fn say_panics() {
    std::panic::set_hook(Box::new(|info| complain(&info.to_string())));
}

/// A JavaScript `Error` with the message of another one.
pub fn error(error: impl std::fmt::Display) -> JsValue {
    js_sys::Error::new(&error.to_string()).into()
}

/// WebGPU contexts, one after the other: Dawn ends the process after some thousand pipelines of one device.
pub struct Contexts {
    /// Ends the devices that were opened.
    close: Function,
    open: Option<Context>,
}

impl Contexts {
    /// `close` ends the devices that were opened so far.
    pub fn new(close: Function) -> Self {
        Contexts { close, open: None }
    }

    /// The context, another one if `anew`.
    ///
    /// # Errors
    /// If there is no device.
    pub async fn context(&mut self, anew: bool) -> diptych::Result<Context> {
        if let Some(context) = self.open.take_if(|_| !anew) {
            self.open = Some(context.clone());
            return Ok(context);
        }
        self.open = None;
        if let Err(thrown) = self.close.call0(&JsValue::NULL) {
            complain(&format!("{thrown:?}"));
        }
        let context = Context::builder().backend(Backend::Wgpu).open_async().await?;
        self.open = Some(context.clone());
        Ok(context)
    }
}
