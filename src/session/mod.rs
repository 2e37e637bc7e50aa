//! A network made ready to run: kernels chosen and compiled, weights uploaded, memory planned, the
//! whole run recorded once.
//!
//! | file | does |
//! |---|---|
//! | `run`, `runner` | what a plan does, on a device or on the CPU |
//! | `device`, `recorded`, `segment_plan`, `segments`, `host_steps`, `resources`, `uploaded` | the session on a device: its recordings and submissions, its memory and kernels |
//! | `cpu`, `sets` | the session on the CPU, and its buffers |
//! | `input`, `flight`, `output_memory` | what a run is given; a run under way, and what came of it |
//! | `blocking` | all that blocks, a few lines each around `submit` and what is awaited |
//! | `plan`, `progress` | a network of fixed extents, ready to run, and how far it is while it is made |
//! | `extents`, `changing`, `plans`, `part_plan`, `plan_memory`, `open_inputs`, `shared`, `value_buffers`, `source` | sessions whose extents each run decides, what their plans share, and what makes the graphs |
//! | `carried_outputs` | outputs that are inputs of the next run |
//! | `caches`, `cache_state`, `caching` | the keys and values of a decoder, which stay on the device from one run to the next |
//! | `stream` | frames, several of them under way at once |
//! | `planned` | the kernels of a session that is not built |
//! | `op_run` | one op on operands that stay |
//! | `build`, `rebuild`, `online`, `memory` | how sessions are made, again after a device was lost, and what they take |
//! | `encode`, `enqueue`, `buffers`, `bound` | runs on an application's encoder, queue and buffers |
//! | `picture`, `frame`, `framing`, `pixel_layout` | inputs that are pictures, and frames of cameras |
//! | `watched` | sessions that give what each unit writes |
//! | `calibrate`, `observe`, `profile` | what runs tell: which nodes f16 serves, which are wrong, how long they take |

#[cfg(not(target_family = "wasm"))]
mod blocking;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
mod bound;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
mod buffers;
mod build;
mod cache_state;
mod caches;
mod caching;
#[cfg(not(target_family = "wasm"))]
mod calibrate;
mod carried_outputs;
mod changing;
mod cpu;
mod device;
mod draws;
#[cfg(feature = "wgpu")]
mod encode;
#[cfg(feature = "opencl")]
mod enqueue;
mod extents;
mod flight;
mod frame;
mod framing;
mod host_steps;
mod input;
mod lowered;
mod memory;
#[cfg(all(feature = "cpu", not(target_family = "wasm")))]
mod observe;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
mod online;
#[cfg(not(target_family = "wasm"))]
mod op_run;
mod open_graph;
mod open_inputs;
mod output_memory;
mod part_plan;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
mod picture;
#[cfg(any(feature = "cpu", feature = "wgpu", feature = "opencl"))]
mod pixel_layout;
mod plan;
mod plan_memory;
#[cfg(all(any(feature = "wgpu", feature = "opencl"), not(target_family = "wasm")))]
mod planned;
mod plans;
mod ports;
mod profile;
mod progress;
mod rebuild;
mod recorded;
mod resources;
#[cfg(not(target_family = "wasm"))]
mod rewritten;
mod run;
mod runner;
mod segment_plan;
mod segments;
mod sets;
mod shared;
#[cfg(not(target_family = "wasm"))]
mod sizes;
#[cfg(not(target_family = "wasm"))]
mod stream;
mod uploaded;
mod value_buffers;
#[cfg(not(target_family = "wasm"))]
mod watched;

#[cfg(any(feature = "wgpu", feature = "opencl"))]
pub use buffers::{BufferBinding, RequiredUsage};
pub use caches::Caches;
#[cfg(feature = "wgpu")]
pub use encode::WgpuInput;
#[cfg(feature = "opencl")]
pub use enqueue::{OpenClBinding, OpenClInput};
pub use flight::{Flight, Outputs};
pub use frame::{
    ChromaSiting, ColourMatrix, ColourRange, Frame, FrameLayout, FramePlane, Frames, PixelFormat,
};
pub use framing::{Colours, Fit, Framing};
pub use input::RunInput;
#[cfg(all(feature = "cpu", not(target_family = "wasm")))]
pub use observe::{Deviation, KernelTexts, ObservedRun, ObservedStep};
#[cfg(not(target_family = "wasm"))]
pub(crate) use op_run::OpRun;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
pub use picture::Pictures;
#[cfg(all(any(feature = "wgpu", feature = "opencl"), not(target_family = "wasm")))]
pub use planned::PlannedStep;
#[cfg(not(target_family = "wasm"))]
pub(crate) use ports::arranged;
pub use profile::{MemoryUse, Profile, StageTimes, Step, TimedStep};
pub use progress::BuildProgress;
#[cfg(not(target_family = "wasm"))]
pub use rewritten::ComparedRewrites;
#[cfg(not(target_family = "wasm"))]
pub use stream::{Stream, TryStream};

use crate::device::Wait;
#[cfg(target_family = "wasm")]
use crate::error::Error;
use crate::error::Result;
use crate::host::HostTensor;
use crate::source::Port;
use carried_outputs::CarriedOutput;
use extents::Extents;
use flight::{Launched, Layout};
use input::Input;
use plan::Plan;
use run::Next;
use std::sync::Arc;

/// A network made ready to run.
///
/// Dropped, its memory is free again. wgpu frees memory when its device is polled: this crate polls a device that it
/// opened, an application polls its own (`device.poll(wgpu::PollType::Poll)`, after its next submission).
///
/// ```
/// use diptych::{Backend, Context, Conv2d, Extras, Graph, HostTensor, Session, SessionOptions, Shape};
///
/// let mut graph = Graph::new();
/// let x = graph.input("x", Shape::nhwc(1, 1, 3, 1))?;
/// let sum = HostTensor::new(Shape::nhwc(1, 1, 3, 1), vec![1.0; 3])?;
/// let y = graph.conv2d("sum", x, sum, Extras::default(), Conv2d::default())?;
/// graph.output(y)?;
///
/// let context = Context::new(Backend::Cpu)?;
/// let mut session = Session::new(&context, &graph, SessionOptions::default())?;
/// let input = HostTensor::new(Shape::nhwc(1, 1, 3, 1), vec![1.0, 2.0, 3.0])?;
/// let outputs = session.run(&[("x", &input)])?;
/// assert_eq!(&*outputs[0].to_f32(), &[6.0]);
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug)]
pub struct Session {
    /// Its plan, or its plans if each run decides the extents.
    extents: Extents,
    /// Outputs that are inputs of the next run.
    carried: Vec<CarriedOutput>,
}

impl Session {
    /// A session of fixed extents.
    fn of(plan: Plan) -> Self {
        Session { extents: Extents::Fixed(plan), carried: Vec::new() }
    }

    /// The inputs, in the graph's order.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let context = Context::new(Backend::Cpu)?;
    /// let session = Session::new(&context, &graph, SessionOptions::default())?;
    /// assert_eq!(session.inputs()[0].name, "x");
    /// assert_eq!(session.inputs()[0].dims.extents(), [1, 1, 1, 2]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn inputs(&self) -> &[Port] {
        match &self.extents {
            Extents::Fixed(plan) => &plan.inputs,
            Extents::Open(plans) => &plans.inputs,
        }
    }

    /// The outputs, in the graph's order.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let context = Context::new(Backend::Cpu)?;
    /// let session = Session::new(&context, &graph, SessionOptions::default())?;
    /// assert_eq!(session.outputs()[0].name, "sum");
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn outputs(&self) -> &[Port] {
        self.results()
    }

    /// The steps in order of execution, each with its kernel. [`Session::profile`] times them.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let context = Context::new(Backend::Cpu)?;
    /// let session = Session::new(&context, &graph, SessionOptions::default())?;
    /// for step in session.steps() {
    ///     println!("{}: {} ({})", step.name, step.kernel, step.source);
    /// }
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn steps(&self) -> Vec<Step> {
        self.extents.plan().runner.steps()
    }

    /// Bytes of the memory that it keeps. Before there is a session: [`Session::plan_memory`].
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let context = Context::new(Backend::Cpu)?;
    /// let session = Session::new(&context, &graph, SessionOptions::default())?;
    /// let memory = session.memory();
    /// assert!(memory.constants > 0 && memory.planned >= memory.least);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn memory(&self) -> MemoryUse {
        match &self.extents {
            Extents::Fixed(plan) => plan.runner.memory(),
            Extents::Open(plans) => plans.memory(),
        }
    }

    /// Sets the graph's states ([`Graph::state`](crate::Graph::state)) back to what they are in the first run, and lets go of what
    /// [`Session::carry`] carries. A network without states does not
    /// change. Runs that were started before and are not over may still read the earlier states.
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
    /// session.reset()?; // this network has no states, so nothing changes
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the device fails.
    pub fn reset(&mut self) -> Result<()> {
        self.forget_carried();
        match &mut self.extents {
            Extents::Fixed(plan) => plan.runner.reset(),
            Extents::Open(plans) => {
                plans.draws = draws::Draws::default();
                match plans.cached {
                    // These plans have the same states.
                    Some(_) => plans.current().runner.reset(),
                    None => plans.all().try_for_each(|plan| plan.runner.reset()),
                }
            }
        }
    }

    /// Submits a run on the given inputs, by name: tensors, or slices of as many f32 as an input has. Waiting
    /// for the [`Flight`] or awaiting it gives the outputs; until then the caller does something else, or submits other
    /// runs. Runs take place in the order in which they were submitted, and each that is under way has memory of its own
    /// for its outputs. The inputs are read before this returns.
    ///
    /// On a GPU this is one submission. Where the CPU computes nodes of a session on a GPU, what it computes before the
    /// last submission is waited for here.
    ///
    /// ```
    /// use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 1, 2, 3))?;
    /// let ones = HostTensor::new(Shape::nhwc(1, 1, 1, 3), vec![1.0; 3])?;
    /// let y = graph.pointwise("sum", x, ones, Extras::default(), Pointwise::default())?;
    /// graph.output(y)?;
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    ///
    /// let flights = [1.0f32, 2.0].map(|value| session.submit(&[("x", &[value; 6])]));
    /// // Work of the caller's.
    /// let [one, two] = flights;
    /// let outputs = one?.wait()?;
    /// assert_eq!(outputs.get(0)?, [3.0, 3.0]);
    /// let mut sums = [0.0; 2];
    /// two?.wait_into(&mut [("sum", &mut sums)])?;
    /// assert_eq!(sums, [6.0, 6.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an input is missing, unknown, given twice or of another shape or length, or the device fails; in a browser also
    /// where the CPU computes nodes of a session on a GPU, which has to be awaited ([`Session::run_async`]).
    pub fn submit<'a, I>(&mut self, inputs: &[(&str, I)]) -> Result<Flight>
    where
        I: Into<RunInput<'a>> + Clone,
    {
        self.check_not_carrying("Session::submit")?;
        let inputs = self.arrange(inputs)?;
        let flight = self.launch(&inputs, Next::GoesOn)?;
        self.fill_caches();
        Ok(flight)
    }

    /// [`Session::run`] without blocking the calling thread: on wgpu the result is awaited, on
    /// OpenCL and the CPU the run goes to a thread of its own. Any executor will do. In a browser the
    /// page's other tasks run between the CPU's steps. If the future is dropped midway, the session goes on as if the run
    /// had not been asked for, except that states may have changed.
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
    /// let input = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 2.0])?;
    /// let outputs = pollster::block_on(session.run_async(&[("x", &input)]))?; // any executor
    /// assert_eq!(*outputs[0].to_f32(), [3.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::run`].
    pub async fn run_async(&mut self, inputs: &[(&str, &HostTensor)]) -> Result<Vec<HostTensor>> {
        let inputs = self.arrange_async(inputs).await?;
        let launched = self.extents.plan().runner.launch_async(&inputs).await?;
        let outputs = self.flight(launched).await?;
        self.keep_carried(&outputs)?;
        outputs.tensors()
    }

    /// [`Session::profile`], awaited. On the CPU backend the run is over when this is first polled.
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
    /// let input = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 2.0])?;
    /// let profile = pollster::block_on(session.profile_async(&[("x", &input)]))?;
    /// assert_eq!(profile.steps.len(), session.steps().len());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::profile`].
    pub async fn profile_async(&mut self, inputs: &[(&str, &HostTensor)]) -> Result<Profile> {
        let inputs = self.arrange_async(inputs).await?;
        let profile = self.extents.plan().runner.profile(&inputs, Wait::Awaits).await;
        self.forget_fed();
        profile
    }

    /// A run whose outputs are awaited, with the times of its stages. It waits after each of them, so it takes longer than
    /// a run, which submits all at once and waits once. On the CPU backend it is over when this is first polled.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let input = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 2.0])?;
    /// let (outputs, times) = pollster::block_on(session.run_in_stages_async(&[("x", &input)]))?;
    /// println!("{:?} in the network", times.network);
    /// # assert_eq!(outputs.len(), 1);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::run`].
    pub async fn run_in_stages_async(
        &mut self,
        inputs: &[(&str, &HostTensor)],
    ) -> Result<(Vec<HostTensor>, StageTimes)> {
        self.staged(inputs, Wait::Awaits).await
    }

    async fn staged(
        &mut self,
        inputs: &[(&str, &HostTensor)],
        wait: Wait,
    ) -> Result<(Vec<HostTensor>, StageTimes)> {
        let inputs =
            self.fit(inputs.iter().map(|(name, input)| (*name, (*input).into())).collect(), wait).await?;
        let (read, times) = self.extents.plan().runner.stages(&inputs, wait).await?;
        let outputs = Outputs::new(Arc::clone(self.results()), self.layout().clone(), read)?;
        self.keep_carried(&outputs)?;
        Ok((outputs.tensors()?, times))
    }

    /// The inputs' elements in the graph's order, after planning for their extents.
    fn arrange<'a, I: Into<RunInput<'a>> + Clone>(&mut self, inputs: &[(&str, I)]) -> Result<Vec<Input<'a>>> {
        let inputs = inputs.iter().map(|(name, input)| (*name, input.clone().into())).collect();
        if let (Extents::Fixed(plan), []) = (&self.extents, &*self.carried) {
            return input::arranged(&plan.inputs, inputs, &|dtype| plan.runner.word(dtype));
        }
        #[cfg(not(target_family = "wasm"))]
        return crate::task::block_on(self.fit(inputs, Wait::Blocks));
        #[cfg(target_family = "wasm")]
        {
            let new = || {
                Error::unsupported("a run of new extents", "it has to be planned: await Session::run_async")
            };
            crate::task::at_once(self.fit(inputs, Wait::Awaits)).ok_or_else(new)?
        }
    }

    /// [`Session::arrange`], awaited.
    async fn arrange_async<'a>(&mut self, inputs: &[(&str, &'a HostTensor)]) -> Result<Vec<Input<'a>>> {
        let inputs = inputs.iter().map(|(name, input)| (*name, RunInput::from(*input))).collect();
        self.fit(inputs, Wait::Awaits).await
    }

    /// The network's outputs.
    fn results(&self) -> &Arc<[Port]> {
        let composed = self.extents.open().and_then(|plans| plans.composed.as_ref());
        composed.map_or_else(|| &self.extents.plan().outputs, |composed| &composed.ports)
    }

    /// How they lie in what a run reads.
    fn layout(&self) -> &Layout {
        let composed = self.extents.open().and_then(|plans| plans.composed.as_ref());
        composed.map_or_else(|| self.extents.plan().runner.layout(), |composed| &composed.layout)
    }

    /// Begins a run.
    fn launch(&self, inputs: &[Input<'_>], next: Next) -> Result<Flight> {
        Ok(self.flight(self.extents.plan().runner.launch(inputs, next)?))
    }

    fn flight(&self, launched: Launched) -> Flight {
        Flight { launched, ports: Arc::clone(self.results()), layout: self.layout().clone() }
    }
}
