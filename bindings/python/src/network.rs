//! A network that is ready to run.

use crate::arrays::{self, Array, Given, Named, Placed};
use crate::devices;
use crate::errors::exception;
use crate::model::{self, Source};
use crate::pixels::{PixelsOf, Said};
use crate::tuning::Tuning;
use diptych::internals::package;
use diptych::{
    Caches, Context, Error, FileInput, HostTensor, ModelFile, ModelInfo, OpenAxis, Port, Precision, RunInput,
    Session, SessionOptions, SharedDatabase, Step, TensorInfo,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A step of a run: name, op, kernel, precision, work-group, source, operations, whether it was inserted.
type StepRow = (String, &'static str, String, String, [u32; 3], String, u64, bool);

/// What threads take turns with.
struct Running {
    context: Context,
    session: Session,
    /// Whether a run decided the extents that the file leaves open.
    decided: bool,
    pixels: PixelsOf,
}

/// A network that is ready to run, on a device.
#[pyclass(frozen, module = "diptych._native")]
pub(crate) struct Network {
    running: Mutex<Running>,
    file: ModelFile,
    outputs: Vec<Port>,
    /// Extents that were given with the file.
    dimensions: BTreeMap<String, usize>,
    info: ModelInfo,
    precision: Precision,
    database: SharedDatabase,
    directory: Option<PathBuf>,
}

/// A run that was started.
#[pyclass(frozen, module = "diptych._native")]
pub(crate) struct Flight {
    started: Mutex<Option<diptych::Flight>>,
}

/// An extent, or the name of an axis that each run decides.
#[derive(IntoPyObject)]
pub(crate) enum Extent {
    Fixed(usize),
    Named(String),
}

/// Extents, with nothing for an axis that each run decides and that has no name; nothing at all if the file does not say
/// how many there are.
type Extents = Option<Vec<Option<Extent>>>;

/// What inputs or outputs are: names, extents, and types as NumPy calls them.
pub(crate) type Ports = Vec<(String, Extents, &'static str)>;

pub(crate) fn ports(ports: &[Port]) -> PyResult<Ports> {
    let of = |port: &Port| {
        let extents = port.dims.extents().iter().map(|&extent| Some(extent));
        let extents = extents.enumerate().map(|(axis, extent)| named(&port.name, &port.open, axis, extent));
        Ok((port.name.clone(), Some(extents.collect()), arrays::name(port.dtype)?))
    };
    ports.iter().map(of).collect()
}

fn inputs<'a>(inputs: impl Iterator<Item = &'a FileInput>) -> PyResult<Ports> {
    let of = |input: &FileInput| {
        let extents = input.extents.as_ref().map(|extents| {
            let extents = extents.iter().copied().enumerate();
            extents.map(|(axis, extent)| named(&input.name, &input.open, axis, extent)).collect()
        });
        Ok((input.name.clone(), extents, arrays::name(input.dtype)?))
    };
    inputs.map(of).collect()
}

/// An extent as it is shown. An axis that has no name in the file is called after its port.
fn named(port: &str, open: &[OpenAxis], axis: usize, extent: Option<usize>) -> Option<Extent> {
    match open.iter().find(|open| open.axis == axis) {
        Some(open) if open.name == format!("{port}.{axis}") => None,
        Some(open) => Some(Extent::Named(open.name.clone())),
        None => extent.map(Extent::Fixed),
    }
}

fn tensors<'py>(py: Python<'py>, infos: &[TensorInfo]) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let of = |info: &TensorInfo| {
        let values = PyDict::new(py);
        values.set_item("name", &info.name)?;
        values.set_item("description", &info.description)?;
        values.set_item("normalisation", &info.normalisation)?;
        values.set_item("labels", &info.labels)?;
        Ok(values)
    };
    infos.iter().map(of).collect()
}

fn row(step: Step) -> StepRow {
    let Step { name, inserted, op, kernel, precision, work_group, source, flops, .. } = step;
    (name, op, kernel, precision.to_string(), work_group, source, flops, inserted)
}

impl Network {
    /// Does something with the session while other Python threads run, one thread at a time.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Running) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let locked = || work(&mut self.running.lock().unwrap_or_else(PoisonError::into_inner));
        py.detach(locked).map_err(exception)
    }

    /// The extents of the last run by their names, and those that were given with the file.
    fn extents(&self, running: &Running) -> BTreeMap<String, usize> {
        let mut extents = self.dimensions.clone();
        let decided = running.session.inputs().iter().filter(|_| running.decided);
        for (port, open) in decided.flat_map(|port| port.open.iter().map(move |open| (port, open))) {
            let extent = port.dims.extents().get(open.axis).copied();
            extents.extend(extent.map(|extent| (open.name.clone(), extent)));
        }
        extents
    }
}

impl Running {
    /// Does something with what is given to the inputs.
    fn given<T>(
        &mut self,
        sources: &[Named<'_>],
        work: impl FnOnce(&mut Session, &[(&str, RunInput<'_>)]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let given = sources
            .iter()
            .map(|source| source.given(&self.pixels))
            .collect::<Result<Vec<Given<'_>>, Error>>()?;
        let names = sources.iter().map(|source| source.name);
        let named: Vec<(&str, RunInput<'_>)> = names.zip(given.iter().map(Given::input)).collect();
        let done = work(&mut self.session, &named)?;
        self.decided = true;
        Ok(done)
    }
}

#[pymethods]
impl Network {
    /// Reads a model and makes it ready. `record` is the folder of the tuner's record; with an empty path it is the
    /// user's, without one it is in memory. `caches`: places of the keys and values that a decoder keeps.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "the package gives them their names and defaults")]
    fn new(
        py: Python<'_>,
        model: Source,
        device: String,
        f16: bool,
        dimensions: BTreeMap<String, usize>,
        values: BTreeMap<String, Array<'_>>,
        record: Option<PathBuf>,
        seed: u64,
        caches: Option<usize>,
        dequantize: bool,
        threads: Option<NonZeroUsize>,
        outputs: BTreeSet<String>,
        pixels: Said,
        files: BTreeMap<String, Vec<u8>>,
    ) -> PyResult<Self> {
        let load = model::load_options(dimensions, values, dequantize, outputs, threads, files)?;
        py.detach(|| {
            let opened = if device == "fastest" { None } else { Some(devices::open(&device)?) };
            let file = model.open(&load, caches.is_some())?;
            let pixels = PixelsOf::new(&file, pixels)?;
            let (database, directory) = model::database(record)?;
            let context = match opened {
                Some(context) => context,
                None => model::fastest(&file, f16, &database, threads)?,
            };
            let precision = package::precision(f16, std::slice::from_ref(&context));
            let tuning = diptych::Tuning::Database(Arc::clone(&database));
            let options =
                SessionOptions { precision, tuning, seed, cpu_threads: threads, ..Default::default() };
            let mut session = file.session(&context, options).map_err(exception)?;
            if let Some(places) = caches {
                session.cache(&Caches::new(&file.cache_pairs(), places)).map_err(exception)?;
            }
            Ok(Network {
                outputs: session.outputs().to_vec(),
                running: Mutex::new(Running { context, session, decided: false, pixels }),
                info: file.info().clone(),
                file,
                dimensions: load.dimensions,
                precision,
                database,
                directory,
            })
        })
    }

    /// Names, extents and types of the inputs that a run needs.
    fn inputs(&self, py: Python<'_>) -> PyResult<Ports> {
        let wanted = |running: &mut Running| {
            Ok(running.session.inputs().iter().map(|port| port.name.clone()).collect::<Vec<_>>())
        };
        let wanted = self.with(py, wanted)?;
        inputs(self.file.inputs().iter().filter(|input| wanted.contains(&input.name)))
    }

    /// Names, extents and types of the inputs that have a value in the file.
    fn optional_inputs(&self) -> PyResult<Ports> {
        inputs(self.file.inputs().iter().filter(|input| input.is_optional))
    }

    /// Names, extents and types of the outputs.
    fn outputs(&self) -> PyResult<Ports> {
        ports(&self.outputs)
    }

    /// The extents that have names: those that were given, and those of the last run.
    fn dimensions(&self, py: Python<'_>) -> PyResult<BTreeMap<String, usize>> {
        self.with(py, |running| Ok(self.extents(running)))
    }

    /// The extents of the inputs that a run needs: the last run's, and 1 where none decided them.
    fn last_extents(&self, py: Python<'_>) -> PyResult<Vec<Vec<usize>>> {
        let extents = |port: &Port| port.dims.extents().to_vec();
        self.with(py, |running| Ok(running.session.inputs().iter().map(extents).collect()))
    }

    /// The device, and why it is this one.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let info = self.with(py, |running| Ok(running.context.info().clone()))?;
        devices::info(py, &info)
    }

    /// What the file says of the model.
    fn model<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let values = PyDict::new(py);
        values.set_item("name", &self.info.name)?;
        values.set_item("description", &self.info.description)?;
        values.set_item("inputs", tensors(py, &self.info.inputs)?)?;
        values.set_item("outputs", tensors(py, &self.info.outputs)?)?;
        Ok(values)
    }

    /// Runs the network on arrays by the names of inputs: new arrays of the outputs at `places`, in this order, and other
    /// outputs to the arrays that are `given` for them.
    fn run<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<(String, Array<'py>)>,
        places: Vec<usize>,
        mut given: Vec<Placed<'py>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let sources = arrays::named(&inputs)?;
        let run = |running: &mut Running| running.given(&sources, |session, named| session.run_shown(named));
        let outputs = self.with(py, run)?;
        arrays::fill(py, &outputs, &mut given)?;
        arrays::outputs(py, &outputs, &places)
    }

    /// Starts a run. The inputs are free when this returns.
    fn start(&self, py: Python<'_>, inputs: Vec<(String, Array<'_>)>) -> PyResult<Flight> {
        let sources = arrays::named(&inputs)?;
        let start = |running: &mut Running| running.given(&sources, |session, named| session.submit(named));
        Ok(Flight { started: Mutex::new(Some(self.with(py, start)?)) })
    }

    /// The clock, and the steps of one run with their seconds.
    fn profile(
        &self,
        py: Python<'_>,
        inputs: Vec<(String, Array<'_>)>,
    ) -> PyResult<(&'static str, Vec<(StepRow, f64)>)> {
        let sources = arrays::named(&inputs)?;
        let profile = self.with(py, |running| {
            let tensors: Vec<HostTensor> =
                sources.iter().map(|source| source.tensor(&running.pixels)).collect::<Result<_, _>>()?;
            let named: Vec<(&str, &HostTensor)> =
                sources.iter().map(|source| source.name).zip(&tensors).collect();
            let profile = running.session.profile(&named)?;
            running.decided = true;
            Ok(profile)
        })?;
        let timed = profile.steps.into_iter().map(|timed| (row(timed.step), timed.time.as_secs_f64()));
        Ok((profile.clock, timed.collect()))
    }

    /// The steps of a run with the extents of the last one.
    fn steps(&self, py: Python<'_>) -> PyResult<Vec<StepRow>> {
        let steps = self.with(py, |running| Ok(running.session.steps()))?;
        Ok(steps.into_iter().map(row).collect())
    }

    /// Bytes of values and of constants that the session keeps.
    fn memory(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let memory = self.with(py, |running| Ok(running.session.memory()))?;
        Ok((memory.planned, memory.constants))
    }

    /// How many places of its caches are filled.
    fn cached(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |running| Ok(running.session.cached()))
    }

    /// Goes back to the first places of its caches.
    fn truncate(&self, py: Python<'_>, places: usize) -> PyResult<()> {
        self.with(py, |running| running.session.truncate(places))
    }

    /// Gives the states what they are in the first run.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |running| running.session.reset())
    }

    /// A search for faster kernels, for the extents of the last run.
    fn tuning(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<Tuning> {
        let (context, extents) =
            self.with(py, |running| Ok((running.context.clone(), self.extents(running))))?;
        let record = (Arc::clone(&self.database), self.directory.clone());
        py.detach(|| Tuning::of(&context, (&self.file, &extents), self.precision, record, seconds))
    }

    /// Takes the kernels that the record has now; the names of the steps that have others than before.
    fn refresh(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |running| running.session.refresh())
    }

    /// Opens the device and makes the session anew: after a device was lost.
    fn restore(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |running| {
            let context = running.context.reopen()?;
            running.session.rebuild(&context)?;
            (running.context, running.decided) = (context, false);
            Ok(())
        })
    }
}

#[pymethods]
impl Flight {
    /// Waits for the outputs at `places`. Only once.
    fn finish<'py>(&self, py: Python<'py>, places: Vec<usize>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner).take();
        let started = started
            .ok_or_else(|| exception(Error::input("run", "one that was waited for", "one that was not")))?;
        arrays::outputs(py, &py.detach(|| started.wait()).map_err(exception)?, &places)
    }
}
