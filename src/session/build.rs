//! Sessions in the making, and how far they are.

#[cfg(any(feature = "onnx", feature = "tflite"))]
use super::input::arranged;
use super::open_graph::OpenGraph;
use super::profile::MemoryUse;
#[cfg(any(feature = "onnx", feature = "tflite"))]
use super::runner::Next;
use super::runner::Runner;
use super::shared::Shared;
use super::{Port, Session, cpu};
#[cfg(any(feature = "wgpu", feature = "opencl"))]
use super::{device, memory::DeviceMemory, online};
use crate::context::{Context, Engine};
use crate::device::Wait;
use crate::error::{Error, Result};
use crate::graph::Graph;
#[cfg(feature = "onnx")]
use crate::graph::key_of;
#[cfg(any(feature = "onnx", feature = "tflite"))]
use crate::host::HostTensor;
use crate::lower::can_be_a_step;
use crate::options::{SessionOptions, Tuning};
use crate::parallel;
use crate::sorted;
#[cfg(any(feature = "onnx", feature = "tflite", not(target_family = "wasm")))]
use crate::task;
use std::borrow::Cow;
#[cfg(not(target_family = "wasm"))]
use std::future::Future;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};

/// How far the building of a session is, as [`Session::build_with_progress`](super::Session::build_with_progress) reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BuildProgress {
    /// Kernels that are compiled.
    pub compiled: usize,
    /// Kernels there are, each text counted once; 0 while that is not known, and on the CPU.
    pub kernels: usize,
    /// Bytes of constants that are on their way to the device.
    pub uploaded: u64,
    /// Bytes of constants there are; 0 while that is not known, and on the CPU.
    pub bytes: u64,
}

/// Who is told, from whichever thread.
#[cfg(not(target_family = "wasm"))]
pub(super) type Tell<'a> = dyn Fn(BuildProgress) + Sync + 'a;
/// Who is told.
#[cfg(target_family = "wasm")]
pub(super) type Tell<'a> = dyn Fn(BuildProgress) + 'a;

/// Tells how far a build is.
pub(super) struct Teller<'a> {
    tell: &'a Tell<'a>,
    progress: Mutex<BuildProgress>,
}

impl<'a> Teller<'a> {
    pub(super) fn new(tell: &'a Tell<'a>) -> Self {
        Teller { tell, progress: Mutex::default() }
    }

    fn change(&self, change: impl FnOnce(&mut BuildProgress)) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut progress);
        // Within the lock, so that nobody is told of less than before.
        (self.tell)(*progress);
    }

    pub(super) fn kernels(&self, kernels: usize) {
        self.change(|progress| progress.kernels += kernels);
    }

    pub(super) fn compiled(&self) {
        self.change(|progress| progress.compiled += 1);
    }

    pub(super) fn bytes(&self, bytes: u64) {
        self.change(|progress| progress.bytes += bytes);
    }

    pub(super) fn uploaded(&self, bytes: u64) {
        self.change(|progress| progress.uploaded += bytes);
    }
}

impl Session {
    /// [`Session::new`], awaited: the caller's thread is not held up. Elsewhere than in a browser a thread of its own does
    /// the work, and goes on to its end if this is dropped; in a browser the page's other tasks have their turns, and
    /// what is left undone when this is dropped stays so.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let context = Context::new(Backend::Cpu)?;
    /// let options = SessionOptions::default();
    /// let session = pollster::block_on(Session::build(&context, &graph, options))?;
    /// assert_eq!(session.outputs().len(), 1);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::new`].
    pub async fn build(context: &Context, graph: &Graph, options: SessionOptions) -> Result<Self> {
        Self::build_with_progress(context, graph, options, &mut |_| {}).await
    }

    /// [`Session::build`], which tells `progress` how far it is, as long as it is awaited.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # async fn built(context: &Context, graph: &Graph) -> diptych::Result<Session> {
    /// let mut tell = |progress: diptych::BuildProgress| {
    ///     println!("{} of {} kernels compiled", progress.compiled, progress.kernels);
    /// };
    /// Session::build_with_progress(context, graph, SessionOptions::default(), &mut tell).await
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::new`].
    pub async fn build_with_progress(
        context: &Context,
        graph: &Graph,
        options: SessionOptions,
        progress: &mut impl FnMut(BuildProgress),
    ) -> Result<Self> {
        if !options.open.is_empty() {
            let (source, options) = OpenGraph::new(graph, options)?;
            return Self::of_source(context, source, options, Wait::Awaits, progress).await;
        }
        Self::build_sharing(context, graph, options, None, progress).await
    }

    /// [`Session::build_with_progress`] of a session that has something in common with those for other extents.
    pub(super) async fn build_sharing(
        context: &Context,
        graph: &Graph,
        options: SessionOptions,
        shared: Option<Arc<Shared>>,
        progress: &mut impl FnMut(BuildProgress),
    ) -> Result<Self> {
        #[cfg(target_family = "wasm")]
        {
            let progress = std::cell::RefCell::new(progress);
            let tell = |now| {
                // None if it is called from within.
                if let Ok(mut progress) = progress.try_borrow_mut() {
                    progress(now);
                }
            };
            Self::built(context, graph, options, shared.as_deref(), &tell).await
        }
        #[cfg(not(target_family = "wasm"))]
        {
            let (context, graph) = (context.clone(), graph.clone());
            let told = Arc::new(Told::default());
            let teller = Arc::clone(&told);
            let mut building = task::offload(move || {
                let tell = |now| teller.tell(now);
                task::block_on(Self::built(&context, &graph, options, shared.as_deref(), &tell))
            })?;
            std::future::poll_fn(|task| {
                told.take(task.waker()).into_iter().for_each(&mut *progress);
                let built = std::pin::Pin::new(&mut building).poll(task);
                if built.is_ready() {
                    told.take(task.waker()).into_iter().for_each(&mut *progress);
                }
                built
            })
            .await
        }
    }

    /// A session on the CPU, where nothing is awaited.
    #[cfg(any(feature = "onnx", feature = "tflite"))]
    pub(crate) fn on_cpu(graph: &Graph) -> Result<Self> {
        let context = Context::cpu("its values are wanted on the host");
        let built = task::at_once(Self::built(&context, graph, SessionOptions::default(), None, &|_| {}));
        built.unwrap_or_else(|| Err(Error::Internal("the CPU was awaited".to_owned())))
    }

    /// Draws the random numbers of this seed from the next run on.
    #[cfg(feature = "onnx")]
    pub(crate) fn draw_by(&self, seed: u64) -> Result<()> {
        self.runner.draw_by(key_of(seed, 0))
    }

    /// [`Session::run`] of a session on the CPU, wherever that is.
    #[cfg(any(feature = "onnx", feature = "tflite"))]
    pub(crate) fn compute(&self, inputs: &[(&str, &HostTensor)]) -> Result<Vec<HostTensor>> {
        let inputs = inputs.iter().map(|(name, input)| (*name, (*input).into())).collect();
        let inputs = arranged(&self.inputs, inputs, &|dtype| self.runner.word(dtype))?;
        self.launch(&inputs, Next::Waits)?.wait()?.tensors()
    }

    /// What [`Session::memory`] of a session would be: its memory is planned and none of it is allocated, nothing is
    /// compiled. On a device constants are packed one after the other, each for as long as it takes to measure it, and
    /// kernels are those that the record has now ([`Tuning::Online`] tunes nothing here).
    ///
    /// ```
    /// use diptych::{Backend, Context, Function, Graph, Session, SessionOptions, Shape, Term};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 1000, 1000, 3))?;
    /// let y = graph.elementwise("y", Function::Abs, &[Term::Value(x)])?;
    /// graph.output(y)?;
    /// let context = Context::new(Backend::Cpu)?;
    /// let memory = Session::plan_memory(&context, &graph, &SessionOptions::default())?;
    /// assert_eq!(memory.planned, 4 * 1000 * 1000 * 3);
    /// assert!(memory.planned + memory.constants < 1 << 30, "{memory}: too much for this application");
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the graph has no outputs, or a node has no kernel on this device.
    pub fn plan_memory(context: &Context, graph: &Graph, options: &SessionOptions) -> Result<MemoryUse> {
        let graph = &*checked(graph, options)?;
        match &context.engine {
            Engine::Cpu => cpu::CpuSession::plan_memory(graph, options),
            #[cfg(any(feature = "wgpu", feature = "opencl"))]
            engine => DeviceMemory::planned(&device::lowered(engine, graph, options, None)?),
        }
    }

    /// What the ways to build a session share; only in a browser it awaits anything.
    pub(super) async fn built(
        context: &Context,
        graph: &Graph,
        options: SessionOptions,
        shared: Option<&Shared>,
        tell: &Tell<'_>,
    ) -> Result<Self> {
        let _limited = parallel::Limited::to(options.cpu_threads);
        let graph = &*checked(graph, &options)?;
        let runner = match &context.engine {
            Engine::Cpu if cfg!(feature = "cpu") => {
                Runner::Cpu(cpu::CpuSession::new(graph, &options, shared)?)
            }
            Engine::Cpu => return Err(Error::without_cpu("a session on the CPU")),
            #[cfg(any(feature = "wgpu", feature = "opencl"))]
            engine => {
                options.check_precision(engine.device()?.info())?;
                if let Tuning::Online { database, budget } = &options.tuning {
                    online::tuned(context, graph, &options, database, *budget).await?;
                }
                let teller = Teller::new(tell);
                let session =
                    device::DeviceSession::build(engine.clone(), graph, &options, shared, &teller).await?;
                Runner::Device(Box::new(session))
            }
        };
        let (inputs, outputs) = (Port::all(graph, graph.inputs())?, Port::all(graph, graph.outputs())?);
        let with_record = matches!(options.tuning, Tuning::Database(_) | Tuning::Online { .. });
        let refreshed = with_record && matches!(runner, Runner::Device(_));
        let keep = refreshed || options.keep_graph;
        let made_of = keep.then(|| Box::new((graph.clone(), options)));
        Ok(Session { inputs, outputs: outputs.into(), runner, made_of, changing: None, carried: Vec::new() })
    }

    /// [`Session::refresh`], awaited. Elsewhere than in a browser, kernels that are new are compiled by the caller's
    /// thread.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let context = Context::new(Backend::Cpu)?;
    /// let mut session = Session::new(&context, &graph, SessionOptions::default())?;
    /// assert!(pollster::block_on(session.refresh_async())?.is_empty());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::build`]; the session is then as it was, and so it is if this is dropped midway.
    pub async fn refresh_async(&mut self) -> Result<Vec<String>> {
        self.refreshed(Wait::Awaits).await
    }

    pub(super) async fn refreshed(&mut self, wait: Wait) -> Result<Vec<String>> {
        let shared = self.changing.as_ref().map(|changing| Arc::clone(&changing.shared));
        let mut changed = self.refreshed_alone(shared.as_deref(), wait).await?;
        for other in self.changing.iter_mut().flat_map(|changing| changing.others()) {
            changed.extend(other.refreshed_alone(shared.as_deref(), wait).await?);
        }
        if self.changing.is_some() {
            sorted::sort(&mut changed, Ord::cmp);
            changed.dedup();
        }
        Ok(changed)
    }

    async fn refreshed_alone(&mut self, shared: Option<&Shared>, wait: Wait) -> Result<Vec<String>> {
        let (Ok(session), Some(made_of)) = (self.runner.device_mut("a refresh"), &self.made_of) else {
            return Ok(Vec::new());
        };
        let _limited = parallel::Limited::to(made_of.1.cpu_threads);
        session.refresh(&made_of.0, &made_of.1, shared, wait).await
    }
}

/// The graph with the dimensions of `options`, which name nodes of it alone.
pub(super) fn checked<'g>(graph: &'g Graph, options: &SessionOptions) -> Result<Cow<'g, Graph>> {
    if graph.outputs().is_empty() {
        return Err(Error::input("graph", "no outputs", "at least one"));
    }
    let is_node = |name: &str| graph.nodes().iter().any(|node| node.name() == name);
    for name in options.precisions.keys().chain(&options.on_cpu) {
        if !is_node(name) {
            return Err(Error::input("options", format!("node {name:?}"), "a node of the graph"));
        }
    }
    for name in options.choices.keys() {
        if !can_be_a_step(name, &is_node) {
            let wanted = "a node of the graph, or a step of several, as Session::steps names them";
            return Err(Error::input("options", format!("node {name:?}"), wanted));
        }
    }
    let fixed: Vec<(&str, usize)> =
        options.dimensions.iter().map(|(name, &extent)| (name.as_str(), extent)).collect();
    if fixed.is_empty() {
        return graph.seeded(options.seed);
    }
    Ok(Cow::Owned(graph.with_dimensions(&fixed)?.seeded(options.seed)?.into_owned()))
}

#[cfg(not(target_family = "wasm"))]
use threaded::Told;

#[cfg(not(target_family = "wasm"))]
mod threaded {
    use super::BuildProgress;
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::task::Waker;

    /// What a build's thread has told, for the task that awaits it.
    #[derive(Debug, Default)]
    pub(super) struct Told(Mutex<State>);

    #[derive(Debug, Default)]
    struct State {
        latest: Option<BuildProgress>,
        waker: Option<Waker>,
    }

    impl Told {
        fn lock(&self) -> MutexGuard<'_, State> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        pub(super) fn tell(&self, progress: BuildProgress) {
            let waker = {
                let mut state = self.lock();
                state.latest = Some(progress);
                state.waker.take()
            };
            if let Some(waker) = waker {
                crate::task::wake(waker);
            }
        }

        /// What was told since the last call; `waker` is woken by what is told next.
        pub(super) fn take(&self, waker: &Waker) -> Option<BuildProgress> {
            let mut state = self.lock();
            state.waker = Some(waker.clone());
            state.latest.take()
        }
    }
}
