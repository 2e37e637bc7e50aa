//! One network on several devices: [`DevicePool`].

use super::members::Standing;
use super::ticket::Ticket;
use super::worker::IN_FLIGHT;
use super::{Batch, BatchOptions};
use crate::context::{Context, ContextInfo};
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::host::HostTensor;
#[cfg(doc)]
use crate::options::SessionOptions;
use std::collections::VecDeque;
use std::iter::Fuse;
use std::sync::Arc;
use std::time::Duration;

/// One network on several devices (GPUs, or GPUs and the CPU), which serve requests as a [`Batch`] does.
///
/// Each device has a thread and sessions of its own; the weights are read once. Requests wait in one queue, and each
/// device takes a batch of them when it is free: at most its share of what waits and is under way, by the speed at which it
/// was seen to run, so that fast and slow ones are done at about the same time. One that is less than half as fast as the
/// fastest takes a quarter of its share, and full batches only: what it has begun is waited for when results are read in
/// order. Until a device was seen to run it takes one.
///
/// The CPU as a device beside others computes on half of rayon's threads, unless [`SessionOptions::cpu_threads`] says
/// otherwise: they copy on its cores. Where it is much slower than they are it adds little, if anything.
///
/// A device that is lost is taken out, and what it had begun runs on another one. So does a run that failed: if it
/// succeeds there, the first device is taken out; if it fails there as well, its requests get the error, and both go on.
/// The last device is not taken out: its errors are those of the requests. A function of the application that panics
/// ([`Error::Panicked`]) is no device's fault: the run's requests get the error at once.
///
/// ```
/// use diptych::{Backend, BatchOptions, Context, Extras, Graph, HostTensor, Pointwise, DevicePool, Shape};
///
/// let mut graph = Graph::new();
/// let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
/// let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
/// let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
/// graph.output(y)?;
///
/// // Every GPU, or the CPU if there is none.
/// let mut contexts = Vec::new();
/// for gpu in diptych::gpus() {
///     contexts.extend(gpu.builder(Backend::Auto).map(|builder| builder.open()).transpose()?);
/// }
/// if contexts.is_empty() {
///     contexts.push(Context::new(Backend::Cpu)?);
/// }
/// let pool = DevicePool::new(&contexts, &graph, BatchOptions { max_batch: 4, ..BatchOptions::default() })?;
/// let frames = (0..10u8).map(|frame| {
///     [("x", HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![f32::from(frame), 1.0]).unwrap())]
/// });
/// for (outputs, frame) in pool.map(frames).zip(0u8..) {
///     assert_eq!(outputs?[0].to_f32()[0], f32::from(frame) + 1.0);
/// }
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug)]
pub struct DevicePool {
    batch: Batch,
    contexts: Vec<ContextInfo>,
    window: usize,
}

/// A device of a [`DevicePool`], and what it has done.
///
/// ```
/// # use diptych::{Backend, Batch, BatchOptions, Context, DevicePool, Function, Graph, HostTensor, Shape, Term};
/// # let mut graph = Graph::new();
/// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
/// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
/// # graph.output(double)?;
/// # let input = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]);
/// # let pool = DevicePool::new(&[Context::new(Backend::Cpu)?], &graph, BatchOptions::default())?;
/// pool.batch().run([("x", input(1.0)?)])?;
/// for device in pool.devices() {
///     println!("{}: {} requests, {:?} each", device.context, device.requests, device.time);
///     assert!(device.error.is_none());
/// }
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PoolDevice {
    /// Which one it is.
    pub context: ContextInfo,
    /// Requests that it has answered.
    pub requests: u64,
    /// How long a request of a run takes it, of late, if a run was seen.
    pub time: Option<Duration>,
    /// Why it was taken out, if it was.
    pub error: Option<Arc<Error>>,
}

impl DevicePool {
    /// Makes the sessions of all sizes ready on each device, at the same time, and begins to serve.
    ///
    /// [`BatchOptions::max_waiting`] counts the requests that wait for all devices: below `max_batch` for each of them,
    /// batches stay small.
    ///
    /// ```
    /// # use diptych::{Backend, Batch, BatchOptions, Context, DevicePool, Function, Graph, HostTensor, Shape, Term};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let input = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]);
    /// // Two devices that are the same one share its cores; usually they are cards.
    /// let contexts = [Context::new(Backend::Cpu)?, Context::new(Backend::Cpu)?];
    /// let pool = DevicePool::new(&contexts, &graph, BatchOptions::default())?;
    /// assert_eq!(pool.devices().len(), 2);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no context, or what [`Batch::new`] says on one of them.
    pub fn new(contexts: &[Context], graph: &Graph, options: BatchOptions) -> Result<Self> {
        if contexts.is_empty() {
            return Err(Error::input("a pool's devices", "none", "at least one context"));
        }
        let batch = Batch::on(&contexts.iter().collect::<Vec<_>>(), graph, options.clone())?;
        Ok(Self::of(batch, contexts.iter().map(|context| context.info().clone()).collect(), &options))
    }

    /// The pool of a service and its devices.
    pub(super) fn of(batch: Batch, contexts: Vec<ContextInfo>, options: &BatchOptions) -> Self {
        let under_way = contexts.len().saturating_mul(IN_FLIGHT).saturating_mul(options.max_batch);
        let window = options.max_waiting.saturating_add(under_way);
        DevicePool { batch, contexts, window }
    }

    /// Takes requests one by one, from any number of tasks.
    ///
    /// ```
    /// # use diptych::{Backend, Batch, BatchOptions, Context, DevicePool, Function, Graph, HostTensor, Shape, Term};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let input = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]);
    /// # let pool = DevicePool::new(&[Context::new(Backend::Cpu)?], &graph, BatchOptions::default())?;
    /// assert_eq!(pool.batch().run([("x", input(1.0)?)])?[0].to_f32()[0], 2.0);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// The devices, in the order of the contexts.
    ///
    /// ```
    /// # use diptych::{Backend, Batch, BatchOptions, Context, DevicePool, Function, Graph, HostTensor, Shape, Term};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let input = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]);
    /// # let pool = DevicePool::new(&[Context::new(Backend::Cpu)?], &graph, BatchOptions::default())?;
    /// assert_eq!(pool.devices()[0].context.backend, Backend::Cpu);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn devices(&self) -> Vec<PoolDevice> {
        let members = self.batch.queue.members();
        let device = |(context, member): (&ContextInfo, super::members::Member)| PoolDevice {
            context: context.clone(),
            requests: member.requests,
            time: member.time().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            error: match member.standing {
                Standing::Out(error) => Some(error),
                Standing::Good | Standing::Suspect => None,
            },
        };
        self.contexts.iter().zip(members).map(device).collect()
    }

    /// Answers what was taken, ends the threads and releases the sessions, awaited: [`Batch::close`]. Dropping a pool does
    /// the same, but blocks the thread until it is done.
    ///
    /// ```
    /// # use diptych::{Backend, BatchOptions, Context, DevicePool, Function, Graph, Shape, Term};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let y = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(y)?;
    /// let pool = DevicePool::new(&[Context::new(Backend::Cpu)?], &graph, BatchOptions::default())?;
    /// # pollster::block_on(async {
    /// pool.close().await;
    /// # });
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub async fn close(self) {
        self.batch.close().await;
    }

    /// The outputs of many frames, in the frames' order. Frames are taken from the iterator while fewer than
    /// [`BatchOptions::max_waiting`] wait for a device: it may go on for ever.
    ///
    /// A frame that is refused has its error in its place, as has one whose run failed; the others go on.
    ///
    /// ```
    /// # use diptych::{Backend, Batch, BatchOptions, Context, DevicePool, Function, Graph, HostTensor, Shape, Term};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let input = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]);
    /// # let pool = DevicePool::new(&[Context::new(Backend::Cpu)?], &graph, BatchOptions::default())?;
    /// let frames = (0..5u8).map(|frame| [("x", input(f32::from(frame)).unwrap())]);
    /// for (outputs, frame) in pool.map(frames).zip(0u8..) {
    ///     assert_eq!(outputs?[0].to_f32()[0], 2.0 * f32::from(frame));
    /// }
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn map<I, F, N>(&self, frames: I) -> PoolStream<'_, I::IntoIter>
    where
        I: IntoIterator<Item = F>,
        F: IntoIterator<Item = (N, HostTensor)>,
        N: AsRef<str>,
    {
        PoolStream { pool: self, frames: frames.into_iter().fuse(), tickets: VecDeque::new() }
    }
}

/// The outputs of a [`DevicePool`]'s frames, in their order. Made by [`DevicePool::map`].
#[derive(Debug)]
pub struct PoolStream<'p, I: Iterator> {
    pool: &'p DevicePool,
    frames: Fuse<I>,
    tickets: VecDeque<Result<Ticket>>,
}

impl<I, F, N> Iterator for PoolStream<'_, I>
where
    I: Iterator<Item = F>,
    F: IntoIterator<Item = (N, HostTensor)>,
    N: AsRef<str>,
{
    type Item = Result<Vec<HostTensor>>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = &self.pool.batch;
        while self.tickets.len() < self.pool.window {
            let Some(frame) = self.frames.next() else { break };
            self.tickets.push_back(batch.arranged(frame).and_then(|inputs| batch.queue.push(inputs)));
        }
        let ticket = self.tickets.pop_front()?;
        Some(ticket.and_then(Ticket::wait))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let under_way = self.tickets.len();
        let (least, most) = self.frames.size_hint();
        (least.saturating_add(under_way), most.and_then(|most| most.checked_add(under_way)))
    }
}
