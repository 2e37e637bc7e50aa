//! The tuner of a network, a few milliseconds at a time.
//!
//! It has a model of its own and gives a record: the network that takes it may be another module's, on the same device.

use crate::engine::Engine;
use crate::{error, json, names, network};
use diptych::{Database, SharedDatabase, Tuner};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wasm_bindgen::prelude::*;

/// A tuner with its record.
#[wasm_bindgen]
pub struct Tuning {
    tuner: Tuner,
    record: SharedDatabase,
}

#[wasm_bindgen]
impl Tuning {
    /// Begins to tune a model, with this much time in all. `files`, `options` and `record` are those of its network; the options'
    /// `dimensions` are all extents that the file leaves open.
    pub fn begin(
        engine: &Engine,
        model: &[u8],
        files: js_sys::Array,
        options: String,
        record: String,
        budget_ms: f64,
    ) -> Result<Tuning, JsValue> {
        let budget = Duration::try_from_secs_f64(budget_ms / 1e3)
            .map_err(|_| error(format!("budgetMs: found {budget_ms}, wanted a positive number")))?;
        let (file, precision) = network::read(model, &files, &options)?;
        let record = Arc::new(Mutex::new(Database::from_text(&record)));
        let tuner = Tuner::new(&engine.context).map_err(error)?;
        let mut tuner = tuner.database(Arc::clone(&record)).precision(precision).budget(budget);
        let model = file.model(&[].into()).map_err(|reason| error(names::in_javascript(&reason)))?;
        tuner.begin(&model.graph).map_err(error)?;
        Ok(Tuning { tuner, record })
    }

    /// Tunes for some milliseconds: how far it is, and the verdicts so far from the one of this number on, as JSON.
    pub async fn step(&mut self, ms: f64, known: usize) -> Result<String, JsValue> {
        let step = Duration::try_from_secs_f64(ms / 1e3).map_err(error)?;
        let progress = self.tuner.step_async(step).await.map_err(error)?;
        let report = self.tuner.report();
        let (before, after) = report.totals();
        let mut told = json::progress(&progress);
        told["verdicts"] = report.problems.iter().skip(known).map(json::verdict).collect();
        told["clock"] = report.clock.clone().into();
        told["totals"] = json!([before.as_secs_f64() * 1e6, after.as_secs_f64() * 1e6]);
        Ok(told.to_string())
    }

    /// Ends the tuning: the record with the verdicts.
    pub fn end(&mut self) -> Result<String, JsValue> {
        self.tuner.cancel().map_err(error)?;
        let record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        record.text().map_err(error)
    }
}
