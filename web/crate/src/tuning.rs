//! The tuner of a network, a few milliseconds at a time.

use crate::network::Network;
use crate::{error, json};
use diptych::Tuner;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
impl Network {
    /// Begins to tune, with this much time in all.
    pub fn tune(&mut self, budget_ms: f64) -> Result<(), JsValue> {
        let budget = Duration::try_from_secs_f64(budget_ms / 1e3)
            .map_err(|_| error(format!("budgetMs: found {budget_ms}, wanted a positive number")))?;
        let tuner = Tuner::new(&self.context).map_err(error)?;
        let mut tuner = tuner.database(Arc::clone(&self.record)).budget(budget);
        tuner.begin(&self.graph).map_err(error)?;
        self.tuner = Some(tuner);
        Ok(())
    }

    /// Tunes for some milliseconds: how far it is, and the verdicts so far from the one of this number on, as JSON.
    pub async fn tune_step(&mut self, ms: f64, known: usize) -> Result<String, JsValue> {
        let step = Duration::try_from_secs_f64(ms / 1e3).map_err(error)?;
        let Some(tuner) = &mut self.tuner else { return Err(error("nothing is being tuned")) };
        let progress = tuner.step_async(step).await.map_err(error)?;
        let report = tuner.report();
        let (before, after) = report.totals();
        let mut told = json::progress(&progress);
        told["verdicts"] = report.problems.iter().skip(known).map(json::verdict).collect();
        told["clock"] = report.clock.clone().into();
        told["totals"] = json!([before.as_secs_f64() * 1e6, after.as_secs_f64() * 1e6]);
        Ok(told.to_string())
    }

    /// Ends the tuning and takes the verdicts: the names of the steps that have another kernel now.
    pub async fn tuned(&mut self) -> Result<Vec<String>, JsValue> {
        if let Some(mut tuner) = self.tuner.take() {
            tuner.cancel().map_err(error)?;
        }
        self.session.refresh_async().await.map_err(error)
    }
}
