//! How a session is opened.

use crate::errors::{Failure, diptych_status, guard, wrong};
use crate::pixels::PixelsOf;
use crate::tensors::{diptych_tensor, tensor};
use diptych::internals::package;
use diptych::{Context, DeviceSelector, Error, LoadOptions, ModelFile, Pixels, Precision};
use diptych_pointers::{changed, slice, text};
use std::ffi::c_char;
use std::num::NonZeroUsize;
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
    pub(crate) threads: Option<NonZeroUsize>,
    pub(crate) pixels: PixelsOf,
}

impl diptych_options {
    /// The file, of which only outputs are read that were chosen, and those that are caches.
    pub(crate) fn read(
        &self,
        load: impl Fn(&LoadOptions) -> Result<ModelFile, Error>,
    ) -> Result<ModelFile, Error> {
        package::read(&self.load, self.caches.is_some(), load)
    }

    pub(crate) fn precision(&self, contexts: &[Context]) -> Precision {
        package::precision(self.f16, contexts)
    }

    /// How bytes become the numbers of the file's inputs.
    pub(crate) fn pixels_of(&self, file: &ModelFile) -> Result<PixelsOf, Failure> {
        let inputs = file.inputs();
        let floats = inputs.iter().filter(|input| input.dtype.is_float());
        let names: Vec<&str> = floats.map(|input| input.name.as_str()).collect();
        self.pixels.check(&names)?;
        Ok(self.pixels.clone().or(file.pixels()))
    }
}

/// New options with their defaults: any device, f32, no record of the tuner's. The caller frees them.
#[unsafe(no_mangle)]
pub extern "C" fn diptych_options_new() -> *mut diptych_options {
    Box::into_raw(Box::default())
}

/// The device: "auto" (a GPU, else the CPU), "gpu" (a GPU of any API, never the CPU), "cpu", "wgpu", "opencl"; one of several by
/// its number, PCI address, UUID or a part of its name, as in "wgpu:1", "opencl:0000:41:00.0" or "H200". "fastest" is the GPU or
/// the CPU that runs the network in the least time: opening the session measures it, or finds it in the record. "auto" unless it
/// is set.
///
/// # Safety
/// `options` are those of diptych_options_new, not freed and used by no other thread, and `device` is text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_device(
    options: *mut diptych_options,
    device: *const c_char,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `options` are of diptych_options_new, not freed and used by no other thread, and
        // that `device` is text; NULL is refused here.
        let (options, device) = unsafe { (changed("options", options)?, text("device", device)?) };
        options.fastest = device == "fastest";
        options.device = if options.fastest { DeviceSelector::default() } else { device.parse()? };
        Ok(())
    })
}

/// Whether halves are stored, and computed in where the device does that. The CPU computes in f32.
///
/// # Safety
/// `options` are those of diptych_options_new, not freed and used by no other thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_f16(options: *mut diptych_options, f16: bool) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `options` are of diptych_options_new, not freed and used by no other thread;
        // `changed` refuses NULL.
        unsafe { changed("options", options) }?.f16 = f16;
        Ok(())
    })
}

/// Whether operators of quantised networks are computed with floats that are rounded to what the file's integers stand for, and
/// not with these; floats beside weights of integers are not rounded at each run then. false unless it is set.
///
/// # Safety
/// `options` are those of diptych_options_new, not freed and used by no other thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_dequantize(
    options: *mut diptych_options,
    dequantize: bool,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `options` are of diptych_options_new, not freed and used by no other thread;
        // `changed` refuses NULL.
        unsafe { changed("options", options) }?.load.dequantize = dequantize;
        Ok(())
    })
}

/// The seed of the random numbers that the model draws; 0 unless it is set. Sessions of one seed draw the same numbers, run
/// for run, on every device.
///
/// # Safety
/// `options` are those of diptych_options_new, not freed and used by no other thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_seed(options: *mut diptych_options, seed: u64) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `options` are of diptych_options_new, not freed and used by no other thread;
        // `changed` refuses NULL.
        unsafe { changed("options", options) }?.seed = seed;
        Ok(())
    })
}

/// The folder of the tuner's record, which sessions ask and diptych_tune writes.
///
/// # Safety
/// `options` are those of diptych_options_new, not freed and used by no other thread, and `folder` is text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_record(
    options: *mut diptych_options,
    folder: *const c_char,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `options` are of diptych_options_new, not freed and used by no other thread, and
        // that `folder` is text; NULL is refused here.
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
/// `options` are those of diptych_options_new, not freed and used by no other thread, and `name` is text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_dimension(
    options: *mut diptych_options,
    name: *const c_char,
    extent: usize,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `options` are of diptych_options_new, not freed and used by no other thread, and
        // that `name` is text; NULL is refused here.
        let (options, name) = unsafe { (changed("options", options)?, text("name", name)?) };
        options.load.dimensions.insert(name.to_owned(), extent);
        Ok(())
    })
}

/// Places for the keys and values that a decoder keeps from run to run (past_key_values and present). They stay on the
/// device, and are no inputs and outputs of the session. A run of diptych_run_tensors has one token or several; masks and
/// positions are those of all tokens so far. diptych_truncate goes back to the first ones, diptych_reset empties them.
///
/// # Safety
/// `options` are those of diptych_options_new, not freed and used by no other thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_caches(
    options: *mut diptych_options,
    places: usize,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `options` are of diptych_options_new, not freed and used by no other thread;
        // `changed` refuses NULL.
        unsafe { changed("options", options) }?.caches = Some(places);
        Ok(())
    })
}

/// The most threads that read the file, prepare the session and compute on the CPU, the caller's included; 0, the default, means
/// one for each processor. To compute, the number is rounded down to a power of two.
///
/// # Safety
/// `options` are those of diptych_options_new, not freed and used by no other thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_threads(
    options: *mut diptych_options,
    threads: usize,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `options` are of diptych_options_new, not freed and used by no other thread;
        // `changed` refuses NULL.
        let options = unsafe { changed("options", options) }?;
        options.threads = NonZeroUsize::new(threads);
        options.load.threads = options.threads;
        Ok(())
    })
}

/// Chooses an output, by name; several calls choose several. Without a call the session has all outputs of the file. What
/// no chosen output needs is not computed. Outputs keep the order of the file.
///
/// # Safety
/// `options` are those of diptych_options_new, not freed and used by no other thread, and `name` is text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_output(
    options: *mut diptych_options,
    name: *const c_char,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `options` are of diptych_options_new, not freed and used by no other thread, and
        // that `name` is text; NULL is refused here.
        let (options, name) = unsafe { (changed("options", options)?, text("name", name)?) };
        options.load.outputs.insert(name.to_owned());
        Ok(())
    })
}

/// An input that is known beforehand, and is no input of the session: a file that computes shapes or branches from an input
/// wants it. The tensor is copied.
///
/// # Safety
/// `options` are those of diptych_options_new, not freed and used by no other thread, `name` is text, and `value` points to
/// a tensor, which points to so many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_value(
    options: *mut diptych_options,
    name: *const c_char,
    value: *const diptych_tensor,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `options` are of diptych_options_new, not freed and used by no other thread, and
        // that `name` is text; NULL is refused here.
        let (options, name) = unsafe { (changed("options", options)?, text("name", name)?) };
        // SAFETY: the caller promises that `value` points to a tensor with so many bytes as it says; `tensor` refuses NULL
        // and wrong lengths.
        let value = unsafe { tensor("value", value) }?;
        options.load.values.insert(name.to_owned(), value);
        Ok(())
    })
}

/// A file that holds weights of an ONNX model, by the name that the model has for it: for a model in memory. One that is opened
/// by its path reads those beside it that are not given here. The bytes are copied, and may be freed afterwards.
///
/// # Safety
/// `options` are those of diptych_options_new, not freed and used by no other thread, `name` is text, and `bytes` points to
/// `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_file(
    options: *mut diptych_options,
    name: *const c_char,
    bytes: *const u8,
    length: usize,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `options` are of diptych_options_new, not freed and used by no other thread, and
        // that `name` is text; NULL is refused here.
        let (options, name) = unsafe { (changed("options", options)?, text("name", name)?) };
        // SAFETY: the caller promises that `bytes` points to `length` bytes; `slice` refuses NULL unless there are none.
        let bytes = unsafe { slice("bytes", bytes, length) }?;
        options.load.files.insert(name.to_owned(), bytes.into());
        Ok(())
    })
}

/// What numbers a picture's bytes are: `(byte - mean) / deviation`, both in the units of bytes, 0 to 255. It is for tensors of
/// DIPTYCH_DTYPE_U8 that diptych_run_tensors, diptych_run_into, diptych_submit and batches give an input of floats with three
/// axes or more; for all such inputs if `input` is NULL. There is one mean and deviation for all channels, or one for each.
/// Without this they are the metadata's of the file; where it has none, bytes are refused. Means 0 and deviations 255 are
/// numbers from 0 to 1, means and deviations of 127.5 from -1 to 1.
///
/// # Safety
/// `options` are those of diptych_options_new, not freed and used by no other thread, `input` is NULL or text, and `means`
/// and `deviations` point to `channels` numbers each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_options_pixels(
    options: *mut diptych_options,
    input: *const c_char,
    means: *const f32,
    deviations: *const f32,
    channels: usize,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `options` are of diptych_options_new, not freed and used by no other thread;
        // `changed` refuses NULL.
        let options = unsafe { changed("options", options) }?;
        // SAFETY: the caller promises that `means` and `deviations` point to `channels` numbers each; `slice` refuses NULL
        // unless there are none.
        let (means, deviations) =
            unsafe { (slice("means", means, channels)?, slice("deviations", deviations, channels)?) };
        let pairs: Vec<(f32, f32)> = means.iter().copied().zip(deviations.iter().copied()).collect();
        let pixels = Pixels::normalized(&pairs)?;
        if input.is_null() {
            options.pixels.all = Some(pixels);
        } else {
            // SAFETY: the caller promises that `input` is NULL or text; it is not NULL (checked above).
            let input = unsafe { text("input", input) }?;
            options.pixels.named.insert(input.to_owned(), pixels);
        }
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
