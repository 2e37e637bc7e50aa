//! Programs that are written for `ort`, on Diptych.

mod binding;
mod errors;
mod examples;
mod golden;
mod npy;
mod onnx;
mod readme;
mod sessions;
mod tensors;

use ort::environment::Environment;
use ort::session::Session;
use ort::session::builder::SessionBuilder;
use std::sync::OnceLock;

/// The environment; there is one for each process.
pub fn environment() -> &'static Environment {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        ort::set_api(diptych_ort::api());
        ort::init().with_name("tests").build().expect("an environment")
    })
}

/// Options of sessions on a device.
pub fn on(device: &str) -> SessionBuilder {
    let builder = Session::builder(environment()).expect("options");
    builder.with_config_entry("session.diptych.backend", device).expect("an entry")
}

/// A session on the CPU.
pub fn session(file: onnx::File) -> Session {
    on("cpu").commit_from_memory(&file.build()).expect("a session")
}
