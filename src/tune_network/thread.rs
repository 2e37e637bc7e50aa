//! The thread that a tuner's work is done on.

use crate::error::{Error, Result};
use crate::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Mutex, lock};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The thread, which ends when nothing more can be sent to it. It is sent work `W`, which comes back with the outcome `O`
/// of its step.
pub(super) struct Thread<W, O> {
    steps: Option<Sender<(W, Duration)>>,
    done: Receiver<(W, O)>,
    /// Who awaits what comes back.
    waker: Arc<Mutex<Option<Waker>>>,
    handle: Option<JoinHandle<()>>,
}

/// The thread's end of the way back. Whoever awaits is woken when it ends, too.
struct Back<W, O> {
    done: Option<Sender<(W, O)>>,
    waker: Arc<Mutex<Option<Waker>>>,
}

impl<W, O> Back<W, O> {
    /// Whether it arrives.
    fn send(&self, done: (W, O)) -> bool {
        let sent = self.done.as_ref().is_some_and(|way| way.send(done).is_ok());
        self.wake();
        sent
    }

    fn wake(&self) {
        let waker = lock(&self.waker).take();
        if let Some(waker) = waker {
            crate::task::wake(waker);
        }
    }
}

impl<W, O> Drop for Back<W, O> {
    fn drop(&mut self) {
        self.done = None;
        self.wake();
    }
}

impl<W: Send + 'static, O: Send + 'static> Thread<W, O> {
    /// A thread that works by `step`, for the time that it is given.
    pub(super) fn start(step: impl Fn(&mut W, Duration) -> O + Send + 'static) -> Result<Self> {
        let (send, steps) = channel::<(W, Duration)>();
        let (back, done) = channel();
        let waker: Arc<Mutex<Option<Waker>>> = Arc::default();
        let back = Back { done: Some(back), waker: Arc::clone(&waker) };
        let work = move || {
            let back = back;
            for (mut work, budget) in steps {
                let outcome = step(&mut work, budget);
                if !back.send((work, outcome)) {
                    return;
                }
            }
        };
        #[expect(clippy::disallowed_methods, reason = "the tuner has a thread")]
        let spawned = thread::Builder::new().name("tuner".to_owned()).spawn(work);
        let handle = spawned.map_err(|error| Error::Internal(format!("no thread to tune on: {error}")))?;
        Ok(Thread { steps: Some(send), done, waker, handle: Some(handle) })
    }

    /// Has the thread work for `budget`; none if it died.
    pub(super) fn send(&self, work: W, budget: Duration) -> Option<()> {
        self.steps.as_ref()?.send((work, budget)).ok()
    }

    /// Waits for the work; none if the thread died with it.
    #[expect(clippy::disallowed_methods, reason = "whoever calls it may wait: others poll")]
    pub(super) fn wait(&self) -> Option<(W, O)> {
        self.done.recv().ok()
    }

    /// The work, if it is back in time: none if not.
    ///
    /// # Errors
    /// If the thread died with it.
    #[expect(clippy::disallowed_methods, reason = "whoever calls it may wait: others poll")]
    pub(super) fn wait_for(&self, patience: Duration) -> Result<Option<(W, O)>, ()> {
        match self.done.recv_timeout(patience) {
            Ok(done) => Ok(Some(done)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(()),
        }
    }

    /// The work; none if the thread died with it.
    pub(super) fn poll(&self, task: &Context<'_>) -> Poll<Option<(W, O)>> {
        *lock(&self.waker) = Some(task.waker().clone());
        match self.done.try_recv() {
            Ok(done) => Poll::Ready(Some(done)),
            Err(TryRecvError::Empty) => Poll::Pending,
            Err(TryRecvError::Disconnected) => Poll::Ready(None),
        }
    }
}

impl<W, O> Drop for Thread<W, O> {
    /// The thread uses the device: it does not outlive the tuner, unless a task that is woken on the thread drops the
    /// tuner there.
    #[expect(clippy::disallowed_methods, reason = "the thread ends before the tuner does")]
    fn drop(&mut self) {
        self.steps = None;
        let Some(handle) = self.handle.take() else { return };
        if handle.thread().id() != thread::current().id() {
            // A panic there shows as work that does not come back.
            let _ = handle.join();
        }
    }
}
