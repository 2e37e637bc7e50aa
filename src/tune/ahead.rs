//! Kernels compiled on threads of their own while the device works.
//!
//! A driver takes 10 to 100 ms to compile a kernel, and a sample takes one. So the next candidates
//! are compiled side by side ahead of need, and while the tuner waits for one the device is kept
//! busy: an idle GPU lowers its clock.

use crate::device::{Device, Pipeline, compile_planned};
use crate::emit::KernelSource;
use crate::error::{Error, Result};
use crate::ops::Choice;
use crate::unwind::caught;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long one look at a compilation under way waits.
const POLL_INTERVAL: Duration = Duration::from_micros(200);

/// Compilations under way or done, by candidate.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    jobs: HashMap<Choice, Job>,
}

/// One compilation and its thread, which is joined when this is dropped: the thread uses the device, and
/// must not be inside its driver when the process ends.
#[derive(Debug)]
struct Job {
    result: Receiver<Result<Pipeline>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Job {
    #[expect(clippy::disallowed_methods, reason = "its thread ends before it does")]
    fn drop(&mut self) {
        // A panic shows as a missing result.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Ahead {
    /// Whether `choice` was started and not yet taken.
    pub(super) fn has(&self, choice: &Choice) -> bool {
        self.jobs.contains_key(choice)
    }

    /// Candidates that were started and not yet taken.
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Begins to compile `choice`.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(super) fn start(
        &mut self,
        device: &Arc<dyn Device>,
        choice: Choice,
        source: KernelSource,
    ) -> Result<()> {
        let (send, receive) = channel();
        let device = Arc::clone(device);
        let name = format!("compiling {choice}");
        let work = move || {
            // Nobody may be waiting any more: the kernel then stays in the device's cache.
            let compiled = caught("a compilation", || compile_planned(&*device, &source));
            let _ = send.send(compiled.and_then(|compiled| compiled));
        };
        #[expect(clippy::disallowed_methods, reason = "kernels are compiled while others are timed")]
        let spawned = std::thread::Builder::new().name(name).spawn(work);
        let thread = spawned.map_err(|error| Error::Internal(format!("no thread to compile on: {error}")))?;
        self.jobs.insert(choice, Job { result: receive, thread: Some(thread) });
        Ok(())
    }

    /// The kernel of `choice`, calling `meanwhile` until it is there; none if it was not started.
    #[expect(clippy::disallowed_methods, reason = "a tuner that compiles ahead may wait")]
    pub(super) fn take(&mut self, choice: &Choice, mut meanwhile: impl FnMut()) -> Option<Result<Pipeline>> {
        let job = self.jobs.remove(choice)?;
        loop {
            match job.result.recv_timeout(POLL_INTERVAL) {
                Ok(result) => return Some(result),
                Err(RecvTimeoutError::Timeout) => meanwhile(),
                Err(RecvTimeoutError::Disconnected) => {
                    return Some(Err(Error::Internal(format!("the thread that compiled {choice} died"))));
                }
            }
        }
    }

    /// Waits for everything under way, and drops it.
    pub(super) fn drain(&mut self) {
        self.jobs.clear();
    }
}
