//! Networks that serve requests of many threads, on one device or on several.

use crate::calls::names;
use crate::errors::{Failure, diptych_status, guard, wrong};
use crate::options::diptych_options;
use crate::pixels::PixelsOf;
use crate::session::{diptych_port, port};
use crate::tensors::{diptych_tensor, sources};
use crate::tickets::diptych_ticket;
use diptych::{
    BatchOptions, Context, Database, DevicePool, Error, HostTensor, LoadOptions, ModelFile, Port,
    SessionOptions, Ticket, Tuning,
};
use diptych_pointers::{c_text, out, shared, slice, text};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How requests become runs. diptych_batch_options_default has the defaults.
#[repr(C)]
#[derive(Debug)]
pub struct diptych_batch_options {
    /// Requests of one run at most, 1 to 1024; 8 by default.
    pub max_batch: usize,
    /// Seconds that a request waits for others at most, while no two runs are under way; 0.001 by default. With 0, batches are
    /// what came while the device was busy.
    pub max_delay: f64,
    /// Requests at most that have been taken and whose run has not begun; 32 by default.
    pub max_waiting: usize,
    /// The batch sizes that are made ready; NULL for every size from 1 to `max_batch`, which is always one.
    pub sizes: *const usize,
    /// How many sizes there are.
    pub size_count: usize,
    /// The named extent that counts requests; NULL for the one that is the outermost of every input.
    pub dimension: *const c_char,
}

/// A network that serves requests. Made by diptych_batch_open_file, closed by diptych_batch_close.
pub struct diptych_batch {
    pool: DevicePool,
    names: [Vec<CString>; 2],
    outputs: Arc<[Port]>,
    pixels: PixelsOf,
}

/// The defaults: up to 8 requests of a run, which wait for each other 1 ms, and 32 that wait for a run.
#[unsafe(no_mangle)]
pub extern "C" fn diptych_batch_options_default() -> diptych_batch_options {
    let BatchOptions { max_batch, max_delay, max_waiting, .. } = BatchOptions::default();
    diptych_batch_options {
        max_batch,
        max_delay: max_delay.as_secs_f64(),
        max_waiting,
        sizes: std::ptr::null(),
        size_count: 0,
        dimension: std::ptr::null(),
    }
}

impl diptych_batch_options {
    /// # Safety
    /// Its pointers are as its fields say.
    unsafe fn read(&self, session: SessionOptions) -> Result<BatchOptions, Failure> {
        let seconds = Duration::try_from_secs_f64(self.max_delay);
        let what = "diptych_batch_options.max_delay";
        let max_delay =
            seconds.map_err(|_| wrong(what, self.max_delay.to_string(), "a number of seconds"))?;
        // SAFETY: the caller promises that `sizes` is NULL or points to `size_count` numbers; `slice` refuses NULL unless
        // there are none.
        let sizes = unsafe { slice("diptych_batch_options.sizes", self.sizes, self.size_count) }?.to_vec();
        let dimension = match self.dimension.is_null() {
            true => None,
            // SAFETY: the caller promises that `dimension` is NULL or text; it is not NULL (checked above).
            false => Some(unsafe { text("diptych_batch_options.dimension", self.dimension) }?.to_owned()),
        };
        let (max_batch, max_waiting) = (self.max_batch, self.max_waiting);
        Ok(BatchOptions { max_batch, max_delay, max_waiting, sizes, dimension, session })
    }
}

/// The devices that are named, or the one of the options.
///
/// # Safety
/// `devices` is NULL, or points to `count` texts.
unsafe fn contexts(
    options: &diptych_options,
    devices: *const *const c_char,
    count: usize,
) -> Result<Vec<Context>, Failure> {
    // SAFETY: the caller promises that `devices` is NULL or points to `count` pointers; `slice` refuses NULL unless there
    // are none.
    let devices = unsafe { slice("devices", devices, count) }?;
    if devices.is_empty() {
        if options.fastest {
            return Err(wrong("device", "\"fastest\"", "another one for a batch: no device is measured"));
        }
        return Ok(vec![Context::builder().device(options.device.clone()).open()?]);
    }
    let mut contexts = Vec::with_capacity(count);
    for &device in devices {
        // SAFETY: the caller promises that each of `devices` is NULL or text; `text` refuses NULL.
        let device = unsafe { text("devices", device) }?;
        contexts.push(Context::builder().device(device.parse()?).open()?);
    }
    Ok(contexts)
}

impl diptych_batch {
    /// Opens a file, and writes the batch there.
    ///
    /// # Safety
    /// The pointers are as the functions of the header say.
    unsafe fn open_into(
        batch: &mut MaybeUninit<*mut diptych_batch>,
        (options, devices, count): (*const diptych_options, *const *const c_char, usize),
        how: *const diptych_batch_options,
        load: impl FnOnce(&LoadOptions) -> Result<ModelFile, Error>,
    ) -> Result<(), Failure> {
        // SAFETY: the caller promises that `options` are NULL or of diptych_options_new and not freed, that `how` is NULL
        // or points to options whose pointers are as their fields say, and that `devices` is NULL or points to `count`
        // texts; `as_ref` checks for NULL.
        let opened = unsafe { diptych_batch::open(options.as_ref(), (devices, count), how.as_ref(), load) }?;
        batch.write(Box::into_raw(Box::new(opened)));
        Ok(())
    }

    /// # Safety
    /// The pointers are as the functions of the header say.
    unsafe fn open(
        options: Option<&diptych_options>,
        devices: (*const *const c_char, usize),
        how: Option<&diptych_batch_options>,
        load: impl FnOnce(&LoadOptions) -> Result<ModelFile, Error>,
    ) -> Result<Self, Failure> {
        let (defaults, usual) = (diptych_options::default(), diptych_batch_options_default());
        let options = options.unwrap_or(&defaults);
        if options.caches.is_some() {
            return Err(wrong(
                "diptych_options_caches",
                "caches of a batch",
                "none: requests know of no earlier ones",
            ));
        }
        // SAFETY: the caller promises that `devices` are as `contexts` wants them: NULL, or so many texts.
        let contexts = unsafe { contexts(options, devices.0, devices.1) }?;
        let file = load(&options.load)?;
        let pixels = options.pixels_of(&file)?;
        let database = match &options.record {
            Some(folder) => Database::open(folder)?,
            None => Database::in_memory(),
        };
        let session = SessionOptions {
            precision: options.precision(&contexts),
            tuning: Tuning::Database(Arc::new(Mutex::new(database))),
            seed: options.seed,
            cpu_threads: options.threads,
            ..Default::default()
        };
        // SAFETY: the caller promises that the pointers in `how` are as its fields say; those of the defaults are NULL.
        let how = unsafe { how.unwrap_or(&usual).read(session) }?;
        let pool = DevicePool::new(&contexts, &file.model(&BTreeMap::new())?.graph, how)?;
        let texts = |ports: &[Port]| names(ports).map(c_text).collect();
        Ok(diptych_batch {
            names: [texts(pool.batch().inputs()), texts(pool.batch().outputs())],
            outputs: pool.batch().outputs().into(),
            pool,
            pixels,
        })
    }

    /// A request's inputs, copied.
    ///
    /// # Safety
    /// `inputs` is NULL, or points to `count` tensors that point to so many bytes as they say.
    unsafe fn request(
        &self,
        inputs: *const diptych_tensor,
        count: usize,
    ) -> Result<Vec<(String, HostTensor)>, Failure> {
        let ports = self.pool.batch().inputs();
        // SAFETY: the caller promises that `inputs` is NULL or points to `count` tensors with so many bytes as they say,
        // which are not written before this function returns; nothing that borrows from them leaves it.
        let sources = unsafe { sources(ports, &self.pixels, inputs, count) }?;
        let named = ports
            .iter()
            .zip(sources)
            .map(|(port, source)| Ok((port.name.clone(), source.into_tensor(port)?)));
        Ok(named.collect::<Result<_, Error>>()?)
    }

    fn ticket(&self, ticket: Ticket) -> *mut diptych_ticket {
        Box::into_raw(Box::new(diptych_ticket { ticket, outputs: Arc::clone(&self.outputs) }))
    }
}

/// Opens a file for requests of many threads: those of about the same time become one run, whose results are split again. Its
/// devices are `device_count` texts as diptych_options_device takes them, or that of the options if there are none; requests
/// wait in one queue, and each device takes its share. `options` may be NULL, and so may `how`. Extents that the file leaves
/// open are fixed by diptych_options_dimension; an outermost one that is not is 1 for a request. The batch is the caller's,
/// who closes it; on failure it is NULL.
///
/// # Safety
/// `path` is text, `options` are NULL, or those of diptych_options_new and not freed, `devices` is NULL or points to so
/// many texts, `how` is NULL or points to options, and `batch` points to a pointer that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_batch_open_file(
    path: *const c_char,
    options: *const diptych_options,
    devices: *const *const c_char,
    device_count: usize,
    how: *const diptych_batch_options,
    batch: *mut *mut diptych_batch,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `path` is text and that `batch` points to a pointer that nothing else uses; NULL
        // is refused here.
        let (path, batch) = unsafe { (text("path", path), out("batch", batch)?) };
        batch.write(std::ptr::null_mut());
        let path = path?;
        let load = |options: &LoadOptions| ModelFile::load(path, options);
        // SAFETY: the caller promises that `options`, `devices` and `how` are NULL or what diptych_batch_open_file says of
        // them, which is all that `open_into` wants.
        unsafe { diptych_batch::open_into(batch, (options, devices, device_count), how, load) }
    })
}

/// diptych_batch_open_file of a file that is in memory. The bytes may be freed afterwards.
///
/// # Safety
/// `bytes` points to `length` bytes, and the others are as those of diptych_batch_open_file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_batch_open_bytes(
    bytes: *const u8,
    length: usize,
    options: *const diptych_options,
    devices: *const *const c_char,
    device_count: usize,
    how: *const diptych_batch_options,
    batch: *mut *mut diptych_batch,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `bytes` points to `length` bytes and that `batch` points to a pointer that
        // nothing else uses; NULL is refused here, of `bytes` unless there are none.
        let (bytes, batch) = unsafe { (slice("bytes", bytes, length), out("batch", batch)?) };
        batch.write(std::ptr::null_mut());
        let bytes = bytes?;
        let load = |options: &LoadOptions| ModelFile::from_bytes(bytes, options);
        // SAFETY: the caller promises that `options`, `devices` and `how` are NULL or what diptych_batch_open_file says of
        // them, which is all that `open_into` wants.
        unsafe { diptych_batch::open_into(batch, (options, devices, device_count), how, load) }
    })
}

/// Answers what was handed in, and frees a batch. NULL is allowed.
///
/// # Safety
/// `batch` is NULL, or of an open function, in no call of another thread's, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_batch_close(batch: *mut diptych_batch) {
    if !batch.is_null() {
        // SAFETY: it comes from `Box::into_raw`, and is freed once.
        let batch = unsafe { Box::from_raw(batch) };
        guard(|| {
            drop(batch);
            Ok(())
        });
    }
}

/// How many inputs a request has; 0 if the batch is NULL.
///
/// # Safety
/// `batch` is NULL, or of an open function and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_batch_input_count(batch: *const diptych_batch) -> usize {
    // SAFETY: the caller promises that `batch` is NULL, or of an open function and not closed; `as_ref` checks for NULL.
    unsafe { batch.as_ref() }.map_or(0, |batch| batch.names[0].len())
}

/// How many outputs a request has; 0 if the batch is NULL.
///
/// # Safety
/// `batch` is NULL, or of an open function and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_batch_output_count(batch: *const diptych_batch) -> usize {
    // SAFETY: the caller promises that `batch` is NULL, or of an open function and not closed; `as_ref` checks for NULL.
    unsafe { batch.as_ref() }.map_or(0, |batch| batch.names[1].len())
}

/// An input of one request, by its number.
///
/// # Safety
/// `batch` is of an open function and not closed, and `input` points to a port that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_batch_input(
    batch: *const diptych_batch,
    index: usize,
    input: *mut diptych_port,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `batch` is of an open function and not closed, and that `input` points to a port
        // that nothing else uses; NULL is refused here.
        let (batch, input) = unsafe { (shared("batch", batch)?, out("input", input)?) };
        input.write(port("input", batch.pool.batch().inputs(), &batch.names[0], index)?);
        Ok(())
    })
}

/// An output of one request, by its number.
///
/// # Safety
/// `batch` is of an open function and not closed, and `output` points to a port that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_batch_output(
    batch: *const diptych_batch,
    index: usize,
    output: *mut diptych_port,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `batch` is of an open function and not closed, and that `output` points to a
        // port that nothing else uses; NULL is refused here.
        let (batch, output) = unsafe { (shared("batch", batch)?, out("output", output)?) };
        output.write(port("output", &batch.outputs, &batch.names[1], index)?);
        Ok(())
    })
}

/// Hands in a request: tensors in the order of the batch's inputs, which are copied. Waits until it is taken: at once where
/// fewer than `max_waiting` wait. Any thread may call it. The ticket is the caller's, who waits for it or frees it; on failure
/// it is NULL.
///
/// # Safety
/// `batch` is of an open function and not closed; `inputs` points to `input_count` tensors, which point to so many bytes as
/// they say, which no other thread writes. `ticket` points to a pointer that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_batch_submit(
    batch: *const diptych_batch,
    inputs: *const diptych_tensor,
    input_count: usize,
    ticket: *mut *mut diptych_ticket,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `ticket` points to a pointer that nothing else uses; `out` refuses NULL.
        let ticket = unsafe { out("ticket", ticket) }?;
        ticket.write(std::ptr::null_mut());
        // SAFETY: the caller promises that `batch` is of an open function and not closed; `shared` refuses NULL.
        let batch = unsafe { shared("batch", batch) }?;
        // SAFETY: the caller promises that `inputs` points to `input_count` tensors with so many bytes as they say, which
        // no other thread writes; `request` refuses another number, NULL and wrong lengths.
        let request = unsafe { batch.request(inputs, input_count) }?;
        ticket.write(batch.ticket(batch.pool.batch().submit(request)?));
        Ok(())
    })
}

/// diptych_batch_submit if there is room: otherwise the ticket is NULL, and that is no failure.
///
/// # Safety
/// `batch` is of an open function and not closed; `inputs` points to `input_count` tensors, which point to so many bytes as
/// they say, which no other thread writes. `ticket` points to a pointer that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_batch_try_submit(
    batch: *const diptych_batch,
    inputs: *const diptych_tensor,
    input_count: usize,
    ticket: *mut *mut diptych_ticket,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `ticket` points to a pointer that nothing else uses; `out` refuses NULL.
        let ticket = unsafe { out("ticket", ticket) }?;
        ticket.write(std::ptr::null_mut());
        // SAFETY: the caller promises that `batch` is of an open function and not closed; `shared` refuses NULL.
        let batch = unsafe { shared("batch", batch) }?;
        // SAFETY: the caller promises that `inputs` points to `input_count` tensors with so many bytes as they say, which
        // no other thread writes; `request` refuses another number, NULL and wrong lengths.
        let request = unsafe { batch.request(inputs, input_count) }?;
        if let Some(taken) = batch.pool.batch().try_submit(request)? {
            ticket.write(batch.ticket(taken));
        }
        Ok(())
    })
}
