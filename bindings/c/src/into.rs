//! Runs that are started and waited for later, and outputs by name in the caller's memory.

use crate::calls::addresses;
use crate::errors::{Failure, diptych_status, guard, printable, wrong};
use crate::session::{DIPTYCH_MAX_RANK, diptych_dtype, diptych_session, padded};
use crate::tensors::{diptych_outputs, diptych_tensor, with_sources};
use diptych::{DType, Dims, Flight, HostTensor, Outputs, Port};
use diptych_pointers::{fill_from, out, out_slice, shared, slice, text};
use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
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
    fn copy(&self, target: &mut [MaybeUninit<u8>]) {
        match self {
            Elements::Floats(floats) => write_floats(target, floats),
            Elements::Bytes(bytes) => fill_from(target, bytes.iter().copied()),
            Elements::Own(tensor) => fill_from(target, tensor.bytes().iter().copied()),
        }
    }
}

/// Copies floats to as many bytes as they have, at any address.
pub(crate) fn write_floats(target: &mut [MaybeUninit<u8>], floats: &[f32]) {
    let bytes = floats.iter().map(|value| value.to_ne_bytes().map(MaybeUninit::new));
    target.as_chunks_mut().0.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
}

/// What the caller has given in a result. The rest of it may be uninitialised.
#[derive(Clone, Copy)]
struct Wanted {
    name: *const c_char,
    elements: *mut c_void,
    capacity: usize,
}

/// What the caller has given in each result.
///
/// # Safety
/// `results` is NULL, or points to `count` results that nothing else writes during the call.
unsafe fn given(results: *const diptych_result, count: usize) -> Result<Vec<Wanted>, Failure> {
    // SAFETY: the caller promises that `results` is NULL or points to `count` results that nothing else writes; `slice` refuses NULL
    // unless there are none. As `MaybeUninit` no result has to be initialised.
    let results = unsafe { slice("results", results.cast::<MaybeUninit<diptych_result>>(), count) }?;
    let read = |result: &MaybeUninit<diptych_result>| {
        let result = result.as_ptr();
        // SAFETY: `slice` checked that `result` is aligned and not NULL, and the caller of the library sets these three fields
        // (`diptych_result` says so). No reference is made to the others.
        unsafe {
            Wanted {
                name: (&raw const (*result).name).read(),
                elements: (&raw const (*result).elements).read(),
                capacity: (&raw const (*result).capacity).read(),
            }
        }
    };
    Ok(results.iter().map(read).collect())
}

/// A result that an output fits.
struct Fitting<'r> {
    dtype: diptych_dtype,
    dims: Dims,
    target: &'r mut [MaybeUninit<u8>],
}

/// The memory of results, in their order, for outputs of these names, types and extents.
///
/// # Safety
/// The results point to memory of so many bytes as they say, which nothing else uses during `'r`.
unsafe fn fitting<'r>(
    results: impl Iterator<Item = Wanted>,
    outputs: impl Iterator<Item = (String, DType, Dims)>,
) -> Result<Vec<Fitting<'r>>, Failure> {
    let mut taken: Vec<Range<usize>> = Vec::new();
    let mut fitting = Vec::new();
    for (Wanted { elements, capacity, .. }, (name, dtype, dims)) in results.zip(outputs) {
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
        // SAFETY: the caller promises that a result points to memory of `capacity` bytes that nothing else uses; `bytes` are no
        // more (the comparison above) and overlap with no earlier result (`taken`), and `out_slice` refuses NULL.
        let target = unsafe { out_slice(&name, elements.cast::<u8>(), bytes) }?;
        fitting.push(Fitting { dtype: diptych_dtype::of(dtype)?, dims, target });
    }
    Ok(fitting)
}

/// Checks results before a run, as far as the outputs' extents are known: those that the run decides are not.
///
/// # Safety
/// `results` is NULL, or points to `count` results with names, which point to so many bytes as they say, which nothing else uses.
unsafe fn check(ports: &[Port], results: *const diptych_result, count: usize) -> Result<(), Failure> {
    // SAFETY: the caller promises that `results` is NULL or points to `count` results with names; `given` refuses NULL
    // unless there are none.
    let (places, results) =
        unsafe { (places(crate::calls::names(ports), results, count)?, given(results, count)?) };
    let wanted =
        results.into_iter().zip(places).filter_map(|(result, place)| Some((result, ports.get(place)?)));
    let known: Vec<_> = wanted.filter(|(_, port)| port.open.is_empty()).collect();
    let memory = known.iter().map(|(result, _)| *result);
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
    // SAFETY: the caller promises that `results` is NULL or points to `count` results; `given` refuses NULL unless there
    // are none.
    let results = unsafe { given(results, count) }?;
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
    // `given` and `out_slice` refuse NULL unless there are none.
    let (memory, results) =
        unsafe { (given(results, places.len())?, out_slice("results", results, places.len())?) };
    let (mut outputs, mut elements) = (Vec::with_capacity(places.len()), Vec::with_capacity(places.len()));
    for &place in places {
        let gone = || diptych::Error::Internal(format!("a run has no output {place}"));
        let (dtype, dims) = found.port(place, ports).ok_or_else(gone)?;
        let name = ports.get(place).map_or_else(String::new, |port| port.name.clone());
        outputs.push((name, dtype, dims));
        elements.push(found.elements(place, dtype)?);
    }
    // SAFETY: the caller promises that each result points to `capacity` bytes that nothing else uses; `fitting` refuses
    // results with too little room and results that overlap.
    let fitting = unsafe { fitting(memory.into_iter(), outputs.into_iter()) }?;
    // From here on nothing fails.
    for ((result, own), elements) in results.iter_mut().zip(fitting).zip(elements) {
        elements.copy(own.target);
        let result = result.as_mut_ptr();
        // SAFETY: `out_slice` checked that `result` is aligned and not NULL, and the caller promises that nothing else uses it. The
        // fields are written without a reference to the result, whose other fields are the caller's.
        unsafe {
            (&raw mut (*result).bytes).write(own.target.len());
            (&raw mut (*result).dtype).write(own.dtype as i32);
            (&raw mut (*result).rank).write(own.dims.rank());
            (&raw mut (*result).extents).write(padded(own.dims));
        }
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
        // SAFETY: the caller promises that `flight` points to a pointer that nothing else uses; `out` refuses NULL.
        let flight = unsafe { out("flight", flight) }?;
        flight.write(std::ptr::null_mut());
        // SAFETY: the caller promises that `session` is of an open function and not closed; `shared` refuses NULL.
        let session = unsafe { shared("session", session) }?;
        // SAFETY: the caller promises that `inputs` points to `input_count` tensors with so many bytes as they say, which
        // no other thread writes; `with_sources` refuses another number, NULL and wrong lengths.
        let started =
            unsafe { with_sources(session, inputs, input_count, |session, named| session.submit(named)) }?;
        flight.write(Box::into_raw(Box::new(diptych_flight(started))));
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
        // SAFETY: the caller promises that `outputs` points to a pointer that nothing else uses; `out` refuses NULL.
        let outputs = unsafe { out("outputs", outputs) }?;
        outputs.write(std::ptr::null_mut());
        outputs.write(diptych_outputs::made(flight.wait()?.tensors()?));
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
