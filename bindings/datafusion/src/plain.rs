//! A loop over pictures in memory that finds poses without an engine, to measure what engines cost.

use crate::failure::failure;
use crate::models::Options;
use crate::network::Loaded;
use datafusion::error::{DataFusionError, Result};
use diptych::{HostTensor, Session};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What the loop found, and how long it took.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// People in all pictures.
    pub people: usize,
    /// Decoding and resizing all pictures, nothing else going on.
    pub decoding: Duration,
    /// Running the network on all of them, nothing else going on.
    pub network: Duration,
    /// Reading the outputs of all of them, nothing else going on.
    pub reading: Duration,
    /// The whole: decoded on several threads while the device runs and outputs are read.
    pub all: Duration,
}

/// A picture on its way.
type Prepared = (HostTensor, (u32, u32));

/// The people in pictures, which all must be readable, by the first network of the options.
///
/// # Errors
/// Those of [`crate::Models::open`], and of runs.
pub fn plain(options: Options, pictures: &[Vec<u8>]) -> Result<Times> {
    let missing = || DataFusionError::Configuration("found no network".to_owned());
    let network = options.networks.into_iter().next().ok_or_else(missing)?.load()?;
    let (batch, threads) = (options.max_batch.max(1), options.threads.max(1));
    let context = options.device.open().map_err(failure)?;
    let graph = network.graph.with_batch(batch).map_err(failure)?;
    let session = Session::new(&context, &graph, options.session).map_err(failure)?;
    let mut run = Run { network, session, batch, threads };
    // Warm, as the engines' sessions are.
    run.pipeline(pictures.get(..batch.min(pictures.len())).unwrap_or_default())?;

    let start = Instant::now();
    let inputs = run.decoded(pictures)?;
    let decoding = start.elapsed();
    let start = Instant::now();
    let outputs = run.computed(&inputs)?;
    let network = start.elapsed();
    let start = Instant::now();
    run.read(&outputs)?;
    let reading = start.elapsed();
    let start = Instant::now();
    let people = run.pipeline(pictures)?;
    Ok(Times { people, decoding, network, reading, all: start.elapsed() })
}

struct Run {
    network: Loaded,
    session: Session,
    batch: usize,
    threads: usize,
}

/// The outputs for one picture, and its size.
type Found = (Vec<HostTensor>, (u32, u32));

impl Run {
    fn prepare(network: &Loaded, picture: &[u8]) -> Result<Prepared> {
        network.prepare(picture).map_err(|error| DataFusionError::External(error.into()))
    }

    fn people(network: &Loaded, (outputs, size): &Found) -> Result<usize> {
        let poses = network.poses(outputs, *size);
        poses.map(|poses| poses.len()).map_err(|error| DataFusionError::External(error.into()))
    }

    /// Calls `each` for `count` places on all threads.
    fn on_threads<T: Send>(&self, count: usize, each: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..self.threads {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        if at >= count {
                            break;
                        }
                        let one = each(at);
                        done.lock().unwrap_or_else(PoisonError::into_inner).push((at, one));
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, one)| one).collect()
    }

    fn decoded(&self, pictures: &[Vec<u8>]) -> Result<Vec<Prepared>> {
        self.on_threads(pictures.len(), |at| Self::prepare(&self.network, &pictures[at]))
    }

    fn computed(&mut self, inputs: &[Prepared]) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        self.stream(inputs.iter().cloned(), |one| {
            found.push(one);
            Ok(())
        })?;
        Ok(found)
    }

    fn read(&self, found: &[Found]) -> Result<usize> {
        Ok(self.on_threads(found.len(), |at| Self::people(&self.network, &found[at]))?.into_iter().sum())
    }

    /// Runs the network on batches of `inputs`, two under way at once.
    fn stream(
        &mut self,
        inputs: impl Iterator<Item = Prepared>,
        mut found: impl FnMut(Found) -> Result<()>,
    ) -> Result<()> {
        let port = self.network.input.name.clone();
        let ports = self.session.outputs().to_vec();
        let dims = self.session.inputs().first().map(|port| port.dims);
        let dims = dims.ok_or_else(|| DataFusionError::Internal("a network without input".to_owned()))?;
        let batch = self.batch;
        let sizes = Mutex::new(VecDeque::new());
        let mut inputs = inputs.fuse();
        let frames = std::iter::from_fn(|| {
            let mut values: Vec<f32> = Vec::with_capacity(dims.elements());
            let mut own = Vec::new();
            for (tensor, size) in inputs.by_ref().take(batch) {
                values.extend_from_slice(&tensor.to_f32());
                own.push(size);
            }
            if own.is_empty() {
                return None;
            }
            sizes.lock().unwrap_or_else(PoisonError::into_inner).push_back(own);
            values.resize(dims.elements(), 0.0);
            Some(HostTensor::new(dims, values).map(|tensor| [(port.as_str(), tensor)]))
        });
        for outputs in self.session.try_stream(frames) {
            let outputs: Vec<HostTensor> = outputs.map_err(failure)?;
            let own = sizes.lock().unwrap_or_else(PoisonError::into_inner).pop_front().unwrap_or_default();
            for (at, size) in own.into_iter().enumerate() {
                let one = ports.iter().zip(&outputs).map(|(port, all)| part(port, all, batch, at));
                found((one.collect::<diptych::Result<_>>().map_err(failure)?, size))?;
            }
        }
        Ok(())
    }

    /// All at once.
    fn pipeline(&mut self, pictures: &[Vec<u8>]) -> Result<usize> {
        let (next, people) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let errors = Mutex::new(Vec::new());
        let failed = |error| errors.lock().unwrap_or_else(PoisonError::into_inner).push(error);
        let places = 4 * self.batch;
        let (prepared, to_run): (SyncSender<Prepared>, Receiver<Prepared>) = sync_channel(places);
        let (ran, to_read): (SyncSender<Found>, Receiver<Found>) = sync_channel(places);
        let to_read = Mutex::new(to_read);
        let network = self.network.clone();
        let (network, next, people, failed, to_read) = (&network, &next, &people, &failed, &to_read);
        std::thread::scope(|scope| {
            for _ in 0..self.threads {
                let prepared = prepared.clone();
                scope.spawn(move || {
                    while let Some(picture) = pictures.get(next.fetch_add(1, Ordering::Relaxed)) {
                        match Self::prepare(network, picture) {
                            // Where nobody takes it, the run has failed.
                            Ok(one) => drop(prepared.send(one)),
                            Err(error) => failed(error),
                        }
                    }
                });
                scope.spawn(move || {
                    loop {
                        let one = to_read.lock().unwrap_or_else(PoisonError::into_inner).recv();
                        match one.map(|one| Self::people(network, &one)) {
                            Ok(Ok(count)) => drop(people.fetch_add(count, Ordering::Relaxed)),
                            Ok(Err(error)) => failed(error),
                            Err(_) => break,
                        }
                    }
                });
            }
            drop(prepared);
            let streamed = self.stream(to_run.into_iter(), |one| {
                ran.send(one).map_err(|_| DataFusionError::Internal("nobody reads outputs".to_owned()))
            });
            if let Err(error) = streamed {
                failed(error);
            }
            drop(ran);
        });
        let errors = errors.into_inner().unwrap_or_else(PoisonError::into_inner);
        match errors.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(people.load(Ordering::Relaxed)),
        }
    }
}

/// What is one picture's of a batch's output.
fn part(port: &diptych::Port, all: &HostTensor, batch: usize, at: usize) -> diptych::Result<HostTensor> {
    let mut extents = port.dims.extents().to_vec();
    if let Some(first) = extents.first_mut() {
        *first /= batch;
    }
    let dims = diptych::Dims::new(&extents)?;
    let values = all.to_f32();
    let values = values.get(at * dims.elements()..).and_then(|rest| rest.get(..dims.elements()));
    HostTensor::new(dims, values.unwrap_or_default())
}
