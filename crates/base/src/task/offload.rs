//! Blocking work as a future, for the APIs that can only block, and work to wait for later.
//!
//! On `wasm32` the work is done at once: there is no other thread.

use super::Movable;
use crate::error::{Error, Result};
#[cfg(not(target_family = "wasm"))]
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Mutex, lock};
use crate::unwind::caught;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

struct State<T> {
    result: Option<Result<T>>,
    waker: Option<Waker>,
}

/// Work on a thread of its own, to be awaited or waited for. Dropped, the thread is left to finish.
pub struct Running<T> {
    state: Arc<Mutex<State<T>>>,
    /// None where the work was done when it was started.
    thread: Option<Thread>,
}

#[cfg(not(target_family = "wasm"))]
type Thread = JoinHandle<()>;
/// There is one thread.
#[cfg(target_family = "wasm")]
type Thread = std::convert::Infallible;

impl<T> std::fmt::Debug for Running<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Running")
    }
}

/// Where the thread leaves the result.
#[cfg(not(target_family = "wasm"))]
struct Completion<T>(Arc<Mutex<State<T>>>);

#[cfg(not(target_family = "wasm"))]
impl<T> Completion<T> {
    fn set(&self, result: Result<T>) {
        let waker = {
            let mut state = lock(&self.0);
            if state.result.is_none() {
                state.result = Some(result);
            }
            state.waker.take()
        };
        // Without the lock: the task may be polled within.
        if let Some(waker) = waker {
            super::wake(waker);
        }
    }
}

/// What `work` gives; an error if it panics.
fn unpanicked<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    caught("work on a thread of its own", work)?
}

/// Starts `work` on a new thread.
pub fn offload<T: Movable + 'static>(
    work: impl FnOnce() -> Result<T> + Movable + 'static,
) -> Result<Running<T>> {
    #[cfg(target_family = "wasm")]
    {
        let state = State { result: Some(unpanicked(work)), waker: None };
        Ok(Running { state: Arc::new(Mutex::new(state)), thread: None })
    }
    #[cfg(not(target_family = "wasm"))]
    {
        let state = Arc::new(Mutex::new(State { result: None, waker: None }));
        let completion = Completion(Arc::clone(&state));
        #[expect(
            clippy::disallowed_methods,
            reason = "a run of the CPU has a thread, so that tasks do not wait for it"
        )]
        let thread = thread::Builder::new()
            .name("diptych run".to_owned())
            .spawn(move || completion.set(unpanicked(work)))
            .map_err(|error| Error::Internal(format!("no thread for a run: {error}")))?;
        Ok(Running { state, thread: Some(thread) })
    }
}

/// Waits for the thread's end. A panic on it is in the result.
#[cfg(not(target_family = "wasm"))]
#[expect(clippy::disallowed_methods, reason = "the thread has given its result")]
fn join(thread: Thread) {
    drop(thread.join());
}

/// There is none to wait for.
#[cfg(target_family = "wasm")]
fn join(thread: Thread) {
    match thread {}
}

impl<T> Running<T> {
    /// Waits for the result.
    pub fn wait(self) -> Result<T> {
        if let Some(thread) = self.thread {
            join(thread);
        }
        let result = lock(&self.state).result.take();
        result.unwrap_or_else(|| Err(Error::Internal("work that was taken before".to_owned())))
    }
}

impl<T> Future for Running<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = lock(&self.state);
        match state.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
