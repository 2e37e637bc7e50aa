//! The module `diptych._native`: what Python's package `diptych` calls of the crate `diptych`.
//!
//! Arrays come in the order of the network's inputs and outputs and C-contiguous. Those of f32 are read and written where
//! they lie, while other Python threads run; those of other types, and all of a service's, are copied once on either
//! side. The package sees to names, shapes and element types.

#![warn(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod arrays;
mod devices;
mod errors;
mod model;
mod network;
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
    module.add_function(wrap_pyfunction!(devices::devices, module)?)
}
