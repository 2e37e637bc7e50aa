//! Tunes a network on the user's own device: every distinct problem of its nodes, each candidate
//! checked before it is timed, every verdict written to the record.

mod away;
#[cfg(not(target_family = "wasm"))]
mod check;
#[cfg(not(target_family = "wasm"))]
mod compare;
mod current;
mod guarded;
#[cfg(all(shuttle, test))]
mod interleavings;
mod jobs;
mod passes;
mod report;
mod rows;
#[cfg(not(target_family = "wasm"))]
mod thread;
mod work;

#[cfg(not(target_family = "wasm"))]
pub use check::{Checked, Finding};
#[cfg(not(target_family = "wasm"))]
pub use compare::Comparison;
pub use report::{ProblemReport, Report, TunerProgress};

use crate::context::Context;
use crate::device::Device;
use crate::dtype::Precision;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::layout::Layout;
use crate::ops::Op;
use crate::tune::Search;
use crate::tune::db::SharedDatabase;
use crate::tune::journal::Journal;
use away::Held;
use std::sync::Arc;
use std::time::Duration;
use work::Work;

/// Tunes the nodes of a network.
///
/// With a [budget](Tuner::budget) it passes over all problems several times: first the default kernel of each is
/// timed, then each gets a part of the time as large as its part of the network's, the largest first. So whenever it is
/// stopped, most of the time went where most is to be gained. A problem whose search was cut short stays open: it has a
/// verdict that sessions use, and the next tuner with the same record goes on with it.
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
    held: Held,
}

impl std::fmt::Debug for Tuner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tuner").field("progress", &self.held.progress()).finish_non_exhaustive()
    }
}

impl Tuner {
    /// A tuner with a record in memory and the fast search.
    ///
    /// ```
    /// use diptych::{Backend, Context, Tuner};
    ///
    /// // The CPU backend has no kernels to choose from.
    /// let error = Tuner::new(&Context::new(Backend::Cpu)?).unwrap_err();
    /// assert!(error.is_unsupported());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the context runs on the CPU backend, which has no kernels to choose from.
    pub fn new(context: &Context) -> Result<Self> {
        match context.engine.shared() {
            Ok(device) => Ok(Self::on(device)),
            Err(_) => Err(Error::unsupported("tuning", "the CPU backend has no kernels to choose from")),
        }
    }

    /// A tuner for `device` with a record in memory and the fast search.
    #[doc(hidden)]
    pub fn on(device: Arc<dyn Device>) -> Self {
        Tuner { held: Held::new(Work::on(device)) }
    }

    /// Changes a setting.
    fn with(mut self, set: impl FnOnce(&mut Work)) -> Self {
        // If the thread died with the work, the next step says so.
        if let Ok(work) = self.held.here() {
            set(work);
        }
        self
    }

    /// How widely to look for each problem.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Search, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// let tuner = tuner.search(Search::Exhaustive);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[must_use]
    pub fn search(self, search: Search) -> Self {
        self.with(|work| work.search = search)
    }

    /// The project's own search, with this much time for all problems together.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Search, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// let tuner = tuner.budget(std::time::Duration::from_secs(5));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[must_use]
    pub fn budget(self, budget: Duration) -> Self {
        self.with(|work| work.budget = Some(budget))
    }

    /// Storage and arithmetic of the convolutions.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Search, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// let tuner = tuner.precision(diptych::Precision::F16Storage);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[must_use]
    pub fn precision(self, precision: Precision) -> Self {
        self.with(|work| work.precision = precision)
    }

    /// Reads what is known from `database` and writes every verdict to it.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Search, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// let database = std::sync::Arc::new(std::sync::Mutex::new(diptych::Database::in_memory()));
    /// let tuner = tuner.database(database);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[must_use]
    pub fn database(self, database: SharedDatabase) -> Self {
        self.with(|work| work.database = database)
    }

    /// Writes down every candidate before it runs, so that one that crashes the process is
    /// skipped at the next start.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Search, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// # let folder = tempfile::tempdir().unwrap();
    /// let mut database = diptych::Database::open(folder.path())?;
    /// let journal = diptych::Journal::open(folder.path(), &mut database)?;
    /// let tuner = tuner.database(std::sync::Arc::new(std::sync::Mutex::new(database))).journal(journal);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[must_use]
    pub fn journal(self, journal: Journal) -> Self {
        self.with(|work| work.journal = Some(journal))
    }

    /// Tunes problems that the record already has a verdict on, also those whose search came to its end.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Search, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// let tuner = tuner.retune(true);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[must_use]
    pub fn retune(self, retune: bool) -> Self {
        self.with(|work| work.retune = retune)
    }

    /// Layouts of feature maps that are tried beside C4, which always is: each has verdicts of its
    /// own. The default is [`Layout::Image2d`] on GPUs that read images through a cache of their
    /// own (Adreno, Mali, PowerVR), under OpenCL.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Search, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// let tuner = tuner.layouts(&[diptych::Layout::Image2d]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[must_use]
    pub fn layouts(self, layouts: &[Layout]) -> Self {
        self.with(|work| work.layouts = layouts.to_vec())
    }

    /// Decides the order of candidates and samples.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Search, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// let tuner = tuner.seed(7);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.with(|work| work.seed = seed)
    }

    /// The record.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Search, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// let rows = tuner.shared_database().lock().map_or(0, |database| database.len());
    /// assert_eq!(rows, 0);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn shared_database(&self) -> SharedDatabase {
        self.held.database()
    }

    /// Lines up the problems of `graph`'s nodes; equal ones are tuned once, and those
    /// that the record has an exact verdict on are left out, unless their search was cut short (see
    /// [`Tuner::retune`]).
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Search, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// # let mut tuner = tuner;
    /// tuner.begin(&graph)?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a node's shapes are inconsistent, which the graph's own checks rule out.
    pub fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.held.change(|work| work.begin(graph))
    }

    /// Lines up the problems of some of `graph`'s nodes.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Search, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// # let mut tuner = tuner;
    /// tuner.begin_nodes(&graph, &["double".to_owned()])?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the graph has no node of one of these names.
    pub fn begin_nodes(&mut self, graph: &Graph, names: &[String]) -> Result<()> {
        self.held.change(|work| work.begin_nodes(graph, names))
    }

    /// Lines up one problem, under a name for the report.
    ///
    /// # Errors
    /// If an earlier step failed.
    #[doc(hidden)]
    pub fn begin_problem(&mut self, name: &str, op: Arc<dyn Op>) -> Result<()> {
        self.held.change(|work| {
            work.line_up(name, op);
            Ok(())
        })
    }

    /// Works for `budget` and returns how far it is: for an application that tunes a few milliseconds per frame.
    ///
    /// The work is done on a thread of the tuner's, which begins nothing once the time is over. What it has begun then (a
    /// compilation, a check, a long kernel) it ends while the caller goes on; the next step waits for it first. So a step
    /// returns after `budget`, however long an action takes.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Search, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// # let mut tuner = tuner;
    /// use std::time::Duration;
    ///
    /// tuner.begin(&graph)?;
    /// // Once in every frame:
    /// let progress = tuner.step(Duration::from_millis(2))?;
    /// println!("{} of {} problems", progress.done, progress.problems);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the device fails; what a candidate does wrong is in the report.
    #[cfg(not(target_family = "wasm"))]
    pub fn step(&mut self, budget: Duration) -> Result<TunerProgress> {
        self.held.step(budget)
    }

    /// Works for about `budget`, awaited: unlike [`Tuner::step`] to the end of what was begun. In a browser the actions
    /// happen on the caller's thread, and the device is awaited between them.
    ///
    /// If this is dropped midway, the next step goes on: with the action that was under way, which a browser does again.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Search, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// # let mut tuner = tuner;
    /// # pollster::block_on(async {
    /// tuner.begin(&graph)?;
    /// let progress = tuner.step_async(std::time::Duration::from_millis(2)).await?;
    /// println!("{} of {} problems", progress.done, progress.problems);
    /// # Ok::<(), diptych::Error>(())
    /// # })?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Tuner::step`].
    pub async fn step_async(&mut self, budget: Duration) -> Result<TunerProgress> {
        self.held.step_async(budget).await
    }

    /// Ends the present problem now; its default stays unless a better one is already certain.
    /// What was found out is recorded, and a later run goes on from there. Waits for what a step has begun.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Search, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// # let mut tuner = tuner;
    /// tuner.begin(&graph)?;
    /// tuner.cancel()?;
    /// assert!(tuner.report().problems.iter().all(|problem| problem.cut_short));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn cancel(&mut self) -> Result<()> {
        self.held.change(Work::cancel)
    }

    /// Tunes `graph` to the end.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Search, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// # let tuner = tuner.search(Search::Table);
    /// # let mut tuner = tuner;
    /// let report = tuner.tune(&graph)?;
    /// println!("{report}");
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the device fails or the record cannot be written.
    #[cfg(not(target_family = "wasm"))]
    pub fn tune(&mut self, graph: &Graph) -> Result<Report> {
        self.begin(graph)?;
        self.finish(|_| {})
    }

    /// Tunes `graph` to the end, awaited, telling `progress` several times a second.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Search, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// # let mut tuner = tuner.search(Search::Table);
    /// # pollster::block_on(async {
    /// let report = tuner.tune_async(&graph, |progress| println!("{} tried", progress.tried)).await?;
    /// println!("{report}");
    /// # Ok::<(), diptych::Error>(())
    /// # })?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the device fails or the record cannot be written.
    pub async fn tune_async(
        &mut self,
        graph: &Graph,
        mut progress: impl FnMut(TunerProgress),
    ) -> Result<Report> {
        self.begin(graph)?;
        loop {
            let now = self.step_async(Duration::from_millis(200)).await?;
            progress(now);
            if now.is_finished() {
                return Ok(self.report().clone());
            }
        }
    }

    /// Tunes what is lined up to the end, telling `progress` several times a second.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Search, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// # let mut tuner = tuner.search(Search::Table);
    /// tuner.begin(&graph)?;
    /// let report = tuner.finish(|progress| println!("{} of {}", progress.done, progress.problems))?;
    /// println!("{report}");
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the device fails or the record cannot be written.
    #[cfg(not(target_family = "wasm"))]
    pub fn finish(&mut self, progress: impl FnMut(TunerProgress)) -> Result<Report> {
        self.held.change(|work| crate::task::block_on(work.finish(progress)))
    }

    /// What was found so far.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Function, Graph, Search, Shape, Term, Tuner};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let context = Context::new(Backend::Auto)?;
    /// # let Ok(tuner) = Tuner::new(&context) else { return Ok::<(), diptych::Error>(()) };
    /// assert!(tuner.report().problems.is_empty(), "nothing was tuned yet");
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn report(&self) -> &Report {
        self.held.report()
    }
}
