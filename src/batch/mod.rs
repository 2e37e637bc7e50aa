//! Requests of many tasks, run together: [`Batch`] on one device, [`DevicePool`] on several.

mod members;
mod pool;
mod queue;
mod slot;
mod ticket;
mod worker;

pub use pool::{DevicePool, PoolDevice, PoolStream};
pub use ticket::Ticket;

use crate::context::{Backend, Context};
use crate::dims::Dim;
use crate::dtype::DType;
use crate::error::{Error, Result, Setting};
use crate::graph::Graph;
use crate::host::HostTensor;
use crate::options::SessionOptions;
use crate::session::{MemoryUse, Session};
use crate::sorted;
use crate::source::Port;
use crate::sync::thread::{self, JoinHandle};
use crate::unwind::caught;
use crate::word;
use queue::Queue;
use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use worker::Worker;

/// The largest batch: more gain nothing, and each size is a plan.
const MAX_BATCH: usize = 1024;

/// How a [`Batch`] gathers requests, and how it runs them.
///
/// ```
/// use diptych::BatchOptions;
/// use std::time::Duration;
///
/// // A device that is busy most of the time: whatever came meanwhile is a batch, of 1, 4 or 16 requests.
/// let options = BatchOptions {
///     max_batch: 16,
///     max_delay: Duration::ZERO,
///     sizes: vec![1, 4],
///     ..BatchOptions::default()
/// };
/// assert_eq!(options.max_waiting, 32);
/// ```
#[derive(Debug, Clone)]
pub struct BatchOptions {
    /// Requests of one run at most, 1 to 1024; 8 unless set.
    pub max_batch: usize,
    /// How long a request waits for others at most, while no two runs are under way; 1 ms unless set. A full batch does
    /// not wait. Where a run is over sooner than others come, a wait only costs time: zero runs what is there, and
    /// batches are what came while the device was busy.
    pub max_delay: Duration,
    /// Requests at most that have been taken and whose run has not begun; 32 unless set. Those who bring more are
    /// held back.
    pub max_waiting: usize,
    /// The batch sizes that are made ready, each with kernels of its own; sizes whose kernels read the weights alike share them.
    /// Where a size is missing, the next larger one runs and its spare places are not read; `max_batch` is always one. Empty
    /// means every size from 1 to `max_batch`.
    pub sizes: Vec<usize>,
    /// The graph's named dimension ([`Graph::dimension`]) that counts requests. Unless it is set, it is the one that
    /// is the outermost of every input. With such a dimension one request has extent 1 there; without one a request has the
    /// graph's own extents. The network of one request then becomes that of several: [`Graph::with_batch`].
    pub dimension: Option<String>,
    /// How the sessions run.
    pub session: SessionOptions,
}

impl Default for BatchOptions {
    fn default() -> Self {
        BatchOptions {
            max_batch: 8,
            max_delay: Duration::from_millis(1),
            max_waiting: 32,
            sizes: Vec::new(),
            dimension: None,
            session: SessionOptions::default(),
        }
    }
}

impl BatchOptions {
    /// The sizes to make ready, the smallest first.
    fn planned(&self) -> Result<Vec<usize>> {
        let refused = |name: &'static str, found: String, wanted: String| {
            Err(Error::input(name, found, wanted).with_setting(Setting::Batch(name)))
        };
        if !(1..=MAX_BATCH).contains(&self.max_batch) {
            return refused("max_batch", self.max_batch.to_string(), format!("1 to {MAX_BATCH}"));
        }
        if self.max_waiting == 0 {
            return refused("max_waiting", "0".to_owned(), "at least 1".to_owned());
        }
        if let Some(size) = self.sizes.iter().find(|&&size| size == 0 || size > self.max_batch) {
            return refused("sizes", size.to_string(), format!("1 to max_batch, {}", self.max_batch));
        }
        if self.sizes.is_empty() {
            return Ok((1..=self.max_batch).collect());
        }
        let mut sizes = self.sizes.clone();
        sizes.push(self.max_batch);
        sorted::sort(&mut sizes, Ord::cmp);
        sizes.dedup();
        Ok(sizes)
    }
}

/// What a [`Batch`] has done so far.
///
/// ```
/// # use diptych::{Backend, Batch, BatchOptions, Context, DevicePool, Function, Graph, HostTensor, Shape, Term};
/// # let mut graph = Graph::new();
/// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
/// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
/// # graph.output(double)?;
/// # let input = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]);
/// # let batch = Batch::new(&Context::new(Backend::Cpu)?, &graph, BatchOptions::default())?;
/// batch.run([("x", input(1.0)?)])?;
/// let counts = batch.counts();
/// assert_eq!((counts.requests, counts.runs[0], counts.waiting), (1, 1, 0));
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchCounts {
    /// Requests that were answered, with results or an error.
    pub requests: u64,
    /// Runs of one request, of two, and so on.
    pub runs: Vec<u64>,
    /// Requests that wait at this moment, those included that are held back.
    pub waiting: usize,
}

/// One network that serves requests of many tasks: what is asked for at about the same time becomes one run, whose
/// results are split again.
///
/// What the batch sizes need is made ready when the service is made; a thread of its own gathers requests, in the order
/// of their arrival, and keeps the device busy: while one run is under way, the next one is uploaded. Shared by
/// reference or in an [`Arc`] between tasks and threads.
///
/// Dropped, it answers what it has taken, waits for its thread and releases its session, which can take seconds. In a
/// task of an executor, await [`Batch::close`] instead: it does the same and blocks nobody.
///
/// Each request has the results that it would have alone, whatever the network does along its batch's axis
/// ([`Graph::with_batch`]). A network with a state ([`Graph::state`]), which belongs to one sequence of runs, is refused.
///
/// ```
/// use diptych::{Backend, Batch, BatchOptions, Context, Extras, Graph, HostTensor, Pointwise, Shape};
///
/// let mut graph = Graph::new();
/// let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
/// let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
/// let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
/// graph.output(y)?;
///
/// let batch = Batch::new(&Context::new(Backend::Cpu)?, &graph, BatchOptions::default())?;
/// std::thread::scope(|scope| {
///     for client in 0..3u8 {
///         let batch = &batch;
///         scope.spawn(move || {
///             let x = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![f32::from(client), 1.0])?;
///             let outputs = batch.run([("x", x)])?;
///             assert_eq!(*outputs[0].to_f32(), [f32::from(client) + 1.0]);
///             Ok::<(), diptych::Error>(())
///         });
///     }
/// });
/// assert_eq!(batch.counts().requests, 3);
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug)]
pub struct Batch {
    queue: Arc<Queue>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    /// Whether a device keeps integers of 64 bits in 32.
    narrow: bool,
    /// What each device's session keeps.
    memory: Vec<MemoryUse>,
    threads: Vec<JoinHandle<()>>,
}

impl Batch {
    /// Makes all sizes ready and begins to serve.
    ///
    /// ```
    /// # use diptych::{Backend, Batch, BatchOptions, Context, DevicePool, Function, Graph, HostTensor, Shape, Term};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let input = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]);
    /// let batch = Batch::new(&Context::new(Backend::Cpu)?, &graph, BatchOptions::default())?;
    /// assert_eq!(*batch.run([("x", input(3.0)?)])?[0].to_f32(), [6.0, 2.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an option is out of its range, the network has states or cannot be batched, or what [`Session::new`] says
    /// of one of the sizes.
    pub fn new(context: &Context, graph: &Graph, options: BatchOptions) -> Result<Self> {
        Self::on(&[context], graph, options)
    }

    /// [`Batch::new`] on several devices, made ready at the same time.
    fn on(contexts: &[&Context], graph: &Graph, options: BatchOptions) -> Result<Self> {
        let sizes = options.planned()?;
        if let Some(state) = graph.states().first() {
            let name = graph.name(state.value)?;
            return Err(Error::unsupported(
                "a batch",
                format!("the network has state {name:?}, which belongs to one sequence of runs"),
            ));
        }
        if let Some(name) = options.session.open.keys().next() {
            let why = format!("its sessions have fixed extents, and {name:?} is to be open");
            return Err(Error::unsupported("open dimensions in a batch", why).with_setting(Setting::Open));
        }
        let one = of_one(graph, options.dimension.as_deref())?;
        let (inputs, outputs) = (Port::all(&one, one.inputs())?, Port::all(&one, one.outputs())?);
        // The weights are the graph's own: all devices upload the same.
        let of_size = |&size: &usize| Ok((size, one.with_batch(size)?));
        let graphs = sizes.iter().map(of_size).collect::<Result<Vec<_>>>()?;
        for (size, graph) in &graphs {
            let grown = |one: &[Port], all: &[Port]| {
                one.iter().zip(all).try_for_each(|(one, all)| grows(one, all, *size))
            };
            grown(&inputs, &Port::all(graph, graph.inputs())?)?;
            grown(&outputs, &Port::all(graph, graph.outputs())?)?;
        }
        let session = |context: &Context| {
            let mut session = options.session.clone();
            // The other devices' threads copy and wait on its cores.
            if contexts.len() > 1 && context.info().backend == Backend::Cpu {
                let half = NonZeroUsize::new(crate::parallel::threads() / 2).unwrap_or(NonZeroUsize::MIN);
                session.cpu_threads.get_or_insert(half);
            }
            Session::of_sizes(context, &graphs, &inputs, session)
        };
        let all = match contexts {
            [context] => vec![session(context)?],
            _ => on_threads(contexts, session)?,
        };
        Self::serving(all, inputs, outputs, &options)
    }

    /// A service of devices, each with a session of all sizes.
    fn serving(
        all: Vec<Session>,
        inputs: Vec<Port>,
        outputs: Vec<Port>,
        options: &BatchOptions,
    ) -> Result<Self> {
        let sizes = options.planned()?;
        let queue = Queue::new(all.len(), sizes.clone(), options.max_waiting, options.max_delay);
        let narrow = all.iter().any(|session| session.word(DType::I64) != DType::I64);
        let memory = all.iter().map(Session::memory).collect();
        let (queue, threads) = (Arc::new(queue), Vec::new());
        let mut batch = Batch { queue, inputs, outputs, narrow, memory, threads };
        for (member, session) in all.into_iter().enumerate() {
            let (queue, sizes) = (Arc::clone(&batch.queue), sizes.clone());
            let (inputs, outputs) = (batch.inputs.clone(), batch.outputs.clone());
            queue.started();
            let worker = Worker { queue: Arc::clone(&queue), member, session, sizes, inputs, outputs };
            #[expect(clippy::disallowed_methods, reason = "a batch has a thread for each session")]
            let thread =
                thread::Builder::new().name("diptych batch".to_owned()).spawn(move || worker.serve());
            batch.threads.push(thread.inspect_err(|_| queue.gone()).map_err(no_thread)?);
        }
        Ok(batch)
    }

    /// Answers what was taken, ends the threads and releases the sessions, awaited. Dropping a batch does the same, but
    /// blocks the thread until it is done. Requests that come after the first poll get an error.
    ///
    /// If the future is dropped before it is done, the batch is dropped with it and blocks for what is left.
    ///
    /// ```
    /// # use diptych::{Backend, Batch, BatchOptions, Context, Function, Graph, HostTensor, Shape, Term};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let y = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(y)?;
    /// # pollster::block_on(async {
    /// let batch = Batch::new(&Context::new(Backend::Cpu)?, &graph, BatchOptions::default())?;
    /// let x = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![3.0, 4.0])?;
    /// let ticket = batch.submit_async([("x", x)]).await?;
    /// batch.close().await;
    /// // What was taken before has its answer.
    /// assert_eq!(*ticket.await?[0].to_f32(), [6.0, 8.0]);
    /// # Ok::<(), diptych::Error>(())
    /// # })?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub async fn close(self) {
        self.queue.close();
        std::future::poll_fn(|context| self.queue.poll_gone(context)).await;
        // The threads have nothing left to do but to end: dropping this joins them at once.
    }

    /// The inputs of one request.
    ///
    /// ```
    /// # use diptych::{Backend, Batch, BatchOptions, Context, DevicePool, Function, Graph, HostTensor, Shape, Term};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let input = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]);
    /// # let batch = Batch::new(&Context::new(Backend::Cpu)?, &graph, BatchOptions::default())?;
    /// assert_eq!((batch.inputs()[0].name.as_str(), batch.inputs()[0].dims.elements()), ("x", 2));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// The outputs of one request.
    ///
    /// ```
    /// # use diptych::{Backend, Batch, BatchOptions, Context, DevicePool, Function, Graph, HostTensor, Shape, Term};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let input = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]);
    /// # let batch = Batch::new(&Context::new(Backend::Cpu)?, &graph, BatchOptions::default())?;
    /// assert_eq!((batch.outputs()[0].name.as_str(), batch.outputs()[0].dims.elements()), ("double", 2));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// What was done so far.
    ///
    /// ```
    /// # use diptych::{Backend, Batch, BatchOptions, Context, DevicePool, Function, Graph, HostTensor, Shape, Term};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let input = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]);
    /// # let batch = Batch::new(&Context::new(Backend::Cpu)?, &graph, BatchOptions::default())?;
    /// batch.run([("x", input(1.0)?)])?;
    /// assert_eq!(batch.counts().requests, 1);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn counts(&self) -> BatchCounts {
        self.queue.counts()
    }

    /// The memory that it keeps on each device, in the order of the contexts. All sizes share the weights, which are there
    /// once for each way in which kernels want them packed, and use the same buffers.
    ///
    /// ```
    /// # use diptych::{Backend, Batch, BatchOptions, Context, DevicePool, Function, Graph, HostTensor, Shape, Term};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let batch = Batch::new(&Context::new(Backend::Cpu)?, &graph, BatchOptions::default())?;
    /// for memory in batch.memory() {
    ///     println!("{} bytes of weights, {} of buffers", memory.constants, memory.planned);
    /// }
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn memory(&self) -> &[MemoryUse] {
        &self.memory
    }

    /// Runs the network on one request's inputs, by name, and waits for the outputs.
    ///
    /// ```
    /// # use diptych::{Backend, Batch, BatchOptions, Context, DevicePool, Function, Graph, HostTensor, Shape, Term};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let input = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]);
    /// # let batch = Batch::new(&Context::new(Backend::Cpu)?, &graph, BatchOptions::default())?;
    /// let outputs = batch.run([("x", input(3.0)?)])?;
    /// assert_eq!(*outputs[0].to_f32(), [6.0, 2.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an input is missing, unknown, given twice or of another shape; this concerns no other request. If the
    /// run fails, all of its requests get the error, [`Error::Shared`].
    pub fn run<N: AsRef<str>>(
        &self,
        inputs: impl IntoIterator<Item = (N, HostTensor)>,
    ) -> Result<Vec<HostTensor>> {
        self.submit(inputs)?.wait()
    }

    /// [`Batch::run`] for a task of any executor. Dropped, the request is withdrawn, unless its run has begun.
    ///
    /// ```
    /// # use diptych::{Backend, Batch, BatchOptions, Context, DevicePool, Function, Graph, HostTensor, Shape, Term};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let input = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]);
    /// # let batch = Batch::new(&Context::new(Backend::Cpu)?, &graph, BatchOptions::default())?;
    /// # pollster::block_on(async {
    /// let outputs = batch.run_async([("x", input(3.0)?)]).await?;
    /// assert_eq!(*outputs[0].to_f32(), [6.0, 2.0]);
    /// # Ok::<(), diptych::Error>(())
    /// # })?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Batch::run`].
    pub async fn run_async<N: AsRef<str>>(
        &self,
        inputs: impl IntoIterator<Item = (N, HostTensor)>,
    ) -> Result<Vec<HostTensor>> {
        self.submit_async(inputs).await?.await
    }

    /// Hands in a request and waits until it is taken, which is at once where fewer than
    /// [`BatchOptions::max_waiting`] wait.
    ///
    /// ```
    /// # use diptych::{Backend, Batch, BatchOptions, Context, DevicePool, Function, Graph, HostTensor, Shape, Term};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let input = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]);
    /// # let batch = Batch::new(&Context::new(Backend::Cpu)?, &graph, BatchOptions::default())?;
    /// // Both may be answered by one run.
    /// let tickets = [batch.submit([("x", input(1.0)?)])?, batch.submit([("x", input(2.0)?)])?];
    /// for (ticket, wanted) in tickets.into_iter().zip([2.0, 4.0]) {
    ///     assert_eq!(ticket.wait()?[0].to_f32()[0], wanted);
    /// }
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Batch::run`] that concern the inputs.
    pub fn submit<N: AsRef<str>>(&self, inputs: impl IntoIterator<Item = (N, HostTensor)>) -> Result<Ticket> {
        let ticket = self.queue.push(self.arranged(inputs)?)?;
        ticket.wait_for_room();
        Ok(ticket)
    }

    /// [`Batch::submit`] for a task of any executor. Dropped before it is done, the request is withdrawn.
    ///
    /// ```
    /// # use diptych::{Backend, Batch, BatchOptions, Context, DevicePool, Function, Graph, HostTensor, Shape, Term};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let input = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]);
    /// # let batch = Batch::new(&Context::new(Backend::Cpu)?, &graph, BatchOptions::default())?;
    /// # pollster::block_on(async {
    /// let ticket = batch.submit_async([("x", input(1.0)?)]).await?;
    /// assert_eq!(ticket.await?[0].to_f32()[0], 2.0);
    /// # Ok::<(), diptych::Error>(())
    /// # })?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Batch::submit`].
    pub async fn submit_async<N: AsRef<str>>(
        &self,
        inputs: impl IntoIterator<Item = (N, HostTensor)>,
    ) -> Result<Ticket> {
        let mut ticket = self.queue.push(self.arranged(inputs)?)?;
        std::future::poll_fn(|context| ticket.poll_room(context)).await;
        Ok(ticket)
    }

    /// [`Batch::submit`] if there is room; `None` otherwise. For a server that would rather refuse than hold back.
    ///
    /// ```
    /// # use diptych::{Backend, Batch, BatchOptions, Context, DevicePool, Function, Graph, HostTensor, Shape, Term};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let input = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]);
    /// # let batch = Batch::new(&Context::new(Backend::Cpu)?, &graph, BatchOptions::default())?;
    /// match batch.try_submit([("x", input(1.0)?)])? {
    ///     Some(ticket) => assert_eq!(ticket.wait()?[0].to_f32()[0], 2.0),
    ///     None => println!("too many are waiting: come again"),
    /// }
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Batch::submit`].
    pub fn try_submit<N: AsRef<str>>(
        &self,
        inputs: impl IntoIterator<Item = (N, HostTensor)>,
    ) -> Result<Option<Ticket>> {
        self.queue.push_if_room(self.arranged(inputs)?)
    }

    /// A request's inputs in the order of the ports.
    fn arranged<N: AsRef<str>>(
        &self,
        inputs: impl IntoIterator<Item = (N, HostTensor)>,
    ) -> Result<Vec<HostTensor>> {
        let inputs: Vec<(N, HostTensor)> = inputs.into_iter().collect();
        let named: Vec<(&str, &HostTensor)> =
            inputs.iter().map(|(name, tensor)| (name.as_ref(), tensor)).collect();
        let arranged = crate::session::arranged(&self.inputs, &named)?;
        // What does not fit is refused to its own request, and what is to be converted is so on the caller's thread.
        let converted = |(port, tensor): (&Port, &HostTensor)| {
            let word = if self.narrow { port.dtype.device_word() } else { port.dtype.word() };
            let words = word::of_tensor(tensor, word, port.dtype, &format!("input {:?}", port.name))?;
            match (word, words) {
                (DType::F32, Cow::Owned(words)) => HostTensor::new(port.dims, words),
                _ => Ok(tensor.clone()),
            }
        };
        self.inputs.iter().zip(arranged).map(converted).collect()
    }
}

impl Drop for Batch {
    #[expect(clippy::disallowed_methods, reason = "its threads end before it does")]
    fn drop(&mut self) {
        self.queue.close();
        // A task that is woken on one of the threads may drop this there. The others may wait for what that one has under
        // way, so it must not wait for them: all end by themselves.
        let own = thread::current().id();
        if self.threads.iter().any(|thread| thread.thread().id() == own) {
            return;
        }
        for thread in self.threads.drain(..) {
            // A panic there has been reported to those who wait.
            drop(thread.join());
        }
    }
}

fn no_thread(error: std::io::Error) -> Error {
    Error::Internal(format!("no thread for a batch: {error}"))
}

/// What `work` gives of each context, all at the same time.
#[expect(clippy::disallowed_methods, reason = "sessions of a pool are made at the same time")]
fn on_threads<T: Send>(contexts: &[&Context], work: impl Fn(&Context) -> Result<T> + Sync) -> Result<Vec<T>> {
    std::thread::scope(|scope| {
        let begin = |context| {
            let work = &work;
            let work = move || caught("a session of a pool", || work(context))?;
            std::thread::Builder::new().spawn_scoped(scope, work).map_err(no_thread)
        };
        let threads: Vec<_> = contexts.iter().copied().map(begin).collect();
        let died = |_| Err(Error::Internal("the thread that made a session of a pool died".to_owned()));
        threads.into_iter().map(|thread| thread?.join().unwrap_or_else(died)).collect()
    })
}

/// The network of one request. `dimension`: the named one that counts requests.
fn of_one<'g>(graph: &'g Graph, dimension: Option<&str>) -> Result<Cow<'g, Graph>> {
    let Some(name) = dimension.or_else(|| graph.outermost_dimension()) else {
        return Ok(Cow::Borrowed(graph));
    };
    let one = graph.with_dimensions(&[(name, 1)])?;
    for &input in one.inputs() {
        if !matches!(one.declared(input)?.first(), Some(Dim::Named(own)) if own == name) {
            let input = one.name(input)?;
            let found = format!("{name:?}, which is not the outermost of input {input:?}");
            let error = Error::input("dimension", found, "the outermost of every input");
            return Err(error.with_setting(Setting::Batch("dimension")));
        }
    }
    Ok(Cow::Owned(one))
}

/// Checks that a batch of `size` is as many of `one`, one behind the other; numbers are a list of them.
fn grows(one: &Port, all: &Port, size: usize) -> Result<()> {
    let (own, found) = (one.dims.extents(), all.dims.extents());
    let grown = own.first().unwrap_or(&1).checked_mul(size);
    let same = own.get(1..).unwrap_or_default() == found.get(1..).unwrap_or_default();
    if size == 1 && own == found || grown.is_some() && found.first().copied() == grown && same {
        return Ok(());
    }
    Err(Error::shape(
        "batch",
        format!("{:?} of {} for {size} requests and of {} for one", one.name, all.dims, one.dims),
        "an outermost extent that grows with the requests",
    ))
}

#[cfg(all(shuttle, test))]
mod interleavings;

#[cfg(not(shuttle))]
#[cfg(test)]
mod tests;
