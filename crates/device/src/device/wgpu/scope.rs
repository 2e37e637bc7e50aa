//! wgpu reports most errors through scopes; an error outside any scope ends the program by default.
//!
//! Scopes are per thread and nest, so they neither see nor disturb the application's own.

use super::WgpuDevice;
#[cfg(target_family = "wasm")]
use super::lock;
use super::submission::Submission;
use crate::error::Result;
use crate::unwind::message;
use std::future::Future;
#[cfg(not(target_family = "wasm"))]
use std::panic::resume_unwind;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How wgpu's own panic in `poll` begins.
#[cfg(not(target_family = "wasm"))]
const POLL_PANIC: &str = "Error in Device::poll:";

/// What is said of a device that takes no submissions and gives no reason.
pub(super) const SILENT: &str = "the device takes no submissions";

/// What is said of a wait that was given up.
#[cfg(not(target_family = "wasm"))]
pub(super) const TIMED_OUT: &str = "the wait was given up";

/// How [`describe`] begins where there was no memory.
pub(super) const NO_MEMORY: &str = "out of memory";

/// Scopes that catch every kind of wgpu error.
pub(super) struct Scopes([wgpu::ErrorScopeGuard; 3]);

impl Scopes {
    pub(super) fn open(device: &wgpu::Device) -> Self {
        let filters =
            [wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Validation];
        Scopes(filters.map(|filter| device.push_error_scope(filter)))
    }

    /// The error of the calls since that explains the others: a buffer that there was no memory for makes what is done
    /// with it invalid. Away from the web it is known at once.
    pub(super) fn close(self) -> impl Future<Output = Option<wgpu::Error>> + use<> {
        // In reverse order, and at once: what follows belongs to none of them.
        let [internal, memory, validation] = self.0;
        let (validation, memory, internal) = (validation.pop(), memory.pop(), internal.pop());
        async move {
            let (validation, memory, internal) = (validation.await, memory.await, internal.await);
            memory.or(internal).or(validation)
        }
    }
}

/// Does `work` with every kind of wgpu error caught; gives its result and the error, as [`Scopes::close`] does.
#[cfg(not(target_family = "wasm"))]
pub(super) fn catch<T>(
    device: &wgpu::Device,
    work: impl FnOnce() -> T,
) -> (std::result::Result<T, String>, Option<wgpu::Error>) {
    let scopes = Scopes::open(device);
    let result = unpanicked(work);
    (result, crate::task::block_on(scopes.close()))
}

/// Does `work`; gives the message of its panic, if it panics.
///
/// wgpu 30 unwraps some of a driver's answers that there is no memory, such as that for the first command buffer of a
/// queue. The device is of no more use then, but the program is.
pub(super) fn unpanicked<T>(work: impl FnOnce() -> T) -> std::result::Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| format!("wgpu panicked: {}", message(&*panic)))
}

/// wgpu's error and what caused it, on as many lines.
pub(super) fn describe(error: &wgpu::Error) -> String {
    match error {
        // Its own text is only "Out of Memory".
        wgpu::Error::OutOfMemory { source } => {
            let mut text = NO_MEMORY.to_owned();
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
    /// Does `work` with wgpu's errors caught; one of them is the error of `call`.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn scoped<T>(&self, call: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        match catch(&self.inner.device, work) {
            (Err(panic), _) => Err(self.lost(panic)),
            (Ok(result), None) => result,
            (Ok(_), Some(error)) => Err(self.refused(call, &error)),
        }
    }

    /// Does `work` with wgpu's errors caught: one of them is found by [`WgpuDevice::found`], once the browser has
    /// said so.
    #[cfg(target_family = "wasm")]
    pub(super) fn scoped<T>(&self, call: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let scopes = Scopes::open(&self.inner.device);
        let result = work();
        let error = scopes.close();
        let (api, found) = (self.api(), std::sync::Arc::clone(&self.inner.found));
        let lost = std::sync::Arc::clone(&self.inner.lost);
        wasm_bindgen_futures::spawn_local(async move {
            if let Some(error) = error.await {
                let error = super::refusal(api, call, &error, &lost);
                lock(&found).get_or_insert(error);
            }
        });
        result
    }

    /// Awaits what the browser has to say of all calls so far.
    #[cfg(target_family = "wasm")]
    pub(super) async fn found(&self) -> Result<()> {
        // Scopes are popped in the order of the calls: what is said of the earlier ones is there before.
        drop(Scopes::open(&self.inner.device).close().await);
        lock(&self.inner.found).take().map_or(Ok(()), Err)
    }

    /// Submits in `work` with wgpu's errors caught.
    pub(super) fn submitted(&self, work: impl FnOnce() -> Result<Submission>) -> Result<Submission> {
        #[cfg(not(target_family = "wasm"))]
        return self.scoped("submit", work);
        #[cfg(target_family = "wasm")]
        {
            let scopes = Scopes::open(&self.inner.device);
            let submission = work();
            let error = scopes.close();
            submission.map(|submission| submission.with_errors(error))
        }
    }

    /// Polls the device.
    #[cfg(not(target_family = "wasm"))]
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
#[cfg(not(target_family = "wasm"))]
pub(super) fn poll(device: &wgpu::Device, how: wgpu::PollType) -> std::result::Result<(), String> {
    match catch_unwind(AssertUnwindSafe(|| device.poll(how))) {
        Ok(Ok(_)) => Ok(()),
        // Only a lost device takes a submission without a word of what is wrong with it.
        Ok(Err(wgpu::PollError::WrongSubmissionIndex(..))) => Err(SILENT.to_owned()),
        Ok(Err(wgpu::PollError::Timeout)) => Err(TIMED_OUT.to_owned()),
        Err(panic) => match panic.downcast_ref::<String>() {
            Some(message) if message.starts_with(POLL_PANIC) => {
                Err(message.trim_start_matches(POLL_PANIC).trim().to_owned())
            }
            _ => resume_unwind(panic),
        },
    }
}
