//! The backends on which ops and networks are timed, and the trait of what is timed.

use super::row::{Device, Machine, Row, SCHEMA};
use anyhow::{Context as _, Result};
use diptych::internals::tune::key::{DeviceKey, ProblemKey, SourceHash};
use diptych::internals::tune::work_group::{WorkGroup, layouts, untuned_in};
use diptych::{Choice, Context, SharedDatabase};
use diptych_device::device;
use std::sync::{Arc, PoisonError};

/// Something to be timed, checked and warmed up already.
pub(super) trait Subject {
    /// Adds one sample to each of its rows.
    ///
    /// # Errors
    /// If it does not run.
    fn round(&mut self) -> Result<()>;

    /// Its rows so far; what follows from the samples is not yet set.
    fn rows(&self) -> Vec<Row>;
}

/// A backend of this machine.
pub(super) struct Target {
    pub(super) context: Context,
    pub(super) who: Device,
    pub(super) machine: Machine,
    /// The tuner's record, if it is asked.
    pub(super) database: Option<SharedDatabase>,
    /// GFLOP/s and GB/s of the baselines' first samples: what is left out for its length is
    /// decided by them.
    pub(super) peak: Option<[f64; 2]>,
    /// Form and steps of the multiply-adds, once they are known: the same in every block.
    pub(super) multiply_add: Option<(usize, u32)>,
}

impl Target {
    /// The device, of a GPU backend.
    ///
    /// # Errors
    /// On the CPU backend.
    pub(super) fn device(&self) -> Result<Arc<dyn device::Device>> {
        self.context.shared_device().context("the CPU backend has no device")
    }

    /// A row of this backend without samples.
    pub(super) fn row(&self, suite: &str, case: &str, metric: &str) -> Row {
        Row {
            schema: SCHEMA,
            suite: suite.to_owned(),
            case: case.to_owned(),
            metric: metric.to_owned(),
            node: None,
            engine: "diptych".to_owned(),
            device: self.who.clone(),
            precision: "f32".to_owned(),
            kernel: String::new(),
            work_group: [0; 3],
            chosen_by: "rule".to_owned(),
            clock: "host clock".to_owned(),
            checked: String::new(),
            samples: Vec::new(),
            repeats: 1,
            median: 0.0,
            p10: 0.0,
            p90: 0.0,
            launches: None,
            flops: 0,
            bytes: 0,
            gflops: None,
            roofline: None,
            bound: None,
            version: self.machine.version.clone(),
            commit: self.machine.commit.clone(),
            command: self.machine.command.clone(),
        }
    }

    /// The kernel of an op as a session would choose it, and where it came from.
    ///
    /// # Errors
    /// If no kernel serves the op.
    pub(super) fn choose(&self, op: &dyn diptych_kernels::ops::Op) -> Result<(Choice, String)> {
        let device = self.device()?;
        let limits = &device.info().limits;
        let layout = layouts(op, limits).first().copied().unwrap_or_default();
        if let Some(database) = &self.database {
            let database = database.lock().unwrap_or_else(PoisonError::into_inner);
            let found = database.lookup(
                &DeviceKey::of(device.info()),
                &ProblemKey::in_layout(op, layout),
                &|choice| SourceHash::of_kernel(op, choice, limits).ok(),
            );
            if let Some(found) = found {
                return Ok((found.choice, found.from.to_string()));
            }
        }
        Ok((untuned_in(op, WorkGroup::Table, layout, limits)?, "rule".to_owned()))
    }

    /// The least time in seconds that the baselines allow, if they were measured.
    pub(super) fn least(&self, flops: u64, bytes: u64) -> Option<f64> {
        let [gflops, gbytes] = self.peak?;
        Some((flops as f64 / gflops).max(bytes as f64 / gbytes) / 1e9)
    }
}
