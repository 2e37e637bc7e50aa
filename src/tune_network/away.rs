//! A tuner's work, here or with the thread that does it while the caller goes on. On `wasm32` it is always here.

use super::report::{Report, TunerProgress};
#[cfg(not(target_family = "wasm"))]
use super::thread::Thread;
use super::work::Work;
use crate::error::{Error, Result};
#[cfg(not(target_family = "wasm"))]
use crate::task::block_on;
use crate::tune::db::SharedDatabase;
#[cfg(not(target_family = "wasm"))]
use crate::unwind::caught;
use std::sync::Arc;
use std::time::Duration;

/// What comes back from the thread: the work, and how its step went.
#[cfg(not(target_family = "wasm"))]
type Done = (Box<Work>, Result<TunerProgress>);

/// The work, and what is known of it while it is away.
pub(super) struct Held {
    /// None while the thread has it, and after the thread died with it.
    work: Option<Box<Work>>,
    #[cfg(not(target_family = "wasm"))]
    thread: Option<Thread<Box<Work>, Result<TunerProgress>>>,
    database: SharedDatabase,
    progress: TunerProgress,
    report: Report,
    /// What of the work's report is in this one.
    noted: usize,
    /// How a step failed that nobody has asked about since.
    failed: Option<Error>,
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
            #[cfg(not(target_family = "wasm"))]
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
        #[cfg(not(target_family = "wasm"))]
        if self.work.is_none() {
            let done = self.thread.as_ref().and_then(Thread::wait).ok_or_else(died)?;
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

    #[cfg(not(target_family = "wasm"))]
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

    /// Has the thread work for `budget`, if it is not at work.
    #[cfg(not(target_family = "wasm"))]
    fn send(&mut self, budget: Duration) -> Result<()> {
        if self.thread.is_none() {
            let step = |work: &mut Box<Work>, budget| {
                caught("a step of the tuner", || block_on(work.step(budget))).and_then(|stepped| stepped)
            };
            self.thread = Some(Thread::start(step)?);
        }
        let Some(work) = self.work.take() else { return Ok(()) };
        self.thread.as_ref().and_then(|thread| thread.send(work, budget)).ok_or_else(died)
    }

    /// Works for `budget`, on the thread.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn step(&mut self, budget: Duration) -> Result<TunerProgress> {
        self.send(budget)?;
        let Some(thread) = &self.thread else { return Err(died()) };
        if let Some(done) = thread.wait_for(budget).map_err(|()| died())? {
            self.take_back(done);
        }
        self.failed.take().map_or(Ok(self.progress), Err)
    }

    /// Works for `budget` on the thread, awaited to the end of what it has begun.
    #[cfg(not(target_family = "wasm"))]
    pub(super) async fn step_async(&mut self, budget: Duration) -> Result<TunerProgress> {
        self.send(budget)?;
        let thread = &mut self.thread;
        let done = std::future::poll_fn(move |task| match thread {
            Some(thread) => thread.poll(task),
            None => std::task::Poll::Ready(None),
        });
        let done = done.await.ok_or_else(died)?;
        self.take_back(done);
        self.failed.take().map_or(Ok(self.progress), Err)
    }

    /// Works for `budget`.
    #[cfg(target_family = "wasm")]
    pub(super) async fn step_async(&mut self, budget: Duration) -> Result<TunerProgress> {
        self.failed.take().map_or(Ok(()), Err)?;
        let outcome = self.here()?.step(budget).await;
        self.look();
        self.progress = outcome?;
        Ok(self.progress)
    }
}
