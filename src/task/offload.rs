//! Blocking work as a future, for the APIs that can only block, and work to wait for later.
//!
//! On `wasm32` the work is done at once: there is no other thread.

use crate::error::{Error, Result};
#[cfg(not(target_family = "wasm"))]
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Mutex, lock};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

struct State<T> {
    result: Option<Result<T>>,
    waker: Option<Waker>,
}

/// The result of work on a thread of its own.
pub(crate) struct Offloaded<T>(Arc<Mutex<State<T>>>);

/// Where the thread leaves the result; an error if the work panicked.
struct Completion<T>(Arc<Mutex<State<T>>>);

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
            waker.wake();
        }
    }
}

impl<T> Drop for Completion<T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.set(Err(Error::Internal("a run panicked on its thread".to_owned())));
        }
    }
}

/// Starts `work` on a new thread.
pub(crate) fn offload<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<Offloaded<T>> {
    let state = Arc::new(Mutex::new(State { result: None, waker: None }));
    let completion = Completion(Arc::clone(&state));
    #[cfg(target_family = "wasm")]
    completion.set(work());
    #[cfg(not(target_family = "wasm"))]
    thread::Builder::new()
        .name("diptych run".to_owned())
        .spawn(move || completion.set(work()))
        .map_err(|error| Error::Internal(format!("no thread for a run: {error}")))?;
    Ok(Offloaded(state))
}

/// Work to be waited for. Dropped, a thread is left to finish.
#[cfg(not(target_family = "wasm"))]
#[derive(Debug)]
pub(crate) enum Running<T> {
    /// On a thread of its own.
    Thread(JoinHandle<Result<T>>),
    /// Done when it was started.
    Done(Result<T>),
}

#[cfg(not(target_family = "wasm"))]
impl<T: Send + 'static> Running<T> {
    /// Starts `work` on a new thread.
    pub(crate) fn new(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<Self> {
        let thread = thread::Builder::new().name("diptych run".to_owned()).spawn(work);
        thread.map(Running::Thread).map_err(|error| Error::Internal(format!("no thread for a run: {error}")))
    }

    /// Waits for the result.
    pub(crate) fn wait(self) -> Result<T> {
        match self {
            Running::Thread(thread) => thread
                .join()
                .unwrap_or_else(|_| Err(Error::Internal("a run panicked on its thread".to_owned()))),
            Running::Done(result) => result,
        }
    }
}

impl<T> Future for Offloaded<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = lock(&self.0);
        match state.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
