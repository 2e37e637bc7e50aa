//! Which backend runs a network the fastest on this machine: measured once, and kept in the tuner's record.
//!
//! `turns` times the candidates, `network` says what is run and what the verdict depends on.

mod network;
mod turns;

use crate::context::{Context, ContextBuilder};
use crate::device::DeviceInfo;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::host::HostTensor;
#[cfg(any(feature = "tflite", feature = "onnx"))]
use crate::model::ModelFile;
use crate::options::SessionOptions;
use crate::session::Session;
use crate::sync::lock;
use crate::tune::db::{NetworkKey, NetworkRow, NetworkTime, SharedDatabase};
use network::Network;
use std::fmt;
use std::time::Duration;
use turns::Timed;

/// What [`Context::fastest`] and [`ModelFile::fastest`](crate::ModelFile::fastest) measure.
///
/// ```
/// use diptych::{Database, FastestOptions};
/// use std::sync::{Arc, Mutex};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// // Measured at the first start; later ones find the verdict in the file.
/// let record = Arc::new(Mutex::new(Database::open(folder)?));
/// let options = FastestOptions { record: Some(record), ..Default::default() };
/// # assert!(!options.anew);
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FastestOptions {
    /// How the network is to run.
    pub session: SessionOptions,
    /// Where the verdict is looked for and kept. Without one, the record of [`SessionOptions::tuning`]; without that,
    /// each call measures.
    pub record: Option<SharedDatabase>,
    /// What is measured. Empty means the best device of wgpu, the best of OpenCL and the CPU backend; drivers that run
    /// GPU kernels on the CPU are then left out, and of `DIPTYCH_DEVICE` only what it names is measured.
    pub candidates: Vec<ContextBuilder>,
    /// Inputs by name, for what depends on their values or leaves their extents open. The others are made up: fractions
    /// from 0 to 1, zeros for integers, and an extent of 1 where the outermost one is open.
    pub inputs: Vec<(String, HostTensor)>,
    /// How long all runs together may take; 1 s unless set. Each candidate runs twice in any case. To open devices and
    /// build sessions takes time besides.
    pub budget: Duration,
    /// Whether to measure also where the record has a verdict, which is then replaced: after tuning, for instance.
    pub anew: bool,
}

impl Default for FastestOptions {
    fn default() -> Self {
        FastestOptions {
            session: SessionOptions::default(),
            record: None,
            candidates: Vec::new(),
            inputs: Vec::new(),
            budget: Duration::from_secs(1),
            anew: false,
        }
    }
}

impl FastestOptions {
    fn record(&self) -> Option<&SharedDatabase> {
        self.record.as_ref().or_else(|| self.session.tuning.database())
    }
}

/// The result of one candidate of [`Context::fastest`].
///
/// ```
/// # use diptych::{Context, FastestOptions, Graph, Pool, Pooling, Shape};
/// # let mut graph = Graph::new();
/// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 2))?;
/// # let y = graph.pool("half", x, Pool::new(Pooling::Max, [2, 2]))?;
/// # graph.output(y)?;
/// for measured in Context::fastest(&graph, &FastestOptions::default())?.measured {
///     match measured.time {
///         Some(time) => println!("{}: {time:?}, {}", measured.candidate, measured.reason),
///         None => println!("{} did not run: {}", measured.candidate, measured.reason),
///     }
/// }
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measured {
    /// The backend, or the device as a [`DeviceSelector`](crate::DeviceSelector) names it.
    pub candidate: String,
    /// The name of the device that was opened; empty for the CPU backend, and if none was opened.
    pub device: String,
    /// The median time of a run, from tensors to tensors in the host's memory; none if it did not run.
    pub time: Option<Duration>,
    /// How many runs were timed.
    pub runs: u32,
    /// Why it did not run, or why it was not measured to the end; empty if it was.
    pub reason: String,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.candidate)?;
        if let Some(time) = self.time {
            write!(f, " {:.3} ms", time.as_secs_f64() * 1e3)?;
        }
        match self.reason.as_str() {
            "" => Ok(()),
            reason => write!(f, " ({reason})"),
        }
    }
}

/// The device that runs a network the fastest, and the times of all candidates. Made by [`Context::fastest`].
///
/// ```
/// # use diptych::{Context, FastestOptions, Graph, Pool, Pooling, Session, Shape};
/// # let mut graph = Graph::new();
/// # let x = graph.input("x", Shape::nhwc(1, 8, 8, 2))?;
/// # let y = graph.pool("half", x, Pool::new(Pooling::Max, [2, 2]))?;
/// # graph.output(y)?;
/// let options = FastestOptions::default();
/// let fastest = Context::fastest(&graph, &options)?;
/// println!("{fastest}"); // which one, the times of all, and whether they were measured now
/// let session = Session::new(&fastest.context, &graph, options.session)?;
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Fastest {
    /// The device.
    pub context: Context,
    /// Its place in `measured`.
    pub chosen: usize,
    /// All candidates, in their order.
    pub measured: Vec<Measured>,
    /// Whether the record had the verdict, so that nothing ran now.
    pub from_record: bool,
}

impl fmt::Display for Fastest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chosen = self.measured.get(self.chosen).map_or("", |measured| &measured.candidate);
        write!(f, "{chosen}, the fastest of {}; {}", list(&self.measured), from(self.from_record))
    }
}

fn list(measured: &[Measured]) -> String {
    measured.iter().map(Measured::to_string).collect::<Vec<_>>().join(", ")
}

fn from(record: bool) -> &'static str {
    if record { "from the record" } else { "measured now" }
}

impl Context {
    /// Opens the device that runs a graph the fastest: wgpu's, OpenCL's or the CPU. A small network may take less time on
    /// the CPU than a GPU takes to begin, which no rule knows beforehand.
    ///
    /// Each candidate is opened, builds a session and runs in turns with the others, from tensors to tensors in the
    /// host's memory; the least median wins. One that is more than three times slower than another in its first runs is
    /// given up. One that is missing or fails is left out, with its reason. All sessions are in memory at the same time.
    ///
    /// The verdict goes to the record, and from then on it is found there, without a run. It counts for this network with
    /// these extents and [`SessionOptions`], for the GPUs of this machine and their drivers, for as many threads, for these
    /// candidates and for this version of the crate. Values of weights and how a device is opened (checked kernels, copies)
    /// are not compared, nor is whether the network was tuned since: see [`FastestOptions::anew`].
    ///
    /// ```
    /// use diptych::{Context, Database, FastestOptions, Graph, Pool, Pooling, Session, Shape};
    /// use std::sync::{Arc, Mutex};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 2))?;
    /// let y = graph.pool("half", x, Pool::new(Pooling::Max, [2, 2]))?;
    /// graph.output(y)?;
    ///
    /// let record = Arc::new(Mutex::new(Database::in_memory())); // or `Database::open(folder)?`
    /// let options = FastestOptions { record: Some(record), ..Default::default() };
    /// let fastest = Context::fastest(&graph, &options)?;
    /// let session = Session::new(&fastest.context, &graph, options.session.clone())?;
    ///
    /// assert!(!fastest.from_record);
    /// assert!(Context::fastest(&graph, &options)?.from_record);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If no candidate runs the network: the error has the reason of each. Also if the record's file cannot be written, or
    /// an input is missing whose extents are open.
    pub fn fastest(graph: &Graph, options: &FastestOptions) -> Result<Fastest> {
        of(&Network::Graph(graph), options)
    }
}

#[cfg(any(feature = "tflite", feature = "onnx"))]
impl ModelFile {
    /// Opens the device that runs the file's network the fastest, as [`Context::fastest`] does.
    ///
    /// ```
    /// use diptych::{FastestOptions, LoadOptions, ModelFile};
    ///
    /// let file = ModelFile::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
    /// let options = FastestOptions::default(); // without a record: each call measures
    /// let fastest = file.fastest(&options)?;
    /// println!("{fastest}");
    /// let session = file.session(&fastest.context, options.session)?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Context::fastest`].
    pub fn fastest(&self, options: &FastestOptions) -> Result<Fastest> {
        of(&Network::File(self), options)
    }
}

fn of(network: &Network<'_>, options: &FastestOptions) -> Result<Fastest> {
    let builders = match &options.candidates[..] {
        [] => ContextBuilder::of_each_backend()?,
        given => given.to_vec(),
    };
    // What the caller or the environment names is measured, whatever it is.
    let gpus_only = options.candidates.is_empty() && builders.len() > 1 && cfg!(feature = "cpu");
    let names: Vec<String> = builders.iter().map(|builder| builder.selector().to_string()).collect();
    let key = network.key(options, &names, gpus_only);
    if let Some(record) = options.record().filter(|_| !options.anew) {
        let row = lock(record).network(&key).cloned();
        if let Some(found) = row.and_then(|row| known(&builders, &row)) {
            return Ok(found);
        }
    }
    let mut candidates = Vec::with_capacity(builders.len());
    for (builder, name) in builders.into_iter().zip(names) {
        candidates.push(Candidate::open(builder, name, network, &options.session, gpus_only));
    }
    measured(candidates, network, options, key)
}

/// The verdict of a row, if the device is still there.
fn known(builders: &[ContextBuilder], row: &NetworkRow) -> Option<Fastest> {
    let measured: Vec<Measured> = row.times.iter().map(Measured::of).collect();
    let chosen = best(&measured)?;
    let (wanted, builder) = (measured.get(chosen)?, builders.get(chosen)?);
    let context = builder.clone().open().ok()?;
    // A variable of the environment may choose another device of the same backend today.
    (device(&context) == wanted.device).then(|| Fastest::new(context, chosen, measured, true))
}

/// The place of the least time.
fn best(measured: &[Measured]) -> Option<usize> {
    let times = measured.iter().enumerate().filter_map(|(place, one)| Some((one.time?, place)));
    times.min().map(|(_, place)| place)
}

/// The name of a context's device; none for the CPU backend.
fn device(context: &Context) -> String {
    context.info().device.as_ref().map_or_else(String::new, |device| device.name.clone())
}

impl Fastest {
    fn new(context: Context, chosen: usize, measured: Vec<Measured>, from_record: bool) -> Self {
        let reason = format!("the fastest of {}; {}", list(&measured), from(from_record));
        Fastest { context: context.because(reason), chosen, measured, from_record }
    }
}

impl Measured {
    fn of(time: &NetworkTime) -> Self {
        Measured {
            candidate: time.candidate.clone(),
            device: time.device.clone(),
            time: time.median_ns.map(Duration::from_nanos),
            runs: time.runs,
            reason: time.reason.clone(),
        }
    }
}

/// A candidate that was opened, or could not be.
struct Candidate {
    name: String,
    context: Option<Context>,
    /// The session, or why there is none.
    session: std::result::Result<Session, String>,
}

impl Candidate {
    fn open(
        builder: ContextBuilder,
        name: String,
        network: &Network<'_>,
        options: &SessionOptions,
        gpus_only: bool,
    ) -> Self {
        let context = match builder.open() {
            Ok(context) => context,
            Err(error) => return Candidate { name, context: None, session: Err(error.to_string()) },
        };
        let cpu_driver = |device: &&DeviceInfo| device.is_cpu && gpus_only;
        let session = match context.info().device.as_ref().filter(cpu_driver) {
            Some(device) => Err(format!("{} runs kernels on the CPU, as the CPU backend does", device.name)),
            None => network.session(&context, options).map_err(|error| error.to_string()),
        };
        Candidate { name, context: Some(context), session }
    }
}

/// Runs the candidates, and keeps the verdict.
fn measured(
    candidates: Vec<Candidate>,
    network: &Network<'_>,
    options: &FastestOptions,
    key: NetworkKey,
) -> Result<Fastest> {
    let (mut contexts, mut times, mut sessions) = (Vec::new(), Vec::new(), Vec::new());
    for (place, candidate) in candidates.into_iter().enumerate() {
        let device = candidate.context.as_ref().map_or_else(String::new, device);
        let mut time = NetworkTime {
            candidate: candidate.name,
            device,
            median_ns: None,
            runs: 0,
            reason: String::new(),
        };
        match candidate.session {
            Ok(session) => sessions.push((place, session)),
            Err(reason) => time.reason = reason,
        }
        contexts.push(candidate.context);
        times.push(time);
    }
    let feeds = match sessions.first() {
        Some((_, session)) => network.feeds(session, &options.inputs)?,
        None => Vec::new(),
    };
    let feeds: Vec<(&str, &HostTensor)> = feeds.iter().map(|(name, tensor)| (&**name, tensor)).collect();
    let (places, mut runs): (Vec<usize>, Vec<_>) =
        sessions.into_iter().map(|(place, session)| (place, turns::clocked(session, &feeds))).unzip();
    for (place, timed) in places.into_iter().zip(turns::time(&mut runs, options.budget)) {
        let Some(time) = times.get_mut(place) else { continue };
        let Timed { median, runs, reason } = timed;
        *time = NetworkTime { median_ns: median, runs, reason, ..time.clone() };
    }
    drop(runs);
    let row = NetworkRow::measured(key, times);
    let measured: Vec<Measured> = row.times.iter().map(Measured::of).collect();
    let found = best(&measured);
    let context = found.and_then(|chosen| contexts.get_mut(chosen).and_then(Option::take));
    let (Some(chosen), Some(context)) = (found, context) else {
        return Err(Error::unsupported("this network", format!("no candidate runs it: {}", list(&measured))));
    };
    if let Some(record) = options.record() {
        lock(record).append_network(row)?;
    }
    Ok(Fastest::new(context, chosen, measured, false))
}
