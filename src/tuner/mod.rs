//! Tunes a network on the user's own device: every distinct problem of its nodes, one after the
//! other, each candidate checked before it is timed, every verdict written to the record.

mod compare;
mod current;
mod guarded;
mod jobs;
mod report;
mod rows;

pub use compare::Comparison;
pub use report::{ProblemReport, Report, TunerProgress};

use crate::context::Context;
use crate::device::Device;
use crate::dtype::Precision;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::layout::Layout;
use crate::ops::Choice;
use crate::options::Fusing;
use crate::tune::db::{Database, Row, SharedDatabase};
use crate::tune::heat::Heat;
use crate::tune::journal::Journal;
use crate::tune::key::{DeviceKey, ProblemKey};
use crate::tune::{OpBench, Progress, Search, Trial, TuneOptions, Tuning};
use guarded::{Guarded, Keys};
use jobs::Job;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The problem being tuned.
struct Current {
    job: Job,
    bench: OpBench,
    keys: Keys,
    /// What the record has on the candidates.
    known: Vec<Trial>,
    run: Tuning,
}

/// Tunes the nodes of a network.
///
/// ```no_run
/// use diptych::{Backend, Context, Graph, Tuner};
/// use std::time::Duration;
///
/// # fn network() -> Graph { Graph::new() }
/// let context = Context::new(Backend::Wgpu)?;
/// let report = Tuner::new(&context)?.budget(Duration::from_secs(5)).tune(&network())?;
/// println!("{report}");
/// # Ok::<(), diptych::Error>(())
/// ```
pub struct Tuner {
    device: Arc<dyn Device>,
    database: SharedDatabase,
    journal: Option<Journal>,
    search: Search,
    /// For all problems together, in place of a search's own.
    budget: Option<Duration>,
    precision: Precision,
    /// Of feature maps, C4 among them.
    layouts: Vec<Layout>,
    fuse: Fusing,
    seed: u64,
    retune: bool,
    jobs: VecDeque<Job>,
    /// Every problem that was lined up, and what an untuned session runs.
    defaults: Vec<(ProblemKey, Choice)>,
    problems: usize,
    current: Option<Current>,
    report: Report,
    /// How busy the device was of late.
    heat: Heat,
}

impl std::fmt::Debug for Tuner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tuner")
            .field("device", self.device.info())
            .field("search", &self.search)
            .field("jobs", &self.jobs.len())
            .finish_non_exhaustive()
    }
}

impl Tuner {
    /// A tuner with a record in memory and the fast search.
    ///
    /// # Errors
    /// If the context runs on the CPU backend, which has no kernels to choose from.
    pub fn new(context: &Context) -> Result<Self> {
        match context.engine.shared() {
            Ok(device) => Ok(Self::on(device)),
            Err(_) => Err(Error::unsupported("tuning", "the CPU backend has no kernels to choose from")),
        }
    }

    /// As [`Tuner::new`], on a device without a context.
    #[doc(hidden)]
    pub fn on(device: Arc<dyn Device>) -> Self {
        let report = Report { device: device.info().to_string(), ..Default::default() };
        Tuner {
            layouts: jobs::worth_trying(&device.info().limits),
            device,
            database: Arc::new(Mutex::new(Database::in_memory())),
            journal: None,
            search: Search::Fast,
            budget: None,
            precision: Precision::F32,
            fuse: Fusing::Rule,
            seed: 0,
            retune: false,
            jobs: VecDeque::new(),
            defaults: Vec::new(),
            problems: 0,
            current: None,
            report,
            heat: Heat::default(),
        }
    }

    /// How widely to look for each problem.
    #[must_use]
    pub fn search(mut self, search: Search) -> Self {
        self.search = search;
        self
    }

    /// The project's own search, with this much time for all problems together.
    #[must_use]
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Storage and arithmetic of the convolutions.
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Reads what is known from `database` and writes every verdict to it.
    #[must_use]
    pub fn database(mut self, database: SharedDatabase) -> Self {
        self.database = database;
        self
    }

    /// Writes down every candidate before it runs, so that one that crashes the process is
    /// skipped at the next start.
    #[must_use]
    pub fn journal(mut self, journal: Journal) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Tunes problems that the record already has a verdict on.
    #[must_use]
    pub fn retune(mut self, retune: bool) -> Self {
        self.retune = retune;
        self
    }

    /// Layouts of feature maps that are tried beside C4, which always is: each has verdicts of its
    /// own. The default is [`Layout::Image2d`] on GPUs that read images through a cache of their
    /// own (Adreno, Mali, PowerVR), under OpenCL.
    #[must_use]
    pub fn layouts(mut self, layouts: &[Layout]) -> Self {
        self.layouts = layouts.to_vec();
        self
    }

    /// Which separable blocks are tuned as one kernel beside their two nodes, so that sessions can
    /// compare: by rule those of up to 128 channels on a GPU, and none on a driver that runs kernels on a
    /// CPU.
    #[must_use]
    pub fn fuse(mut self, fuse: Fusing) -> Self {
        self.fuse = fuse;
        self
    }

    /// Decides the order of candidates and samples.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The record.
    pub fn shared_database(&self) -> SharedDatabase {
        Arc::clone(&self.database)
    }

    /// Works for about `budget` and returns how far it is: for an application that tunes a few
    /// milliseconds per frame. A step overruns by at most one short action (a compilation, a
    /// check or a sample) and waits only for what it submitted itself.
    ///
    /// # Errors
    /// If the device fails; what a candidate does wrong is in the report.
    pub fn step(&mut self, budget: Duration) -> Result<TunerProgress> {
        let start = Instant::now();
        let mut inner = (0, 0);
        loop {
            let left = budget.saturating_sub(start.elapsed());
            if self.current.is_none() {
                let Some(job) = self.jobs.pop_front() else { break };
                self.current = Some(self.open(job)?);
            }
            let Some(current) = &mut self.current else { break };
            let mut bench = Guarded {
                bench: &mut current.bench,
                keys: &current.keys,
                journal: self.journal.as_ref(),
                database: &self.database,
            };
            match current.run.step(&mut bench, left)? {
                Progress::Working { tried, candidates } => inner = (tried, candidates),
                Progress::Finished => self.close(false)?,
            }
            if start.elapsed() >= budget {
                break;
            }
        }
        self.report.spent += start.elapsed();
        Ok(TunerProgress {
            done: self.problems - self.jobs.len() - usize::from(self.current.is_some()),
            problems: self.problems,
            tried: inner.0,
            candidates: inner.1,
        })
    }

    /// Ends the present problem now; its default stays unless a better one is already certain.
    /// What was found out is recorded, and a later run goes on from there.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn cancel(&mut self) -> Result<()> {
        self.jobs.clear();
        if let Some(current) = &mut self.current {
            let mut bench = Guarded {
                bench: &mut current.bench,
                keys: &current.keys,
                journal: self.journal.as_ref(),
                database: &self.database,
            };
            current.run.cancel(&mut bench)?;
            self.close(true)?;
        }
        Ok(())
    }

    /// Tunes `graph` to the end.
    ///
    /// # Errors
    /// If the device fails or the record cannot be written.
    pub fn tune(&mut self, graph: &Graph) -> Result<Report> {
        self.begin(graph)?;
        self.finish(|_| {})
    }

    /// Tunes what is lined up to the end, telling `progress` several times a second.
    ///
    /// # Errors
    /// If the device fails or the record cannot be written.
    pub fn finish(&mut self, mut progress: impl FnMut(TunerProgress)) -> Result<Report> {
        loop {
            let now = self.step(Duration::from_millis(200))?;
            progress(now);
            if now.is_finished() {
                return Ok(self.report.clone());
            }
        }
    }

    /// What was found so far.
    pub fn report(&self) -> &Report {
        &self.report
    }
}
