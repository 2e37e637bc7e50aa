//! The crate's errors as the package's exceptions.

use crate::names::in_python;
use diptych::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::io::ErrorKind;

/// The module that defines the exceptions.
const MODULE: &str = "diptych._errors";

/// The exception of an error: with the crate's message, and its values as attributes.
pub(crate) fn exception(error: Error) -> PyErr {
    of(&error)
}

/// [`exception`] of an error that others have as well.
pub(crate) fn of(error: &Error) -> PyErr {
    Python::attach(|py| made(py, error).unwrap_or_else(|_| PyRuntimeError::new_err(in_python(error))))
}

fn made(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let values = PyDict::new(py);
    if let Some(node) = error.node() {
        values.set_item("node", node)?;
    }
    let class = class(error, &values)?;
    let exception = py.import(MODULE)?.getattr(class)?.call1((in_python(error),))?;
    for (name, value) in values {
        exception.setattr(name.extract::<String>()?.as_str(), value)?;
    }
    Ok(PyErr::from_value(exception))
}

/// The exception's class; its attributes go to `values`.
fn class(error: &Error, values: &Bound<'_, PyDict>) -> PyResult<&'static str> {
    Ok(match error {
        Error::Shape { op, found, wanted } => {
            values.set_item("op", op)?;
            values.set_item("found", found)?;
            values.set_item("wanted", wanted)?;
            "ShapeError"
        }
        Error::Input { name, found, wanted } => {
            values.set_item("name", name)?;
            values.set_item("found", found)?;
            values.set_item("wanted", wanted)?;
            "InputError"
        }
        Error::Unsupported { what, reason } => {
            values.set_item("what", what)?;
            values.set_item("reason", reason)?;
            "UnsupportedError"
        }
        Error::Reject { kernel, reason } => {
            values.set_item("kernel", kernel)?;
            values.set_item("reason", reason)?;
            "UnsupportedError"
        }
        Error::NoDevice { backend, wanted, tried } => {
            values.set_item("backend", backend)?;
            values.set_item("wanted", wanted)?;
            values.set_item("tried", tried)?;
            "NoDeviceError"
        }
        Error::OpenClLibrary { tried } => {
            values.set_item("tried", tried)?;
            "NoDeviceError"
        }
        Error::Compile { kernel, api, log, source_text } => {
            values.set_item("kernel", kernel)?;
            values.set_item("api", api)?;
            values.set_item("log", log)?;
            values.set_item("source", source_text)?;
            "CompileError"
        }
        Error::Driver { api, call, message } => {
            values.set_item("api", api)?;
            values.set_item("call", call)?;
            values.set_item("reason", message)?;
            "DriverError"
        }
        Error::OutOfMemory { api, call, message } => {
            values.set_item("api", api)?;
            values.set_item("call", call)?;
            values.set_item("reason", message)?;
            "OutOfMemoryError"
        }
        Error::TimedOut { api, limit } => {
            values.set_item("api", api)?;
            values.set_item("limit", limit.as_secs_f64())?;
            "TimedOutError"
        }
        Error::DeviceLost { api, reason } => {
            values.set_item("api", api)?;
            values.set_item("reason", reason)?;
            "DeviceLostError"
        }
        Error::Model { file, op, message } => {
            values.set_item("file", file)?;
            values.set_item("op", op.as_ref())?;
            values.set_item("reason", message)?;
            "ModelError"
        }
        Error::Io { path, source } => {
            values.set_item("filename", path)?;
            values.set_item("errno", source.raw_os_error())?;
            if source.kind() == ErrorKind::NotFound { "NotFoundError" } else { "FileError" }
        }
        Error::AtNode { source, .. } | Error::Hinted { source, .. } => class(source, values)?,
        Error::Shared { source, .. } => class(source, values)?,
        _ => "Error",
    })
}
