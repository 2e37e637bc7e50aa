//! The thread that a tuner's work is done on.

use super::report::TunerProgress;
use super::work::Work;
use crate::error::{Error, Result};
use crate::task::block_on;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

/// What comes back: the work, and how its step went.
pub(super) type Done = (Box<Work>, Result<TunerProgress>);

/// The thread, which ends when nothing more can be sent to it.
pub(super) struct Thread {
    steps: Option<Sender<(Box<Work>, Duration)>>,
    done: Receiver<Done>,
    /// Who awaits what comes back.
    waker: Arc<Mutex<Option<Waker>>>,
    handle: Option<JoinHandle<()>>,
}

/// The thread's end of the way back. Whoever awaits is woken when it ends, too.
struct Back {
    done: Option<Sender<Done>>,
    waker: Arc<Mutex<Option<Waker>>>,
}

impl Back {
    /// Whether it arrives.
    fn send(&self, done: Done) -> bool {
        let sent = self.done.as_ref().is_some_and(|way| way.send(done).is_ok());
        self.wake();
        sent
    }

    fn wake(&self) {
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Back {
    fn drop(&mut self) {
        self.done = None;
        self.wake();
    }
}

impl Thread {
    pub(super) fn start() -> Result<Self> {
        let (send, steps) = channel::<(Box<Work>, Duration)>();
        let (back, done) = channel();
        let waker: Arc<Mutex<Option<Waker>>> = Arc::default();
        let back = Back { done: Some(back), waker: Arc::clone(&waker) };
        let work = move || {
            let back = back;
            for (mut work, budget) in steps {
                let outcome = block_on(work.step(budget));
                if !back.send((work, outcome)) {
                    return;
                }
            }
        };
        let spawned = std::thread::Builder::new().name("tuner".to_owned()).spawn(work);
        let handle = spawned.map_err(|error| Error::Internal(format!("no thread to tune on: {error}")))?;
        Ok(Thread { steps: Some(send), done, waker, handle: Some(handle) })
    }

    /// Has the thread work for `budget`; none if it died.
    pub(super) fn send(&self, work: Box<Work>, budget: Duration) -> Option<()> {
        self.steps.as_ref()?.send((work, budget)).ok()
    }

    /// Waits for the work; none if the thread died with it.
    pub(super) fn wait(&self) -> Option<Done> {
        self.done.recv().ok()
    }

    /// The work, if it is back in time: none if not.
    ///
    /// # Errors
    /// If the thread died with it.
    pub(super) fn wait_for(&self, patience: Duration) -> Result<Option<Done>, ()> {
        match self.done.recv_timeout(patience) {
            Ok(done) => Ok(Some(done)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(()),
        }
    }

    /// The work; none if the thread died with it.
    pub(super) fn poll(&self, task: &Context<'_>) -> Poll<Option<Done>> {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.waker().clone());
        match self.done.try_recv() {
            Ok(done) => Poll::Ready(Some(done)),
            Err(TryRecvError::Empty) => Poll::Pending,
            Err(TryRecvError::Disconnected) => Poll::Ready(None),
        }
    }
}

impl Drop for Thread {
    /// The thread uses the device: it does not outlive the tuner, unless a task that is woken on the thread drops the
    /// tuner there.
    fn drop(&mut self) {
        self.steps = None;
        let Some(handle) = self.handle.take() else { return };
        if handle.thread().id() != std::thread::current().id() {
            // A panic there shows as work that does not come back.
            let _ = handle.join();
        }
    }
}
