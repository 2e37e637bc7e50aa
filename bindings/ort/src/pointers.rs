//! What C's pointers point to, and the handles that C is given.

use crate::status::{Failure, guard, wrong};
use ort_sys::OrtErrorCode;
use std::ffi::{CStr, CString, c_char};
use std::mem::size_of;

/// A text for C. A zero byte in the middle, which would end it there, is replaced.
pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

fn null(what: &str) -> Failure {
    wrong(what, "NULL", "a pointer")
}

/// The text at `pointer`.
///
/// # Safety
/// `pointer` is NULL, or text that ends with a zero byte and does not change during `'a`.
pub(crate) unsafe fn text<'a>(what: &str, pointer: *const c_char) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller promises that `pointer` is NULL, or text that ends with a zero byte and does not change; it is not
    // NULL (checked above).
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|error| wrong(what, error.to_string(), "UTF-8"))
}

/// The texts that `count` pointers point to.
///
/// # Safety
/// `pointers` is NULL, or points to so many pointers, which are as [`text`] wants them.
pub(crate) unsafe fn texts<'a>(
    what: &str,
    pointers: *const *const c_char,
    count: usize,
) -> Result<Vec<&'a str>, Failure> {
    // SAFETY: the caller promises that `pointers` is NULL or points to `count` pointers; `slice` refuses NULL unless there
    // are none.
    let pointers = unsafe { slice(what, pointers, count) }?;
    // SAFETY: the caller promises that each pointer is NULL or text; `text` refuses NULL.
    pointers.iter().map(|&pointer| unsafe { text(what, pointer) }).collect()
}

/// Writes a result.
///
/// # Safety
/// `out` is NULL, or points to memory for a `T`.
pub(crate) unsafe fn put<T>(what: &str, out: *mut T, value: T) -> Result<(), Failure> {
    if out.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller promises that `out` is NULL or points to memory for a `T`; it is not NULL (checked above). What
    // was there is C's, and is not dropped.
    unsafe { out.write(value) };
    Ok(())
}

/// The value at `pointer`.
///
/// # Safety
/// `pointer` is NULL, or points to a value that is not written during `'a`.
pub(crate) unsafe fn shared<'a, T>(what: &str, pointer: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller promises that `pointer` is NULL, or points to a value that is not written during `'a`; `as_ref`
    // checks for NULL.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(what))
}

fn checked<T>(what: &str, pointer: *const T, length: usize) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(null(what));
    }
    if !pointer.is_aligned() {
        return Err(wrong(what, format!("{pointer:p}"), format!("a multiple of {}", align_of::<T>())));
    }
    if length.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(wrong(what, format!("{length} elements"), "as many as memory can hold"));
    }
    Ok(())
}

/// So many values from `pointer` on. Of none the pointer may be anything.
///
/// # Safety
/// `pointer` is NULL, or points to `length` values that are not written during `'a`.
pub(crate) unsafe fn slice<'a, T>(what: &str, pointer: *const T, length: usize) -> Result<&'a [T], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    checked(what, pointer, length)?;
    // SAFETY: the caller promises that `pointer` is NULL, or points to `length` values that are not written during `'a`;
    // `checked` found it not NULL, aligned, and `length` no more than an object can have.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// So many values from `pointer` on, to be changed. Of none the pointer may be anything.
///
/// # Safety
/// `pointer` is NULL, or points to `length` values that nothing else uses during `'a`.
pub(crate) unsafe fn slice_mut<'a, T>(
    what: &str,
    pointer: *mut T,
    length: usize,
) -> Result<&'a mut [T], Failure> {
    if length == 0 {
        return Ok(&mut []);
    }
    checked(what, pointer, length)?;
    // SAFETY: the caller promises that `pointer` is NULL, or points to `length` values that nothing else uses during `'a`;
    // `checked` found it not NULL, aligned, and `length` no more than an object can have.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, length) })
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
    // SAFETY: the caller's promise: `hand_out` made it of a box of this type.
    unsafe { handle.cast::<H::Own>().as_ref() }.ok_or_else(|| null(H::NAME))
}

/// What a handle stands for, to be changed.
///
/// # Safety
/// `handle` is NULL, or of this table, not released and not used by anything else during `'a`.
pub(crate) unsafe fn own_mut<'a, H: Handle>(handle: *mut H) -> Result<&'a mut H::Own, Failure> {
    // SAFETY: the caller's promise: `hand_out` made it of a box of this type.
    unsafe { handle.cast::<H::Own>().as_mut() }.ok_or_else(|| null(H::NAME))
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
        return Err(null(H::NAME));
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
        return Err(null("out"));
    }
    // SAFETY: the caller promises that `out` is NULL or points to memory for a pointer, and that `allocator` is NULL or may
    // be called; `out` is not NULL (checked above), and `allocate` refuses NULL.
    unsafe { put("out", out, allocated_text(allocator, text)?) }
}

/// No memory is left.
pub(crate) fn no_memory(bytes: usize) -> Failure {
    Failure::new(OrtErrorCode::ORT_RUNTIME_EXCEPTION, format!("no memory for {bytes} bytes"))
}
