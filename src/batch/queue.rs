//! Requests that wait for their run, and those who wait for them.

use super::BatchCounts;
use crate::clock::Instant;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A request's inputs, and where its answer goes.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) inputs: Vec<Arc<[f32]>>,
    slot: Arc<Slot>,
    arrived: Instant,
}

impl Request {
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

fn ended() -> Error {
    Error::Internal("the thread of a batch has ended".to_owned())
}

#[derive(Debug)]
enum Stage {
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
struct Slot {
    stage: Mutex<(Stage, Option<Waker>)>,
    changed: Condvar,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, (Stage, Option<Waker>)> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
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
            waker.wake();
        }
    }

    fn answer(&self, result: Result<Vec<HostTensor>>) {
        self.to(Stage::Answered(result), |stage| matches!(stage, Stage::Waiting | Stage::Taken));
    }
}

#[derive(Debug, Default)]
struct State {
    /// In the order of their arrival; those beyond the first `max_waiting` are held back.
    requests: VecDeque<Request>,
    counts: BatchCounts,
    closed: bool,
}

/// The requests of a service.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    max_batch: usize,
    max_waiting: usize,
    max_delay: Duration,
}

/// The requests of the next run.
#[derive(Debug)]
pub(super) enum Next {
    Run(Vec<Request>),
    /// Not enough of them.
    NotYet,
    /// There will be no more.
    End,
}

impl Queue {
    pub(super) fn new(max_batch: usize, max_waiting: usize, max_delay: Duration) -> Self {
        let counts = BatchCounts { requests: 0, runs: vec![0; max_batch] };
        Queue {
            state: Mutex::new(State { counts, ..State::default() }),
            changed: Condvar::new(),
            max_batch,
            max_waiting,
            max_delay,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn counts(&self) -> BatchCounts {
        self.lock().counts.clone()
    }

    /// A request behind the others.
    pub(super) fn push(self: &Arc<Self>, inputs: Vec<Arc<[f32]>>) -> Result<Ticket> {
        let state = self.lock();
        self.append(state, inputs)
    }

    /// [`Queue::push`], if it need not be held back.
    pub(super) fn push_if_room(self: &Arc<Self>, inputs: Vec<Arc<[f32]>>) -> Result<Option<Ticket>> {
        let state = self.lock();
        if state.requests.len() >= self.max_waiting && !state.closed {
            return Ok(None);
        }
        self.append(state, inputs).map(Some)
    }

    fn append(self: &Arc<Self>, mut state: MutexGuard<'_, State>, inputs: Vec<Arc<[f32]>>) -> Result<Ticket> {
        if state.closed {
            return Err(ended());
        }
        let stage = if state.requests.len() < self.max_waiting { Stage::Taken } else { Stage::Waiting };
        let slot = Arc::new(Slot { stage: Mutex::new((stage, None)), changed: Condvar::new() });
        state.requests.push_back(Request { inputs, slot: Arc::clone(&slot), arrived: Instant::now() });
        drop(state);
        self.changed.notify_all();
        Ok(Ticket { slot, queue: Arc::clone(self) })
    }

    /// Takes those who are held back, where there is room. Tasks are woken without the queue's lock.
    fn admit(&self, state: MutexGuard<'_, State>) {
        let requests = state.requests.iter().take(self.max_waiting);
        let slots: Vec<Arc<Slot>> = requests.map(|request| Arc::clone(&request.slot)).collect();
        drop(state);
        for slot in slots {
            slot.to(Stage::Taken, |stage| matches!(stage, Stage::Waiting));
        }
    }

    fn take(&self, mut state: MutexGuard<'_, State>) -> Next {
        let count = state.requests.len().min(self.max_batch);
        let run: Vec<Request> = state.requests.drain(..count).collect();
        state.counts.requests += run.len() as u64;
        if let Some(runs) = count.checked_sub(1).and_then(|index| state.counts.runs.get_mut(index)) {
            *runs += 1;
        }
        self.admit(state);
        Next::Run(run)
    }

    /// The next run: a full batch, or what has come when the first has waited long enough. Not yet, if that takes
    /// a wait and nobody `may_wait`.
    pub(super) fn next(&self, may_wait: bool) -> Next {
        let mut state = self.lock();
        loop {
            let left = match state.requests.front() {
                Some(first) => {
                    let left = self.max_delay.saturating_sub(first.arrived.elapsed());
                    if state.requests.len() >= self.max_batch || left.is_zero() || state.closed {
                        return self.take(state);
                    }
                    Some(left)
                }
                None if state.closed => return Next::End,
                None => None,
            };
            if !may_wait {
                return Next::NotYet;
            }
            state = match left {
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// No more requests come; those that are there are answered.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Answers what is left, as nobody else will.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.closed = true;
        let left = std::mem::take(&mut state.requests);
        drop(state);
        drop(left);
    }
}

/// A request that was handed in to a [`Batch`](super::Batch): a future of its outputs, or a wait for them. Dropped, the
/// request is withdrawn, unless its run has begun.
#[derive(Debug)]
#[must_use = "a request whose ticket is dropped is withdrawn"]
pub struct Ticket {
    slot: Arc<Slot>,
    queue: Arc<Queue>,
}

impl Ticket {
    /// Blocks until the outputs are there.
    ///
    /// # Errors
    /// Those of [`Batch::run`](super::Batch::run).
    pub fn wait(self) -> Result<Vec<HostTensor>> {
        let mut held = self.slot.lock();
        loop {
            match std::mem::replace(&mut held.0, Stage::Over) {
                Stage::Answered(result) => return result,
                other => held.0 = other,
            }
            held = self.slot.changed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Blocks while the request is held back.
    pub(super) fn wait_for_room(&self) {
        let mut held = self.slot.lock();
        while matches!(held.0, Stage::Waiting) {
            held = self.slot.changed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ready when the request is not held back.
    pub(super) fn poll_room(&mut self, context: &Context<'_>) -> Poll<()> {
        let mut held = self.slot.lock();
        if !matches!(held.0, Stage::Waiting) {
            return Poll::Ready(());
        }
        held.1 = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Future for Ticket {
    type Output = Result<Vec<HostTensor>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut held = self.slot.lock();
        match std::mem::replace(&mut held.0, Stage::Over) {
            Stage::Answered(result) => return Poll::Ready(result),
            Stage::Over => {
                let found = "a ticket that was polled after its answer".to_owned();
                return Poll::Ready(Err(Error::Internal(found)));
            }
            other => held.0 = other,
        }
        held.1 = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if matches!(self.slot.lock().0, Stage::Answered(_) | Stage::Over) {
            return;
        }
        let mut state = self.queue.lock();
        let place = state.requests.iter().position(|request| Arc::ptr_eq(&request.slot, &self.slot));
        let withdrawn = place.and_then(|place| state.requests.remove(place));
        if withdrawn.is_some() {
            self.queue.admit(state);
        }
    }
}
