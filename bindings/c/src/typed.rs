//! Runs whose inputs and outputs have the types of the session's ports.

use crate::calls::diptych_step_callback;
use crate::calls::{Given, addresses, counted, names, profiled};
use crate::errors::{Failure, diptych_status, guard, wrong};
use crate::into::write_floats;
use crate::session::diptych_session;
use diptych::{DType, Port, RunInput};
use diptych_pointers::{fill_from, out_slice, shared, slice};
use std::ffi::c_void;
use std::ops::Range;

/// The elements of an input, of its port's type.
#[repr(C)]
#[derive(Debug)]
pub struct diptych_input_bytes {
    /// Points to the first element. Any address will do; where it is a multiple of four, floats are not copied.
    pub elements: *const c_void,
    /// The number of bytes: the port's.
    pub bytes: usize,
}

/// Memory for the elements of an output, of its port's type.
#[repr(C)]
#[derive(Debug)]
pub struct diptych_output_bytes {
    /// Points to the first element. Any address will do.
    pub elements: *mut c_void,
    /// The number of bytes: the port's.
    pub bytes: usize,
}

fn of_size(what: &str, port: &Port, found: usize) -> Result<(), Failure> {
    let wanted = port.dims.elements() * port.dtype.bytes();
    if found == wanted {
        return Ok(());
    }
    let name = format!("{what} {:?}", port.name);
    Err(wrong(&name, format!("{found} bytes"), format!("{wanted} for {} of shape {}", port.dtype, port.dims)))
}

/// The inputs: floats where they lie, everything else as tensors.
///
/// # Safety
/// `inputs` is NULL, or points to `count` inputs that point to their bytes, which are not written during `'a`.
unsafe fn sources<'a>(
    ports: &[Port],
    inputs: *const diptych_input_bytes,
    count: usize,
) -> Result<Vec<Given<'a>>, Failure> {
    counted("inputs", count, ports)?;
    // SAFETY: the caller promises that `inputs` is NULL or points to `count` inputs; `slice` refuses NULL.
    let inputs = unsafe { slice("inputs", inputs, count) }?;
    let mut sources = Vec::with_capacity(count);
    for (port, input) in ports.iter().zip(inputs) {
        of_size("input", port, input.bytes)?;
        let name = format!("input {:?}", port.name);
        // SAFETY: the caller promises that an input points to so many bytes as it says; that is as many as the port's
        // elements take (checked above).
        sources.push(unsafe { Given::at(&name, input.elements, port.dims, port.dtype) }?);
    }
    Ok(sources)
}

/// Runs the network as diptych_run does, on inputs and outputs of the types of their ports: int64 as int64_t, and so on.
/// Outputs must not overlap with anything. After a failure their contents are unspecified.
///
/// # Safety
/// `session` is of an open function and not closed; `inputs` points to `input_count` inputs and `outputs` to `output_count`
/// outputs, all of which point to so many bytes as they say, which no other thread writes, nor reads if they are an
/// output's. Outputs overlap with nothing else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_run_typed(
    session: *mut diptych_session,
    inputs: *const diptych_input_bytes,
    input_count: usize,
    outputs: *const diptych_output_bytes,
    output_count: usize,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `session` is of an open function and not closed; `shared` refuses NULL.
        let mut running = unsafe { shared("session", session) }?.turn()?;
        let (inputs_of, outputs_of) = running.ports();
        // SAFETY: the caller promises that `inputs` points to `input_count` inputs with so many bytes as they say, which no
        // other thread writes; this one does not write them either, for outputs that overlap with them are refused below.
        let sources = unsafe { sources(&inputs_of, inputs, input_count) }?;
        // SAFETY: the caller promises that `inputs` points to `input_count` inputs; `sources` read as many above.
        let given = unsafe { slice("inputs", inputs, input_count) }?;
        counted("outputs", output_count, &outputs_of)?;
        // SAFETY: the caller promises that `outputs` points to `output_count` outputs; these are as many as the session has
        // (checked above), and `slice` refuses NULL.
        let outputs = unsafe { slice("outputs", outputs, output_count) }?;
        let mut taken: Vec<Range<usize>> =
            given.iter().map(|input| addresses(input.elements.cast::<u8>(), input.bytes)).collect();
        let mut targets = Vec::with_capacity(output_count);
        for (port, output) in outputs_of.iter().zip(outputs) {
            of_size("output", port, output.bytes)?;
            let name = format!("output {:?}", port.name);
            let own = addresses(output.elements.cast::<u8>(), output.bytes);
            if taken.iter().any(|other| own.start < other.end && other.start < own.end) {
                return Err(wrong(&name, "memory of an input or another output", "memory of its own"));
            }
            taken.push(own);
            // SAFETY: the caller promises that an output points to memory of so many bytes as it says, which no other thread
            // uses; these are as many as the port's elements take (`of_size`) and overlap with no input and no earlier output
            // (`taken`), and `out_slice` refuses NULL.
            targets.push(unsafe { out_slice(&name, output.elements.cast::<u8>(), output.bytes) }?);
        }
        let sources: Vec<(&str, RunInput<'_>)> =
            names(&inputs_of).zip(sources.iter().map(Given::input)).collect();
        let flight = running.session.submit(&sources)?;
        running.decided = true;
        drop(running);
        let found = flight.wait()?;
        for ((index, port), target) in found.ports().iter().enumerate().zip(targets) {
            // The first run of open extents may have found others than the file says.
            of_size("output", port, target.len())?;
            if port.dtype == DType::F32 {
                write_floats(target, found.get(index)?);
            } else {
                let tensor = found.tensor(index)?;
                fill_from(target, tensor.bytes().iter().copied());
            }
        }
        Ok(())
    })
}

/// Profiles the network as diptych_profile does, on inputs of the types of their ports.
///
/// # Safety
/// `session` is of an open function and not closed; `inputs` points to `input_count` inputs, which point to so many bytes
/// as they say, which no other thread writes. `callback` may be called with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_profile_typed(
    session: *mut diptych_session,
    inputs: *const diptych_input_bytes,
    input_count: usize,
    callback: diptych_step_callback,
    user: *mut c_void,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `session` is of an open function and not closed; `shared` refuses NULL.
        let running = unsafe { shared("session", session) }?.turn()?;
        let (ports, _) = running.ports();
        // SAFETY: the caller promises that `inputs` points to `input_count` inputs with so many bytes as they say, which no
        // other thread writes; `sources` refuses another number, NULL and wrong lengths.
        let sources = unsafe { sources(&ports, inputs, input_count) }?;
        // SAFETY: the caller promises that `callback` may be called with `user`; `profiled` refuses NULL.
        unsafe { profiled(running, &ports, sources, callback, user) }
    })
}
