//! A network that serves requests of many threads, on one device or on several.

use crate::arrays::{self, Array, Elements, Target};
use crate::devices;
use crate::errors::{exception, of};
use crate::model::{self, Source};
use crate::network::{Ports, ports};
use crate::pixels::{PixelsOf, Said};
use diptych::internals::package;
use diptych::{Batch, BatchOptions, Context, DevicePool, Error, HostTensor, Port, SessionOptions};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How long a wait does not look whether Ctrl-C was pressed.
const SIGNALS: Duration = Duration::from_millis(100);

/// A device: what it is, requests, seconds of a request of late, and why it was taken out.
type Row<'py> = (Bound<'py, PyDict>, u64, Option<f64>, Option<PyErr>);

/// A network that serves requests.
#[pyclass(frozen, module = "diptych._native")]
pub(crate) struct Service {
    /// Nothing, once it is closed.
    pool: Mutex<Option<Arc<DevicePool>>>,
    pixels: PixelsOf,
}

/// A request that was handed in.
#[pyclass(frozen, module = "diptych._native")]
pub(crate) struct Ticket {
    /// Nothing, once its answer was fetched, or while a thread waits for it.
    ticket: Mutex<Option<diptych::Ticket>>,
}

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits while other Python threads run. Nothing, if the time is over before.
fn waited<F: Future + Send>(py: Python<'_>, future: F, until: Option<Instant>) -> PyResult<Option<F::Output>>
where
    F::Output: Send,
{
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let polled = py.detach(|| {
            if let Poll::Ready(output) = future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
                return Some(output);
            }
            thread::park_timeout(left.map_or(SIGNALS, |left| left.min(SIGNALS)));
            None
        });
        if polled.is_some() || left.is_some_and(|left| left.is_zero()) {
            return Ok(polled);
        }
        py.check_signals()?;
    }
}

fn seconds(name: &str, seconds: f64) -> PyResult<Duration> {
    let wrong = |_| exception(Error::input(name, seconds.to_string(), "a number of seconds"));
    Duration::try_from_secs_f64(seconds).map_err(wrong)
}

/// Every GPU, or the CPU if there is none; or the devices that are named.
fn contexts(named: Option<Vec<String>>) -> PyResult<Vec<Context>> {
    let Some(named) = named else {
        let gpus = diptych::gpus();
        let builders = gpus.iter().filter_map(|gpu| gpu.builder(diptych::Backend::Auto));
        let mut found =
            builders.map(|builder| builder.open().map_err(exception)).collect::<PyResult<Vec<_>>>()?;
        if found.is_empty() {
            found.push(devices::open("cpu")?);
        }
        return Ok(found);
    };
    named.iter().map(|device| devices::open(device)).collect()
}

/// A request's inputs, copied while other Python threads run.
fn copied(
    py: Python<'_>,
    batch: &Batch,
    sources: &[Elements<'_>],
    pixels: &PixelsOf,
) -> PyResult<Vec<(String, HostTensor)>> {
    let tensor = |(port, elements): (&Port, &Elements<'_>)| {
        Ok((port.name.clone(), elements.scaled(&port.name, port.dims, pixels)?))
    };
    py.detach(|| batch.inputs().iter().zip(sources).map(tensor).collect::<Result<_, _>>()).map_err(exception)
}

impl Ticket {
    fn of(ticket: diptych::Ticket) -> Self {
        Ticket { ticket: Mutex::new(Some(ticket)) }
    }
}

impl Service {
    /// Does something with the pool. If it is closed meanwhile, it ends while other Python threads run.
    fn with<T>(&self, py: Python<'_>, work: impl FnOnce(&DevicePool) -> PyResult<T>) -> PyResult<T> {
        let pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let closed = || Error::input("service", "one that was closed", "one that is open");
        let pool = pool.ok_or_else(|| exception(closed()))?;
        let done = work(&pool);
        py.detach(|| drop(pool));
        done
    }
}

#[pymethods]
impl Service {
    /// Reads a model and makes it ready on devices, without names on every GPU. `record` is as for a
    /// [`Network`](crate::network::Network).
    #[new]
    #[expect(clippy::too_many_arguments, reason = "the package gives them their names and defaults")]
    fn new(
        py: Python<'_>,
        model: Source,
        devices: Option<Vec<String>>,
        f16: bool,
        dimensions: BTreeMap<String, usize>,
        values: BTreeMap<String, Array<'_>>,
        record: Option<PathBuf>,
        max_batch: usize,
        max_delay: f64,
        max_waiting: usize,
        sizes: Vec<usize>,
        dimension: Option<String>,
        dequantize: bool,
        threads: Option<NonZeroUsize>,
        outputs: BTreeSet<String>,
        pixels: Said,
        files: BTreeMap<String, Vec<u8>>,
    ) -> PyResult<Self> {
        let load = model::load_options(dimensions, values, dequantize, outputs, threads, files)?;
        let max_delay = seconds("max_delay", max_delay)?;
        let pool = py.detach(|| {
            let contexts = contexts(devices)?;
            let file = model.open(&load, false)?;
            let pixels = PixelsOf::new(&file, pixels)?;
            let model = file.model(&BTreeMap::new()).map_err(exception)?;
            let (database, _) = model::database(record)?;
            let session = SessionOptions {
                precision: package::precision(f16, &contexts),
                tuning: diptych::Tuning::Database(database),
                cpu_threads: threads,
                ..SessionOptions::default()
            };
            let options = BatchOptions { max_batch, max_delay, max_waiting, sizes, dimension, session };
            let pool = DevicePool::new(&contexts, &model.graph, options).map_err(exception)?;
            Ok::<_, PyErr>((pool, pixels))
        })?;
        let (pool, pixels) = pool;
        Ok(Service { pool: Mutex::new(Some(Arc::new(pool))), pixels })
    }

    /// Names, extents and types of a request's inputs and outputs.
    fn ports(&self, py: Python<'_>) -> PyResult<(Ports, Ports)> {
        self.with(py, |pool| Ok((ports(pool.batch().inputs())?, ports(pool.batch().outputs())?)))
    }

    /// Hands in a request, and waits until it is taken. The inputs are free when this returns.
    fn submit(&self, py: Python<'_>, inputs: Vec<Array<'_>>) -> PyResult<Ticket> {
        let sources = arrays::read(&inputs)?;
        self.with(py, |pool| {
            let tensors = copied(py, pool.batch(), &sources, &self.pixels)?;
            let submitted = waited(py, pool.batch().submit_async(tensors), None)?;
            let missing = || Err(Error::Internal("a wait without a limit ended before".to_owned()));
            Ok(Ticket::of(submitted.unwrap_or_else(missing).map_err(exception)?))
        })
    }

    /// [`Service::submit`] if there is room.
    fn try_submit(&self, py: Python<'_>, inputs: Vec<Array<'_>>) -> PyResult<Option<Ticket>> {
        let sources = arrays::read(&inputs)?;
        self.with(py, |pool| {
            let tensors = copied(py, pool.batch(), &sources, &self.pixels)?;
            Ok(pool.batch().try_submit(tensors).map_err(exception)?.map(Ticket::of))
        })
    }

    /// Requests answered, runs of one request, of two and so on, and requests that wait.
    fn counts(&self, py: Python<'_>) -> PyResult<(u64, Vec<u64>, usize)> {
        let counts = self.with(py, |pool| Ok(pool.batch().counts()))?;
        Ok((counts.requests, counts.runs, counts.waiting))
    }

    /// The devices, and what each has done.
    fn devices<'py>(&self, py: Python<'py>) -> PyResult<Vec<Row<'py>>> {
        let row = |device: diptych::PoolDevice| {
            let info = devices::info(py, &device.context)?;
            let time = device.time.map(|time| time.as_secs_f64());
            Ok((info, device.requests, time, device.error.as_deref().map(of)))
        };
        self.with(py, |pool| pool.devices().into_iter().map(row).collect())
    }

    /// Takes no more requests, answers those that it has, and ends.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.pool.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}

#[pymethods]
impl Ticket {
    /// Waits for the outputs. False, if so many seconds are over before; only once otherwise.
    fn wait(
        &self,
        py: Python<'_>,
        mut outputs: Vec<Option<Target<'_>>>,
        limit: Option<f64>,
    ) -> PyResult<bool> {
        let until = match limit {
            Some(limit) => Instant::now().checked_add(seconds("timeout", limit)?),
            None => None,
        };
        let held = || self.ticket.lock().unwrap_or_else(PoisonError::into_inner);
        let found = "one that was waited for, or is";
        let ticket = held().take();
        let mut ticket =
            ticket.ok_or_else(|| exception(Error::input("ticket", found, "one that was not")))?;
        let answer = waited(py, &mut ticket, until);
        let Some(answer) = answer.transpose() else {
            *held() = Some(ticket);
            return Ok(false);
        };
        let answer = answer?.map_err(exception)?;
        let mut rooms = arrays::rooms(&mut outputs)?;
        py.detach(|| arrays::fill_all(&mut rooms, &answer)).map_err(exception)?;
        Ok(true)
    }
}
