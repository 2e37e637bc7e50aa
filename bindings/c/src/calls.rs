//! Runs, profiles and searches for faster kernels.

use crate::errors::{Failure, diptych_status, guard, printable, wrong};
use crate::session::{Running, diptych_session, extents};
use diptych::{DType, Dims, Error, HostTensor, Journal, Port, RunInput, TimedStep, Tuner};
use diptych_pointers::{c_text, defaulted, out_slice, shared, slice};
use std::ffi::{c_char, c_void};
use std::ops::Range;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

/// The elements of an input, as floats. For an input of integers they must be whole numbers; diptych_run_typed takes
/// integers as they are.
#[repr(C)]
#[derive(Debug)]
pub struct diptych_input_data {
    /// Points to the first element.
    pub elements: *const f32,
    /// The number of elements: the port's, of the last run's extents where the file leaves them open.
    pub length: usize,
}

/// Memory for the elements of an output, as floats. Integers of more than 24 bits are rounded; diptych_run_typed gives
/// them as they are.
#[repr(C)]
#[derive(Debug)]
pub struct diptych_output_data {
    /// Points to the first element.
    pub elements: *mut f32,
    /// The number of elements: the port's.
    pub length: usize,
}

/// A step of a run: a node of the network, several that run as one, or a change of layout.
#[repr(C)]
#[derive(Debug)]
pub struct diptych_step {
    /// The node's name.
    pub name: *const c_char,
    /// The kernel's label.
    pub kernel: *const c_char,
    /// Its time on the device.
    pub microseconds: f64,
    /// Its floating-point operations.
    pub flops: u64,
}

/// Called with each step of a profile. The step is valid until the callback returns, which must neither throw nor jump out.
pub type diptych_step_callback = Option<unsafe extern "C" fn(step: *const diptych_step, user: *mut c_void)>;

/// Called several times a second with the number of problems that are done and of all problems. Returning false ends
/// the search. It must neither throw nor jump out.
pub type diptych_progress_callback =
    Option<unsafe extern "C" fn(done: usize, problems: usize, user: *mut c_void) -> bool>;

/// How long a search works before it tells how far it is.
const TUNING_STEP: Duration = Duration::from_millis(100);

pub(crate) fn names(ports: &[Port]) -> impl Iterator<Item = &str> + Clone {
    ports.iter().map(|port| port.name.as_str())
}

pub(crate) fn counted(what: &str, found: usize, ports: &[Port]) -> Result<(), Failure> {
    if found == ports.len() {
        return Ok(());
    }
    let wanted = format!("{}: {}", ports.len(), printable(names(ports)));
    Err(wrong(what, format!("{found} of them"), wanted))
}

/// What an input is given.
pub(crate) enum Given<'a> {
    Slice(&'a [f32]),
    Shaped(Dims, &'a [f32]),
    Tensor(HostTensor),
}

impl<'a> Given<'a> {
    /// Elements of a type and their dimensions: floats where they lie, everything else as a tensor.
    ///
    /// # Safety
    /// `elements` points to as many bytes as such elements take, which are not written during `'a`; without any it may be
    /// NULL.
    pub(crate) unsafe fn at(
        name: &str,
        elements: *const c_void,
        dims: Dims,
        dtype: DType,
    ) -> Result<Self, Failure> {
        let floats = elements.cast::<f32>();
        if dtype == DType::F32 && floats.is_aligned() {
            // SAFETY: the caller promises that `elements` points to as many bytes as these floats take; they are aligned
            // (checked above), and `slice` refuses NULL.
            return Ok(Given::Shaped(dims, unsafe { slice(name, floats, dims.elements()) }?));
        }
        // SAFETY: the caller promises that `elements` points to as many bytes as such elements take; `slice` refuses NULL.
        let bytes = unsafe { slice(name, elements.cast::<u8>(), dims.elements() * dtype.bytes()) }?;
        Ok(Given::Tensor(HostTensor::from_bytes(dims, dtype, bytes)?))
    }

    pub(crate) fn input(&self) -> RunInput<'_> {
        match self {
            Given::Slice(elements) => (*elements).into(),
            Given::Shaped(dims, elements) => (*dims, *elements).into(),
            Given::Tensor(tensor) => tensor.into(),
        }
    }

    pub(crate) fn into_tensor(self, port: &Port) -> Result<HostTensor, Error> {
        match self {
            Given::Slice(elements) => HostTensor::new(port.dims, elements),
            Given::Shaped(dims, elements) => HostTensor::new(dims, elements),
            Given::Tensor(tensor) => Ok(tensor),
        }
    }
}

fn of_length(what: &str, port: &Port, found: usize) -> Result<(), Failure> {
    let wanted = port.dims.elements();
    if found == wanted {
        return Ok(());
    }
    let name = format!("{what} {:?}", port.name);
    Err(wrong(&name, format!("{found} elements"), format!("{wanted} for shape {}", port.dims)))
}

/// The inputs' elements, where they lie.
///
/// # Safety
/// `inputs` is NULL, or points to `count` inputs that point to their elements, which are not written during `'a`.
unsafe fn sources<'a>(
    ports: &[Port],
    inputs: *const diptych_input_data,
    count: usize,
) -> Result<Vec<&'a [f32]>, Failure> {
    counted("inputs", count, ports)?;
    // SAFETY: the caller promises that `inputs` is NULL or points to `count` inputs; `slice` refuses NULL.
    let inputs = unsafe { slice("inputs", inputs, count) }?;
    let mut sources = Vec::with_capacity(count);
    for (port, input) in ports.iter().zip(inputs) {
        of_length("input", port, input.length)?;
        let name = format!("input {:?}", port.name);
        // SAFETY: the caller promises that an input points to `length` floats; these are as many as the port has (checked
        // above), and `slice` refuses NULL and addresses that are not aligned.
        sources.push(unsafe { slice(&name, input.elements, input.length) }?);
    }
    Ok(sources)
}

pub(crate) fn addresses<T>(elements: *const T, length: usize) -> Range<usize> {
    let first = elements.addr();
    first..first.saturating_add(length.saturating_mul(size_of::<T>()))
}

/// Runs the network: reads the inputs and writes the outputs where they lie, each in the order of the session's ports.
/// Outputs must not overlap with anything. After a failure their contents are unspecified.
///
/// # Safety
/// `session` is of an open function and not closed; `inputs` points to `input_count` inputs and `outputs` to `output_count`
/// outputs, all of which point to so many floats as they say, which no other thread writes, nor reads if they are an
/// output's. Outputs overlap with nothing else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_run(
    session: *mut diptych_session,
    inputs: *const diptych_input_data,
    input_count: usize,
    outputs: *const diptych_output_data,
    output_count: usize,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `session` is of an open function and not closed; `shared` refuses NULL.
        let mut running = unsafe { shared("session", session) }?.turn()?;
        let (inputs_of, outputs_of) = running.ports();
        // SAFETY: the caller promises that `inputs` points to `input_count` inputs with so many floats as they say, which
        // no other thread writes; this one does not write them either, for outputs that overlap with them are refused
        // below.
        let sources = unsafe { sources(&inputs_of, inputs, input_count) }?;
        counted("outputs", output_count, &outputs_of)?;
        // SAFETY: the caller promises that `outputs` points to `output_count` outputs; these are as many as the session has
        // (checked above), and `slice` refuses NULL.
        let outputs = unsafe { slice("outputs", outputs, output_count) }?;
        let mut taken: Vec<Range<usize>> =
            sources.iter().map(|source| addresses(source.as_ptr(), source.len())).collect();
        let mut targets = Vec::with_capacity(output_count);
        for (port, output) in outputs_of.iter().zip(outputs) {
            of_length("output", port, output.length)?;
            let name = format!("output {:?}", port.name);
            let own = addresses(output.elements, output.length);
            if taken.iter().any(|other| own.start < other.end && other.start < own.end) {
                return Err(wrong(&name, "memory of an input or another output", "memory of its own"));
            }
            taken.push(own);
            // SAFETY: the caller promises that an output points to memory for `length` floats that no other thread uses; these
            // are as many as the port has (`of_length`) and overlap with no input and no earlier output (`taken`), and
            // `out_slice` refuses NULL and addresses that are not aligned.
            targets.push(unsafe { out_slice(&name, output.elements, output.length) }?);
        }
        let sources: Vec<(&str, &[f32])> = names(&inputs_of).zip(sources).collect();
        let found = running.session.run_shown(&sources)?;
        running.decided = true;
        // Outputs are copied to slices of floats, and C's memory may be uninitialised.
        let mut targets: Vec<(&str, &mut [f32])> =
            names(&outputs_of).zip(targets.into_iter().map(defaulted)).collect();
        found.copy_into(&mut targets)?;
        Ok(())
    })
}

/// Runs the network once, and tells `callback` the time of each step on the device's clock, in order.
///
/// # Safety
/// `session` is of an open function and not closed; `inputs` points to `input_count` inputs, which point to so many floats
/// as they say, which no other thread writes. `callback` may be called with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_profile(
    session: *mut diptych_session,
    inputs: *const diptych_input_data,
    input_count: usize,
    callback: diptych_step_callback,
    user: *mut c_void,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `session` is of an open function and not closed; `shared` refuses NULL.
        let running = unsafe { shared("session", session) }?.turn()?;
        let (ports, _) = running.ports();
        // SAFETY: the caller promises that `inputs` points to `input_count` inputs with so many floats as they say, which
        // no other thread writes; `sources` refuses another number, NULL and wrong lengths.
        let sources = unsafe { sources(&ports, inputs, input_count) }?;
        let sources = sources.into_iter().map(Given::Slice).collect();
        // SAFETY: the caller promises that `callback` may be called with `user`; `profiled` refuses NULL.
        unsafe { profiled(running, &ports, sources, callback, user) }
    })
}

/// Profiles one run.
///
/// # Safety
/// `callback` may be called with `user`.
pub(crate) unsafe fn profiled(
    mut running: MutexGuard<'_, Running>,
    ports: &[Port],
    sources: Vec<Given<'_>>,
    callback: diptych_step_callback,
    user: *mut c_void,
) -> Result<(), Failure> {
    let callback = callback.ok_or_else(|| wrong("callback", "NULL", "a function"))?;
    let tensors = ports.iter().zip(sources).map(|(port, source)| source.into_tensor(port));
    let tensors: Vec<HostTensor> = tensors.collect::<Result<_, Error>>()?;
    let named: Vec<(&str, &HostTensor)> = names(ports).zip(&tensors).collect();
    let profile = running.session.profile(&named)?;
    running.decided = true;
    // The callback may call other functions of the session.
    drop(running);
    for TimedStep { step, time } in profile.steps {
        let (name, kernel) = (c_text(&step.name), c_text(&step.kernel));
        let timed = diptych_step {
            name: name.as_ptr(),
            kernel: kernel.as_ptr(),
            microseconds: 1e6 * time.as_secs_f64(),
            flops: step.flops,
        };
        // SAFETY: the caller allows it, and the step lives until it returns.
        unsafe { callback(&raw const timed, user) };
    }
    Ok(())
}

/// Times kernels on this device for so many seconds, and takes the faster ones. Each candidate's result is checked
/// before it is timed. What is found goes to the record, also if `callback`, which may be NULL, ends the search. Where the
/// file leaves extents open, the search is for those of the last run.
///
/// # Safety
/// `session` is of an open function and not closed. `callback` is NULL, or may be called with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_tune(
    session: *mut diptych_session,
    seconds: f64,
    callback: diptych_progress_callback,
    user: *mut c_void,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `session` is of an open function and not closed; `shared` refuses NULL.
        let session = unsafe { shared("session", session) }?;
        let budget = Duration::try_from_secs_f64(seconds)
            .map_err(|_| wrong("seconds", seconds.to_string(), "a number of seconds"))?;
        let (database, folder) = &session.record;
        let mut tuner = Tuner::new(&session.context)?.precision(session.precision).budget(budget);
        if let Some(folder) = folder {
            let mut record = database.lock().unwrap_or_else(PoisonError::into_inner);
            tuner = tuner.journal(Journal::open(folder, &mut record)?);
        }
        tuner = tuner.database(Arc::clone(database));
        let extents = extents(&*session.turn()?);
        tuner.begin(&session.file.model(&extents)?.graph)?;
        loop {
            let progress = tuner.step(TUNING_STEP)?;
            let go_on = callback.is_none_or(|callback| {
                // SAFETY: the caller allows it.
                unsafe { callback(progress.done, progress.problems, user) }
            });
            if !go_on {
                tuner.cancel()?;
                return Err(Failure::Stopped);
            }
            if progress.is_finished() {
                break;
            }
        }
        session.turn()?.session.refresh()?;
        Ok(())
    })
}
