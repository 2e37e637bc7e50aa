//! Runs.

use crate::pointers::own;
use crate::run_options::Running;
use crate::session::{Engine, Place, Session};
use crate::status::{Failure, calls, guard, printable, wrong};
use crate::tensor::{Given, Tensor, Value};
use diptych::{Error, Outputs, RunInput};
use diptych_pointers::{slice, slice_mut, texts};
use ort_sys::{OrtErrorCode, OrtRunOptions, OrtSession, OrtValue, RunAsyncCallbackFn};
use std::ffi::{c_char, c_void};
use std::sync::Arc;

/// The names of places, for messages.
fn listed(places: &[&Place]) -> String {
    printable(places.iter().map(|place| place.name.as_str()))
}

/// An output of a run, in new memory or in that of a tensor.
fn written(
    found: &Outputs,
    index: usize,
    name: &str,
    place: Option<&Arc<Tensor>>,
) -> Result<Arc<Tensor>, Failure> {
    let port = found.ports().get(index).ok_or_else(|| wrong("output", name, "one of the model"))?;
    let (dims, dtype) = (port.dims, port.dtype);
    let tensor;
    let bytes = if dtype == diptych::DType::F32 {
        bytemuck::cast_slice(found.get(index)?)
    } else {
        tensor = found.tensor(index)?;
        tensor.bytes()
    };
    let Some(place) = place else {
        return Ok(Arc::new(Tensor::copy_of(dims, dtype, bytes)?));
    };
    place.must_fit(name, dims, dtype)?;
    // SAFETY: the caller of the run gave this tensor for its output, and uses it no more until the run is done.
    unsafe { place.write(bytes) }?;
    Ok(Arc::clone(place))
}

impl Session {
    fn known(&self, inputs: &[(&str, &Tensor)], outputs: &[&str]) -> Result<(), Failure> {
        let places: Vec<&Place> = self.inputs.iter().chain(&self.initializers).collect();
        if let Some((name, _)) = inputs.iter().find(|(name, _)| places.iter().all(|own| own.name != *name)) {
            return Err(wrong("input", format!("{name:?}"), format!("one of {}", listed(&places))));
        }
        let given = |name: &str| inputs.iter().filter(|(own, _)| *own == name).count();
        if let Some(place) = self.inputs.iter().find(|place| given(&place.name) == 0) {
            return Err(wrong(&format!("input {:?}", place.name), "nothing", "a tensor"));
        }
        if let Some((name, _)) = inputs.iter().find(|(name, _)| given(name) > 1) {
            return Err(wrong(&format!("input {name:?}"), "several tensors", "one"));
        }
        let places: Vec<&Place> = self.outputs.iter().collect();
        if let Some(name) = outputs.iter().find(|name| places.iter().all(|own| own.name != **name)) {
            return Err(wrong("output", format!("{name:?}"), format!("one of {}", listed(&places))));
        }
        Ok(())
    }

    /// The outputs that are wanted, each in the memory that is given for it, or else in new one.
    ///
    /// # Safety
    /// Until this returns, nobody writes the inputs, nor reads or writes the places.
    pub(crate) unsafe fn run(
        &self,
        running: &Running,
        inputs: &[(&str, &Tensor)],
        outputs: &[(&str, Option<Arc<Tensor>>)],
    ) -> Result<Vec<Arc<Tensor>>, Failure> {
        running.goes_on()?;
        let names: Vec<&str> = outputs.iter().map(|(name, _)| *name).collect();
        self.known(inputs, &names)?;
        let (session, device, keeps) = match &self.engine {
            Engine::Network { session, device, keeps } => (session, device, *keeps),
            // SAFETY: the caller promises that until this returns nobody writes the inputs, nor reads or writes the places,
            // which is what `copies` wants.
            Engine::Copy => return unsafe { copies(inputs, outputs) },
        };
        let mut given = Vec::with_capacity(inputs.len());
        for &(name, tensor) in inputs {
            if Given::rounds(tensor) {
                self.tell_rounding(name);
            }
            // SAFETY: the caller promises that nobody writes the inputs until this returns; `given` is dropped before a
            // place is written, which may be the memory of an input.
            given.push((name, unsafe { Given::of(name, tensor) }?));
        }
        let named: Vec<(&str, RunInput<'_>)> =
            given.iter().map(|(name, given)| (*name, given.input())).collect();
        let run = || -> Result<Outputs, Failure> {
            let broken = || Error::Internal("an earlier call on this session panicked".to_owned());
            let mut session = session.lock().map_err(|_| broken())?;
            if running.resets {
                session.reset()?;
            }
            if keeps {
                return Ok(session.run_shown(&named)?);
            }
            let flight = session.submit(&named)?;
            // Another thread's run may begin meanwhile.
            drop(session);
            Ok(flight.wait()?)
        };
        let found = self.environment.watch(device, run)?;
        running.goes_on()?;
        // The inputs were read, and a place may be the memory of one.
        drop(named);
        drop(given);
        let mut tensors = Vec::with_capacity(outputs.len());
        for (name, place) in outputs {
            let index = found.ports().iter().position(|port| port.name == *name);
            let wanted = || Error::Internal(format!("a run has no output {name:?}"));
            tensors.push(written(&found, index.ok_or_else(wanted)?, name, place.as_ref())?);
        }
        Ok(tensors)
    }
}

/// The one input as the outputs.
///
/// # Safety
/// As of [`Session::run`].
unsafe fn copies(
    inputs: &[(&str, &Tensor)],
    outputs: &[(&str, Option<Arc<Tensor>>)],
) -> Result<Vec<Arc<Tensor>>, Failure> {
    let (_, input) = inputs.first().ok_or_else(|| wrong("input", "nothing", "a tensor"))?;
    let mut tensors = Vec::with_capacity(outputs.len());
    for (name, place) in outputs {
        let place = match place {
            Some(place) => Arc::clone(place),
            None => Arc::new(Tensor::zeros_like(input)?),
        };
        if (place.element, &place.extents) != (input.element, &input.extents) {
            let show = |tensor: &Tensor| format!("{:?} of shape {:?}", tensor.element, tensor.extents);
            return Err(wrong(&format!("output {name:?}"), show(&place), show(input)));
        }
        // SAFETY: the caller promises that nobody else writes the input, nor reads or writes the places; both have the same
        // type and shape (checked above).
        unsafe { place.copy(input) }?;
        tensors.push(place);
    }
    Ok(tensors)
}

/// The arguments of a run.
struct Job {
    session: *const OrtSession,
    running: Running,
    input_names: *const *const c_char,
    inputs: *const *const OrtValue,
    input_count: usize,
    output_names: *const *const c_char,
    outputs: *mut *mut OrtValue,
    output_count: usize,
}

// SAFETY: what the pointers point to stays as it is until the run is done, whichever thread does it: ONNX Runtime's
// documentation makes this the caller's promise.
unsafe impl Send for Job {}

impl Job {
    /// Runs, and writes the outputs.
    ///
    /// # Safety
    /// The pointers are as `Run` wants them.
    unsafe fn run(&self) -> Result<(), Failure> {
        // SAFETY: the caller's promise, of each call in this block; the tensors live as long as their handles.
        unsafe {
            let session = own(self.session)?;
            let mut inputs = Vec::with_capacity(self.input_count);
            let names = texts("input names", self.input_names, self.input_count)?;
            for (name, &value) in names.into_iter().zip(slice("inputs", self.inputs, self.input_count)?) {
                inputs.push((name, &*own(value)?.0));
            }
            let places = slice_mut("outputs", self.outputs, self.output_count)?;
            let names = texts("output names", self.output_names, self.output_count)?;
            let mut outputs = Vec::with_capacity(self.output_count);
            for (name, &mut place) in names.into_iter().zip(&mut *places) {
                let place =
                    if place.is_null() { None } else { Some(Arc::clone(&own(place.cast_const())?.0)) };
                outputs.push((name, place));
            }
            let tensors = session.run(&self.running, &inputs, &outputs)?;
            for (place, tensor) in places.iter_mut().zip(tensors) {
                if place.is_null() {
                    *place = crate::pointers::boxed(Value(tensor));
                }
            }
            Ok(())
        }
    }
}

calls! {
    fn Run(
        session: *mut OrtSession,
        options: *const OrtRunOptions,
        input_names: *const *const c_char,
        inputs: *const *const OrtValue,
        input_count: usize,
        output_names: *const *const c_char,
        output_count: usize,
        outputs: *mut *mut OrtValue,
    ) {
        let running = Running::of(options);
        let job =
            Job { session, running, input_names, inputs, input_count, output_names, outputs, output_count };
        job.run()
    }

    /// On a thread of its own, which calls `callback` once, unless this returns an error.
    fn RunAsync(
        session: *mut OrtSession,
        options: *const OrtRunOptions,
        input_names: *const *const c_char,
        inputs: *const *const OrtValue,
        input_count: usize,
        output_names: *const *const c_char,
        output_count: usize,
        outputs: *mut *mut OrtValue,
        callback: RunAsyncCallbackFn,
        user: *mut c_void,
    ) {
        let callback = callback.ok_or_else(|| wrong("callback", "NULL", "a function"))?;
        own(session)?;
        let running = Running::of(options);
        let job =
            Job { session, running, input_names, inputs, input_count, output_names, outputs, output_count };
        let answer = Answer { callback, user };
        let thread = std::thread::Builder::new().name("diptych-ort run".to_owned());
        // The thread ends by itself.
        let started = thread.spawn(move || answer.of(&job)).map(drop);
        started.map_err(|error| Failure::new(OrtErrorCode::ORT_FAIL, format!("no thread for a run: {error}")))
    }
}

/// What is called when a run is done.
struct Answer {
    callback: unsafe extern "C" fn(*mut c_void, *mut *mut OrtValue, usize, ort_sys::OrtStatusPtr),
    user: *mut c_void,
}

// SAFETY: ONNX Runtime's documentation says that the callback is called on another thread.
unsafe impl Send for Answer {}

impl Answer {
    fn of(self, job: &Job) {
        // SAFETY: the caller of `RunAsync` keeps everything as it is until the callback.
        let status = guard(|| unsafe { job.run() });
        // SAFETY: the caller of `RunAsync` gave both for this, and takes the status.
        unsafe { (self.callback)(self.user, job.outputs, job.output_count, status) };
    }
}
