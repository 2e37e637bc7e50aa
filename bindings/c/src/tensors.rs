//! Runs on tensors that say their extents, whose outputs say theirs.

use crate::calls::{Given, counted, names};
use crate::errors::{Failure, diptych_status, guard, wrong};
use crate::pixels::PixelsOf;
use crate::session::{DIPTYCH_MAX_RANK, diptych_dtype, diptych_session, padded};
use diptych::{DType, Dims, Error, HostTensor, Port, RunInput, Session};
use diptych_pointers::{out, shared, slice};
use std::ffi::c_void;

/// Elements with their type and extents. The last axis is the fastest.
#[repr(C)]
#[derive(Debug)]
pub struct diptych_tensor {
    /// Points to the first element; without elements it may be NULL. An input's may be at any address; where that is a
    /// multiple of four, floats are not copied. An output's is one for its type.
    pub elements: *const c_void,
    /// The number of bytes: that of an element of the type times all extents.
    pub bytes: usize,
    /// The type of the elements, a diptych_dtype. An input takes other types than its own, if each number is one of its own.
    pub dtype: i32,
    /// How many axes it has, at most DIPTYCH_MAX_RANK.
    pub rank: usize,
    /// Their extents; those beyond the rank are not read, and 1 of an output. With an extent of 0 there are no elements.
    pub extents: [usize; DIPTYCH_MAX_RANK],
}

/// The outputs of a run or of a request. Made by diptych_run_tensors, diptych_flight_wait and diptych_ticket_wait, freed by
/// diptych_outputs_free. They may outlive their session.
pub struct diptych_outputs(Vec<HostTensor>);

impl diptych_outputs {
    pub(crate) fn made(tensors: Vec<HostTensor>) -> *mut Self {
        Box::into_raw(Box::new(diptych_outputs(tensors)))
    }
}

/// The types, by their numbers in the header.
const TYPES: [diptych_dtype; 10] = [
    diptych_dtype::F32,
    diptych_dtype::F16,
    diptych_dtype::I64,
    diptych_dtype::I32,
    diptych_dtype::I16,
    diptych_dtype::I8,
    diptych_dtype::U32,
    diptych_dtype::U16,
    diptych_dtype::U8,
    diptych_dtype::Bool,
];

/// Extents and type of a tensor that has as many bytes.
fn described(name: &str, input: &diptych_tensor) -> Result<(Dims, DType), Failure> {
    let extents = input
        .extents
        .get(..input.rank)
        .ok_or_else(|| wrong(name, format!("{} axes", input.rank), format!("at most {DIPTYCH_MAX_RANK}")))?;
    let dims = Dims::new(extents)?;
    let dtype = TYPES.iter().find(|dtype| **dtype as i32 == input.dtype);
    let dtype = dtype.ok_or_else(|| wrong(name, format!("type {}", input.dtype), "a diptych_dtype"))?;
    let dtype = DType::from(*dtype);
    let wanted = dims.elements() * dtype.bytes();
    if input.bytes != wanted {
        let found = format!("{} bytes", input.bytes);
        return Err(wrong(name, found, format!("{wanted} for {dtype} of shape {dims}")));
    }
    Ok((dims, dtype))
}

/// A copy of a tensor.
///
/// # Safety
/// `given` is NULL, or points to a tensor that points to so many bytes as it says.
pub(crate) unsafe fn tensor(name: &str, given: *const diptych_tensor) -> Result<HostTensor, Failure> {
    // SAFETY: the caller promises that `given` is NULL or points to a tensor; `shared` refuses NULL.
    let given = unsafe { shared(name, given) }?;
    let (dims, dtype) = described(name, given)?;
    // SAFETY: the caller promises that a tensor points to so many bytes as it says; `slice` refuses NULL unless there are
    // none.
    let bytes = unsafe { slice(name, given.elements.cast::<u8>(), given.bytes) }?;
    Ok(HostTensor::from_bytes(dims, dtype, bytes)?)
}

/// The inputs: floats where they lie, everything else as tensors.
///
/// # Safety
/// `inputs` is NULL, or points to `count` tensors that point to their bytes, which are not written during `'a`.
pub(crate) unsafe fn sources<'a>(
    ports: &[Port],
    pixels: &PixelsOf,
    inputs: *const diptych_tensor,
    count: usize,
) -> Result<Vec<Given<'a>>, Failure> {
    counted("inputs", count, ports)?;
    // SAFETY: the caller promises that `inputs` is NULL or points to `count` tensors; `slice` refuses NULL unless there are
    // none.
    let inputs = unsafe { slice("inputs", inputs, count) }?;
    let mut sources = Vec::with_capacity(count);
    for (port, input) in ports.iter().zip(inputs) {
        let name = format!("input {:?}", port.name);
        let (dims, dtype) = described(&name, input)?;
        // SAFETY: the caller promises that an input points to so many bytes as it says; that is as many as its type and
        // extents take (`described` checked it).
        let given = unsafe { Given::at(&name, input.elements, dims, dtype) }?;
        sources.push(pixels.scaled(port, given)?);
    }
    Ok(sources)
}

/// Runs the network on tensors in the order of the session's inputs. Where the file leaves extents open they may have
/// any: the first run with certain extents prepares for them, which takes as long as opening a session, and those that
/// were used last are kept ready. The outputs are the caller's, who frees them; on failure they are NULL.
///
/// # Safety
/// `session` is of an open function and not closed; `inputs` points to `input_count` tensors, which point to so many bytes
/// as they say, which no other thread writes. `outputs` points to a pointer that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_run_tensors(
    session: *mut diptych_session,
    inputs: *const diptych_tensor,
    input_count: usize,
    outputs: *mut *mut diptych_outputs,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `outputs` points to a pointer that nothing else uses; `out` refuses NULL.
        let outputs = unsafe { out("outputs", outputs) }?;
        outputs.write(std::ptr::null_mut());
        // SAFETY: the caller promises that `session` is of an open function and not closed; `shared` refuses NULL.
        let session = unsafe { shared("session", session) }?;
        // SAFETY: the caller promises that `inputs` points to `input_count` tensors with so many bytes as they say, which
        // no other thread writes; `with_sources` refuses another number, NULL and wrong lengths.
        let found =
            unsafe { with_sources(session, inputs, input_count, |session, named| session.run_shown(named)) }?;
        outputs.write(diptych_outputs::made(found.tensors()?));
        Ok(())
    })
}

/// Does something with a session and what its inputs are given, in this thread's turn.
///
/// # Safety
/// `inputs` is NULL, or points to `count` tensors that point to their bytes, which are not written before this returns.
pub(crate) unsafe fn with_sources<T>(
    session: &diptych_session,
    inputs: *const diptych_tensor,
    count: usize,
    work: impl FnOnce(&mut Session, &[(&str, RunInput<'_>)]) -> Result<T, Error>,
) -> Result<T, Failure> {
    let mut running = session.turn()?;
    let (ports, _) = running.ports();
    // SAFETY: the caller promises that `inputs` is NULL or points to `count` tensors with so many bytes as they say, which
    // are not written before this function returns; nothing that borrows from them leaves it.
    let sources = unsafe { sources(&ports, &session.pixels, inputs, count) }?;
    let named: Vec<(&str, RunInput<'_>)> = names(&ports).zip(sources.iter().map(Given::input)).collect();
    let done = work(&mut running.session, &named)?;
    running.decided = true;
    Ok(done)
}

/// How many outputs there are: as many as the session or the batch has; 0 if they are NULL.
///
/// # Safety
/// `outputs` are NULL, or of a function that makes them and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_outputs_count(outputs: *const diptych_outputs) -> usize {
    // SAFETY: the caller promises that `outputs` are NULL, or of a function that makes them and not freed; `as_ref` checks
    // for NULL.
    unsafe { outputs.as_ref() }.map_or(0, |outputs| outputs.0.len())
}

/// An output, by its number, with its extents in that run. Its elements live until the outputs are freed.
///
/// # Safety
/// `outputs` are of a function that makes them and not freed, and `tensor` points to a tensor that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_outputs_tensor(
    outputs: *const diptych_outputs,
    index: usize,
    tensor: *mut diptych_tensor,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `outputs` are of a function that makes them and not freed, and that `tensor`
        // points to a tensor that nothing else uses; NULL is refused here.
        let (outputs, tensor) = unsafe { (shared("outputs", outputs)?, out("tensor", tensor)?) };
        let count = outputs.0.len();
        let wanted = || wrong("output", format!("number {index}"), format!("a number below {count}"));
        let found = outputs.0.get(index).ok_or_else(wanted)?;
        tensor.write(diptych_tensor {
            elements: found.bytes().as_ptr().cast(),
            bytes: found.bytes().len(),
            dtype: diptych_dtype::of(found.dtype())? as i32,
            rank: found.dims().rank(),
            extents: padded(found.dims()),
        });
        Ok(())
    })
}

/// Frees outputs. NULL is allowed.
///
/// # Safety
/// `outputs` are NULL, or of a function that makes them, and neither they nor their elements are used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_outputs_free(outputs: *mut diptych_outputs) {
    if !outputs.is_null() {
        // SAFETY: it comes from `Box::into_raw`, and is freed once.
        drop(unsafe { Box::from_raw(outputs) });
    }
}
