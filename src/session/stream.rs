//! A stream of frames through a session, several of them under way at once.

use super::{Session, device};
use crate::error::Result;
use crate::host::HostTensor;
use crate::task::Running;
use std::collections::VecDeque;
use std::iter::Fuse;
use std::sync::Arc;

/// Frames under way by default: one on the device, one being prepared or read.
const DEFAULT_IN_FLIGHT: usize = 2;

/// A frame under way.
#[derive(Debug)]
pub(super) enum Flight {
    Device(device::DeviceFlight),
    Cpu(Running<Vec<Arc<[f32]>>>),
}

/// The outputs of a stream of frames, in their order. Made by [`Session::stream`].
#[derive(Debug)]
pub struct Stream<'s, I: Iterator> {
    session: &'s mut Session,
    frames: Fuse<I>,
    flights: VecDeque<Result<Flight>>,
    in_flight: usize,
}

impl<'s, I: Iterator> Stream<'s, I> {
    pub(super) fn new(session: &'s mut Session, frames: I) -> Self {
        Stream { session, frames: frames.fuse(), flights: VecDeque::new(), in_flight: DEFAULT_IN_FLIGHT }
    }

    /// At most this many frames under way at once, at least 1; 2 unless set. More take more memory
    /// on the host and rarely less time.
    #[must_use]
    pub fn in_flight(mut self, frames: usize) -> Self {
        self.in_flight = frames.max(1);
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
        while self.flights.len() < self.in_flight {
            let Some(frame) = self.frames.next() else { break };
            let frame: Vec<(N, HostTensor)> = frame.into_iter().collect();
            let inputs: Vec<(&str, &HostTensor)> =
                frame.iter().map(|(name, tensor)| (name.as_ref(), tensor)).collect();
            self.flights.push_back(self.session.start(&inputs));
        }
        let flight = self.flights.pop_front()?;
        Some(flight.and_then(|flight| self.session.finish(flight)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let under_way = self.flights.len();
        let (least, most) = self.frames.size_hint();
        (least.saturating_add(under_way), most.and_then(|most| most.checked_add(under_way)))
    }
}
