//! A search for faster kernels, a few milliseconds at a time.

use crate::errors::exception;
use diptych::{
    Context, Error, Journal, ModelFile, Precision, ProblemReport, SharedDatabase, Tuner, TunerProgress,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A tuner at work.
#[pyclass(frozen, module = "diptych._native")]
pub(crate) struct Tuning(Mutex<Tuner>);

impl Tuning {
    pub(crate) fn of(
        context: &Context,
        (file, extents): (&ModelFile, &BTreeMap<String, usize>),
        precision: Precision,
        (database, directory): (SharedDatabase, Option<PathBuf>),
        seconds: Option<f64>,
    ) -> PyResult<Self> {
        let mut tuner = Tuner::new(context).map_err(exception)?.precision(precision);
        if let Some(directory) = directory {
            let mut record = database.lock().unwrap_or_else(PoisonError::into_inner);
            tuner = tuner.journal(Journal::open(directory, &mut record).map_err(exception)?);
        }
        tuner = tuner.database(database);
        if let Some(seconds) = seconds {
            let budget = Duration::try_from_secs_f64(seconds).map_err(|_| {
                exception(Error::input("seconds", seconds.to_string(), "a number of seconds"))
            })?;
            tuner = tuner.budget(budget);
        }
        tuner.begin(&file.model(extents).map_err(exception)?.graph).map_err(exception)?;
        Ok(Tuning(Mutex::new(tuner)))
    }

    fn tuner(&self) -> MutexGuard<'_, Tuner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn verdict<'py>(py: Python<'py>, problem: &ProblemReport) -> PyResult<Bound<'py, PyDict>> {
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
    let values = PyDict::new(py);
    values.set_item("nodes", &problem.nodes)?;
    values.set_item("op", problem.op)?;
    values.set_item("problem", &problem.problem)?;
    values.set_item("default", problem.default.to_string())?;
    values.set_item("choice", problem.choice.as_ref().map(ToString::to_string))?;
    values.set_item("default_seconds", seconds(problem.default_time))?;
    values.set_item("seconds", seconds(problem.time))?;
    values.set_item("speed_up", problem.speed_up)?;
    values.set_item("cut_short", problem.cut_short)?;
    Ok(values)
}

#[pymethods]
impl Tuning {
    /// Works for this long: problems done, problems there are, candidates tried of the present one, candidates it has,
    /// and whether everything is over.
    fn step(&self, py: Python<'_>, seconds: f64) -> PyResult<(usize, usize, usize, usize, bool)> {
        let budget = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let now: TunerProgress = py.detach(|| self.tuner().step(budget)).map_err(exception)?;
        Ok((now.done, now.problems, now.tried, now.candidates, now.is_finished()))
    }

    /// Ends the present problem; what was found is in the record.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.tuner().cancel()).map_err(exception)
    }

    /// What was found so far.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let report = py.detach(|| self.tuner().report().clone());
        report.problems.iter().map(|problem| verdict(py, problem)).collect()
    }
}
