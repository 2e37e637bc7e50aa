//! A tuner's work, here or with the thread that does it while the caller goes on.

use super::report::{Report, TunerProgress};
use super::work::Work;
use crate::error::{Error, Result};
use crate::tune::db::SharedDatabase;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The work, and what is known of it while it is away.
pub(super) struct Held {
    /// None while the thread has it, and after the thread died with it.
    work: Option<Box<Work>>,
    thread: Option<Thread>,
    database: SharedDatabase,
    progress: TunerProgress,
    report: Report,
    /// What of the work's report is in this one.
    noted: usize,
    /// How a step failed that nobody has asked about since.
    failed: Option<Error>,
}

/// What comes back: the work, and how its step went.
type Done = (Box<Work>, Result<TunerProgress>);

/// The thread, which ends when nothing more can be sent to it.
struct Thread {
    steps: Option<Sender<(Box<Work>, Duration)>>,
    done: Receiver<Done>,
    handle: Option<JoinHandle<()>>,
}

impl Thread {
    fn start() -> Result<Self> {
        let (send, steps) = channel::<(Box<Work>, Duration)>();
        let (back, done) = channel();
        let work = move || {
            for (mut work, budget) in steps {
                let outcome = work.step(budget);
                if back.send((work, outcome)).is_err() {
                    return;
                }
            }
        };
        let spawned = std::thread::Builder::new().name("tuner".to_owned()).spawn(work);
        let handle = spawned.map_err(|error| Error::Internal(format!("no thread to tune on: {error}")))?;
        Ok(Thread { steps: Some(send), done, handle: Some(handle) })
    }
}

impl Drop for Thread {
    /// The thread uses the device: it does not outlive the tuner.
    fn drop(&mut self) {
        self.steps = None;
        // A panic there shows as work that does not come back.
        let _ = self.handle.take().map(JoinHandle::join);
    }
}

fn died() -> Error {
    Error::Internal("the thread that tuned died".to_owned())
}

impl Held {
    pub(super) fn new(work: Work) -> Self {
        Held {
            database: Arc::clone(&work.database),
            progress: work.progress(),
            report: work.report.clone(),
            noted: work.noted,
            failed: None,
            work: Some(Box::new(work)),
            thread: None,
        }
    }

    pub(super) fn progress(&self) -> TunerProgress {
        self.progress
    }

    pub(super) fn report(&self) -> &Report {
        &self.report
    }

    pub(super) fn database(&self) -> SharedDatabase {
        Arc::clone(&self.database)
    }

    /// The work, once the thread is done with it.
    pub(super) fn here(&mut self) -> Result<&mut Work> {
        if self.work.is_none() {
            let thread = self.thread.as_ref().ok_or_else(died)?;
            let done = thread.done.recv().map_err(|_| died())?;
            self.take_back(done);
        }
        self.work.as_deref_mut().ok_or_else(died)
    }

    /// Does something with the work on this thread, unless an earlier step has failed.
    pub(super) fn change<T>(&mut self, act: impl FnOnce(&mut Work) -> Result<T>) -> Result<T> {
        self.here()?;
        self.failed.take().map_or(Ok(()), Err)?;
        let outcome = act(self.here()?);
        self.look();
        outcome
    }

    fn take_back(&mut self, (work, outcome): Done) {
        self.work = Some(work);
        self.look();
        match outcome {
            Ok(progress) => self.progress = progress,
            Err(error) => self.failed = Some(error),
        }
    }

    /// Brings what is known of the work up to date.
    fn look(&mut self) {
        let Some(work) = &self.work else { return };
        self.database = Arc::clone(&work.database);
        self.progress = work.progress();
        if self.noted != work.noted {
            self.noted = work.noted;
            self.report = work.report.clone();
        }
        self.report.spent = work.report.spent;
    }

    /// Works for `budget`, on the thread.
    pub(super) fn step(&mut self, budget: Duration) -> Result<TunerProgress> {
        if self.thread.is_none() {
            self.thread = Some(Thread::start()?);
        }
        let Some(thread) = &self.thread else { return Err(died()) };
        if let Some(work) = self.work.take() {
            let steps = thread.steps.as_ref().ok_or_else(died)?;
            steps.send((work, budget)).map_err(|_| died())?;
        }
        match thread.done.recv_timeout(budget) {
            Ok(done) => self.take_back(done),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(died()),
        }
        self.failed.take().map_or(Ok(self.progress), Err)
    }
}
