//! A network that is ready to run.

use crate::devices;
use crate::errors::exception;
use crate::model::{self, Source};
use crate::tuning::Tuning;
use diptych::{
    Context, Error, Graph, HostTensor, ModelInfo, Port, Session, SessionOptions, SharedDatabase, Step,
    TensorInfo,
};
use numpy::{PyReadonlyArrayDyn, PyReadwriteArrayDyn};
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

pub(crate) fn ports(ports: &[Port]) -> Vec<(String, Vec<usize>)> {
    ports.iter().map(|port| (port.name.clone(), port.dims.extents().to_vec())).collect()
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

/// The elements of arrays, where they lie.
pub(crate) fn read<'a>(arrays: &'a [PyReadonlyArrayDyn<'_, f32>]) -> PyResult<Vec<&'a [f32]>> {
    arrays.iter().map(|array| Ok(array.as_slice()?)).collect()
}

/// Room for the outputs, where the arrays lie.
fn written<'a>(
    names: impl Iterator<Item = &'a str>,
    arrays: &'a mut [PyReadwriteArrayDyn<'_, f32>],
) -> PyResult<Vec<(&'a str, &'a mut [f32])>> {
    names.zip(arrays).map(|(name, array)| Ok((name, array.as_slice_mut()?))).collect()
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

    fn named<'a>(&'a self, arrays: &[&'a [f32]]) -> Vec<(&'a str, &'a [f32])> {
        self.inputs.iter().map(|port| port.name.as_str()).zip(arrays.iter().copied()).collect()
    }
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
        values: BTreeMap<String, PyReadonlyArrayDyn<'_, f32>>,
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

    /// Names and extents of the inputs.
    fn inputs(&self) -> Vec<(String, Vec<usize>)> {
        ports(&self.inputs)
    }

    /// Names and extents of the outputs.
    fn outputs(&self) -> Vec<(String, Vec<usize>)> {
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
    fn run(
        &self,
        py: Python<'_>,
        inputs: Vec<PyReadonlyArrayDyn<'_, f32>>,
        mut outputs: Vec<PyReadwriteArrayDyn<'_, f32>>,
    ) -> PyResult<()> {
        let sources = read(&inputs)?;
        let sources = self.named(&sources);
        let names = self.outputs.iter().map(|port| port.name.as_str());
        let mut targets = written(names, &mut outputs)?;
        self.with(py, |running| running.session.run_slices(&sources, &mut targets))
    }

    /// Starts a run. The inputs are free when this returns.
    fn start(&self, py: Python<'_>, inputs: Vec<PyReadonlyArrayDyn<'_, f32>>) -> PyResult<Flight> {
        let sources = read(&inputs)?;
        let sources = self.named(&sources);
        let started = self.with(py, |running| running.session.submit(&sources))?;
        let outputs = self.outputs.iter().map(|port| port.name.clone()).collect();
        Ok(Flight { started: Mutex::new(Some(started)), outputs })
    }

    /// The clock, and the steps of one run with their seconds.
    fn profile(
        &self,
        py: Python<'_>,
        inputs: Vec<PyReadonlyArrayDyn<'_, f32>>,
    ) -> PyResult<(&'static str, Vec<(StepRow, f64)>)> {
        let tensor = |(port, array): (&Port, &[f32])| HostTensor::new(port.dims, array);
        let tensors: Vec<HostTensor> = self
            .inputs
            .iter()
            .zip(read(&inputs)?)
            .map(tensor)
            .collect::<Result<_, _>>()
            .map_err(exception)?;
        let named: Vec<(&str, &HostTensor)> =
            self.inputs.iter().map(|port| port.name.as_str()).zip(&tensors).collect();
        let profile = self.with(py, |running| running.session.profile(&named))?;
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
    fn finish(&self, py: Python<'_>, mut outputs: Vec<PyReadwriteArrayDyn<'_, f32>>) -> PyResult<()> {
        let mut targets = written(self.outputs.iter().map(String::as_str), &mut outputs)?;
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner).take();
        let started = started
            .ok_or_else(|| exception(Error::input("run", "one that was waited for", "one that was not")))?;
        py.detach(|| started.wait_into(&mut targets)).map_err(exception)
    }
}
