//! What went wrong: a code for programs, and a message for people.

use diptych::Error;
use diptych_pointers::Invalid;
use ort_sys::{OrtErrorCode, OrtStatus, OrtStatusPtr, stub};
use std::ffi::c_char;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What ends a call early.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: OrtErrorCode,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: OrtErrorCode, message: impl Into<String>) -> Self {
        Failure { code, message: message.into() }
    }

    /// The status that C is given, which [`ReleaseStatus`] frees.
    pub(crate) fn status(self) -> OrtStatusPtr {
        // A zero byte would end the text there.
        stub::Error::new_sys(self.code, self.message.replace('\0', "\u{fffd}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        // What would help is an option of Rust's programs.
        Failure::new(code(&error), error.told(&|_| None))
    }
}

impl From<Invalid> for Failure {
    fn from(Invalid { what, found, wanted }: Invalid) -> Self {
        Error::input(what, found, wanted).into()
    }
}

/// Names of a file for a message: what could command a terminal is escaped.
pub(crate) fn printable<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| name.escape_debug().to_string()).collect::<Vec<_>>().join(", ")
}

/// An error of the caller's.
pub(crate) fn wrong(what: &str, found: impl Into<String>, wanted: impl Into<String>) -> Failure {
    Error::input(what, found, wanted).into()
}

/// What this backend does not do.
pub(crate) fn unsupported(what: impl Into<String>, reason: impl Into<String>) -> Failure {
    Error::unsupported(what, reason).into()
}

fn code(error: &Error) -> OrtErrorCode {
    let root = error.root();
    match root {
        Error::Shape { .. } | Error::Input { .. } => OrtErrorCode::ORT_INVALID_ARGUMENT,
        Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => OrtErrorCode::ORT_NO_SUCHFILE,
        Error::Io { .. } => OrtErrorCode::ORT_FAIL,
        Error::Model { .. } => OrtErrorCode::ORT_INVALID_GRAPH,
        Error::Unsupported { .. } | Error::Reject { .. } => OrtErrorCode::ORT_NOT_IMPLEMENTED,
        Error::NoDevice { .. }
        | Error::OpenClLibrary { .. }
        | Error::Compile { .. }
        | Error::Driver { .. } => OrtErrorCode::ORT_EP_FAIL,
        _ if root.is_device_lost() => OrtErrorCode::ORT_DEVICE_RESET,
        _ => OrtErrorCode::ORT_RUNTIME_EXCEPTION,
    }
}

/// Does `work`. No panic gets past it.
pub(crate) fn guard(work: impl FnOnce() -> Result<(), Failure>) -> OrtStatusPtr {
    // What a panic leaves half done is a session behind a mutex, which refuses further calls.
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return OrtStatusPtr::default(),
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            let message = format!("internal error (please report): {}", text.unwrap_or("a panic"));
            Failure::new(OrtErrorCode::ORT_RUNTIME_EXCEPTION, message)
        }
    };
    failure.status()
}

/// Writes functions of the table. A body gives a result, and may call what is unsafe, for ONNX Runtime's documentation is
/// a promise of the caller's: each pointer is NULL or of what its type says, a handle is one of this table that was not
/// released, and what a call changes no other thread uses. Whether a pointer is NULL is checked
/// (`crate::pointers`).
macro_rules! calls {
    ($($(#[$attribute:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => { $(
        $(#[$attribute])*
        pub(crate) unsafe extern "system" fn $name($($argument: $type),*) -> ort_sys::OrtStatusPtr {
            crate::status::guard(|| {
                // SAFETY: the promise that the macro's documentation gives, which all callers of the table make.
                unsafe { $body }
            })
        }
    )* };
}
pub(crate) use calls;

calls! {
    fn checked_create(code: OrtErrorCode, message: *const c_char, out: *mut OrtStatusPtr) {
        let message = diptych_pointers::text("message", message)?;
        let status = Failure::new(code, message).status();
        crate::pointers::put("out", out, status)
    }
}

pub(crate) unsafe extern "system" fn CreateStatus(
    code: OrtErrorCode,
    message: *const c_char,
) -> OrtStatusPtr {
    let mut status = OrtStatusPtr::default();
    // SAFETY: the caller's promise: `message` is NULL or text. `status` is written before this returns.
    let failed = unsafe { checked_create(code, message, &raw mut status) };
    if failed.0.is_null() { status } else { failed }
}

pub(crate) unsafe extern "system" fn GetErrorCode(status: *const OrtStatus) -> OrtErrorCode {
    // SAFETY: a status of this table is NULL or such an error, which lives until it is released.
    unsafe { status.cast::<stub::Error>().as_ref() }.map_or(OrtErrorCode::ORT_OK, |error| error.code)
}

pub(crate) unsafe extern "system" fn GetErrorMessage(status: *const OrtStatus) -> *const c_char {
    // SAFETY: a status of this table is NULL or such an error, which lives until it is released.
    unsafe { status.cast::<stub::Error>().as_ref() }.map_or(c"".as_ptr(), stub::Error::message_ptr)
}

pub(crate) unsafe extern "system" fn ReleaseStatus(status: *mut OrtStatus) {
    if !status.is_null() {
        // SAFETY: a status of this table is such an error, which the caller releases once; it is not NULL (checked above).
        drop(unsafe { stub::Error::consume_sys(status) });
    }
}
