//! The thread of a service: batches are started, waited for and split.

use super::queue::{Next, Queue, Request};
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::session::{Flight, Port, Session};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

/// Runs under way at most: one on the device, one that is uploaded.
const IN_FLIGHT: usize = 2;

/// What the thread owns.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) queue: Arc<Queue>,
    /// The sessions by the requests they take, the smallest first.
    pub(super) sessions: Vec<(usize, Session)>,
    /// The outputs of one request.
    pub(super) outputs: Vec<Port>,
}

/// A run under way.
struct Running {
    requests: Vec<Request>,
    /// The session's place, and what it is to wait for.
    flight: Result<(usize, Flight)>,
}

/// Ends the service when the thread does, also by a panic.
struct End(Arc<Queue>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

impl Worker {
    /// Serves until the service is closed and everything is answered.
    pub(super) fn serve(mut self) {
        let end = End(Arc::clone(&self.queue));
        let mut running: VecDeque<Running> = VecDeque::new();
        loop {
            let next = match running.len() {
                0 => self.queue.next(),
                IN_FLIGHT.. => Next::NotYet,
                // While the device is busy, more may come: a batch that is not full waits.
                _ => self.queue.full(),
            };
            match next {
                Next::Run(requests) => {
                    let flight = self.start(&requests);
                    running.push_back(Running { requests, flight });
                }
                Next::NotYet => {
                    if let Some(oldest) = running.pop_front() {
                        self.finish(oldest);
                    }
                }
                Next::End => break,
            }
        }
        drop(end);
    }

    fn start(&mut self, requests: &[Request]) -> Result<(usize, Flight)> {
        let fits = |(size, _): &(usize, Session)| *size >= requests.len();
        let found = self.sessions.iter().position(fits);
        let missing = || Error::Internal(format!("no session for {} requests", requests.len()));
        let place = found.ok_or_else(missing)?;
        let (size, session) = self.sessions.get_mut(place).ok_or_else(missing)?;
        let ports = requests.first().map_or(0, |request| request.inputs.len());
        let joined: Vec<Cow<'_, [f32]>> = (0..ports).map(|port| joined(requests, port, *size)).collect();
        Ok((place, session.start_arranged(&joined)?))
    }

    fn finish(&mut self, Running { requests, flight }: Running) {
        let read = flight.and_then(|(place, flight)| {
            let session = self.sessions.get(place).map(|(_, session)| session);
            session.ok_or_else(|| Error::Internal("a run of another session".to_owned()))?.finish(flight)
        });
        match read {
            Ok(outputs) => {
                for (index, request) in requests.into_iter().enumerate() {
                    request.answer(self.part(&outputs, index));
                }
            }
            Err(error) => {
                let (source, of) = (Arc::new(error), requests.len());
                for request in requests {
                    request.answer(Err(Error::Shared { of, source: Arc::clone(&source) }));
                }
            }
        }
    }

    /// The outputs of one request.
    fn part(&self, outputs: &[HostTensor], index: usize) -> Result<Vec<HostTensor>> {
        let part = |(port, all): (&Port, &HostTensor)| {
            let elements = port.dims.elements();
            let all = all.to_f32();
            let own = index.checked_mul(elements).and_then(|first| all.get(first..)?.get(..elements));
            let own = own.ok_or_else(|| Error::Internal(format!("{index} of {} elements", all.len())))?;
            HostTensor::new(port.dims, own)
        };
        self.outputs.iter().zip(outputs).map(part).collect()
    }
}

/// One port's elements of all requests, with zeros in the spare places.
fn joined(requests: &[Request], port: usize, size: usize) -> Cow<'_, [f32]> {
    let parts = || requests.iter().filter_map(|request| request.inputs.get(port));
    let mut parts_left = parts();
    match (parts_left.next(), parts_left.next()) {
        (Some(only), None) if size == 1 => Cow::Borrowed(only),
        (first, _) => {
            let elements = first.map_or(0, |first| first.len());
            let mut all = Vec::with_capacity(size * elements);
            parts().for_each(|part| all.extend_from_slice(part));
            all.resize(size * elements, 0.0);
            Cow::Owned(all)
        }
    }
}
