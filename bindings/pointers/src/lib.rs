//! Checked ways from C's pointers to slices, texts and references.
//!
//! Each function refuses what it can check (NULL, alignment, a length that no object can have, text that is not UTF-8) with an
//! [`Invalid`], and names under "Safety" what its caller promises. It promises no API: the bindings of `diptych` use it.
//!
//! Memory that C gives for results may be uninitialised: [`out`] and [`out_slice`] give it as [`MaybeUninit`], and [`put`] writes
//! one value. [`changed`] and [`slice_mut`] are for values that are there.

#![warn(missing_docs, unreachable_pub)]
#![warn(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::mem::MaybeUninit;

/// What is wrong with an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The argument's name.
    pub what: String,
    /// What was found.
    pub found: String,
    /// What was wanted.
    pub wanted: String,
}

impl Invalid {
    fn new(what: &str, found: impl Into<String>, wanted: impl Into<String>) -> Self {
        Invalid { what: what.to_owned(), found: found.into(), wanted: wanted.into() }
    }

    /// A pointer that must not be NULL.
    pub fn null(what: &str) -> Self {
        Invalid::new(what, "NULL", "a pointer")
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: found {}, wanted {}", self.what, self.found, self.wanted)
    }
}

impl std::error::Error for Invalid {}

/// A text for C. A zero byte in the middle, which would end it there, is replaced.
pub fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// Refuses NULL, an address that is not aligned, and more elements than an object can have.
fn check<T>(what: &str, pointer: *const T, length: usize) -> Result<(), Invalid> {
    if pointer.is_null() {
        return Err(Invalid::null(what));
    }
    if !pointer.is_aligned() {
        return Err(Invalid::new(what, format!("{pointer:p}"), format!("a multiple of {}", align_of::<T>())));
    }
    if length.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(Invalid::new(what, format!("{length} elements"), "as many as memory can hold"));
    }
    Ok(())
}

/// The text at `pointer`.
///
/// # Errors
/// If `pointer` is NULL, or the text is not UTF-8.
///
/// # Safety
/// `pointer` is NULL, or text that ends with a zero byte and does not change during `'a`.
pub unsafe fn text<'a>(what: &str, pointer: *const c_char) -> Result<&'a str, Invalid> {
    if pointer.is_null() {
        return Err(Invalid::null(what));
    }
    // SAFETY: the caller promises that `pointer` is NULL, or text that ends with a zero byte and does not change; `is_null` above
    // found it not NULL.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|error| Invalid::new(what, error.to_string(), "UTF-8"))
}

/// The texts that `count` pointers point to.
///
/// # Errors
/// What [`slice()`] and [`text`] refuse.
///
/// # Safety
/// `pointers` is NULL, or points to `count` pointers, which are as [`text`] wants them.
pub unsafe fn texts<'a>(
    what: &str,
    pointers: *const *const c_char,
    count: usize,
) -> Result<Vec<&'a str>, Invalid> {
    // SAFETY: the caller promises that `pointers` is NULL or points to `count` pointers; `slice` refuses NULL unless `count` is 0.
    let pointers = unsafe { slice(what, pointers, count) }?;
    // SAFETY: the caller promises that each pointer is NULL, or text that does not change; `text` refuses NULL.
    pointers.iter().map(|&pointer| unsafe { text(what, pointer) }).collect()
}

/// The value at `pointer`.
///
/// # Errors
/// If `pointer` is NULL or not aligned.
///
/// # Safety
/// `pointer` is NULL, or points to a value that is not written during `'a`.
pub unsafe fn shared<'a, T>(what: &str, pointer: *const T) -> Result<&'a T, Invalid> {
    check(what, pointer, 1)?;
    // SAFETY: the caller promises that `pointer` is NULL, or points to a value that is not written during `'a`; `check` found it
    // not NULL and aligned.
    Ok(unsafe { &*pointer })
}

/// The value at `pointer`, to be changed. Where there is no value yet, use [`out`].
///
/// # Errors
/// If `pointer` is NULL or not aligned.
///
/// # Safety
/// `pointer` is NULL, or points to a value that nothing else uses during `'a`.
pub unsafe fn changed<'a, T>(what: &str, pointer: *mut T) -> Result<&'a mut T, Invalid> {
    check(what, pointer, 1)?;
    // SAFETY: the caller promises that `pointer` is NULL, or points to a value that nothing else uses during `'a`; `check` found
    // it not NULL and aligned.
    Ok(unsafe { &mut *pointer })
}

/// Memory for a value at `pointer`, which may be uninitialised.
///
/// # Errors
/// If `pointer` is NULL or not aligned.
///
/// # Safety
/// `pointer` is NULL, or points to memory for a `T` that nothing else uses during `'a`.
pub unsafe fn out<'a, T>(what: &str, pointer: *mut T) -> Result<&'a mut MaybeUninit<T>, Invalid> {
    check(what, pointer, 1)?;
    // SAFETY: the caller promises that `pointer` is NULL, or points to memory for a `T` that nothing else uses during `'a`; `check`
    // found it not NULL and aligned. A `MaybeUninit` has the layout of its value, and needs none to be there.
    Ok(unsafe { &mut *pointer.cast::<MaybeUninit<T>>() })
}

/// Writes a value. What was there is C's, and is not dropped.
///
/// # Errors
/// If `pointer` is NULL or not aligned.
///
/// # Safety
/// `pointer` is NULL, or points to memory for a `T` that nothing else uses during the call.
pub unsafe fn put<T>(what: &str, pointer: *mut T, value: T) -> Result<(), Invalid> {
    // SAFETY: the caller promises what `out` wants: `pointer` is NULL, or points to memory for a `T` that nothing else uses.
    unsafe { out(what, pointer) }?.write(value);
    Ok(())
}

/// So many values from `pointer` on. Of none the pointer may be anything.
///
/// # Errors
/// If there are some, and `pointer` is NULL or not aligned, or they are more than an object can have.
///
/// # Safety
/// `pointer` is NULL, or points to `length` values that are not written during `'a`.
pub unsafe fn slice<'a, T>(what: &str, pointer: *const T, length: usize) -> Result<&'a [T], Invalid> {
    if length == 0 {
        return Ok(&[]);
    }
    check(what, pointer, length)?;
    // SAFETY: the caller promises that `pointer` is NULL, or points to `length` values that are not written during `'a`; `check`
    // found it not NULL and aligned, and `length` no more than an object can have.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// So many values from `pointer` on, to be changed. Of none the pointer may be anything. Where there are no values yet, use
/// [`out_slice`].
///
/// # Errors
/// If there are some, and `pointer` is NULL or not aligned, or they are more than an object can have.
///
/// # Safety
/// `pointer` is NULL, or points to `length` values that nothing else uses during `'a`.
pub unsafe fn slice_mut<'a, T>(what: &str, pointer: *mut T, length: usize) -> Result<&'a mut [T], Invalid> {
    if length == 0 {
        return Ok(&mut []);
    }
    check(what, pointer, length)?;
    // SAFETY: the caller promises that `pointer` is NULL, or points to `length` values that nothing else uses during `'a`; `check`
    // found it not NULL and aligned, and `length` no more than an object can have.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, length) })
}

/// Memory for so many values from `pointer` on, which may be uninitialised. Of none the pointer may be anything.
///
/// # Errors
/// If there is to be some, and `pointer` is NULL or not aligned, or it is more than an object can have.
///
/// # Safety
/// `pointer` is NULL, or points to memory for `length` values that nothing else uses during `'a`.
pub unsafe fn out_slice<'a, T>(
    what: &str,
    pointer: *mut T,
    length: usize,
) -> Result<&'a mut [MaybeUninit<T>], Invalid> {
    // SAFETY: the caller promises that `pointer` is NULL, or points to memory for `length` values that nothing else uses; a
    // `MaybeUninit` has the layout of its value, and needs none to be there, so that this is what `slice_mut` wants.
    unsafe { slice_mut(what, pointer.cast::<MaybeUninit<T>>(), length) }
}

/// The slice of memory, after each of its values has been set to the default of its type.
pub fn defaulted<T: Copy + Default>(memory: &mut [MaybeUninit<T>]) -> &mut [T] {
    memory.fill(MaybeUninit::new(T::default()));
    // SAFETY: `fill` has written every value of `memory`, and a `MaybeUninit` has the layout of its value.
    unsafe { &mut *(std::ptr::from_mut(memory) as *mut [T]) }
}

/// Writes as many elements as both have.
pub fn fill_from<T: Copy>(memory: &mut [MaybeUninit<T>], from: impl IntoIterator<Item = T>) {
    memory.iter_mut().zip(from).for_each(|(to, from)| {
        to.write(from);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::{null, null_mut, without_provenance, without_provenance_mut};

    #[test]
    fn null_is_refused_unless_there_is_nothing() {
        let message = "count: found NULL, wanted a pointer";
        // SAFETY: NULL is allowed, as is any address of no elements.
        unsafe {
            assert_eq!(
                shared::<u32>("count", null()).map_err(|error| error.to_string()),
                Err(message.into())
            );
            assert!(changed::<u32>("count", null_mut()).is_err());
            assert!(out::<u32>("count", null_mut()).is_err());
            assert_eq!(put("count", null_mut(), 7u32), Err(Invalid::null("count")));
            assert!(text("name", null()).is_err());
            assert!(slice::<u32>("values", null(), 1).is_err());
            assert!(slice_mut::<u32>("values", null_mut(), 1).is_err());
            assert!(out_slice::<u32>("values", null_mut(), 1).is_err());
            assert!(slice::<u32>("values", without_provenance(3), 0).is_ok_and(<[u32]>::is_empty));
            assert!(slice_mut::<u32>("values", null_mut(), 0).is_ok_and(|values| values.is_empty()));
            assert!(out_slice::<u32>("values", null_mut(), 0).is_ok_and(|values| values.is_empty()));
        }
    }

    #[test]
    fn odd_addresses_and_impossible_lengths_are_refused() {
        // SAFETY: what is not aligned, or longer than an object can be, is refused before anything is read.
        unsafe {
            let error = shared::<u32>("count", without_provenance(6)).expect_err("not aligned").to_string();
            assert_eq!(error, "count: found 0x6, wanted a multiple of 4");
            assert!(changed::<u32>("count", without_provenance_mut(6)).is_err());
            assert!(put("count", without_provenance_mut(6), 7u32).is_err());
            assert!(slice::<u32>("values", without_provenance(6), 1).is_err());
            assert!(out_slice::<u32>("values", without_provenance_mut(6), 1).is_err());
            for length in [usize::MAX, usize::MAX / 4, isize::MAX as usize / 4 + 1] {
                let error = slice::<u32>("values", without_provenance(8), length).expect_err("too long");
                assert_eq!(error.wanted, "as many as memory can hold");
            }
        }
    }

    #[test]
    fn texts_are_utf_8() {
        let words = [c"one", c"z\u{fc}rich"].map(CStr::as_ptr);
        // SAFETY: the pointers are those of texts that end with zero bytes.
        unsafe {
            assert_eq!(texts("words", words.as_ptr(), 2), Ok(vec!["one", "zürich"]));
            assert_eq!(texts("words", null(), 0), Ok(Vec::new()));
            let error = text("name", c"\xff".as_ptr()).expect_err("a byte").to_string();
            assert!(
                error.starts_with("name: found invalid utf-8") && error.ends_with("wanted UTF-8"),
                "{error}"
            );
        }
        assert_eq!(c_text("a\0b").as_c_str(), c"a\u{fffd}b");
    }

    #[test]
    fn values_are_read_and_changed_where_they_lie() {
        let mut values = [1u32, 2, 3];
        let pointer = values.as_mut_ptr();
        // SAFETY: `pointer` is that of three values, which nothing else uses meanwhile.
        unsafe {
            *changed("value", pointer).expect("a value") += 4;
            assert_eq!(shared("value", pointer), Ok(&5));
            slice_mut("values", pointer, 3).expect("three values")[2] = 9;
            assert_eq!(slice("values", pointer, 3), Ok(&[5, 2, 9][..]));
        }
    }

    #[test]
    fn uninitialised_memory_is_written_and_not_read() {
        let mut memory = [const { MaybeUninit::<u32>::uninit() }; 4];
        let pointer = memory.as_mut_ptr().cast::<u32>();
        // SAFETY: `pointer` is that of memory for four values, which nothing else uses meanwhile.
        unsafe {
            fill_from(out_slice("values", pointer, 3).expect("memory"), [7, 8]);
            put("value", pointer.add(2), 9).expect("memory");
            out("value", pointer.add(3)).expect("memory").write(10);
            assert_eq!(slice("values", pointer, 4), Ok(&[7, 8, 9, 10][..]));
            let zeros = defaulted(out_slice("values", pointer, 3).expect("memory"));
            zeros[1] = 4;
            assert_eq!(slice("values", pointer, 4), Ok(&[0, 4, 0, 10][..]));
        }
    }
}
