//! Runs that are started and waited for later, and outputs by name in the caller's memory.

use crate::calls::addresses;
use crate::errors::{Failure, diptych_status, guard, printable, wrong};
use crate::pointers::{changed, shared, slice, slice_mut, text};
use crate::session::{DIPTYCH_MAX_RANK, diptych_dtype, diptych_session, padded};
use crate::tensors::{diptych_outputs, diptych_tensor, with_sources};
use diptych::{DType, Dims, Flight, HostTensor, Outputs, Port};
use std::ffi::{c_char, c_void};
use std::ops::Range;

/// An output that is wanted, and the caller's memory for it.
#[repr(C)]
#[derive(Debug)]
pub struct diptych_result {
    /// The output's name, given by the caller.
    pub name: *const c_char,
    /// Memory for its elements, of its port's type, given by the caller. Any address will do.
    pub elements: *mut c_void,
    /// How many bytes there is room for, given by the caller.
    pub capacity: usize,
    /// How many bytes were written, of `capacity`.
    pub bytes: usize,
    /// The type of its elements, a diptych_dtype.
    pub dtype: i32,
    /// How many axes it has in this run.
    pub rank: usize,
    /// Their extents; 1 beyond the rank.
    pub extents: [usize; DIPTYCH_MAX_RANK],
}

/// A run that was started. Made by diptych_submit; freed by the functions that wait for it, or by diptych_flight_free.
pub struct diptych_flight(Flight);

/// What a run or a request gives.
pub(crate) enum Found {
    Shown(Outputs),
    Tensors(Vec<HostTensor>),
}

impl Found {
    /// Type, extents and bytes of an output.
    fn port(&self, index: usize, ports: &[Port]) -> Option<(DType, Dims)> {
        match self {
            Found::Shown(_) => ports.get(index).map(|port| (port.dtype, port.dims)),
            Found::Tensors(tensors) => tensors.get(index).map(|tensor| (tensor.dtype(), tensor.dims())),
        }
    }

    /// The elements of an output.
    fn elements(&self, index: usize, dtype: DType) -> Result<Elements<'_>, Failure> {
        let missing = || diptych::Error::Internal(format!("a run has no output {index}"));
        Ok(match self {
            Found::Shown(shown) if dtype == DType::F32 => Elements::Floats(shown.get(index)?),
            Found::Shown(shown) => Elements::Own(shown.tensor(index)?),
            Found::Tensors(tensors) => Elements::Bytes(tensors.get(index).ok_or_else(missing)?.bytes()),
        })
    }
}

/// Elements of an output, as they lie.
enum Elements<'a> {
    Floats(&'a [f32]),
    Bytes(&'a [u8]),
    Own(HostTensor),
}

impl Elements<'_> {
    /// Copies them to as many bytes.
    fn copy(&self, target: &mut [u8]) {
        match self {
            Elements::Floats(floats) => {
                let floats = floats.iter().map(|value| value.to_ne_bytes());
                target.as_chunks_mut().0.iter_mut().zip(floats).for_each(|(to, from)| *to = from);
            }
            Elements::Bytes(bytes) => target.iter_mut().zip(*bytes).for_each(|(to, from)| *to = *from),
            Elements::Own(tensor) => {
                target.iter_mut().zip(tensor.bytes()).for_each(|(to, from)| *to = *from);
            }
        }
    }
}

/// A result that an output fits.
struct Fitting<'r> {
    dtype: diptych_dtype,
    dims: Dims,
    target: &'r mut [u8],
}

/// The memory of results, in their order, for outputs of these names, types and extents.
///
/// # Safety
/// The results point to so many bytes as they say, which nothing else uses during `'r`.
unsafe fn fitting<'r>(
    results: impl Iterator<Item = (*mut c_void, usize)>,
    outputs: impl Iterator<Item = (String, DType, Dims)>,
) -> Result<Vec<Fitting<'r>>, Failure> {
    let mut taken: Vec<Range<usize>> = Vec::new();
    let mut fitting = Vec::new();
    for ((elements, capacity), (name, dtype, dims)) in results.zip(outputs) {
        let bytes = dims.elements() * dtype.bytes();
        let name = format!("output {name:?}");
        if bytes > capacity {
            let capacity = format!("room for {capacity} bytes");
            return Err(wrong(&name, capacity, format!("{bytes} for {dtype} of shape {dims}")));
        }
        let own = addresses(elements.cast::<u8>(), bytes);
        if taken.iter().any(|other| own.start < other.end && other.start < own.end) {
            return Err(wrong(&name, "memory of another output", "memory of its own"));
        }
        taken.push(own);
        // SAFETY: the caller promises that a result points to `capacity` bytes that nothing else uses; `bytes` are no more
        // and overlap with no earlier result (checked above), and `slice_mut` refuses NULL.
        let target = unsafe { slice_mut(&name, elements.cast::<u8>(), bytes) }?;
        fitting.push(Fitting { dtype: diptych_dtype::of(dtype)?, dims, target });
    }
    Ok(fitting)
}

/// Checks results before a run, as far as the outputs' extents are known: those that the run decides are not.
///
/// # Safety
/// `results` is NULL, or points to `count` results with names, which point to so many bytes as they say, which nothing else uses.
unsafe fn check(ports: &[Port], results: *const diptych_result, count: usize) -> Result<(), Failure> {
    // SAFETY: the caller promises that `results` is NULL or points to `count` results with names; `slice` refuses NULL
    // unless there are none.
    let (places, results) =
        unsafe { (places(crate::calls::names(ports), results, count)?, slice("results", results, count)?) };
    let wanted = results.iter().zip(places).filter_map(|(result, place)| Some((result, ports.get(place)?)));
    let known: Vec<_> = wanted.filter(|(_, port)| port.open.is_empty()).collect();
    let memory = known.iter().map(|(result, _)| (result.elements, result.capacity));
    let outputs = known.iter().map(|(_, port)| (port.name.clone(), port.dtype, port.dims));
    // SAFETY: the caller promises that each result points to `capacity` bytes that nothing else uses; nothing is written to
    // them, and no slice of them outlives this call.
    unsafe { fitting(memory, outputs) }.map(drop)
}

/// Which outputs are wanted, by their places among all of these names.
///
/// # Safety
/// `results` are NULL, or point to `count` results with names.
pub(crate) unsafe fn places<'n>(
    names: impl Iterator<Item = &'n str> + Clone,
    results: *const diptych_result,
    count: usize,
) -> Result<Vec<usize>, Failure> {
    // SAFETY: the caller promises that `results` is NULL or points to `count` results; `slice` refuses NULL unless there
    // are none.
    let results = unsafe { slice("results", results, count) }?;
    let mut places = Vec::with_capacity(count);
    for result in results {
        // SAFETY: the caller promises that the name of each result is text; `text` refuses NULL.
        let name = unsafe { text("results: name", result.name) }?;
        let place = names.clone().position(|own| own == name).ok_or_else(|| {
            let wanted = format!("one of {}", printable(names.clone()));
            wrong("results", format!("no output {name:?}"), wanted)
        })?;
        if places.contains(&place) {
            return Err(wrong("results", format!("output {name:?} twice"), "each output once"));
        }
        places.push(place);
    }
    Ok(places)
}

/// Copies outputs to results, of whose places they are. Nothing is written on an error.
///
/// # Safety
/// `results` are as many as `places`, and point to so many bytes as they say, which nothing else uses.
pub(crate) unsafe fn fill(
    found: &Found,
    ports: &[Port],
    places: &[usize],
    results: *mut diptych_result,
) -> Result<(), Failure> {
    // SAFETY: the caller promises that `results` points to as many results as there are `places`, which nothing else uses;
    // `slice_mut` refuses NULL unless there are none.
    let results = unsafe { slice_mut("results", results, places.len()) }?;
    let (mut outputs, mut elements) = (Vec::with_capacity(places.len()), Vec::with_capacity(places.len()));
    for &place in places {
        let gone = || diptych::Error::Internal(format!("a run has no output {place}"));
        let (dtype, dims) = found.port(place, ports).ok_or_else(gone)?;
        let name = ports.get(place).map_or_else(String::new, |port| port.name.clone());
        outputs.push((name, dtype, dims));
        elements.push(found.elements(place, dtype)?);
    }
    let memory = results.iter().map(|result| (result.elements, result.capacity));
    // SAFETY: the caller promises that each result points to `capacity` bytes that nothing else uses; `fitting` refuses
    // results with too little room and results that overlap.
    let fitting = unsafe { fitting(memory, outputs.into_iter()) }?;
    // From here on nothing fails.
    for ((result, own), elements) in results.iter_mut().zip(fitting).zip(elements) {
        elements.copy(own.target);
        (result.bytes, result.rank, result.extents) = (own.target.len(), own.dims.rank(), padded(own.dims));
        result.dtype = own.dtype as i32;
    }
    Ok(())
}

/// Waits for a run, and copies the wanted outputs.
///
/// # Safety
/// `results` is NULL, or points to `count` results with names, which point to so many bytes as they say, which nothing else uses.
unsafe fn landed(flight: Flight, results: *mut diptych_result, count: usize) -> Result<(), Failure> {
    let found = flight.wait()?;
    let ports = found.ports().to_vec();
    // SAFETY: the caller promises that `results` is NULL or points to `count` results with names.
    let places = unsafe { places(crate::calls::names(&ports), results, count) }?;
    // SAFETY: the caller promises that the results point to so many bytes as they say, which nothing else uses; `places`
    // has one for each of the `count` results.
    unsafe { fill(&Found::Shown(found), &ports, &places, results) }
}

/// Runs the network as diptych_run_tensors does, and writes outputs of the caller's choice to the caller's memory. Those
/// without a result are not copied; what is not computed is said by diptych_options_output. A result without room is an error
/// that says how many bytes it wants, and then nothing is written; where the file fixes the output's extents, nothing is run
/// either.
///
/// # Safety
/// `session` is of an open function and not closed; `inputs` points to `input_count` tensors, which point to so many bytes
/// as they say, which no other thread writes; `results` points to `result_count` results, which have names and point to so
/// many bytes as they say, which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_run_into(
    session: *mut diptych_session,
    inputs: *const diptych_tensor,
    input_count: usize,
    results: *mut diptych_result,
    result_count: usize,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `session` is of an open function and not closed; `shared` refuses NULL.
        let session = unsafe { shared("session", session) }?;
        {
            let running = session.turn()?;
            // Before the run, so that nothing is computed for a wrong name or too little room.
            // SAFETY: the caller promises that `results` points to `result_count` results with names and so many bytes as
            // they say, which no other thread uses; `check` refuses NULL.
            unsafe { check(running.session.outputs(), results, result_count) }?;
        }
        // SAFETY: the caller promises that `inputs` points to `input_count` tensors with so many bytes as they say, which
        // no other thread writes; `with_sources` refuses another number, NULL and wrong lengths.
        let flight =
            unsafe { with_sources(session, inputs, input_count, |session, named| session.submit(named)) }?;
        // SAFETY: the caller promises that `results` points to `result_count` results with names and so many bytes as they
        // say, which no other thread uses; `landed` refuses NULL, too little room and results that overlap.
        unsafe { landed(flight, results, result_count) }
    })
}

/// Starts a run on tensors in the order of the session's inputs, as diptych_run_tensors has them. They are read before this
/// returns. Runs take place in the order in which they were submitted; with two or three under way, uploads, runs and
/// downloads overlap. The flight is the caller's, who waits for it or frees it; on failure it is NULL.
///
/// # Safety
/// `session` is of an open function and not closed; `inputs` points to `input_count` tensors, which point to so many bytes
/// as they say, which no other thread writes. `flight` points to a pointer that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_submit(
    session: *mut diptych_session,
    inputs: *const diptych_tensor,
    input_count: usize,
    flight: *mut *mut diptych_flight,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `flight` points to a pointer that nothing else uses; `changed` refuses NULL.
        let flight = unsafe { changed("flight", flight) }?;
        *flight = std::ptr::null_mut();
        // SAFETY: the caller promises that `session` is of an open function and not closed; `shared` refuses NULL.
        let session = unsafe { shared("session", session) }?;
        // SAFETY: the caller promises that `inputs` points to `input_count` tensors with so many bytes as they say, which
        // no other thread writes; `with_sources` refuses another number, NULL and wrong lengths.
        let started =
            unsafe { with_sources(session, inputs, input_count, |session, named| session.submit(named)) }?;
        *flight = Box::into_raw(Box::new(diptych_flight(started)));
        Ok(())
    })
}

/// Waits for a run, and frees its flight, also on failure. The outputs are the caller's, who frees them; on failure they are
/// NULL.
///
/// # Safety
/// `flight` is of diptych_submit, and not used again. `outputs` points to a pointer that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_flight_wait(
    flight: *mut diptych_flight,
    outputs: *mut *mut diptych_outputs,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `flight` is of diptych_submit and not used again; `own` refuses NULL.
        let flight = unsafe { own(flight) }?;
        // SAFETY: the caller promises that `outputs` points to a pointer that nothing else uses; `changed` refuses NULL.
        let outputs = unsafe { changed("outputs", outputs) }?;
        *outputs = std::ptr::null_mut();
        *outputs = diptych_outputs::made(flight.wait()?.tensors()?);
        Ok(())
    })
}

/// Waits for a run, and frees its flight, also on failure. Outputs of the caller's choice are written to the caller's memory, as
/// diptych_run_into does it.
///
/// # Safety
/// `flight` is of diptych_submit, and not used again. `results` points to `result_count` results, which have names and point
/// to so many bytes as they say, which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_flight_wait_into(
    flight: *mut diptych_flight,
    results: *mut diptych_result,
    result_count: usize,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `flight` is of diptych_submit and not used again; `own` refuses NULL.
        let flight = unsafe { own(flight) }?;
        // SAFETY: the caller promises that `results` points to `result_count` results with names and so many bytes as they
        // say, which no other thread uses; `landed` refuses NULL, too little room and results that overlap.
        unsafe { landed(flight, results, result_count) }
    })
}

/// The flight, which is freed.
///
/// # Safety
/// It is NULL, or of diptych_submit and not used again.
unsafe fn own(flight: *mut diptych_flight) -> Result<Flight, Failure> {
    if flight.is_null() {
        return Err(wrong("flight", "NULL", "a pointer"));
    }
    // SAFETY: it comes from `Box::into_raw`, and is freed once.
    let diptych_flight(flight) = *unsafe { Box::from_raw(flight) };
    Ok(flight)
}

/// Frees a flight whose outputs nobody wants. The run ends all the same. NULL is allowed.
///
/// # Safety
/// `flight` is NULL, or of diptych_submit, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_flight_free(flight: *mut diptych_flight) {
    guard(|| {
        if !flight.is_null() {
            // SAFETY: the caller promises that `flight` is of diptych_submit and not used again; it is not NULL (checked
            // above).
            drop(unsafe { own(flight) }?);
        }
        Ok(())
    });
}
