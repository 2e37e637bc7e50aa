//! The handles that C is given, and results that are written for it. `diptych-pointers` has what C's other pointers point to.

use crate::status::{Failure, guard};
use diptych_pointers::{Invalid, c_text};
use ort_sys::OrtErrorCode;
use std::ffi::c_char;

/// Writes a result.
///
/// # Safety
/// `out` is NULL, or points to memory for a `T`.
pub(crate) unsafe fn put<T>(what: &str, out: *mut T, value: T) -> Result<(), Failure> {
    // SAFETY: the caller promises that `out` is NULL or points to memory for a `T`; `diptych_pointers::put` refuses NULL.
    Ok(unsafe { diptych_pointers::put(what, out, value) }?)
}

/// A type of C's that nobody sees into, and what it stands for.
pub(crate) trait Handle {
    type Own;
    const NAME: &'static str;
}

macro_rules! handles {
    ($($handle:ident = $own:ty, $name:literal;)*) => { $(
        impl Handle for ort_sys::$handle {
            type Own = $own;
            const NAME: &'static str = $name;
        }
    )* };
}

handles! {
    OrtEnv = std::sync::Arc<crate::environment::Environment>, "environment";
    OrtThreadingOptions = crate::environment::Threads, "threading options";
    OrtSessionOptions = crate::options::SessionOptions, "session options";
    OrtRunOptions = crate::run_options::RunOptions, "run options";
    OrtSession = crate::session::Session, "session";
    OrtIoBinding = crate::binding::Binding, "binding";
    OrtValue = crate::tensor::Value, "value";
    OrtTypeInfo = crate::info::Info, "type information";
    OrtTensorTypeAndShapeInfo = crate::info::Info, "type and shape";
    OrtMemoryInfo = crate::memory::MemoryInfo, "memory information";
    OrtModelMetadata = diptych::ModelInfo, "metadata";
    OrtPrepackedWeightsContainer = (), "container of packed weights";
}

/// What a handle stands for.
///
/// # Safety
/// `handle` is NULL, or of this table and not released during `'a`.
pub(crate) unsafe fn own<'a, H: Handle>(handle: *const H) -> Result<&'a H::Own, Failure> {
    // SAFETY: the caller promises that `handle` is NULL, or of this table and not released: then `boxed` made it of a box of
    // this type. The method refuses NULL.
    unsafe { handle.cast::<H::Own>().as_ref() }.ok_or_else(|| Invalid::null(H::NAME).into())
}

/// What a handle stands for, to be changed.
///
/// # Safety
/// `handle` is NULL, or of this table, not released and not used by anything else during `'a`.
pub(crate) unsafe fn own_mut<'a, H: Handle>(handle: *mut H) -> Result<&'a mut H::Own, Failure> {
    // SAFETY: the caller promises that `handle` is NULL, or of this table and not released: then `boxed` made it of a box of
    // this type. The method refuses NULL.
    unsafe { handle.cast::<H::Own>().as_mut() }.ok_or_else(|| Invalid::null(H::NAME).into())
}

/// A handle for C, which releases it.
pub(crate) fn boxed<H: Handle>(own: H::Own) -> *mut H {
    Box::into_raw(Box::new(own)).cast()
}

/// Writes a handle for C, which releases it.
///
/// # Safety
/// `out` is NULL, or points to memory for a pointer.
pub(crate) unsafe fn hand_out<H: Handle>(out: *mut *mut H, own: H::Own) -> Result<(), Failure> {
    if out.is_null() {
        return Err(Invalid::null(H::NAME).into());
    }
    // SAFETY: the caller promises that `out` is NULL or points to memory for a pointer; it is not NULL (checked above).
    unsafe { put(H::NAME, out, boxed(own)) }
}

/// Frees what a handle stands for. NULL is allowed.
///
/// # Safety
/// `handle` is NULL, or of this table, not used by anything else, and not used again.
pub(crate) unsafe extern "system" fn release<H: Handle>(handle: *mut H) {
    if handle.is_null() {
        return;
    }
    // SAFETY: the caller's promise: `boxed` made it, and it is freed once. What a panic would end is its own.
    let own = unsafe { Box::from_raw(handle.cast::<H::Own>()) };
    let failed = guard(|| {
        drop(own);
        Ok(())
    });
    if !failed.0.is_null() {
        // SAFETY: it was made a line ago, and nobody else has it.
        unsafe { crate::status::ReleaseStatus(failed.0) };
    }
}

/// Copies a text to memory of an allocator.
///
/// # Safety
/// `allocator` is NULL, or one that may be called.
pub(crate) unsafe fn allocated_text(
    allocator: *mut ort_sys::OrtAllocator,
    text: &str,
) -> Result<*mut c_char, Failure> {
    let text = c_text(text);
    let bytes = text.as_bytes_with_nul();
    // SAFETY: the caller promises that `allocator` is NULL, or one that may be called; `allocate` refuses NULL.
    let copy = unsafe { crate::memory::allocate(allocator, bytes.len()) }?.cast::<c_char>();
    // SAFETY: there are so many bytes, and nobody else has them yet.
    unsafe { bytes.as_ptr().cast::<c_char>().copy_to_nonoverlapping(copy, bytes.len()) };
    Ok(copy)
}

/// Writes a copy of a text for C, in memory of an allocator.
///
/// # Safety
/// `out` is NULL, or points to memory for a pointer; `allocator` is NULL, or one that may be called.
pub(crate) unsafe fn put_text(
    out: *mut *mut c_char,
    allocator: *mut ort_sys::OrtAllocator,
    text: &str,
) -> Result<(), Failure> {
    if out.is_null() {
        return Err(Invalid::null("out").into());
    }
    // SAFETY: the caller promises that `out` is NULL or points to memory for a pointer, and that `allocator` is NULL or may
    // be called; `out` is not NULL (checked above), and `allocate` refuses NULL.
    unsafe { put("out", out, allocated_text(allocator, text)?) }
}

/// No memory is left.
pub(crate) fn no_memory(bytes: usize) -> Failure {
    Failure::new(OrtErrorCode::ORT_RUNTIME_EXCEPTION, format!("no memory for {bytes} bytes"))
}
