//! How a session is opened.

use crate::errors::{diptych_status, guard, wrong};
use crate::pointers::{changed, text};
use diptych::{DeviceSelector, LoadOptions};
use std::ffi::c_char;
use std::path::PathBuf;

/// How a session is opened. Made by diptych_options_new, freed by diptych_options_free.
#[derive(Debug, Default)]
pub struct diptych_options {
    pub(crate) device: DeviceSelector,
    /// Whether it is the one that runs the network the fastest.
    pub(crate) fastest: bool,
    pub(crate) f16: bool,
    pub(crate) seed: u64,
    pub(crate) record: Option<PathBuf>,
    pub(crate) load: LoadOptions,
    pub(crate) caches: Option<usize>,
}

/// New options with their defaults: any device, f32, no record of the tuner's. The caller frees them.
#[unsafe(no_mangle)]
pub extern "C" fn diptych_options_new() -> *mut diptych_options {
    Box::into_raw(Box::default())
}

/// The device: "auto" (a GPU, else the CPU), "cpu", "wgpu", "opencl"; one of several by its number, PCI address, UUID
/// or a part of its name, as in "wgpu:1", "opencl:0000:41:00.0" or "H200". "fastest" is the GPU or the CPU that runs the
/// network in the least time, which is measured when the session is opened, or found in the record.
///
/// # Safety
/// `options` are those of diptych_options_new, and `device` is text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_device(
    options: *mut diptych_options,
    device: *const c_char,
) -> diptych_status {
    guard(|| {
        // SAFETY: this function's own promise.
        let (options, device) = unsafe { (changed("options", options)?, text("device", device)?) };
        options.fastest = device == "fastest";
        options.device = if options.fastest { DeviceSelector::default() } else { device.parse()? };
        Ok(())
    })
}

/// Whether halves are stored, and computed in where the device does that. The CPU computes in f32.
///
/// # Safety
/// `options` are those of diptych_options_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_f16(options: *mut diptych_options, f16: bool) -> diptych_status {
    guard(|| {
        // SAFETY: this function's own promise.
        unsafe { changed("options", options) }?.f16 = f16;
        Ok(())
    })
}

/// Whether operators of quantised networks are computed with floats that are rounded to what the file's integers stand for, and
/// not with these; floats beside weights of integers are not rounded at each run then. false unless it is set.
///
/// # Safety
/// `options` are those of diptych_options_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_dequantize(
    options: *mut diptych_options,
    dequantize: bool,
) -> diptych_status {
    guard(|| {
        // SAFETY: this function's own promise.
        unsafe { changed("options", options) }?.load.dequantize = dequantize;
        Ok(())
    })
}

/// What random numbers follow from that the model draws; 0 unless it is set. Sessions of one seed draw the same numbers, run
/// for run, on every device.
///
/// # Safety
/// `options` are those of diptych_options_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_seed(options: *mut diptych_options, seed: u64) -> diptych_status {
    guard(|| {
        // SAFETY: this function's own promise.
        unsafe { changed("options", options) }?.seed = seed;
        Ok(())
    })
}

/// The folder of the tuner's record, which sessions ask and diptych_tune writes.
///
/// # Safety
/// `options` are those of diptych_options_new, and `folder` is text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_record(
    options: *mut diptych_options,
    folder: *const c_char,
) -> diptych_status {
    guard(|| {
        // SAFETY: this function's own promise.
        let (options, folder) = unsafe { (changed("options", options)?, text("folder", folder)?) };
        if folder.is_empty() {
            return Err(wrong("folder", "an empty path", "a folder's"));
        }
        options.record = Some(folder.into());
        Ok(())
    })
}

/// Fixes an extent that the model's file leaves open, such as "batch" (diptych_input_axis). Unless it is fixed, each run
/// of diptych_run_tensors decides it.
///
/// # Safety
/// `options` are those of diptych_options_new, and `name` is text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_dimension(
    options: *mut diptych_options,
    name: *const c_char,
    extent: usize,
) -> diptych_status {
    guard(|| {
        // SAFETY: this function's own promise.
        let (options, name) = unsafe { (changed("options", options)?, text("name", name)?) };
        options.load.dimensions.insert(name.to_owned(), extent);
        Ok(())
    })
}

/// Places for the keys and values that a decoder keeps from run to run (past_key_values and present). They stay on the
/// device, and are no inputs and outputs of the session. The first run of diptych_run_tensors may have several tokens,
/// each later one has one; masks and positions are those of all tokens so far. diptych_reset empties them.
///
/// # Safety
/// `options` are those of diptych_options_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_caches(
    options: *mut diptych_options,
    places: usize,
) -> diptych_status {
    guard(|| {
        // SAFETY: this function's own promise.
        unsafe { changed("options", options) }?.caches = Some(places);
        Ok(())
    })
}

/// Frees options. NULL is allowed.
///
/// # Safety
/// `options` are NULL, or those of diptych_options_new, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_free(options: *mut diptych_options) {
    if !options.is_null() {
        // SAFETY: it comes from `Box::into_raw`, and is freed once.
        drop(unsafe { Box::from_raw(options) });
    }
}
