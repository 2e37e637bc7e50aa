//! A stream of frames through a session, several of them under way at once.

use super::{Flight, Session};
use crate::error::{Error, Result};
use crate::host::HostTensor;
use std::collections::VecDeque;
use std::iter::Fuse;

/// Frames under way by default: one on the device, one being prepared or read.
const DEFAULT_IN_FLIGHT: usize = 2;

/// The outputs of a stream of frames, in their order. Made by [`Session::stream`].
#[derive(Debug)]
pub struct Stream<'s, I: Iterator>(Frames<'s, I, Error>);

/// The outputs of a stream of frames from a source that may fail, in their order. Made by [`Session::try_stream`].
#[derive(Debug)]
pub struct TryStream<'s, I: Iterator, E>(Frames<'s, I, E>);

/// Frames on their way through a session.
#[derive(Debug)]
struct Frames<'s, I: Iterator, E> {
    session: &'s mut Session,
    frames: Fuse<I>,
    flights: VecDeque<Result<Flight, E>>,
    in_flight: usize,
}

impl<'s, I: Iterator, E: From<Error>> Frames<'s, I, E> {
    fn new(session: &'s mut Session, frames: I) -> Self {
        Frames { session, frames: frames.fuse(), flights: VecDeque::new(), in_flight: DEFAULT_IN_FLIGHT }
    }

    /// Starts a frame.
    fn start<N: AsRef<str>>(
        &mut self,
        frame: impl IntoIterator<Item = (N, HostTensor)>,
    ) -> Result<Flight, E> {
        let frame: Vec<(N, HostTensor)> = frame.into_iter().collect();
        let inputs: Vec<(&str, &HostTensor)> =
            frame.iter().map(|(name, tensor)| (name.as_ref(), tensor)).collect();
        Ok(self.session.submit(&inputs)?)
    }

    /// The outputs of the next frame; `take` is given what the source gives.
    fn next(
        &mut self,
        mut take: impl FnMut(&mut Self, I::Item) -> Result<Flight, E>,
    ) -> Option<Result<Vec<HostTensor>, E>> {
        while self.flights.len() < self.in_flight {
            let Some(frame) = self.frames.next() else { break };
            let flight = take(self, frame);
            self.flights.push_back(flight);
        }
        let flight = self.flights.pop_front()?;
        Some(flight.and_then(|flight| Ok(flight.wait()?.tensors()?)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let under_way = self.flights.len();
        let (least, most) = self.frames.size_hint();
        (least.saturating_add(under_way), most.and_then(|most| most.checked_add(under_way)))
    }
}

impl<'s, I: Iterator> Stream<'s, I> {
    pub(super) fn new(session: &'s mut Session, frames: I) -> Self {
        Stream(Frames::new(session, frames))
    }

    /// Sets how many frames are under way at once: at least 1, and 2 unless set. More take more memory on the host and
    /// rarely save time.
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
    /// let frames = (0..3u8).map(|frame| [("x", HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![f32::from(frame); 2]).unwrap())]);
    /// let sums: Vec<f32> = session
    ///     .stream(frames)
    ///     .in_flight(3)
    ///     .map(|outputs| Ok(outputs?[0].to_f32()[0]))
    ///     .collect::<diptych::Result<_>>()?;
    /// assert_eq!(sums, [0.0, 2.0, 4.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[must_use]
    pub fn in_flight(mut self, frames: usize) -> Self {
        self.0.in_flight = frames.max(1);
        self
    }
}

impl<'s, I: Iterator, E: From<Error>> TryStream<'s, I, E> {
    pub(super) fn new(session: &'s mut Session, frames: I) -> Self {
        TryStream(Frames::new(session, frames))
    }

    /// [`Stream::in_flight`].
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
    /// let frames = (0..3u8).map(|frame| Ok::<_, diptych::Error>([("x", HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![f32::from(frame); 2]).unwrap())]));
    /// let sums: Vec<f32> = session
    ///     .try_stream(frames)
    ///     .in_flight(3)
    ///     .map(|outputs| Ok(outputs?[0].to_f32()[0]))
    ///     .collect::<diptych::Result<_>>()?;
    /// assert_eq!(sums, [0.0, 2.0, 4.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[must_use]
    pub fn in_flight(mut self, frames: usize) -> Self {
        self.0.in_flight = frames.max(1);
        self
    }
}

impl<I, F, N> Iterator for Stream<'_, I>
where
    I: Iterator<Item = F>,
    F: IntoIterator<Item = (N, HostTensor)>,
    N: AsRef<str>,
{
    type Item = Result<Vec<HostTensor>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next(Frames::start)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<I, F, N, E> Iterator for TryStream<'_, I, E>
where
    I: Iterator<Item = Result<F, E>>,
    F: IntoIterator<Item = (N, HostTensor)>,
    N: AsRef<str>,
    E: From<Error>,
{
    type Item = Result<Vec<HostTensor>, E>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next(|frames, frame| frame.and_then(|frame| frames.start(frame)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}
