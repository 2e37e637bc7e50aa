//! How a session runs.

use crate::pointers::{hand_out, own, own_mut, put};
use crate::status::{Failure, calls, wrong};
use diptych_pointers::{c_text, text};
use ort_sys::{OrtErrorCode, OrtRunOptions};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int};
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The entry with which a run begins with empty caches and states.
const RESET: &str = "run.diptych.reset";

#[derive(Debug, Default)]
pub(crate) struct RunOptions {
    verbosity: c_int,
    severity: c_int,
    tag: CString,
    entries: BTreeMap<String, CString>,
    stopped: Arc<AtomicBool>,
}

/// What a run needs of them, for as long as it takes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running {
    stopped: Option<Arc<AtomicBool>>,
    pub(crate) resets: bool,
}

impl Running {
    /// What a run needs of `options`, which may be NULL: then nothing stops the run and it resets nothing.
    ///
    /// # Safety
    /// `options` is NULL, or of this table and not released.
    pub(crate) unsafe fn of(options: *const OrtRunOptions) -> Self {
        // SAFETY: the caller promises that `options` is NULL, or of this table and not released; `own` refuses NULL.
        let Ok(own) = (unsafe { own(options) }) else {
            return Running::default();
        };
        let resets = own.entries.get(RESET).is_some_and(|value| value.as_bytes() == b"1");
        Running { stopped: Some(Arc::clone(&own.stopped)), resets }
    }

    /// An error if the application ended the run.
    pub(crate) fn goes_on(&self) -> Result<(), Failure> {
        if self.stopped.as_ref().is_some_and(|stopped| stopped.load(Ordering::Relaxed)) {
            return Err(Failure::new(
                OrtErrorCode::ORT_FAIL,
                "the application terminated runs with these options",
            ));
        }
        Ok(())
    }
}

calls! {
    fn CreateRunOptions(out: *mut *mut OrtRunOptions) {
        hand_out(out, RunOptions { severity: 2, ..RunOptions::default() })
    }

    fn RunOptionsSetRunLogVerbosityLevel(options: *mut OrtRunOptions, level: c_int) {
        own_mut(options)?.verbosity = level;
        Ok(())
    }

    fn RunOptionsGetRunLogVerbosityLevel(options: *const OrtRunOptions, out: *mut c_int) {
        put("out", out, own(options)?.verbosity)
    }

    fn RunOptionsSetRunLogSeverityLevel(options: *mut OrtRunOptions, level: c_int) {
        if !(0..=4).contains(&level) {
            return Err(wrong("severity", format!("{level}"), "0 to 4"));
        }
        own_mut(options)?.severity = level;
        Ok(())
    }

    fn RunOptionsGetRunLogSeverityLevel(options: *const OrtRunOptions, out: *mut c_int) {
        put("out", out, own(options)?.severity)
    }

    fn RunOptionsSetRunTag(options: *mut OrtRunOptions, tag: *const c_char) {
        own_mut(options)?.tag = c_text(text("tag", tag)?);
        Ok(())
    }

    /// The text lives until another tag is set.
    fn RunOptionsGetRunTag(options: *const OrtRunOptions, out: *mut *const c_char) {
        put("out", out, own(options)?.tag.as_ptr())
    }

    /// Runs that did not begin yet end with an error. Other threads call this.
    fn RunOptionsSetTerminate(options: *mut OrtRunOptions) {
        own(options)?.stopped.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn RunOptionsUnsetTerminate(options: *mut OrtRunOptions) {
        own(options)?.stopped.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn AddRunConfigEntry(options: *mut OrtRunOptions, key: *const c_char, value: *const c_char) {
        let (key, value) = (text("key", key)?, text("value", value)?);
        if key.starts_with("run.diptych.") && (key != RESET || !["0", "1"].contains(&value)) {
            return Err(wrong(key, format!("{value:?}"), format!("{RESET} with 0 or 1")));
        }
        own_mut(options)?.entries.insert(key.to_owned(), c_text(value));
        Ok(())
    }
}

/// The text lives until the entry is set again.
pub(crate) unsafe extern "system" fn GetRunConfigEntry(
    options: *const OrtRunOptions,
    key: *const c_char,
) -> *const c_char {
    // SAFETY: the caller's promise: `options` is NULL or of this table, and `key` NULL or text.
    let (options, key) = unsafe { (own(options), text("key", key)) };
    let found = options.ok().zip(key.ok()).and_then(|(options, key)| options.entries.get(key));
    found.map_or(null(), |value| value.as_ptr())
}
