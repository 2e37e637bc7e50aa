//! The ways to make a session.

use super::extents::Extents;
use super::input::arranged;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
use super::lowered::lowered;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
use super::memory::DeviceMemory;
use super::open_graph::OpenGraph;
use super::plan::{Plan, checked};
use super::profile::MemoryUse;
use super::progress::BuildProgress;
use super::run::Next;
use super::{Session, cpu};
use crate::compute::Prepared;
use crate::context::{Context, Engine};
use crate::device::Wait;
use crate::error::Error;
use crate::error::Result;
use crate::graph::Graph;
use crate::graph::key_of;
use crate::host::HostTensor;
use crate::options::SessionOptions;
use crate::sorted;
use crate::source::Port;
use crate::task;
use std::sync::Arc;

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
    /// let session = pollster::block_on(Session::new_async(&context, &graph, options))?;
    /// assert_eq!(session.outputs().len(), 1);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::new`].
    pub async fn new_async(context: &Context, graph: &Graph, options: SessionOptions) -> Result<Self> {
        Self::new_with_progress_async(context, graph, options, &mut |_| {}).await
    }

    /// [`Session::new_async`], which tells `progress` how far it is, as long as it is awaited.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # async fn built(context: &Context, graph: &Graph) -> diptych::Result<Session> {
    /// let mut tell = |progress: diptych::BuildProgress| {
    ///     println!("{} of {} kernels compiled", progress.compiled, progress.kernels);
    /// };
    /// Session::new_with_progress_async(context, graph, SessionOptions::default(), &mut tell).await
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::new`].
    pub async fn new_with_progress_async(
        context: &Context,
        graph: &Graph,
        options: SessionOptions,
        progress: &mut impl FnMut(BuildProgress),
    ) -> Result<Self> {
        if !options.open.is_empty() {
            let (source, options) = OpenGraph::new(graph, options)?;
            return Self::of_source(context, source, options, Wait::Awaits, progress).await;
        }
        Ok(Self::of(Plan::built_async(context, graph, options, None, progress).await?))
    }

    /// The former name of [`Session::new_async`].
    ///
    /// # Errors
    /// Those of [`Session::new`].
    #[deprecated(since = "0.2.0", note = "renamed to `Session::new_async`")]
    pub async fn build(context: &Context, graph: &Graph, options: SessionOptions) -> Result<Self> {
        Self::new_async(context, graph, options).await
    }

    /// The former name of [`Session::new_with_progress_async`].
    ///
    /// # Errors
    /// Those of [`Session::new`].
    #[deprecated(since = "0.2.0", note = "renamed to `Session::new_with_progress_async`")]
    pub async fn build_with_progress(
        context: &Context,
        graph: &Graph,
        options: SessionOptions,
        progress: &mut impl FnMut(BuildProgress),
    ) -> Result<Self> {
        Self::new_with_progress_async(context, graph, options, progress).await
    }

    /// A session on the CPU, where nothing is awaited.
    #[doc(hidden)]
    pub fn on_cpu(graph: &Graph) -> Result<Self> {
        let context = Context::cpu("its values are wanted on the host");
        let built = task::at_once(Plan::built(&context, graph, SessionOptions::default(), None, &|_| {}));
        built.unwrap_or_else(|| Err(Error::Internal("the CPU was awaited".to_owned()))).map(Self::of)
    }

    /// [`Session::on_cpu`], for loaders.
    #[cfg(any(feature = "onnx", feature = "tflite"))]
    pub(crate) fn prepare(graph: &Graph) -> Result<Box<dyn Prepared>> {
        Ok(Box::new(Session::on_cpu(graph)?))
    }

    /// [`Session::run`] of a session on the CPU, wherever that is.
    #[doc(hidden)]
    pub fn compute(&self, inputs: &[(&str, &HostTensor)]) -> Result<Vec<HostTensor>> {
        let inputs = inputs.iter().map(|(name, input)| (*name, (*input).into())).collect();
        let plan = self.extents.plan();
        let inputs = arranged(&plan.inputs, inputs, &|dtype| plan.runner.word(dtype))?;
        self.launch(&inputs, Next::Waits)?.wait()?.tensors()
    }

    /// What [`Session::memory`] of a session would be: its memory is planned and none of it is allocated, nothing is
    /// compiled. On a device constants are packed one after the other, each for as long as it takes to measure it, and
    /// kernels are those that the record has now ([`Tuning::Online`](crate::Tuning::Online) tunes nothing here).
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
            engine => DeviceMemory::planned(&lowered(engine, graph, options, None)?),
        }
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
    /// Those of [`Session::new_async`]; the session is then as it was, and so it is if this is dropped midway.
    pub async fn refresh_async(&mut self) -> Result<Vec<String>> {
        self.refreshed(Wait::Awaits).await
    }

    pub(super) async fn refreshed(&mut self, wait: Wait) -> Result<Vec<String>> {
        match &mut self.extents {
            Extents::Fixed(plan) => plan.refresh(None, wait).await,
            Extents::Open(plans) => {
                let shared = Arc::clone(&plans.shared);
                let mut changed = Vec::new();
                for plan in plans.all_mut() {
                    changed.extend(plan.refresh(Some(&shared), wait).await?);
                }
                sorted::sort(&mut changed, Ord::cmp);
                changed.dedup();
                Ok(changed)
            }
        }
    }
}

impl Prepared for Session {
    fn inputs(&self) -> &[Port] {
        Session::inputs(self)
    }

    fn draw_by(&self, seed: u64) -> Result<()> {
        self.extents.plan().runner.draw_by(key_of(seed, 0))
    }

    fn compute(&self, inputs: &[(&str, &HostTensor)]) -> Result<Vec<HostTensor>> {
        Session::compute(self, inputs)
    }
}
