//! Which devices there are.

use crate::errors::{diptych_status, guard, wrong};
use diptych::DeviceInfo;
use diptych_pointers::{c_text, out, shared};
use std::ffi::{CString, c_char};
use std::ptr::null;

/// A device of one API. A GPU is listed once for each API that reaches it. Texts live as long as the list.
#[repr(C)]
#[derive(Debug)]
pub struct diptych_device_info {
    /// The text by which diptych_options_device means this device: the backend with the PCI address, or with the number if
    /// the driver reports no address.
    pub id: *const c_char,
    /// "wgpu", "opencl" or "cpu".
    pub backend: *const c_char,
    /// Its name.
    pub name: *const c_char,
    /// "Vulkan", "OpenCL" and others.
    pub api: *const c_char,
    /// The driver and its version; empty for the CPU.
    pub driver: *const c_char,
    /// Where it sits on the PCI bus, as in "0000:41:00.0"; NULL if its driver does not say so.
    pub pci: *const c_char,
    /// An identifier that the device has on every API of its driver; NULL if its driver does not say so.
    pub uuid: *const c_char,
    /// Whether it is a driver that runs kernels on the CPU, or the CPU itself.
    pub software: bool,
    /// Whether it computes in halves.
    pub halves: bool,
}

/// The texts of a device.
struct Device {
    id: CString,
    backend: CString,
    name: CString,
    api: CString,
    driver: CString,
    pci: Option<CString>,
    uuid: Option<CString>,
    software: bool,
    halves: bool,
}

/// The devices of this machine. Made by diptych_devices_new, freed by diptych_devices_free.
pub struct diptych_devices {
    devices: Vec<Device>,
    /// A backend without devices, and why.
    missing: Vec<(CString, CString)>,
}

impl Device {
    fn of(backend: &str, index: usize, info: &DeviceInfo) -> Self {
        let place = info.pci.map_or_else(|| index.to_string(), |address| address.to_string());
        Device {
            id: c_text(&format!("{backend}:{place}")),
            backend: c_text(backend),
            name: c_text(&info.name),
            api: c_text(info.api),
            driver: c_text(&info.driver),
            pci: info.pci.map(|address| c_text(&address.to_string())),
            uuid: info.uuid.map(|uuid| c_text(&uuid.to_string())),
            software: info.is_cpu,
            halves: info.limits.native_half,
        }
    }

    fn cpu() -> Self {
        let text = |text| c_text(text);
        Device {
            id: text("cpu"),
            backend: text("cpu"),
            name: text("CPU"),
            api: text("CPU"),
            driver: text(""),
            pci: None,
            uuid: None,
            software: true,
            halves: false,
        }
    }
}

/// Lists the devices of every backend, and at last the CPU, which is always there. The list is the caller's, who frees it; on
/// failure it is NULL.
///
/// # Safety
/// `devices` points to a pointer that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_devices_new(devices: *mut *mut diptych_devices) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `devices` points to a pointer that nothing else uses; `out` refuses NULL.
        let devices = unsafe { out("devices", devices) }?;
        devices.write(std::ptr::null_mut());
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for listing in diptych::devices() {
            let backend = listing.backend.to_string();
            match listing.devices {
                Ok(own) => found
                    .extend(own.iter().enumerate().map(|(index, info)| Device::of(&backend, index, info))),
                Err(error) => missing.push((c_text(&backend), c_text(&error.to_string()))),
            }
        }
        found.push(Device::cpu());
        devices.write(Box::into_raw(Box::new(diptych_devices { devices: found, missing })));
        Ok(())
    })
}

/// How many devices there are; 0 if the list is NULL.
///
/// # Safety
/// `devices` is NULL, or of diptych_devices_new and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_devices_count(devices: *const diptych_devices) -> usize {
    // SAFETY: the caller promises that `devices` is NULL, or of diptych_devices_new and not freed; `as_ref` checks for
    // NULL.
    unsafe { devices.as_ref() }.map_or(0, |devices| devices.devices.len())
}

/// A device, by its number in the list.
///
/// # Safety
/// `devices` is of diptych_devices_new and not freed, and `device` points to a diptych_device_info that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_devices_get(
    devices: *const diptych_devices,
    index: usize,
    device: *mut diptych_device_info,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `devices` is of diptych_devices_new and not freed, and that `device` points to a
        // diptych_device_info that nothing else uses; NULL is refused here.
        let (devices, device) = unsafe { (shared("devices", devices)?, out("device", device)?) };
        let count = devices.devices.len();
        let wanted = || wrong("device", format!("number {index}"), format!("a number below {count}"));
        let own = devices.devices.get(index).ok_or_else(wanted)?;
        let optional = |text: &Option<CString>| text.as_ref().map_or(null(), |text| text.as_ptr());
        device.write(diptych_device_info {
            id: own.id.as_ptr(),
            backend: own.backend.as_ptr(),
            name: own.name.as_ptr(),
            api: own.api.as_ptr(),
            driver: own.driver.as_ptr(),
            pci: optional(&own.pci),
            uuid: optional(&own.uuid),
            software: own.software,
            halves: own.halves,
        });
        Ok(())
    })
}

/// Why a backend has no devices, such as "opencl"; NULL if it has some, or there is no such backend. Lives as long as the
/// list.
///
/// # Safety
/// `devices` is NULL, or of diptych_devices_new and not freed, and `backend` is NULL or text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_devices_missing(
    devices: *const diptych_devices,
    backend: *const c_char,
) -> *const c_char {
    // SAFETY: the caller promises that `devices` is NULL, or of diptych_devices_new and not freed; `as_ref` checks for
    // NULL.
    let Some(devices) = (unsafe { devices.as_ref() }) else { return null() };
    if backend.is_null() {
        return null();
    }
    // SAFETY: the caller promises that `backend` is NULL or text; it is not NULL (checked above).
    let backend = unsafe { std::ffi::CStr::from_ptr(backend) };
    let reason = devices.missing.iter().find(|(own, _)| own.as_c_str() == backend);
    reason.map_or(null(), |(_, reason)| reason.as_ptr())
}

/// Frees a list of devices. NULL is allowed.
///
/// # Safety
/// `devices` is NULL, or of diptych_devices_new, and neither it nor its texts are used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_devices_free(devices: *mut diptych_devices) {
    if !devices.is_null() {
        // SAFETY: it comes from `Box::into_raw`, and is freed once.
        drop(unsafe { Box::from_raw(devices) });
    }
}
