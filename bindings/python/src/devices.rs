//! Which devices there are, and which one is meant.

use crate::errors::exception;
use diptych::{Context, ContextInfo, DeviceInfo, DeviceSelector};
use pyo3::prelude::*;
use pyo3::types::PyDict;

fn described<'py>(py: Python<'py>, device: &DeviceInfo) -> PyResult<Bound<'py, PyDict>> {
    let values = PyDict::new(py);
    values.set_item("name", &device.name)?;
    values.set_item("api", device.api)?;
    values.set_item("driver", &device.driver)?;
    values.set_item("pci", device.pci.map(|address| address.to_string()))?;
    values.set_item("uuid", device.uuid.map(|uuid| uuid.to_string()))?;
    values.set_item("software", device.is_cpu)?;
    values.set_item("halves", device.limits.native_half)?;
    Ok(values)
}

/// The backend, the device, why it is this one, and all of it as text.
pub(crate) fn info<'py>(py: Python<'py>, info: &ContextInfo) -> PyResult<Bound<'py, PyDict>> {
    let values = PyDict::new(py);
    values.set_item("backend", info.backend.to_string())?;
    values.set_item("device", info.device.as_ref().map(|device| described(py, device)).transpose()?)?;
    values.set_item("reason", &info.reason)?;
    values.set_item("text", info.to_string())?;
    Ok(values)
}

/// A backend, its devices, or the message of why there are none.
type Listed<'py> = (String, Vec<Bound<'py, PyDict>>, Option<String>);

/// Each backend's devices.
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> PyResult<Vec<Listed<'_>>> {
    let listed = py.detach(diptych::devices);
    let of = |listing: diptych::DeviceListing| {
        let backend = listing.backend.to_string();
        match listing.devices {
            Ok(devices) => {
                let devices = devices.iter().map(|device| described(py, device)).collect::<PyResult<_>>()?;
                Ok((backend, devices, None))
            }
            Err(error) => Ok((backend, Vec::new(), Some(error.to_string()))),
        }
    };
    listed.into_iter().map(of).collect()
}

/// Opens the device that `text` means.
pub(crate) fn open(text: &str) -> PyResult<Context> {
    let opened =
        text.parse::<DeviceSelector>().and_then(|selector| Context::builder().device(selector).open());
    opened.map_err(exception)
}
