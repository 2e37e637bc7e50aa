//! What a callback or a waiting thread passes to a caller that blocks or awaits.

use crate::sync::{Condvar, Mutex, lock};
use std::task::Waker;

/// Set once, by any thread.
#[derive(Debug, Default)]
pub(super) struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    result: Option<Result<(), String>>,
    waker: Option<Waker>,
}

impl Signal {
    /// Stores `result`, unless there is one, and wakes the threads that wait for it.
    pub(super) fn set(&self, result: Result<(), String>) {
        let waker = {
            let mut state = lock(&self.state);
            state.result.get_or_insert(result);
            state.waker.take()
        };
        self.changed.notify_all();
        if let Some(waker) = waker {
            crate::task::wake(waker);
        }
    }

    /// The result, if it is there.
    #[cfg(any(feature = "wgpu", test))]
    pub(super) fn get(&self) -> Option<Result<(), String>> {
        lock(&self.state).result.clone()
    }

    /// The result, if it is there; if not, [`Signal::set`] will wake `waker`.
    pub(super) fn get_or_wake(&self, waker: &Waker) -> Option<Result<(), String>> {
        let mut state = lock(&self.state);
        if state.result.is_none() {
            state.waker = Some(waker.clone());
        }
        state.result.clone()
    }

    /// The result; waits for it for at most `patience`, and is `None` if it is not there then.
    #[expect(clippy::disallowed_methods, reason = "no browser calls it")]
    #[cfg(all(feature = "wgpu", not(target_family = "wasm")))]
    pub(super) fn get_within(&self, patience: std::time::Duration) -> Option<Result<(), String>> {
        let state = lock(&self.state);
        let (state, _) = self
            .changed
            .wait_timeout_while(state, patience, |state| state.result.is_none())
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        state.result.clone()
    }
}
