//! What went wrong: a status for programs, and a message for people.

use crate::names::in_c;
use diptych::Error;
use diptych_pointers::{Invalid, c_text};
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a call ended. More may be added.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum diptych_status {
    /// Success.
    Ok = 0,
    /// A pointer is NULL, or a name, length or option does not fit.
    Input = 1,
    /// A file cannot be read or written.
    File = 2,
    /// A model's file is not valid.
    Model = 3,
    /// What was asked for is not offered.
    Unsupported = 4,
    /// There is no such device.
    NoDevice = 5,
    /// A driver failed, or does not compile a kernel.
    Driver = 6,
    /// The device is gone. The session is of no more use: close it, and open another.
    DeviceLost = 7,
    /// A callback ended the call.
    Stopped = 8,
    /// A bug of the library's, to be reported.
    Internal = 9,
    /// The device or its driver has no memory left.
    OutOfMemory = 10,
    /// The device did not come to an end within DIPTYCH_TIME_LIMIT seconds. It may still be at work.
    TimedOut = 11,
}

/// What ends a call early.
#[derive(Debug)]
pub(crate) enum Failure {
    Library(Error),
    Stopped,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Library(error)
    }
}

impl From<Invalid> for Failure {
    fn from(Invalid { what, found, wanted }: Invalid) -> Self {
        Failure::Library(Error::input(what, found, wanted))
    }
}

/// Names of a file for a message: what could command a terminal is escaped.
pub(crate) fn printable<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| name.escape_debug().to_string()).collect::<Vec<_>>().join(", ")
}

/// An error of the caller's.
pub(crate) fn wrong(what: &str, found: impl Into<String>, wanted: impl Into<String>) -> Failure {
    Failure::Library(Error::input(what, found, wanted))
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

fn remember(message: String) {
    LAST.with(|last| *last.borrow_mut() = c_text(&message));
}

fn status(error: &Error) -> diptych_status {
    match error.without_node() {
        Error::Shape { .. } | Error::Input { .. } => diptych_status::Input,
        Error::Io { .. } => diptych_status::File,
        Error::Model { .. } => diptych_status::Model,
        Error::Unsupported { .. } | Error::Reject { .. } => diptych_status::Unsupported,
        Error::NoDevice { .. } | Error::OpenClLibrary { .. } => diptych_status::NoDevice,
        Error::Compile { .. } | Error::Driver { .. } => diptych_status::Driver,
        Error::OutOfMemory { .. } => diptych_status::OutOfMemory,
        Error::TimedOut { .. } => diptych_status::TimedOut,
        error if error.is_device_lost() => diptych_status::DeviceLost,
        _ => diptych_status::Internal,
    }
}

/// Does `work`, and remembers what went wrong. No panic gets past it.
pub(crate) fn guard(work: impl FnOnce() -> Result<(), Failure>) -> diptych_status {
    // What a panic leaves half done is a session behind a mutex, which refuses further calls.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => diptych_status::Ok,
        Ok(Err(Failure::Library(error))) => {
            remember(in_c(&error));
            status(&error)
        }
        Ok(Err(Failure::Stopped)) => {
            remember("a callback ended the call".to_owned());
            diptych_status::Stopped
        }
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            remember(format!("internal error (please report): {}", text.unwrap_or("a panic")));
            diptych_status::Internal
        }
    }
}

/// What went wrong in the last call of this thread that failed; empty if none did. Lives until the next call of this
/// thread that fails.
#[unsafe(no_mangle)]
pub extern "C" fn diptych_last_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn last() -> String {
        // SAFETY: the message lives until the next failure of this thread.
        unsafe { CStr::from_ptr(diptych_last_error()) }.to_str().expect("UTF-8").to_owned()
    }

    #[test]
    fn what_goes_wrong_is_a_status_and_a_message_of_this_thread() {
        assert_eq!(last(), "");
        assert_eq!(guard(|| Ok(())), diptych_status::Ok);
        let lost = || Error::DeviceLost { api: "Vulkan", reason: "unplugged\0now".to_owned() };
        assert_eq!(guard(|| Err(lost().at_node("stem").into())), diptych_status::DeviceLost);
        assert_eq!(
            last(),
            "node \"stem\": open the device again and rebuild sessions: Vulkan: the device was lost: unplugged\u{fffd}now"
        );
        let late = Error::TimedOut { api: "OpenCL", limit: std::time::Duration::from_secs(2) };
        assert_eq!(guard(|| Err(late.into())), diptych_status::TimedOut);
        let full = Error::OutOfMemory { api: "OpenCL", call: "clCreateBuffer", message: "-4".to_owned() };
        assert_eq!(guard(|| Err(full.into())), diptych_status::OutOfMemory);
        assert_eq!(
            last(),
            "use a smaller batch or f16 storage: OpenCL: clCreateBuffer failed: out of memory: -4"
        );
        assert_eq!(guard(|| Err(wrong("x", "NULL", "a pointer"))), diptych_status::Input);
        assert_eq!(last(), "x: found NULL, wanted a pointer");
        assert_eq!(guard(|| Err(Failure::Stopped)), diptych_status::Stopped);
        assert_eq!(std::thread::spawn(last).join().expect("a message"), "");
    }

    #[test]
    fn names_in_messages_command_no_terminal() {
        assert_eq!(printable(["x", "b\u{1b}[2J", "\n"]), "x, b\\u{1b}[2J, \\n");
    }

    #[test]
    fn a_panic_does_not_leave_the_library() {
        assert_eq!(guard(|| panic!("at {}", 5)), diptych_status::Internal);
        assert_eq!(last(), "internal error (please report): at 5");
    }
}
