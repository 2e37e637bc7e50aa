//! A request, and where its answer goes.

use crate::clock::Instant;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::sync::{Condvar, Mutex, MutexGuard, lock};
use std::sync::Arc;
use std::task::Waker;

/// A request's inputs, and where its answer goes.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) inputs: Vec<HostTensor>,
    pub(super) slot: Arc<Slot>,
    pub(super) arrived: Instant,
}

impl Request {
    /// A request that is taken, or held back.
    pub(super) fn new(inputs: Vec<HostTensor>, taken: bool) -> Self {
        let stage = if taken { Stage::Taken } else { Stage::Waiting };
        let slot = Slot { stage: Mutex::new((stage, None)), changed: Condvar::new() };
        Request { inputs, slot: Arc::new(slot), arrived: Instant::now() }
    }

    /// Answers it.
    pub(super) fn answer(self, result: Result<Vec<HostTensor>>) {
        self.slot.answer(result);
    }
}

/// What nobody has answered, nobody will.
impl Drop for Request {
    fn drop(&mut self) {
        self.slot.answer(Err(ended()));
    }
}

pub(super) fn ended() -> Error {
    Error::Internal("the thread of a batch has ended".to_owned())
}

/// How far a request is.
#[derive(Debug)]
pub(super) enum Stage {
    /// Held back.
    Waiting,
    /// Taken.
    Taken,
    Answered(Result<Vec<HostTensor>>),
    /// The answer was fetched.
    Over,
}

/// What a request and its ticket share.
#[derive(Debug)]
pub(super) struct Slot {
    stage: Mutex<(Stage, Option<Waker>)>,
    pub(super) changed: Condvar,
}

impl Slot {
    pub(super) fn lock(&self) -> MutexGuard<'_, (Stage, Option<Waker>)> {
        lock(&self.stage)
    }

    /// Goes to `stage` from one of which `may` holds, and wakes those who wait. The lock is held in between: an answer
    /// that comes at the same moment stays.
    fn to(&self, stage: Stage, may: impl FnOnce(&Stage) -> bool) {
        let mut held = self.lock();
        if !may(&held.0) {
            return;
        }
        held.0 = stage;
        let waker = held.1.take();
        drop(held);
        self.changed.notify_all();
        if let Some(waker) = waker {
            crate::task::wake(waker);
        }
    }

    /// It is held back no longer.
    pub(super) fn admit(&self) {
        self.to(Stage::Taken, |stage| matches!(stage, Stage::Waiting));
    }

    fn answer(&self, result: Result<Vec<HostTensor>>) {
        self.to(Stage::Answered(result), |stage| matches!(stage, Stage::Waiting | Stage::Taken));
    }
}
