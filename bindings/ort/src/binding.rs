//! Inputs and outputs that are bound to names, for several runs.

use crate::memory::allocate;
use crate::pointers::{hand_out, own, own_mut, put};
use crate::run_options::Running;
use crate::session::{Place, Session};
use crate::status::{Failure, calls, printable, wrong};
use crate::tensor::{Tensor, handle};
use diptych_pointers::text;
use ort_sys::{OrtAllocator, OrtIoBinding, OrtMemoryInfo, OrtRunOptions, OrtSession, OrtValue};
use std::ffi::c_char;
use std::mem::size_of;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct Binding {
    /// The names of the session's inputs and outputs.
    names: [Vec<String>; 2],
    inputs: Vec<(String, Arc<Tensor>)>,
    /// The place of each output; nothing if each run gives it a new one.
    outputs: Vec<(String, Option<Arc<Tensor>>)>,
    /// The outputs of the last run, in their order.
    results: Mutex<Vec<Arc<Tensor>>>,
}

/// Puts a value in the place of the one of this name, or behind all others.
fn bind<T>(bound: &mut Vec<(String, T)>, name: &str, value: T) {
    match bound.iter_mut().find(|(own, _)| own == name) {
        Some((_, place)) => *place = value,
        None => bound.push((name.to_owned(), value)),
    }
}

impl Binding {
    fn of(session: &Session) -> Self {
        let names =
            |places: &mut dyn Iterator<Item = &Place>| places.map(|place| place.name.clone()).collect();
        let inputs = names(&mut session.inputs.iter().chain(&session.initializers));
        let outputs = names(&mut session.outputs.iter());
        Binding {
            names: [inputs, outputs],
            inputs: Vec::new(),
            outputs: Vec::new(),
            results: Mutex::default(),
        }
    }

    fn known(&self, what: &str, side: usize, name: &str) -> Result<(), Failure> {
        let names = self.names.get(side).map_or(&[][..], Vec::as_slice);
        if names.iter().any(|own| own == name) {
            return Ok(());
        }
        Err(wrong(
            what,
            format!("{name:?}"),
            format!("one of {}", printable(names.iter().map(String::as_str))),
        ))
    }

    fn results(&self) -> Vec<Arc<Tensor>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

calls! {
    fn CreateIoBinding(session: *mut OrtSession, out: *mut *mut OrtIoBinding) {
        hand_out(out, Binding::of(own(session)?))
    }

    fn BindInput(binding: *mut OrtIoBinding, name: *const c_char, value: *const OrtValue) {
        let (binding, name) = (own_mut(binding)?, text("name", name)?);
        binding.known("input", 0, name)?;
        bind(&mut binding.inputs, name, Arc::clone(&own(value)?.0));
        Ok(())
    }

    fn BindOutput(binding: *mut OrtIoBinding, name: *const c_char, value: *const OrtValue) {
        let (binding, name) = (own_mut(binding)?, text("name", name)?);
        binding.known("output", 1, name)?;
        bind(&mut binding.outputs, name, Some(Arc::clone(&own(value)?.0)));
        Ok(())
    }

    fn BindOutputToDevice(binding: *mut OrtIoBinding, name: *const c_char, info: *const OrtMemoryInfo) {
        let (binding, name) = (own_mut(binding)?, text("name", name)?);
        binding.known("output", 1, name)?;
        own(info)?.must_be_host()?;
        bind(&mut binding.outputs, name, None);
        Ok(())
    }

    fn RunWithBinding(session: *mut OrtSession, options: *const OrtRunOptions, binding: *const OrtIoBinding) {
        let binding = own(binding)?;
        let inputs: Vec<(&str, &Tensor)> =
            binding.inputs.iter().map(|(name, tensor)| (name.as_str(), &**tensor)).collect();
        let outputs: Vec<(&str, Option<Arc<Tensor>>)> =
            binding.outputs.iter().map(|(name, place)| (name.as_str(), place.clone())).collect();
        let found = own(session)?.run(&Running::of(options), &inputs, &outputs)?;
        *binding.results.lock().unwrap_or_else(PoisonError::into_inner) = found;
        Ok(())
    }

    /// The values and the list are the caller's, who frees the list with the allocator. NULL and 0 before the first run.
    fn GetBoundOutputValues(
        binding: *const OrtIoBinding,
        allocator: *mut OrtAllocator,
        out: *mut *mut *mut OrtValue,
        count: *mut usize,
    ) {
        let results = own(binding)?.results();
        put("count", count, results.len())?;
        put("out", out, null_mut())?;
        if results.is_empty() {
            return Ok(());
        }
        let list = allocate(allocator, results.len() * size_of::<*mut OrtValue>())?.cast::<*mut OrtValue>();
        put("out", out, list)?;
        for (at, tensor) in results.iter().enumerate() {
            list.add(at).write(handle(tensor));
        }
        Ok(())
    }

    /// The names without zeros between them, and their lengths; both are freed by the caller with the allocator.
    fn GetBoundOutputNames(
        binding: *const OrtIoBinding,
        allocator: *mut OrtAllocator,
        names: *mut *mut c_char,
        lengths: *mut *mut usize,
        count: *mut usize,
    ) {
        let bound = &own(binding)?.outputs;
        put("count", count, bound.len())?;
        put("names", names, null_mut())?;
        put("lengths", lengths, null_mut())?;
        if bound.is_empty() {
            return Ok(());
        }
        let all: String = bound.iter().map(|(name, _)| name.as_str()).collect();
        let text = crate::pointers::allocated_text(allocator, &all)?;
        put("names", names, text)?;
        let list = allocate(allocator, bound.len() * size_of::<usize>())?.cast::<usize>();
        for (at, (name, _)) in bound.iter().enumerate() {
            list.add(at).write(name.len());
        }
        put("lengths", lengths, list)
    }

    /// A run copies what is bound, and has ended when it returns.
    fn SynchronizeBoundInputs(binding: *mut OrtIoBinding) {
        own(binding).map(|_| ())
    }

    fn SynchronizeBoundOutputs(binding: *mut OrtIoBinding) {
        own(binding).map(|_| ())
    }
}

pub(crate) unsafe extern "system" fn ClearBoundInputs(binding: *mut OrtIoBinding) {
    // SAFETY: the caller promises that `binding` is NULL, or of this table and not used by anything else; `own_mut` refuses
    // NULL.
    if let Ok(binding) = unsafe { own_mut(binding) } {
        binding.inputs.clear();
    }
}

pub(crate) unsafe extern "system" fn ClearBoundOutputs(binding: *mut OrtIoBinding) {
    // SAFETY: the caller promises that `binding` is NULL, or of this table and not used by anything else; `own_mut` refuses
    // NULL.
    if let Ok(binding) = unsafe { own_mut(binding) } {
        binding.outputs.clear();
        binding.results.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
