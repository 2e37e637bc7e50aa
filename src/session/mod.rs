//! A network made ready to run: kernels chosen and compiled, weights uploaded, memory planned, the
//! whole run recorded once.

mod build;
#[cfg(not(target_family = "wasm"))]
mod calibrate;
mod cpu;
mod device;
#[cfg(not(target_family = "wasm"))]
mod into;
mod profile;
mod resources;
mod segments;
mod spare;
#[cfg(not(target_family = "wasm"))]
mod stages;
#[cfg(not(target_family = "wasm"))]
mod stream;

pub use build::BuildProgress;
pub use profile::{MemoryUse, NodeTime, Profile};
#[cfg(not(target_family = "wasm"))]
pub use stages::StageTimes;
#[cfg(not(target_family = "wasm"))]
pub use stream::Stream;

use crate::context::{Context, Engine};
use crate::device::Wait;
use crate::dims::Dims;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::host::HostTensor;
use crate::options::{SessionOptions, Tuning};
use crate::shape::Shape;
use crate::task;
use crate::tune::db::SharedDatabase;
use crate::tune::journal::Journal;
use crate::tuner::Tuner;
use build::{Tell, Teller};
#[cfg(not(target_family = "wasm"))]
use std::future::Future;
use std::sync::{Arc, PoisonError};
#[cfg(not(target_family = "wasm"))]
use stream::Flight;

/// A named place where data goes in or comes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// The name of the graph's input, or of the node that writes the output.
    pub name: String,
    /// Its shape as a feature map (see [`Dims::shape`]); the elements are f32 in NHWC order.
    pub shape: Shape,
    /// Its dimensions.
    pub dims: Dims,
}

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
    outputs: Vec<Port>,
    runner: Runner,
    /// What it was made of, if its kernels are those of a record.
    made_of: Option<Box<(Graph, SessionOptions)>>,
}

#[derive(Debug)]
enum Runner {
    Device(Box<device::DeviceSession>),
    Cpu(cpu::CpuSession),
}

impl Session {
    /// Chooses and compiles the kernels, uploads the weights and records the run.
    ///
    /// # Errors
    /// If the graph has no outputs, a node has no kernel on this device (the error lists every
    /// candidate with its reason), a kernel does not compile, or memory runs out.
    #[cfg(not(target_family = "wasm"))]
    pub fn new(context: &Context, graph: &Graph, options: SessionOptions) -> Result<Self> {
        task::block_on(Self::built(context, graph, options, &|_| {}))
    }

    /// [`Session::new`], awaited: the caller's thread is not held up. Elsewhere than in a browser a thread of its own does
    /// the work, and goes on to its end if this is dropped; in a browser the page's other tasks have their turns, and
    /// what is left undone when this is dropped stays so.
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
        #[cfg(target_family = "wasm")]
        {
            let progress = std::cell::RefCell::new(progress);
            let tell = |now| {
                // None if it is called from within.
                if let Ok(mut progress) = progress.try_borrow_mut() {
                    progress(now);
                }
            };
            Self::built(context, graph, options, &tell).await
        }
        #[cfg(not(target_family = "wasm"))]
        {
            let (context, graph) = (context.clone(), graph.clone());
            let told = Arc::new(build::Told::default());
            let teller = Arc::clone(&told);
            let mut building = task::offload(move || {
                task::block_on(Self::built(&context, &graph, options, &|now| teller.tell(now)))
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
    #[cfg(feature = "onnx")]
    pub(crate) fn on_cpu(graph: &Graph) -> Result<Self> {
        let context = Context::cpu("its values are wanted on the host");
        let built = task::at_once(Self::built(&context, graph, SessionOptions::default(), &|_| {}));
        built.unwrap_or_else(|| Err(Error::Internal("the CPU was awaited".to_owned())))
    }

    /// [`Session::run`] of a session on the CPU.
    #[cfg(feature = "onnx")]
    pub(crate) fn compute(&self, inputs: &[(&str, &HostTensor)]) -> Result<Vec<HostTensor>> {
        match &self.runner {
            Runner::Cpu(session) => self.wrap(session.run(&self.arrange(inputs)?)?),
            Runner::Device(_) => Err(Error::Internal("a device is awaited".to_owned())),
        }
    }

    /// What the ways to build a session share; only in a browser it awaits anything.
    async fn built(
        context: &Context,
        graph: &Graph,
        options: SessionOptions,
        tell: &Tell<'_>,
    ) -> Result<Self> {
        if graph.outputs().is_empty() {
            return Err(Error::input("graph", "no outputs", "at least one"));
        }
        for name in options.choices.keys().chain(options.precisions.keys()).chain(&options.on_cpu) {
            if !graph.nodes().iter().any(|node| node.name() == name) {
                return Err(Error::input("options", format!("node {name:?}"), "a node of the graph"));
            }
        }
        let fixed: Vec<(&str, usize)> =
            options.dimensions.iter().map(|(name, &extent)| (name.as_str(), extent)).collect();
        let with_dimensions;
        let graph = if fixed.is_empty() {
            graph
        } else {
            with_dimensions = graph.with_dimensions(&fixed)?;
            &with_dimensions
        };
        let ports = |values: &[crate::graph::Value]| -> Result<Vec<Port>> {
            values
                .iter()
                .map(|&value| {
                    let (name, dims) = (graph.name(value)?.to_owned(), graph.dims(value)?);
                    Ok(Port { name, shape: dims.shape(), dims })
                })
                .collect()
        };
        let runner = match &context.engine {
            Engine::Cpu => Runner::Cpu(cpu::CpuSession::new(graph, &options)?),
            #[cfg(any(feature = "wgpu", feature = "opencl"))]
            engine => {
                if let Tuning::Online { database, budget } = &options.tuning {
                    let tuner = Tuner::new(context)?.database(Arc::clone(database));
                    let mut tuner = tuner.precision(options.precision).fuse(options.fuse).budget(*budget);
                    if let Some(journal) = journal_of(database)? {
                        tuner = tuner.journal(journal);
                    }
                    #[cfg(not(target_family = "wasm"))]
                    tuner.tune(graph)?;
                    #[cfg(target_family = "wasm")]
                    tuner.tune_async(graph, |_| {}).await?;
                }
                let teller = Teller::new(tell);
                let session = device::DeviceSession::build(engine.clone(), graph, &options, &teller).await?;
                Runner::Device(Box::new(session))
            }
        };
        let (inputs, outputs) = (ports(graph.inputs())?, ports(graph.outputs())?);
        let made_of = match (&options.tuning, &runner) {
            (Tuning::Database(_) | Tuning::Online { .. }, Runner::Device(_)) => {
                Some(Box::new((graph.clone(), options)))
            }
            _ => None,
        };
        Ok(Session { inputs, outputs, runner, made_of })
    }

    /// Takes the verdicts that its record ([`Tuning::Database`], [`Tuning::Online`]) has by now: for an application that
    /// tunes while it runs ([`Tuner::step`](crate::Tuner::step)). Returns the names of the steps that have another kernel
    /// than before, none without a record or on the CPU.
    ///
    /// Nothing is tuned. If no kernel changes, nothing but the lookup is done. Otherwise the memory is planned and the
    /// constants are uploaded again; kernels that stay are not compiled again, and [states](Graph::state) keep their
    /// values. To be able to, a session with a record holds on to the graph's constants in the host's memory.
    ///
    /// # Errors
    /// Those of [`Session::new`]; the session is then as it was.
    #[cfg(not(target_family = "wasm"))]
    pub fn refresh(&mut self) -> Result<Vec<String>> {
        task::block_on(self.refreshed(Wait::Blocks))
    }

    /// [`Session::refresh`], awaited. Elsewhere than in a browser, kernels that are new are compiled by the caller's
    /// thread.
    ///
    /// # Errors
    /// Those of [`Session::build`]; the session is then as it was, and so it is if this is dropped midway.
    pub async fn refresh_async(&mut self) -> Result<Vec<String>> {
        self.refreshed(Wait::Awaits).await
    }

    async fn refreshed(&mut self, wait: Wait) -> Result<Vec<String>> {
        match (&mut self.runner, &self.made_of) {
            (Runner::Device(session), Some(made_of)) => session.refresh(&made_of.0, &made_of.1, wait).await,
            _ => Ok(Vec::new()),
        }
    }

    /// The inputs, in the graph's order.
    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// The outputs, in the graph's order.
    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// The kernel of each step, in order of execution; its times are zero.
    pub fn steps(&self) -> Vec<NodeTime> {
        match &self.runner {
            Runner::Device(session) => session.steps(),
            Runner::Cpu(session) => session.steps(),
        }
    }

    /// Bytes of the memory that it keeps.
    pub fn memory(&self) -> MemoryUse {
        match &self.runner {
            Runner::Device(session) => session.memory(),
            Runner::Cpu(session) => session.memory(),
        }
    }

    /// Runs the network on the given inputs, by name, and returns the outputs in the graph's
    /// order, in NHWC. On a GPU: one submission and one wait.
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

    /// Gives the graph's states ([`Graph::state`]) what they are in the first run. Where the network has none,
    /// nothing happens. Runs that were started before it and are not over may still read what the states were.
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
    /// OpenCL and the CPU the run goes to a thread of its own. Any executor will do. In a browser the CPU's steps take
    /// turns with the page's other tasks. Dropped midway, the run is as if it had not been asked for, but that states
    /// may have changed; the next one works.
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

    #[cfg(not(target_family = "wasm"))]
    /// A run up to the wait.
    fn start(&mut self, inputs: &[(&str, &HostTensor)]) -> Result<Flight> {
        let inputs = self.arrange(inputs)?;
        match &mut self.runner {
            Runner::Device(session) => session.start(&inputs).map(Flight::Device),
            Runner::Cpu(session) => session.start(&inputs).map(Flight::Cpu),
        }
    }

    #[cfg(not(target_family = "wasm"))]
    /// The wait for a run of this session.
    fn finish(&self, flight: Flight) -> Result<Vec<HostTensor>> {
        let outputs = match (&self.runner, flight) {
            (Runner::Device(session), Flight::Device(flight)) => session.finish(flight)?,
            (_, Flight::Cpu(running)) => running.wait()?,
            (Runner::Cpu(_), Flight::Device(_)) => {
                return Err(Error::Internal("a frame of another session".to_owned()));
            }
        };
        self.wrap(outputs)
    }

    /// Runs the network once and returns the time of each step on the device's clock.
    ///
    /// # Errors
    /// Those of [`Session::run`]; also if the device has no clock.
    #[cfg(not(target_family = "wasm"))]
    pub fn profile(&mut self, inputs: &[(&str, &HostTensor)]) -> Result<Profile> {
        task::block_on(self.profiled(inputs, Wait::Blocks))
    }

    /// [`Session::profile`], awaited. On the CPU backend the run is over when this is first polled.
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

    /// Records a run into the application's own command encoder: nothing is submitted here.
    ///
    /// Each of `inputs` (every input, by name) is copied from the application's buffer, which
    /// holds f32 in NHWC order and needs usage `COPY_SRC`; each of `outputs` is copied to one,
    /// which needs `COPY_DST`.
    ///
    /// # Errors
    /// If the session does not run on wgpu, a name is unknown, an input is missing, or a buffer
    /// has the wrong size or usage.
    #[cfg(feature = "wgpu")]
    pub fn encode(
        &mut self,
        encoder: &mut wgpu::CommandEncoder,
        inputs: &[(&str, &wgpu::Buffer)],
        outputs: &[(&str, &wgpu::Buffer)],
    ) -> Result<()> {
        let find = |ports: &[Port], name: &str, what: &str| {
            ports.iter().position(|port| port.name == name).ok_or_else(|| unknown(what, name, ports))
        };
        let mut sources: Vec<Option<&wgpu::Buffer>> = vec![None; self.inputs.len()];
        for (name, buffer) in inputs {
            let index = find(&self.inputs, name, "input")?;
            check_buffer(&self.inputs[index], buffer, wgpu::BufferUsages::COPY_SRC)?;
            sources[index] = Some(buffer);
        }
        let sources = every("input", &self.inputs, sources)?;
        let mut targets = Vec::with_capacity(outputs.len());
        for (name, buffer) in outputs {
            let index = find(&self.outputs, name, "output")?;
            check_buffer(&self.outputs[index], buffer, wgpu::BufferUsages::COPY_DST)?;
            targets.push((index, *buffer));
        }
        match &mut self.runner {
            Runner::Device(session) => session.encode(encoder, &sources, &targets),
            Runner::Cpu(_) => Err(Error::unsupported("Session::encode", "the session runs on the CPU")),
        }
    }

    /// The inputs' elements in the graph's order.
    fn arrange<'a>(&self, inputs: &[(&str, &'a HostTensor)]) -> Result<Vec<std::borrow::Cow<'a, [f32]>>> {
        let mut found = vec![None; self.inputs.len()];
        for (name, tensor) in inputs {
            let index = self
                .inputs
                .iter()
                .position(|port| port.name == *name)
                .ok_or_else(|| unknown("input", name, &self.inputs))?;
            let port = &self.inputs[index];
            // Rank 4 serves for any rank: a tensor of a picture, a vector or a matrix as a feature map.
            let as_map = tensor.dims().rank() == 4 && tensor.shape() == port.shape;
            if tensor.dims() != port.dims && !as_map {
                return Err(Error::input(
                    format!("input {name:?}"),
                    format!("shape {}", tensor.dims()),
                    format!("{}", port.dims),
                ));
            }
            if found[index].is_some() {
                return Err(Error::input(format!("input {name:?}"), "two tensors", "one"));
            }
            found[index] = Some(tensor.to_nhwc());
        }
        every("input", &self.inputs, found)
    }

    fn wrap(&self, outputs: Vec<Arc<[f32]>>) -> Result<Vec<HostTensor>> {
        self.outputs.iter().zip(outputs).map(|(port, data)| HostTensor::new(port.dims, data)).collect()
    }
}

/// The journal beside the record's file, if it has one: a candidate that takes the application with
/// it is skipped at the next start.
#[cfg(any(feature = "wgpu", feature = "opencl"))]
fn journal_of(database: &SharedDatabase) -> Result<Option<Journal>> {
    let mut database = database.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(file) = database.file() else { return Ok(None) };
    let folder = file.parent().unwrap_or(std::path::Path::new("")).to_owned();
    Ok(Some(Journal::open(folder, &mut database)?))
}

fn unknown(what: &str, name: &str, ports: &[Port]) -> Error {
    let names: Vec<String> = ports.iter().map(|port| format!("{:?} ({})", port.name, port.shape)).collect();
    Error::input(what, format!("{name:?}"), format!("one of {}", names.join(", ")))
}

/// Each port's item, or an error that names the port without one.
fn every<T>(what: &str, ports: &[Port], items: Vec<Option<T>>) -> Result<Vec<T>> {
    ports
        .iter()
        .zip(items)
        .map(|(port, item)| {
            item.ok_or_else(|| {
                Error::input(format!("{what} {:?}", port.name), "nothing", format!("shape {}", port.shape))
            })
        })
        .collect()
}

#[cfg(feature = "wgpu")]
fn check_buffer(port: &Port, buffer: &wgpu::Buffer, usage: wgpu::BufferUsages) -> Result<()> {
    let wanted = 4 * port.shape.elements() as u64;
    if buffer.size() < wanted || !buffer.usage().contains(usage) {
        return Err(Error::input(
            format!("buffer of {:?}", port.name),
            format!("{} bytes, usage {:?}", buffer.size(), buffer.usage()),
            format!("at least {wanted} bytes (f32 {}), usage {usage:?}", port.shape),
        ));
    }
    Ok(())
}
