//! A run that was submitted, and what came of it.

use super::output_memory::OutputMemory;
use super::ports::{targets, unknown};
use crate::alloc;
use crate::device::copy::copy;
use crate::device::{Pending, Readback};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::source::Port;
use crate::task::Awaited;
use crate::word;
use std::future::IntoFuture;
use std::sync::Arc;

/// Where an output lies in what a run reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutputPlace {
    pub(super) read: usize,
    pub(super) offset: usize,
    pub(super) bytes: usize,
}

/// Where the outputs of a session's runs lie, and memory for copies of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Layout {
    pub(super) places: Arc<[OutputPlace]>,
    /// The types of the outputs' words.
    pub(super) words: Arc<[DType]>,
    pub(super) spare: Arc<OutputMemory>,
    /// Words of outputs that no run computes: as many reads more, behind the run's.
    pub(super) fixed: Arc<[Vec<f32>]>,
}

/// What a run read, and what was known before.
#[derive(Debug)]
struct WithFixed {
    read: Box<dyn Readback>,
    fixed: Arc<[Vec<f32>]>,
}

impl Readback for WithFixed {
    fn parts(&self) -> Vec<&[u8]> {
        let mut parts = self.read.parts();
        parts.extend(self.fixed.iter().map(|words| bytemuck::cast_slice::<f32, u8>(words)));
        parts
    }
}

/// What a runner gives: a run under way, or one that is over.
#[derive(Debug)]
pub(super) enum Launched {
    Pending(Box<dyn Pending>),
    Done(Box<dyn Readback>),
}

impl Launched {
    /// What the run read, once it is there.
    pub(super) fn waited(self) -> Result<Box<dyn Readback>> {
        match self {
            Launched::Pending(pending) => pending.wait(),
            Launched::Done(read) => Ok(read),
        }
    }

    /// [`Launched::waited`], awaited.
    pub(super) async fn arrived(self) -> Result<Box<dyn Readback>> {
        match self {
            Launched::Pending(pending) => pending.arrive().await,
            Launched::Done(read) => Ok(read),
        }
    }
}

/// A run that was submitted and whose outputs are not there yet. Made by [`Session::submit`](crate::Session::submit).
///
/// Wait for it ([`Flight::wait`], [`Flight::wait_into`]), or await it (`flight.await`). It does not borrow the session, which
/// may submit others, run, be tuned or be dropped meanwhile. If a flight is dropped, the run ends and nobody reads its outputs.
#[derive(Debug)]
#[must_use = "the outputs come from `wait`, or when it is awaited"]
pub struct Flight {
    pub(super) launched: Launched,
    pub(super) ports: Arc<[Port]>,
    pub(super) layout: Layout,
}

impl Flight {
    /// Waits for the run.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let flight = session.submit(&[("x", &[1.0f32, 2.0])])?;
    /// // Work of the caller's, or other runs.
    /// assert_eq!(flight.wait()?.get(0)?, [3.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the device fails; and in a browser, where nothing may block and a flight is awaited.
    pub fn wait(self) -> Result<Outputs> {
        Outputs::new(self.ports, self.layout, self.launched.waited()?)
    }

    /// Waits for the run, and copies its outputs to the caller's memory: each by name, with a slice of as many elements as
    /// it has.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let mut sum = [0.0];
    /// session.submit(&[("x", &[1.0f32, 2.0])])?.wait_into(&mut [("sum", &mut sum)])?;
    /// assert_eq!(sum, [3.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Flight::wait`]; also if an output is missing, unknown, given twice or of another length. Then nothing is
    /// written.
    pub fn wait_into(self, outputs: &mut [(&str, &mut [f32])]) -> Result<()> {
        let mut targets = targets(&self.ports, outputs)?;
        self.wait()?.copy_to(&mut targets)
    }
}

impl IntoFuture for Flight {
    type Output = Result<Outputs>;
    type IntoFuture = Awaited<'static, Result<Outputs>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { Outputs::new(self.ports, self.layout, self.launched.arrived().await?) })
    }
}

/// The outputs of a run, without a copy: in memory that the driver has mapped, or the session's own. Other runs use that
/// memory once this is dropped.
///
/// Each output is a slice of f32 in NHWC order, by its number or its name. Integers of 32 and 64 bits come from
/// [`Outputs::integers`], and any type from [`Outputs::tensor`].
///
/// ```
/// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
/// # let mut graph = Graph::new();
/// # let x = graph.input("x", Shape::nhwc(1, 1, 2, 3))?;
/// # let ones = HostTensor::new(Shape::nhwc(1, 1, 1, 3), vec![1.0; 3])?;
/// # let y = graph.pointwise("sum", x, ones, Extras::default(), Pointwise::default())?;
/// # graph.output(y)?;
/// # let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
/// let outputs = session.submit(&[("x", &[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0])])?.wait()?;
/// assert_eq!(outputs.get(0)?, [3.0, 12.0]);
/// assert_eq!(outputs.named("sum")?[1], 12.0);
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug)]
pub struct Outputs {
    ports: Arc<[Port]>,
    layout: Layout,
    read: Box<dyn Readback>,
}

impl Outputs {
    pub(super) fn new(ports: Arc<[Port]>, layout: Layout, read: Box<dyn Readback>) -> Result<Self> {
        let read: Box<dyn Readback> = match layout.fixed.is_empty() {
            true => read,
            false => Box::new(WithFixed { read, fixed: Arc::clone(&layout.fixed) }),
        };
        let parts = read.parts();
        let mut aligned = true;
        for place in &*layout.places {
            let part = place.of(&parts);
            let part = part.ok_or_else(|| Error::Internal(format!("a run did not read {place:?}")))?;
            aligned &= bytemuck::try_cast_slice::<u8, f32>(part).is_ok();
        }
        // Drivers map memory at whole vec4s; what a driver copies before it gets here may lie anywhere.
        let copies = || parts.iter().map(|part| Words::copy(part)).collect::<Result<_>>().map(Copies);
        let copies = if aligned { None } else { Some(copies()?) };
        drop(parts);
        let read = match copies {
            Some(copies) => Box::new(copies),
            None => read,
        };
        Ok(Outputs { ports, layout, read })
    }

    /// How many there are.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let outputs = session.submit(&[("x", &[1.0f32, 2.0])])?.wait()?;
    /// assert_eq!(outputs.len(), 1);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.ports.len()
    }

    /// Whether there are no outputs. A session always has some.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let outputs = session.submit(&[("x", &[1.0f32, 2.0])])?.wait()?;
    /// assert!(!outputs.is_empty());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// The outputs' names and shapes.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let outputs = session.submit(&[("x", &[1.0f32, 2.0])])?.wait()?;
    /// assert_eq!(outputs.ports()[0].name, "sum");
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// An output by its number, in the graph's order.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let outputs = session.submit(&[("x", &[1.0f32, 2.0])])?.wait()?;
    /// assert_eq!(outputs.get(0)?, [3.0]);
    /// assert!(outputs.get(1).is_err());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are fewer outputs, or it is of integers of 32 or 64 bits ([`Outputs::integers`]).
    pub fn get(&self, index: usize) -> Result<&[f32]> {
        let wanted = || format!("a number below {}", self.len());
        let (words, word) = self
            .words(index)
            .ok_or_else(|| Error::input("the outputs of a run", format!("output {index}"), wanted()))?;
        if word != DType::F32 {
            let of = format!("output {:?}", self.ports.get(index).map_or("", |port| &port.name));
            return Err(Error::input(of, format!("a slice of f32 of {word}"), "`tensor` or `integers`"));
        }
        Ok(words)
    }

    /// The elements of output `index` as integers, whatever type of integer it has.
    ///
    /// ```
    /// use diptych::{Backend, Context, DType, Dim, Dims, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let ids = graph.typed_input("ids", DType::I64, &[Dim::Fixed(3)])?;
    /// let turned = graph.reverse("turned", ids, &[0])?;
    /// graph.output(turned)?;
    /// let mut session = Session::new(&Context::new(Backend::Auto)?, &graph, SessionOptions::default())?;
    /// let given = HostTensor::of(Dims::new(&[3])?, vec![16_777_217_i64, 2, -3])?;
    /// let outputs = session.submit(&[("ids", &given)])?.wait()?;
    /// assert_eq!(outputs.integers(0)?, [-3, 2, 16_777_217]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such output, or it is of floats.
    pub fn integers(&self, index: usize) -> Result<Vec<i64>> {
        let port = self.ports.get(index).filter(|port| !port.dtype.is_float());
        match (port, self.words(index)) {
            (Some(_), Some((words, word))) => Ok(word::integers(word, words)),
            (_, Some(_)) => Err(Error::input("integers", format!("output {index} of floats"), "integers")),
            (_, None) => {
                let wanted = format!("a number below {}", self.len());
                Err(Error::input("the outputs of a run", format!("output {index}"), wanted))
            }
        }
    }

    /// The words of output `index`, if there is one, and their type.
    fn words(&self, index: usize) -> Option<(&[f32], DType)> {
        let part = self.layout.places.get(index)?.of(&self.read.parts())?;
        Some((bytemuck::try_cast_slice(part).ok()?, *self.layout.words.get(index)?))
    }

    fn slice(&self, index: usize) -> Option<&[f32]> {
        self.words(index).filter(|(_, word)| *word == DType::F32).map(|(words, _)| words)
    }

    /// An output by its name.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let outputs = session.submit(&[("x", &[1.0f32, 2.0])])?.wait()?;
    /// assert_eq!(outputs.named("sum")?, [3.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If no output has this name; it lists the names that there are.
    pub fn named(&self, name: &str) -> Result<&[f32]> {
        let index = self.ports.iter().position(|port| port.name == name);
        self.get(index.ok_or_else(|| unknown("output", name, &self.ports))?)
    }

    /// The outputs in the graph's order.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let outputs = session.submit(&[("x", &[1.0f32, 2.0])])?.wait()?;
    /// assert_eq!(outputs.iter().map(|output| output[0]).sum::<f32>(), 3.0);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = &[f32]> {
        (0..self.len()).filter_map(|index| self.slice(index))
    }

    /// Copies of the outputs as tensors of their dimensions.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let outputs = session.submit(&[("x", &[1.0f32, 2.0])])?.wait()?;
    /// assert_eq!(outputs.tensors()?[0].dims().extents(), [1, 1, 1, 1]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is none for them.
    pub fn tensors(&self) -> Result<Vec<HostTensor>> {
        (0..self.len()).map(|index| self.tensor(index)).collect()
    }

    /// A copy of output `index` as a tensor of its dimensions, with elements of its port's type.
    ///
    /// ```
    /// use diptych::{Backend, Context, DType, Dim, Dims, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.typed_input("x", DType::I32, &[Dim::Fixed(2)])?;
    /// let truth = graph.cast("truth", x, DType::Bool)?;
    /// graph.output(truth)?;
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let given = HostTensor::of(Dims::new(&[2])?, vec![3_i32, 0])?;
    /// let outputs = session.submit(&[("x", &given)])?.wait()?;
    /// assert_eq!(outputs.tensor(0)?.elements::<bool>(), Some(&[true, false][..]));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such output, or [`Error::OutOfMemory`] if there is no memory for it.
    pub fn tensor(&self, index: usize) -> Result<HostTensor> {
        let (place, port) = (self.layout.places.get(index), self.ports.get(index));
        let (Some(place), Some(port), Some(&word)) = (place, port, self.layout.words.get(index)) else {
            let wanted = format!("a number below {}", self.len());
            return Err(Error::input("the outputs of a run", format!("output {index}"), wanted));
        };
        let parts = self.read.parts();
        let part = place.of(&parts).unwrap_or_default();
        match port.dtype {
            DType::F32 => HostTensor::new(port.dims, self.layout.spare.elements(part)?),
            dtype => {
                let words = bytemuck::try_cast_slice(part).unwrap_or_default();
                word::to_tensor(port.dims, dtype, word, words)
            }
        }
    }

    /// Copies the outputs to the caller's memory: each by name, with a slice of as many elements as it has.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let outputs = session.submit(&[("x", &[1.0f32, 2.0])])?.wait()?;
    /// let mut sum = [0.0];
    /// outputs.copy_into(&mut [("sum", &mut sum)])?;
    /// assert_eq!(sum, [3.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an output is missing, unknown, given twice or of another length. Then nothing is written.
    pub fn copy_into(&self, outputs: &mut [(&str, &mut [f32])]) -> Result<()> {
        self.copy_to(&mut targets(&self.ports, outputs)?)
    }

    /// Copies the outputs to slices in the order of the ports, as long as they are.
    pub(super) fn copy_to(&self, targets: &mut [&mut [f32]]) -> Result<()> {
        let parts = self.read.parts();
        for ((place, word), target) in self.layout.places.iter().zip(&*self.layout.words).zip(targets) {
            let part = place.of(&parts).unwrap_or_default();
            if *word == DType::F32 && part.len() == size_of_val(&**target) {
                copy(bytemuck::cast_slice_mut(target), part);
                continue;
            }
            // Integers as the nearest f32.
            let words: &[f32] = bytemuck::try_cast_slice(part).unwrap_or_default();
            if *word == DType::F32 || words.len() != target.len() * word.words() {
                return Err(Error::Internal("outputs of other lengths than their ports".to_owned()));
            }
            let numbers = word::numbers(*word, words).into_iter();
            target.iter_mut().zip(numbers).for_each(|(to, number)| *to = number as f32);
        }
        Ok(())
    }
}

impl OutputPlace {
    /// Its bytes among what was read.
    fn of<'a>(&self, parts: &[&'a [u8]]) -> Option<&'a [u8]> {
        parts.get(self.read)?.get(self.offset..self.offset.checked_add(self.bytes)?)
    }
}

/// Bytes that begin where an f32 may.
#[derive(Debug)]
struct Words {
    words: Vec<u32>,
    bytes: usize,
}

impl Words {
    fn copy(part: &[u8]) -> Result<Self> {
        let mut words: Vec<u32> = alloc::zeros(part.len().div_ceil(4), "an output")?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        bytes.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
        Ok(Words { words, bytes: part.len() })
    }

    fn part(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words).get(..self.bytes).unwrap_or_default()
    }
}

/// Copies of what a run read.
#[derive(Debug)]
struct Copies(Vec<Words>);

impl Readback for Copies {
    fn parts(&self) -> Vec<&[u8]> {
        self.0.iter().map(Words::part).collect()
    }
}
