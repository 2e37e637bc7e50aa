//! A network that is ready to run.

use crate::arrays::{self, Array, Elements, Given, Room, Target};
use crate::devices;
use crate::errors::exception;
use crate::model::{self, Source};
use crate::tuning::Tuning;
use diptych::{
    Context, Error, Graph, HostTensor, ModelInfo, Port, RunInput, Session, SessionOptions, SharedDatabase,
    Step, TensorInfo,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A step of a run: name, op, kernel, precision, work-group, source, operations, whether it was inserted.
type StepRow = (String, &'static str, String, String, [u32; 3], String, u64, bool);

/// What threads take turns with.
struct Running {
    context: Context,
    session: Session,
}

/// A network that is ready to run, on a device.
#[pyclass(frozen, module = "diptych._native")]
pub(crate) struct Network {
    running: Mutex<Running>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    graph: Graph,
    info: ModelInfo,
    options: SessionOptions,
    database: SharedDatabase,
    directory: Option<PathBuf>,
}

/// A run that was started.
#[pyclass(frozen, module = "diptych._native")]
pub(crate) struct Flight {
    started: Mutex<Option<diptych::Flight>>,
    outputs: Vec<String>,
}

/// What inputs or outputs are: names, extents, and types as NumPy calls them.
pub(crate) type Ports = Vec<(String, Vec<usize>, &'static str)>;

pub(crate) fn ports(ports: &[Port]) -> PyResult<Ports> {
    let of = |port: &Port| Ok((port.name.clone(), port.dims.extents().to_vec(), arrays::name(port.dtype)?));
    ports.iter().map(of).collect()
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
    let Step { name, inserted, op, kernel, precision, work_group, source, flops } = step;
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

    /// What is given to the inputs.
    fn given<'a>(&self, sources: &[Elements<'a>]) -> Result<Vec<Given<'a>>, Error> {
        self.inputs.iter().zip(sources).map(|(port, &elements)| Given::of(elements, port)).collect()
    }

    fn named<'a>(&'a self, given: &'a [Given<'_>]) -> Vec<(&'a str, RunInput<'a>)> {
        self.inputs.iter().map(|port| port.name.as_str()).zip(given.iter().map(Given::input)).collect()
    }
}

/// Waits for a run, and copies its outputs.
fn finished(flight: diptych::Flight, names: &[String], rooms: &mut [Room<'_>]) -> Result<(), Error> {
    if let Some(mut targets) = arrays::of_floats(names.iter().map(String::as_str), rooms) {
        return flight.wait_into(&mut targets);
    }
    let outputs = flight.wait()?;
    arrays::fill_all(rooms, &outputs.tensors()?)
}

#[pymethods]
impl Network {
    /// Reads a model and makes it ready. `record` is the folder of the tuner's record; with an empty path it is the
    /// user's, without one it is in memory.
    #[new]
    fn new(
        py: Python<'_>,
        model: Source,
        device: String,
        f16: bool,
        dimensions: BTreeMap<String, usize>,
        values: BTreeMap<String, Array<'_>>,
        record: Option<PathBuf>,
    ) -> PyResult<Self> {
        let load = model::load_options(dimensions, values)?;
        py.detach(|| {
            let context = devices::open(&device)?;
            let model = model.read(&load)?;
            let (database, directory) = model::database(record)?;
            let precision = model::precision(f16, std::slice::from_ref(&context));
            let tuning = diptych::Tuning::Database(Arc::clone(&database));
            let options = SessionOptions { precision, tuning, keep_graph: true, ..Default::default() };
            let session = Session::new(&context, &model.graph, options.clone()).map_err(exception)?;
            Ok(Network {
                inputs: session.inputs().to_vec(),
                outputs: session.outputs().to_vec(),
                running: Mutex::new(Running { context, session }),
                graph: model.graph,
                info: model.info,
                options,
                database,
                directory,
            })
        })
    }

    /// Names, extents and types of the inputs.
    fn inputs(&self) -> PyResult<Ports> {
        ports(&self.inputs)
    }

    /// Names, extents and types of the outputs.
    fn outputs(&self) -> PyResult<Ports> {
        ports(&self.outputs)
    }

    /// The extents that have names.
    fn dimensions(&self) -> BTreeMap<String, usize> {
        self.graph.dimensions().clone()
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

    /// Runs the network.
    fn run(&self, py: Python<'_>, inputs: Vec<Array<'_>>, mut outputs: Vec<Target<'_>>) -> PyResult<()> {
        let sources = arrays::read(&inputs)?;
        let mut rooms = arrays::rooms(&mut outputs)?;
        let names: Vec<String> = self.outputs.iter().map(|port| port.name.clone()).collect();
        self.with(py, |running| {
            let floats: Option<Vec<&[f32]>> = sources.iter().map(|elements| elements.floats()).collect();
            let targets = arrays::of_floats(names.iter().map(String::as_str), &mut rooms);
            if let (Some(floats), Some(mut targets)) = (floats, targets) {
                let named: Vec<(&str, &[f32])> =
                    self.inputs.iter().map(|port| port.name.as_str()).zip(floats).collect();
                return running.session.run_slices(&named, &mut targets);
            }
            let given = self.given(&sources)?;
            finished(running.session.submit(&self.named(&given))?, &names, &mut rooms)
        })
    }

    /// Starts a run. The inputs are free when this returns.
    fn start(&self, py: Python<'_>, inputs: Vec<Array<'_>>) -> PyResult<Flight> {
        let sources = arrays::read(&inputs)?;
        let started = self.with(py, |running| {
            let given = self.given(&sources)?;
            running.session.submit(&self.named(&given))
        })?;
        let outputs = self.outputs.iter().map(|port| port.name.clone()).collect();
        Ok(Flight { started: Mutex::new(Some(started)), outputs })
    }

    /// The clock, and the steps of one run with their seconds.
    fn profile(
        &self,
        py: Python<'_>,
        inputs: Vec<Array<'_>>,
    ) -> PyResult<(&'static str, Vec<(StepRow, f64)>)> {
        let sources = arrays::read(&inputs)?;
        let profile = self.with(py, |running| {
            let tensors = self.inputs.iter().zip(&sources).map(|(port, elements)| elements.tensor(port.dims));
            let tensors: Vec<HostTensor> = tensors.collect::<Result<_, _>>()?;
            let names = self.inputs.iter().map(|port| port.name.as_str());
            let named: Vec<(&str, &HostTensor)> = names.zip(&tensors).collect();
            running.session.profile(&named)
        })?;
        let timed = profile.steps.into_iter().map(|timed| (row(timed.step), timed.time.as_secs_f64()));
        Ok((profile.clock, timed.collect()))
    }

    /// The steps of a run.
    fn steps(&self, py: Python<'_>) -> PyResult<Vec<StepRow>> {
        let steps = self.with(py, |running| Ok(running.session.steps()))?;
        Ok(steps.into_iter().map(row).collect())
    }

    /// Bytes of values and of constants that the session keeps.
    fn memory(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let memory = self.with(py, |running| Ok(running.session.memory()))?;
        Ok((memory.planned, memory.constants))
    }

    /// Gives the states what they are in the first run.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |running| running.session.reset())
    }

    /// A search for faster kernels.
    fn tuning(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<Tuning> {
        let context = self.with(py, |running| Ok(running.context.clone()))?;
        let record = (Arc::clone(&self.database), self.directory.clone());
        py.detach(|| Tuning::of(&context, &self.graph, self.options.precision, record, seconds))
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
            running.context = context;
            Ok(())
        })
    }
}

#[pymethods]
impl Flight {
    /// Waits for the outputs. Only once.
    fn finish(&self, py: Python<'_>, mut outputs: Vec<Target<'_>>) -> PyResult<()> {
        let mut rooms = arrays::rooms(&mut outputs)?;
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner).take();
        let started = started
            .ok_or_else(|| exception(Error::input("run", "one that was waited for", "one that was not")))?;
        py.detach(|| finished(started, &self.outputs, &mut rooms)).map_err(exception)
    }
}
