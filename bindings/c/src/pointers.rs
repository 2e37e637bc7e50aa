//! What C's pointers point to.

use crate::errors::{Failure, wrong};
use std::ffi::{CStr, CString, c_char};

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

/// The value at `pointer`.
///
/// # Safety
/// `pointer` is NULL, or points to a value that is not written during `'a`.
pub(crate) unsafe fn shared<'a, T>(what: &str, pointer: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller promises that `pointer` is NULL, or points to a value that is not written during `'a`; `as_ref`
    // checks for NULL.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(what))
}

/// The value at `pointer`, to be changed.
///
/// # Safety
/// `pointer` is NULL, or points to a value that nothing else uses during `'a`.
pub(crate) unsafe fn changed<'a, T>(what: &str, pointer: *mut T) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller promises that `pointer` is NULL, or points to a value that nothing else uses during `'a`; `as_mut`
    // checks for NULL.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(what))
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
