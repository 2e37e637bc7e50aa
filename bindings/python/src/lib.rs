//! The module `diptych._native`: what Python's package `diptych` calls of the crate `diptych`.
//!
//! Arrays are C-contiguous. A network takes them by the names of its inputs, and gives new ones, or fills given ones, by the places
//! of its outputs; a service reads and writes arrays in the order of both. A network reads those of f32 where they lie, while other Python
//! threads run; those of other types, and all of a service's, are copied once. Outputs are copied once from where the
//! device shows them. The package sees to names, shapes and element types.

#![warn(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod arrays;
mod devices;
mod errors;
mod frames;
mod model;
mod names;
mod network;
mod pixels;
mod service;
mod tuning;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<network::Network>()?;
    module.add_class::<network::Flight>()?;
    module.add_class::<tuning::Tuning>()?;
    module.add_class::<service::Service>()?;
    module.add_class::<service::Ticket>()?;
    module.add_function(wrap_pyfunction!(frames::frame, module)?)?;
    module.add_function(wrap_pyfunction!(devices::devices, module)?)
}
