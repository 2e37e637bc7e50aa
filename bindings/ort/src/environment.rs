//! What all sessions of a program share: devices, a logger, numbers of threads.

use crate::pointers::{hand_out, own, own_mut, put};
use crate::status::{Failure, calls, wrong};
use diptych::{Context, DeviceSelector};
use diptych_pointers::{c_text, shared, text};
use ort_sys::{
    OrtEnv, OrtEnvCreationOptions, OrtEpDevice, OrtErrorCode, OrtLanguageProjection, OrtLoggingFunction,
    OrtLoggingLevel, OrtThreadingOptions,
};
use std::ffi::{CString, c_char, c_int, c_void};
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A function of the application's that takes messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Logger {
    function: OrtLoggingFunction,
    parameter: *mut c_void,
}

// SAFETY: ONNX Runtime's documentation has loggers be called by any thread, at any time before their environment or
// session is released.
unsafe impl Send for Logger {}
// SAFETY: the same.
unsafe impl Sync for Logger {}

impl Logger {
    pub(crate) fn new(function: OrtLoggingFunction, parameter: *mut c_void) -> Self {
        Logger { function, parameter }
    }

    pub(crate) fn log(self, level: OrtLoggingLevel, id: &str, message: &str) {
        let (id, message) = (c_text(id), c_text(message));
        let (category, place) = (c"diptych".as_ptr(), c"diptych-ort".as_ptr());
        // SAFETY: the application gave this function for this purpose; the texts live until it returns.
        unsafe { (self.function)(self.parameter, level, category, id.as_ptr(), place, message.as_ptr()) };
    }
}

/// What a session's options say of messages.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Logging {
    pub(crate) logger: Option<Logger>,
    /// The level from which on messages are logged; that of the environment unless it is set.
    pub(crate) severity: Option<OrtLoggingLevel>,
}

/// How many threads the sessions of an environment have.
#[derive(Debug, Default, Clone)]
pub(crate) struct Threads(Option<NonZeroUsize>);

/// A number of threads as C has it: 0 is as many as there are cores.
pub(crate) fn threads(what: &str, count: c_int) -> Result<Option<NonZeroUsize>, Failure> {
    let count = usize::try_from(count).map_err(|_| wrong(what, format!("{count}"), "0 or more"))?;
    Ok(NonZeroUsize::new(count))
}

/// A level of messages as C has it.
pub(crate) fn severity(level: c_int) -> Result<OrtLoggingLevel, Failure> {
    Ok(match level {
        0 => OrtLoggingLevel::ORT_LOGGING_LEVEL_VERBOSE,
        1 => OrtLoggingLevel::ORT_LOGGING_LEVEL_INFO,
        2 => OrtLoggingLevel::ORT_LOGGING_LEVEL_WARNING,
        3 => OrtLoggingLevel::ORT_LOGGING_LEVEL_ERROR,
        4 => OrtLoggingLevel::ORT_LOGGING_LEVEL_FATAL,
        other => return Err(wrong("logging level", format!("{other}"), "0 to 4")),
    })
}

#[derive(Debug)]
pub(crate) struct Environment {
    logger: Option<Logger>,
    level: AtomicI32,
    id: String,
    pub(crate) threads: Option<NonZeroUsize>,
    /// The devices that were opened so far. Sessions share them.
    contexts: Mutex<Vec<(DeviceSelector, Context)>>,
}

impl Environment {
    fn new(
        level: OrtLoggingLevel,
        id: &str,
        logger: Option<Logger>,
        threads: Option<NonZeroUsize>,
    ) -> Arc<Self> {
        let level = AtomicI32::new(level as i32);
        Arc::new(Environment { logger, level, id: id.to_owned(), threads, contexts: Mutex::default() })
    }

    /// Tells a logger of the application's what sessions do: that of their options, or else the environment's.
    pub(crate) fn log(&self, own: Logging, level: OrtLoggingLevel, message: &str) {
        let least = own.severity.map_or_else(|| self.level.load(Ordering::Relaxed), |own| own as i32);
        if level as i32 >= least
            && let Some(logger) = own.logger.or(self.logger)
        {
            logger.log(level, &self.id, message);
        }
    }

    fn contexts(&self) -> MutexGuard<'_, Vec<(DeviceSelector, Context)>> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the device that a selector means. One that is lost meanwhile is opened again by the next session.
    pub(crate) fn on<T>(
        &self,
        selector: &DeviceSelector,
        work: impl FnOnce(&Context) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let open = || Ok(Context::builder().device(selector.clone()).open()?);
        let context = self.context(selector, open)?;
        self.watch(selector, || work(&context))
    }

    /// Does what may find that a device was lost.
    pub(crate) fn watch<T>(
        &self,
        selector: &DeviceSelector,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        work().inspect_err(|failure| {
            if failure.code == OrtErrorCode::ORT_DEVICE_RESET {
                self.contexts().retain(|(own, _)| own != selector);
            }
        })
    }

    /// A device, opened unless it is. Opening may take seconds, in which other sessions begin on theirs.
    fn context(
        &self,
        selector: &DeviceSelector,
        open: impl FnOnce() -> Result<Context, Failure>,
    ) -> Result<Context, Failure> {
        let known = |contexts: &[(DeviceSelector, Context)]| {
            Some(contexts.iter().find(|(own, _)| own == selector)?.1.clone())
        };
        let context = known(&self.contexts());
        if let Some(context) = context {
            return Ok(context);
        }
        let context = open()?;
        let mut contexts = self.contexts();
        // Another session may have opened it meanwhile: then both share that one.
        if let Some(context) = known(&contexts) {
            return Ok(context);
        }
        contexts.push((selector.clone(), context.clone()));
        Ok(context)
    }
}

calls! {
    fn CreateEnv(level: OrtLoggingLevel, id: *const c_char, out: *mut *mut OrtEnv) {
        hand_out(out, Environment::new(level, text("log id", id)?, None, None))
    }

    fn CreateEnvWithCustomLogger(
        function: OrtLoggingFunction,
        parameter: *mut c_void,
        level: OrtLoggingLevel,
        id: *const c_char,
        out: *mut *mut OrtEnv,
    ) {
        let logger = Logger::new(function, parameter);
        hand_out(out, Environment::new(level, text("log id", id)?, Some(logger), None))
    }

    fn CreateEnvWithGlobalThreadPools(
        level: OrtLoggingLevel,
        id: *const c_char,
        threads: *const OrtThreadingOptions,
        out: *mut *mut OrtEnv,
    ) {
        hand_out(out, Environment::new(level, text("log id", id)?, None, own(threads)?.0))
    }

    fn CreateEnvWithCustomLoggerAndGlobalThreadPools(
        function: OrtLoggingFunction,
        parameter: *mut c_void,
        level: OrtLoggingLevel,
        id: *const c_char,
        threads: *const OrtThreadingOptions,
        out: *mut *mut OrtEnv,
    ) {
        let logger = Logger::new(function, parameter);
        hand_out(out, Environment::new(level, text("log id", id)?, Some(logger), own(threads)?.0))
    }

    fn CreateEnvWithOptions(options: *const OrtEnvCreationOptions, out: *mut *mut OrtEnv) {
        let options = shared("options", options)?;
        let level = severity(options.logging_severity_level)?;
        let logger =
            options.custom_logging_function.map(|function| Logger::new(function, options.custom_logging_param));
        let threads = options.threading_options;
        let threads = if threads.is_null() { None } else { own(threads)?.0 };
        hand_out(out, Environment::new(level, text("log id", options.log_id)?, logger, threads))
    }

    fn UpdateEnvWithCustomLogLevel(env: *mut OrtEnv, level: OrtLoggingLevel) {
        own(env)?.level.store(level as i32, Ordering::Relaxed);
        Ok(())
    }

    /// There is no telemetry.
    fn EnableTelemetryEvents(env: *const OrtEnv) {
        own(env).map(|_| ())
    }

    fn DisableTelemetryEvents(env: *const OrtEnv) {
        own(env).map(|_| ())
    }

    fn SetLanguageProjection(env: *const OrtEnv, _language: OrtLanguageProjection) {
        own(env).map(|_| ())
    }

    /// None: entries of the session options choose a device.
    fn GetEpDevices(env: *const OrtEnv, devices: *mut *const *const OrtEpDevice, count: *mut usize) {
        own(env)?;
        put("devices", devices, NonNull::dangling().as_ptr())?;
        put("count", count, 0)
    }

    fn CreateThreadingOptions(out: *mut *mut OrtThreadingOptions) {
        hand_out(out, Threads::default())
    }

    fn SetGlobalIntraOpNumThreads(options: *mut OrtThreadingOptions, count: c_int) {
        own_mut(options)?.0 = threads("intra-op threads", count)?;
        Ok(())
    }

    /// The nodes of a network run one after the other.
    fn SetGlobalInterOpNumThreads(options: *mut OrtThreadingOptions, count: c_int) {
        own_mut(options)?;
        threads("inter-op threads", count).map(|_| ())
    }

    /// Threads without work sleep.
    fn SetGlobalSpinControl(options: *mut OrtThreadingOptions, _spins: c_int) {
        own_mut(options).map(|_| ())
    }

    fn GetAvailableProviders(out: *mut *mut *mut c_char, count: *mut c_int) {
        let names: Box<[*mut c_char]> =
            crate::options::PROVIDERS.iter().map(|name| c_text(name).into_raw()).collect();
        let length = names.len() as c_int;
        if out.is_null() || count.is_null() {
            free_names(names);
            return Err(wrong("out", "NULL", "a pointer"));
        }
        put("out", out, Box::into_raw(names).cast())?;
        put("count", count, length)
    }

    fn ReleaseAvailableProviders(names: *mut *mut c_char, count: c_int) {
        if !names.is_null() && usize::try_from(count) == Ok(crate::options::PROVIDERS.len()) {
            let names = std::ptr::slice_from_raw_parts_mut(names, count as usize);
            free_names(Box::from_raw(names));
        }
        Ok(())
    }
}

/// Frees names.
///
/// # Safety
/// `CString::into_raw` made each name, and nothing frees or uses it again.
unsafe fn free_names(names: Box<[*mut c_char]>) {
    for name in names {
        // SAFETY: the caller promises that `CString::into_raw` made the name and that it is freed once.
        drop(unsafe { CString::from_raw(name) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Arc<Environment> {
        Environment::new(OrtLoggingLevel::ORT_LOGGING_LEVEL_ERROR, "tests", None, None)
    }

    fn cpu() -> DeviceSelector {
        "cpu".parse().expect("a device")
    }

    #[test]
    fn a_device_is_opened_once_and_again_after_it_was_lost() {
        let environment = environment();
        let count = || environment.contexts().len();
        for _ in 0..2 {
            environment.on(&cpu(), |_| Ok(())).expect("the CPU");
            assert_eq!(count(), 1);
        }
        let wrong = |code| move || Err::<(), _>(Failure::new(code, "as a device says it"));
        environment.on(&cpu(), |_| wrong(OrtErrorCode::ORT_FAIL)()).expect_err("an error");
        assert_eq!(count(), 1);
        // While a session is made, and while one runs.
        environment.on(&cpu(), |_| wrong(OrtErrorCode::ORT_DEVICE_RESET)()).expect_err("an error");
        assert_eq!(count(), 0);
        environment.on(&cpu(), |_| Ok(())).expect("the CPU");
        environment.watch(&cpu(), wrong(OrtErrorCode::ORT_DEVICE_RESET)).expect_err("an error");
        assert_eq!(count(), 0);
    }

    #[test]
    fn a_device_that_is_being_opened_keeps_nobody_waiting() {
        let environment = environment();
        let open = || Ok(Context::builder().device(cpu()).open()?);
        let slow = || {
            assert!(environment.contexts.try_lock().is_ok(), "others wait");
            // Another session opens the same one, and is faster.
            environment.context(&cpu(), open)?;
            open()
        };
        environment.context(&cpu(), slow).expect("the CPU");
        assert_eq!(environment.contexts().len(), 1);
    }
}
