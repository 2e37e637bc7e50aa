//! A network made ready to run: kernels chosen and compiled, weights uploaded, memory planned, the
//! whole run recorded once.

#[cfg(any(feature = "wgpu", feature = "opencl"))]
mod bound;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
mod buffers;
mod build;
#[cfg(not(target_family = "wasm"))]
mod calibrate;
mod cpu;
mod device;
#[cfg(feature = "wgpu")]
mod encode;
#[cfg(feature = "opencl")]
mod enqueue;
mod framing;
#[cfg(not(target_family = "wasm"))]
mod into;
#[cfg(not(target_family = "wasm"))]
mod joined;
mod memory;
#[cfg(all(feature = "cpu", not(target_family = "wasm")))]
mod observe;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
mod online;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
mod picture;
mod ports;
mod profile;
mod rebuild;
mod resources;
mod segments;
#[cfg(not(target_family = "wasm"))]
mod slices;
mod spare;
#[cfg(not(target_family = "wasm"))]
mod stages;
#[cfg(not(target_family = "wasm"))]
mod stream;

#[cfg(any(feature = "wgpu", feature = "opencl"))]
pub use buffers::{BufferBinding, RequiredUsage};
pub use build::BuildProgress;
#[cfg(feature = "wgpu")]
pub use encode::WgpuInput;
#[cfg(feature = "opencl")]
pub use enqueue::{OpenClBinding, OpenClInput};
pub use framing::{Colours, Fit, Framing};
#[cfg(all(feature = "cpu", not(target_family = "wasm")))]
pub use observe::{Deviation, KernelTexts, ObservedRun, ObservedStep};
#[cfg(any(feature = "wgpu", feature = "opencl"))]
pub use picture::Pictures;
pub use ports::Port;
pub(crate) use ports::arranged;
pub use profile::{MemoryUse, NodeTime, Profile};
#[cfg(not(target_family = "wasm"))]
pub use slices::Started;
#[cfg(not(target_family = "wasm"))]
pub use stages::StageTimes;
#[cfg(not(target_family = "wasm"))]
pub(crate) use stream::Flight;
#[cfg(not(target_family = "wasm"))]
pub use stream::{Stream, TryStream};

use crate::device::Wait;
#[cfg(not(target_family = "wasm"))]
use crate::error::Error;
use crate::error::Result;
use crate::graph::Graph;
use crate::host::HostTensor;
use crate::options::SessionOptions;
#[cfg(not(target_family = "wasm"))]
use crate::task;
use std::sync::Arc;
#[cfg(not(target_family = "wasm"))]
use stream::UnderWay;

/// A network made ready to run.
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
    inputs: Vec<Port>,
    outputs: Arc<[Port]>,
    runner: Runner,
    /// What it was made of, if its kernels are those of a record or the graph is kept.
    made_of: Option<Box<(Graph, SessionOptions)>>,
}

#[derive(Debug)]
enum Runner {
    Device(Box<device::DeviceSession>),
    Cpu(cpu::CpuSession),
}

impl Session {
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
        &self.inputs
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
        &self.outputs
    }

    /// The kernel of each step, in order of execution; its times are zero.
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
    pub fn steps(&self) -> Vec<NodeTime> {
        match &self.runner {
            Runner::Device(session) => session.steps(),
            Runner::Cpu(session) => session.steps(),
        }
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
        match &self.runner {
            Runner::Device(session) => session.memory(),
            Runner::Cpu(session) => session.memory(),
        }
    }

    /// Runs the network on the given inputs, by name, and returns the outputs in the graph's
    /// order, in NHWC. On a GPU: one submission and one wait.
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
    /// let outputs = session.run(&[("x", &input)])?;
    /// assert_eq!(*outputs[0].to_f32(), [3.0]);
    /// // An input that is missing or has other extents is an error, which says what was wanted.
    /// assert!(session.run(&[]).is_err());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an input is missing, unknown, given twice or of another shape, or the device fails.
    #[cfg(not(target_family = "wasm"))]
    pub fn run(&mut self, inputs: &[(&str, &HostTensor)]) -> Result<Vec<HostTensor>> {
        let inputs = self.arrange(inputs)?;
        let outputs = match &mut self.runner {
            Runner::Device(session) => session.run(&inputs)?,
            Runner::Cpu(session) => session.run(&inputs)?,
        };
        self.wrap(outputs)
    }

    /// Sets the graph's states ([`Graph::state`]) back to what they are in the first run. A network without states does not
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
        match &mut self.runner {
            Runner::Device(session) => session.reset(),
            Runner::Cpu(session) => {
                session.reset();
                Ok(())
            }
        }
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
        let inputs = self.arrange(inputs)?;
        let outputs = match &mut self.runner {
            Runner::Device(session) => session.run_async(&inputs).await?,
            Runner::Cpu(session) => session.run_async(&inputs).await?,
        };
        self.wrap(outputs)
    }

    /// Runs the network on one frame after the other, and gives the outputs in the same order. While
    /// the device works on a frame, the next one is uploaded or made ready for it, and the caller
    /// works on the outputs of the one before.
    ///
    /// Frames are taken from `frames` only when there is room for them ([`Stream::in_flight`]), so a
    /// slow consumer holds the source back. An error is that of its own frame, in its place: the
    /// frames after it go on. Dropping the stream midway leaves the frames under way to finish,
    /// unread.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Conv2d, Extras, Graph, HostTensor, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 3, 1))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 3, 1), vec![1.0; 3])?;
    /// # let y = graph.conv2d("sum", x, sum, Extras::default(), Conv2d::default())?;
    /// # graph.output(y)?;
    /// # let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let camera = (0..4).map(|frame| HostTensor::new(Shape::nhwc(1, 1, 3, 1), vec![frame as f32; 3]));
    /// let frames = camera.collect::<diptych::Result<Vec<_>>>()?.into_iter().map(|image| [("x", image)]);
    /// for (frame, outputs) in session.stream(frames).enumerate() {
    ///     assert_eq!(outputs?[0].to_f32()[0], 3.0 * frame as f32);
    /// }
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[cfg(not(target_family = "wasm"))]
    pub fn stream<I, F, N>(&mut self, frames: I) -> Stream<'_, I::IntoIter>
    where
        I: IntoIterator<Item = F>,
        F: IntoIterator<Item = (N, HostTensor)>,
        N: AsRef<str>,
    {
        Stream::new(self, frames.into_iter())
    }

    /// [`Session::stream`] from a source that may fail, as cameras and decoders do: an error of the source comes out in
    /// its place among the outputs, and the frames after it go on.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Error, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 3))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 3), vec![1.0; 3])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// #[derive(Debug)]
    /// enum Failure {
    ///     Camera(u8),
    ///     Network(Error),
    /// }
    /// impl From<Error> for Failure {
    ///     fn from(error: Error) -> Self {
    ///         Failure::Network(error)
    ///     }
    /// }
    /// let camera = (0..4).map(|frame| match frame {
    ///     2 => Err(Failure::Camera(frame)),
    ///     _ => Ok([("x", HostTensor::new(Shape::nhwc(1, 1, 1, 3), vec![f32::from(frame); 3])?)]),
    /// });
    /// let outputs: Vec<_> = session.try_stream(camera).collect();
    /// assert_eq!(outputs.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false, true]);
    /// assert!(matches!(outputs[2], Err(Failure::Camera(2))));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[cfg(not(target_family = "wasm"))]
    pub fn try_stream<I, F, N, E>(&mut self, frames: I) -> TryStream<'_, I::IntoIter, E>
    where
        I: IntoIterator<Item = Result<F, E>>,
        F: IntoIterator<Item = (N, HostTensor)>,
        N: AsRef<str>,
        E: From<Error>,
    {
        TryStream::new(self, frames.into_iter())
    }

    #[cfg(not(target_family = "wasm"))]
    /// A run up to the wait.
    fn start_tensors(&mut self, inputs: &[(&str, &HostTensor)]) -> Result<Flight> {
        let inputs = self.arrange(inputs)?;
        self.start_arranged(&inputs)
    }

    #[cfg(not(target_family = "wasm"))]
    /// The wait for a run of this session.
    pub(crate) fn finish(&self, flight: Flight) -> Result<Vec<HostTensor>> {
        let outputs = match (&self.runner, flight.0) {
            (Runner::Device(session), UnderWay::Device(flight)) => session.finish(flight)?,
            (_, UnderWay::Cpu(running)) => running.wait()?,
            (Runner::Cpu(_), UnderWay::Device(_)) => {
                return Err(Error::Internal("a frame of another session".to_owned()));
            }
        };
        self.wrap(outputs)
    }

    /// Runs the network once and returns the time of each step on the device's clock.
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
    /// let profile = session.profile(&[("x", &input)])?;
    /// println!("{profile}"); // a table of the steps with their times
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::run`]; also if the device has no clock.
    #[cfg(not(target_family = "wasm"))]
    pub fn profile(&mut self, inputs: &[(&str, &HostTensor)]) -> Result<Profile> {
        task::block_on(self.profiled(inputs, Wait::Blocks))
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
    /// assert_eq!(profile.nodes.len(), session.steps().len());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::profile`].
    pub async fn profile_async(&mut self, inputs: &[(&str, &HostTensor)]) -> Result<Profile> {
        self.profiled(inputs, Wait::Awaits).await
    }

    async fn profiled(&mut self, inputs: &[(&str, &HostTensor)], wait: Wait) -> Result<Profile> {
        let inputs = self.arrange(inputs)?;
        match &mut self.runner {
            Runner::Device(session) => session.profile(&inputs, wait).await,
            Runner::Cpu(session) => session.profile(&inputs),
        }
    }

    /// The inputs' elements in the graph's order.
    fn arrange<'a>(&self, inputs: &[(&str, &'a HostTensor)]) -> Result<Vec<std::borrow::Cow<'a, [f32]>>> {
        Ok(arranged(&self.inputs, inputs)?.into_iter().map(HostTensor::to_nhwc).collect())
    }

    fn wrap(&self, outputs: Vec<Arc<[f32]>>) -> Result<Vec<HostTensor>> {
        self.outputs.iter().zip(outputs).map(|(port, data)| HostTensor::new(port.dims, data)).collect()
    }
}
