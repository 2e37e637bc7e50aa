//! Tunes a network on the user's own device: every distinct problem of its nodes, one after the
//! other, each candidate checked before it is timed, every verdict written to the record.

mod guarded;
mod jobs;
mod report;
mod rows;

pub use report::{ProblemReport, Report, TunerProgress};

use crate::context::Context;
use crate::device::Device;
use crate::dtype::Precision;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::layout::Layout;
use crate::ops::{Choice, Op};
use crate::tune::db::{Database, Row, Verdict as RowVerdict};
use crate::tune::journal::Journal;
use crate::tune::key::DeviceKey;
use crate::tune::{OpBench, Problem, Progress, Search, Trial, TuneOptions, Tuning};
use guarded::{Guarded, Keys};
use jobs::Job;
use rows::{recalled, recorded, same_trial, timing};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A record shared by tuners and sessions.
pub type SharedDatabase = Arc<Mutex<Database>>;

/// The problem of a node, as a session runs it.
pub(crate) fn problem_of(problem: &crate::graph::Problem) -> Problem {
    match *problem {
        crate::graph::Problem::Conv2d(op) => Problem::Conv2d(op),
        crate::graph::Problem::Depthwise(op) => Problem::Depthwise(op),
        crate::graph::Problem::Pointwise(op) => Problem::Pointwise(op),
        // Matrices are stored as f32 in a graph whatever the convolutions use.
        crate::graph::Problem::Gemm(op) => {
            Problem::Gemm(crate::ops::gemm::GemmOp { precision: Precision::F32, ..op })
        }
    }
}

/// The layout that the op's feature maps have in a session.
pub(crate) fn layout_of(op: &dyn Op) -> Layout {
    if op.name() == "gemm" { Layout::Nhwc } else { Layout::C4 }
}

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
    seed: u64,
    retune: bool,
    jobs: VecDeque<Job>,
    problems: usize,
    current: Option<Current>,
    report: Report,
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
            seed: 0,
            retune: false,
            jobs: VecDeque::new(),
            problems: 0,
            current: None,
            report,
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

    /// Writes down every candidate before it runs, so that one that takes the process with it is
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

    fn open(&self, job: Job) -> Result<Current> {
        let limits = self.device.info().limits.clone();
        let bench = OpBench::new(Arc::clone(&self.device), job.problem)?.in_layout(job.layout);
        let search = match self.budget {
            Some(budget) => Search::Budget(self.share(&job, budget.saturating_sub(self.report.spent))),
            None => self.search,
        };
        let warm: Vec<Choice> =
            self.lookup(job.problem.op(), &job.key).map(|(choice, _)| choice).into_iter().collect();
        let keys = Keys::new(DeviceKey::of(self.device.info()), job.key.clone(), job.problem, limits);
        let known = self.known(&job, &keys);
        let options =
            TuneOptions { search, warm, known: known.clone(), seed: self.seed, ..Default::default() };
        let run = Tuning::new(&bench, options)?;
        Ok(Current { job, bench, keys, known, run })
    }

    /// What the record has on a problem's candidates: which must not be tried again, and the times
    /// of a run that was cancelled.
    fn known(&self, job: &Job, keys: &Keys) -> Vec<Trial> {
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = database.tried(&DeviceKey::of(self.device.info()), &job.key);
        rows.filter_map(|row| {
            let choice = row.key.choice.resolve(&job.key.op)?;
            // Of another text or tuner version: it says nothing about today's kernel.
            (keys.of(&choice) == row.key).then_some(())?;
            if !row.verdict.bars() && self.retune {
                return None;
            }
            recalled(choice, row)
        })
        .collect()
    }

    /// Records the present problem's trials. Of a run that was `cancelled` no default wins: the
    /// problem is not judged yet.
    fn close(&mut self, cancelled: bool) -> Result<()> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let Some(verdict) = current.run.verdict() else {
            return Err(Error::Internal("a tuning run ended without a verdict".to_owned()));
        };
        let time_of = |choice: &Choice| {
            let trial = verdict.trials.iter().find(|trial| trial.choice == *choice);
            trial.and_then(|trial| trial.median)
        };
        let default_time = time_of(&verdict.default);
        let rows: Vec<Row> = verdict
            .trials
            .iter()
            .filter(|trial| !current.known.iter().any(|known| same_trial(known, trial)))
            .filter_map(|trial| {
                let verdict = match recorded(&trial.outcome)? {
                    RowVerdict::Winner if cancelled && verdict.interval.is_none() => RowVerdict::Loser,
                    verdict => verdict,
                };
                Some(Row::measured(current.keys.of(&trial.choice), verdict, timing(trial, default_time)))
            })
            .collect();
        self.report.clock = current.bench.clock().kind().to_string();
        self.report.problems.push(ProblemReport {
            nodes: current.job.nodes.clone(),
            op: current.job.problem.op().name(),
            problem: current.job.key.shape.clone(),
            layout: current.job.layout,
            default: verdict.default,
            choice: verdict.choice,
            default_time,
            time: verdict.choice.as_ref().and_then(time_of),
            speed_up: verdict.speed_up,
            interval: verdict.interval,
            cut_short: verdict.cut_short,
            spent: verdict.spent,
            trials: verdict.trials.clone(),
        });
        self.database.lock().unwrap_or_else(PoisonError::into_inner).append_all(rows)
    }
}
