//! wgpu reports most errors through scopes; an error outside any scope ends the program by default.
//!
//! Scopes are per thread and nest, so they neither see nor disturb the application's own.

use super::WgpuDevice;
use crate::error::Result;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// How wgpu's own panic in `poll` begins.
const POLL_PANIC: &str = "Error in Device::poll:";

/// Does `work` with every kind of wgpu error caught; gives its result and the first error.
pub(super) fn catch<T>(device: &wgpu::Device, work: impl FnOnce() -> T) -> (T, Option<wgpu::Error>) {
    let scopes = [wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Validation]
        .map(|filter| device.push_error_scope(filter));
    let result = work();
    let mut first = None;
    // Scopes are popped in reverse order. Away from the web the future is ready at once.
    for scope in scopes.into_iter().rev() {
        let error = pollster::block_on(scope.pop());
        first = first.or(error);
    }
    (result, first)
}

/// wgpu's error and what caused it, on as many lines.
pub(super) fn describe(error: &wgpu::Error) -> String {
    match error {
        // Its own text is only "Out of Memory".
        wgpu::Error::OutOfMemory { source } => {
            let mut text = "out of memory".to_owned();
            let mut cause: Option<&dyn std::error::Error> = Some(source.as_ref());
            while let Some(error) = cause {
                text.push_str(&format!(": {error}"));
                cause = error.source();
            }
            text
        }
        other => other.to_string().trim().to_owned(),
    }
}

impl WgpuDevice {
    /// Does `work` with wgpu's errors caught; the first of them is the error of `call`.
    pub(super) fn scoped<T>(&self, call: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        match catch(&self.inner.device, work) {
            (result, None) => result,
            (_, Some(error)) => Err(self.failed(call, describe(&error))),
        }
    }

    /// Polls the device.
    pub(super) fn poll(&self, how: wgpu::PollType) -> Result<()> {
        self.inner.counters.poll();
        poll(&self.inner.device, how).map_err(|message| self.failed("poll", message))
    }
}

/// Polls `device`. Callbacks of the application may run inside: their errors and panics are left to
/// it.
///
/// wgpu 30 panics in `poll` if the device was lost (a driver reset, an unplugged GPU), since its
/// `PollError` cannot say so. That is an error like any other to the caller of this crate.
pub(super) fn poll(device: &wgpu::Device, how: wgpu::PollType) -> std::result::Result<(), String> {
    match catch_unwind(AssertUnwindSafe(|| device.poll(how))) {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) => match panic.downcast_ref::<String>() {
            Some(message) if message.starts_with(POLL_PANIC) => {
                Err(message.trim_start_matches(POLL_PANIC).trim().to_owned())
            }
            _ => resume_unwind(panic),
        },
    }
}
