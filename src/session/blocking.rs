//! All that blocks: a few lines each around [`Session::submit`] and what is awaited. It is not there on `wasm32`, whose
//! one thread is the page's.

use super::input::{Input, words};
use super::open_graph::OpenGraph;
use super::plan::Plan;
use super::ports::targets;
use super::run::Next;
use super::{Flight, Outputs, Port, Profile, RunInput, Session, StageTimes, Stream, TryStream};
use crate::context::Context;
use crate::device::Wait;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::host::HostTensor;
use crate::options::SessionOptions;
use crate::task::block_on;
use std::borrow::Cow;

impl Session {
    /// Chooses and compiles the kernels, uploads the weights and records the run.
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
    /// assert_eq!(session.outputs().len(), 1);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the graph has no outputs, a node has no kernel on this device (the error lists every
    /// candidate with its reason), a kernel does not compile, or memory runs out.
    pub fn new(context: &Context, graph: &Graph, options: SessionOptions) -> Result<Self> {
        if !options.open.is_empty() {
            let (source, options) = OpenGraph::new(graph, options)?;
            return block_on(Self::of_source(context, source, options, Wait::Blocks, &mut |_| {}));
        }
        Ok(Self::of(block_on(Plan::built(context, graph, options, None, &|_| {}))?))
    }

    /// [`Session::submit`] with each input's elements in parts, one behind the other. What is behind the last part of
    /// an input is anything.
    pub(crate) fn submit_joined(&mut self, inputs: &[Vec<&HostTensor>]) -> Result<Flight> {
        let mut converted: Vec<Vec<Cow<'_, [f32]>>> = Vec::with_capacity(inputs.len());
        for (port, parts) in self.extents.plan().inputs.iter().zip(inputs) {
            let mut own = Vec::with_capacity(parts.len());
            for part in parts {
                own.push(words(port, part, &|dtype| self.word(dtype))?);
            }
            converted.push(own);
        }
        let parts: Vec<Vec<&[f32]>> =
            converted.iter().map(|parts| parts.iter().map(|part| &**part).collect()).collect();
        self.launch(&in_parts(&self.extents.plan().inputs, &parts, &|dtype| self.word(dtype))?, Next::GoesOn)
    }

    /// The type of the words in which it keeps elements of a type.
    pub(crate) fn word(&self, dtype: DType) -> DType {
        self.extents.plan().runner.word(dtype)
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
    pub fn run(&mut self, inputs: &[(&str, &HostTensor)]) -> Result<Vec<HostTensor>> {
        self.run_shown(inputs)?.tensors()
    }

    /// [`Session::run`] with the inputs that [`Session::submit`] takes. It gives the outputs without a copy, as
    /// [`Flight::wait`](crate::Flight::wait) does.
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
    /// let outputs = session.run_shown(&[("x", &[1.0, 2.0])])?;
    /// assert_eq!(outputs.get(0)?, [3.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::run`].
    pub fn run_shown<'a, I>(&mut self, inputs: &[(&str, I)]) -> Result<Outputs>
    where
        I: Into<RunInput<'a>> + Clone,
    {
        let inputs = self.arrange(inputs)?;
        let outputs = self.launch(&inputs, Next::Waits)?.wait()?;
        self.keep_carried(&outputs)?;
        Ok(outputs)
    }

    /// [`Session::run`] with the outputs in the caller's memory: each of the session's outputs, by name,
    /// with a slice of as many elements as it has. They are copied once, from where the device shows them.
    ///
    /// ```
    /// use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 1, 2, 3))?;
    /// let ones = HostTensor::new(Shape::nhwc(1, 1, 1, 3), vec![1.0; 3])?;
    /// let y = graph.pointwise("sum", x, ones, Extras::default(), Pointwise::default())?;
    /// graph.output(y)?;
    ///
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let mut sums = vec![0.0; session.outputs()[0].shape.elements()];
    /// for frame in 0..3 {
    ///     let pixels: Vec<f32> = (0..6).map(|index| (index + frame) as f32).collect();
    ///     let image = HostTensor::new(Shape::nhwc(1, 1, 2, 3), pixels)?;
    ///     session.run_into(&[("x", &image)], &mut [("sum", &mut sums)])?;
    ///     assert_eq!(sums, [(3 + 3 * frame) as f32, (12 + 3 * frame) as f32]);
    /// }
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::run`]; also if an output is missing, unknown, given twice or of another length.
    /// Then nothing is written.
    pub fn run_into(
        &mut self,
        inputs: &[(&str, &HostTensor)],
        outputs: &mut [(&str, &mut [f32])],
    ) -> Result<()> {
        let given = self.arrange(inputs)?;
        self.waited_into(&given, outputs)
    }

    /// [`Session::run_into`] with the inputs in the caller's memory too: each of the session's inputs, by name, with a
    /// slice of as many elements as it has, in the order of its dimensions. Nothing is copied on the way to the device.
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
    /// let (pixels, mut sums) = ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.0; 2]);
    /// session.run_slices(&[("x", &pixels)], &mut [("sum", &mut sums)])?;
    /// assert_eq!(sums, [3.0, 12.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an input or an output is missing, unknown, given twice or of another length, or the device fails.
    pub fn run_slices(
        &mut self,
        inputs: &[(&str, &[f32])],
        outputs: &mut [(&str, &mut [f32])],
    ) -> Result<()> {
        let given = self.arrange(inputs)?;
        self.waited_into(&given, outputs)
    }

    fn waited_into(&mut self, inputs: &[Input<'_>], outputs: &mut [(&str, &mut [f32])]) -> Result<()> {
        let mut targets = targets(self.results(), outputs)?;
        let found = self.launch(inputs, Next::Waits)?.wait()?;
        self.keep_carried(&found)?;
        found.copy_to(&mut targets)
    }

    /// [`Session::run`], with the times of its stages. It waits after each of them, so it takes
    /// longer than a run, which submits all at once and waits once.
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
    /// let (outputs, times) = session.run_in_stages(&[("x", &input)])?;
    /// println!("{:?} up, {:?} in the network, {:?} down", times.upload, times.network, times.download);
    /// # assert_eq!(*outputs[0].to_f32(), [3.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::run`].
    pub fn run_in_stages(&mut self, inputs: &[(&str, &HostTensor)]) -> Result<(Vec<HostTensor>, StageTimes)> {
        block_on(self.staged(inputs, Wait::Blocks))
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
    pub fn try_stream<I, F, N, E>(&mut self, frames: I) -> TryStream<'_, I::IntoIter, E>
    where
        I: IntoIterator<Item = Result<F, E>>,
        F: IntoIterator<Item = (N, HostTensor)>,
        N: AsRef<str>,
        E: From<Error>,
    {
        TryStream::new(self, frames.into_iter())
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
    pub fn profile(&mut self, inputs: &[(&str, &HostTensor)]) -> Result<Profile> {
        let inputs = self.arrange(inputs)?;
        let profile = block_on(self.extents.plan().runner.profile(&inputs, Wait::Blocks));
        self.forget_fed();
        profile
    }

    /// Takes the verdicts that its record ([`Tuning::Database`](crate::Tuning::Database),
    /// [`Tuning::Online`](crate::Tuning::Online)) has by now: for an application that tunes while it runs ([`Tuner::step`](crate::Tuner::step)). Returns the names of the steps that have another kernel
    /// than before, none without a record or on the CPU.
    ///
    /// Nothing is tuned. If no kernel changes, nothing but the lookup is done. Otherwise the memory is planned and the
    /// constants are uploaded again; kernels that stay are not compiled again, and [states](Graph::state) keep their
    /// values. To be able to, a session with a record holds on to the graph's constants in the host's memory.
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
    /// // The names of the nodes whose kernels changed: none, as this session has no record.
    /// assert!(session.refresh()?.is_empty());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::new`]; the session is then as it was.
    pub fn refresh(&mut self) -> Result<Vec<String>> {
        block_on(self.refreshed(Wait::Blocks))
    }

    /// Makes the session again from its graph, on `context`: after the device was lost, or to run the network elsewhere.
    /// Kernels, memory and recordings are those of the new device; states ([`Graph::state`](crate::Graph::state)) are
    /// what they are at first. On the same device the outputs are bit for bit what they were.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let context = Context::new(Backend::Cpu)?;
    /// let options = SessionOptions { keep_graph: true, ..Default::default() };
    /// let mut session = Session::new(&context, &graph, options)?;
    /// session.rebuild(&Context::new(Backend::Auto)?)?; // on another device
    /// let input = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 2.0])?;
    /// assert_eq!(*session.run(&[("x", &input)])?[0].to_f32(), [3.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the graph was not kept ([`SessionOptions::keep_graph`](crate::SessionOptions)), and
    /// those of [`Session::new`]; the session is then as it was.
    pub fn rebuild(&mut self, context: &Context) -> Result<()> {
        let next = match self.extents.open() {
            Some(plans) => block_on(plans.again(context, Wait::Blocks))?,
            None => {
                let (graph, options) = self.made_of()?;
                Session::new(context, graph, options.clone())?
            }
        };
        self.replace(next)
    }
}

/// Inputs in parts, in the order of the ports.
fn in_parts<'a>(
    ports: &[Port],
    inputs: &[Vec<&'a [f32]>],
    word: &dyn Fn(DType) -> DType,
) -> Result<Vec<Input<'a>>> {
    if inputs.len() != ports.len() {
        return Err(Error::Internal(format!("{} inputs of {}", inputs.len(), ports.len())));
    }
    let input = |(port, parts): (&Port, &Vec<&'a [f32]>)| {
        let wanted = port.dims.elements() * word(port.dtype).words();
        let found = parts.iter().map(|part| part.len()).sum::<usize>();
        if found > wanted {
            let name = &port.name;
            return Err(Error::Internal(format!("{found} elements for {name:?} of {}", port.dims)));
        }
        Ok(Input::Parts(parts.clone()))
    };
    ports.iter().zip(inputs).map(input).collect()
}
