//! What a tuner does: one short action after the other, on whichever thread.

use super::guarded::{Guarded, Keys};
use super::jobs::{self, Job};
use super::report::{Report, TunerProgress};
use crate::clock::Instant;
use crate::device::{Device, Wait};
use crate::dtype::Precision;
use crate::error::Result;
use crate::layout::Layout;
use crate::ops::Choice;
use crate::tune::db::{Database, SharedDatabase};
use crate::tune::heat::Heat;
use crate::tune::journal::Journal;
use crate::tune::key::ProblemKey;
use crate::tune::proof;
use crate::tune::{OpBench, Progress, Search, Trial, TuningRun};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The problem being tuned.
pub(super) struct Current {
    pub(super) job: Job,
    pub(super) bench: OpBench,
    pub(super) keys: Keys,
    /// What the record has on the candidates.
    pub(super) known: Vec<Trial>,
    /// The winner of a search that was cut short.
    pub(super) before: Option<Choice>,
    pub(super) run: TuningRun,
}

/// A tuner's settings, what it has lined up and what it found.
pub(super) struct Work {
    pub(super) device: Arc<dyn Device>,
    pub(super) database: SharedDatabase,
    pub(super) journal: Option<Journal>,
    pub(super) search: Search,
    /// For all problems together, in place of a search's own.
    pub(super) budget: Option<Duration>,
    pub(super) precision: Precision,
    /// The layouts of feature maps that are tried, C4 among them.
    pub(super) layouts: Vec<Layout>,
    pub(super) seed: u64,
    pub(super) retune: bool,
    pub(super) jobs: VecDeque<Job>,
    /// The pass over the problems, and what will have been spent when it ends: see `passes`.
    pub(super) pass: usize,
    pub(super) pass_ends: Duration,
    /// Every problem that was lined up, and what an untuned session runs.
    pub(super) defaults: Vec<(ProblemKey, Choice)>,
    pub(super) problems: usize,
    pub(super) current: Option<Current>,
    pub(super) report: Report,
    /// How often a problem was taken into the report.
    pub(super) noted: usize,
    /// How busy the device was of late.
    pub(super) heat: Heat,
    /// Whether the device was seen to compute.
    pub(super) proven: bool,
}

impl Work {
    pub(super) fn on(device: Arc<dyn Device>) -> Self {
        let report = Report { device: device.info().to_string(), ..Default::default() };
        Work {
            layouts: jobs::worth_trying(&device.info().limits),
            device,
            database: Arc::new(Mutex::new(Database::in_memory())),
            journal: None,
            search: Search::Fast,
            budget: None,
            precision: Precision::F32,
            seed: 0,
            retune: false,
            jobs: VecDeque::new(),
            pass: 0,
            pass_ends: Duration::ZERO,
            defaults: Vec::new(),
            problems: 0,
            current: None,
            report,
            noted: 0,
            heat: Heat::default(),
            proven: false,
        }
    }

    /// How this waits for the device: as benches do.
    #[cfg(not(target_family = "wasm"))]
    const WAIT: Wait = Wait::Blocks;
    #[cfg(target_family = "wasm")]
    const WAIT: Wait = Wait::Awaits;

    /// Works for about `budget`; overruns by at most one action.
    ///
    /// # Errors
    /// If the device computes nothing; nothing is recorded then.
    pub(super) async fn step(&mut self, budget: Duration) -> Result<TunerProgress> {
        let start = Instant::now();
        let mut counted = start;
        let mut inner = (0, 0);
        let any = self.current.is_some() || !self.jobs.is_empty();
        if any && !self.proven {
            proof::computes(Self::WAIT, &*self.device).await?;
            self.proven = true;
        }
        loop {
            let left = budget.saturating_sub(start.elapsed());
            if self.current.is_none() {
                let Some(job) = self.next_job() else { break };
                self.current = Some(self.open(job)?);
                // Computing what is expected of a large problem may have taken the rest of the time.
                let spent = self.report.spent + counted.elapsed();
                self.end_if_late(spent)?;
            }
            let Some(current) = &mut self.current else {
                self.report.spent += counted.elapsed();
                counted = Instant::now();
                continue;
            };
            let mut bench = Guarded {
                bench: &mut current.bench,
                keys: &current.keys,
                journal: self.journal.as_ref(),
                database: &self.database,
            };
            let progress = current.run.step_async(&mut bench, left).await?;
            let now = Instant::now();
            self.report.spent += now - counted;
            counted = now;
            match progress {
                Progress::Working { tried, candidates } => inner = (tried, candidates),
                Progress::Finished => self.close(false)?,
            }
            self.end_if_late(self.report.spent)?;
            if start.elapsed() >= budget {
                break;
            }
        }
        self.report.spent += counted.elapsed();
        let (tried, candidates) = inner;
        Ok(TunerProgress { tried, candidates, ..self.progress() })
    }

    pub(super) fn progress(&self) -> TunerProgress {
        TunerProgress {
            done: self.problems - self.jobs.len() - usize::from(self.current.is_some()),
            visited: self.report.problems.len(),
            problems: self.problems,
            tried: 0,
            candidates: 0,
        }
    }

    /// Ends the present problem's search where the time for all is over: what is begun without a look at the time, such as a
    /// default's first runs, may take longer than all of it.
    fn end_if_late(&mut self, spent: Duration) -> Result<()> {
        if self.budget.is_some_and(|budget| spent >= budget) { self.cut_short() } else { Ok(()) }
    }

    /// Ends the present problem's search, if there is one.
    fn cut_short(&mut self) -> Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        let mut bench = Guarded {
            bench: &mut current.bench,
            keys: &current.keys,
            journal: self.journal.as_ref(),
            database: &self.database,
        };
        current.run.cancel(&mut bench)?;
        self.close(true)
    }

    pub(super) fn cancel(&mut self) -> Result<()> {
        self.jobs.clear();
        self.cut_short()
    }

    #[cfg(not(target_family = "wasm"))]
    pub(super) async fn finish(&mut self, mut progress: impl FnMut(TunerProgress)) -> Result<Report> {
        loop {
            let now = self.step(Duration::from_millis(200)).await?;
            progress(now);
            if now.is_finished() {
                return Ok(self.report.clone());
            }
        }
    }
}
