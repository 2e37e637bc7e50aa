//! The thread of a service: batches are started, waited for and split.

use super::queue::{Next, Queue, Run};
use super::slot::Request;
use crate::clock::Instant;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::session::{Flight, Session};
use crate::source::Port;
use crate::unwind::caught;
use std::collections::VecDeque;
use std::sync::Arc;

/// Runs under way at most: one on the device, one that is uploaded.
pub(super) const IN_FLIGHT: usize = 2;

/// What the thread of a device owns.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) queue: Arc<Queue>,
    /// The device's place.
    pub(super) member: usize,
    pub(super) session: Session,
    /// How many requests its runs may be of, the fewest first.
    pub(super) sizes: Vec<usize>,
    /// The inputs of one request.
    pub(super) inputs: Vec<Port>,
    /// The outputs of one request.
    pub(super) outputs: Vec<Port>,
}

/// What `work` gives. A panic of a run is the error of its requests; the thread serves the others.
fn unpanicked<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    caught("a run of a batch", work)?
}

/// A run under way.
struct Running {
    run: Run,
    begun: Instant,
    flight: Result<Flight>,
}

/// Takes the device out when the thread ends, also by a panic.
struct EndOfThread(Arc<Queue>, usize);

impl Drop for EndOfThread {
    fn drop(&mut self) {
        self.0.ended(self.1);
    }
}

/// Tells that the thread uses the device no more, also after a panic.
struct Gone(Arc<Queue>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.gone();
    }
}

impl Worker {
    /// Serves until the service is closed and everything is answered, or the device is taken out. When this returns, the
    /// thread's session is dropped and the service has been told.
    pub(super) fn serve(self) {
        // Told last: who waits for the service's end may release the device.
        let _gone = Gone(Arc::clone(&self.queue));
        self.work();
    }

    fn work(mut self) {
        let end = EndOfThread(Arc::clone(&self.queue), self.member);
        let mut running: VecDeque<Running> = VecDeque::new();
        loop {
            let next = match running.len() {
                0 => self.queue.next(self.member, true),
                IN_FLIGHT.. => Next::NotYet,
                // The device is busy with one run: a second is uploaded meanwhile, if there is one. Those who wait for
                // the first may be all that there are, so nobody is waited for.
                _ => self.queue.next(self.member, false),
            };
            match (next, running.is_empty()) {
                (Next::Run(run), _) => {
                    let begun = Instant::now();
                    let flight = unpanicked(|| self.start(&run.requests));
                    running.push_back(Running { run, begun, flight });
                }
                (Next::End, true) => break,
                (Next::NotYet | Next::End, _) => {
                    if let Some(oldest) = running.pop_front() {
                        self.finish(oldest);
                    }
                }
            }
        }
        drop(end);
    }

    fn start(&mut self, requests: &[Request]) -> Result<Flight> {
        let size = self.sizes.iter().copied().find(|&size| size >= requests.len());
        let size = size.ok_or_else(|| Error::Internal(format!("no batch of {} requests", requests.len())))?;
        self.session.turn_to(&self.inputs, size)?;
        let ports = requests.first().map_or(0, |request| request.inputs.len());
        let of_port = |port: usize| requests.iter().filter_map(move |request| request.inputs.get(port));
        let parts: Vec<Vec<&HostTensor>> = (0..ports).map(|port| of_port(port).collect()).collect();
        self.session.submit_joined(&parts)
    }

    fn finish(&mut self, Running { run, begun, flight }: Running) {
        let read = flight.and_then(|flight| unpanicked(|| flight.wait()?.tensors()));
        match read {
            Ok(outputs) => {
                let requests = self.queue.succeeded(self.member, run, begun);
                for (index, request) in requests.into_iter().enumerate() {
                    request.answer(unpanicked(|| self.part(&outputs, index)));
                }
            }
            Err(error) => self.queue.failed(self.member, run, error),
        }
    }

    /// The outputs of one request.
    fn part(&self, outputs: &[HostTensor], index: usize) -> Result<Vec<HostTensor>> {
        let part = |(port, all): (&Port, &HostTensor)| {
            let own = index.checked_mul(port.dims.elements()).and_then(|first| all.part(first, port.dims));
            own.ok_or_else(|| Error::Internal(format!("request {index} of {}", all.dims())))
        };
        self.outputs.iter().zip(outputs).map(part).collect()
    }
}
