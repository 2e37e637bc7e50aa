//! An op of Diptych, timed as Burn is: by the host's clock around many launches and one wait.

use crate::host_clock::HostClock;
use crate::row::Row;
use crate::subject::{Subject, Target};
use crate::suites;
use anyhow::{Result, bail};
use diptych::Choice;
use diptych_kernels::ops::Op;
use diptych::internals::tune::{Bench, Check, OpBench};
use std::sync::Arc;
use std::time::Duration;

/// About how long a sample lasts.
const SAMPLE: Duration = Duration::from_millis(20);

/// An op on a device, checked and warmed up.
pub(crate) struct Ours {
    bench: OpBench,
    choice: Choice,
    row: Row,
}

impl Ours {
    /// Compiles the untuned kernel and checks it.
    ///
    /// # Errors
    /// If no kernel serves the problem, or it is wrong.
    pub(crate) fn new(target: &Target, problem: Arc<dyn Op>) -> Result<Self> {
        let device = target.device()?;
        let (choice, from) = target.choose(&*problem)?;
        let launch = problem.plan(&choice, &device.info().limits)?;
        let mut bench = OpBench::new(Arc::new(HostClock::new(device)), Arc::clone(&problem))?;
        bench.prepare(&choice)?;
        if let Check::Wrong { detail } = bench.check(&choice)? {
            bail!("wrong: {detail}");
        }
        bench.sample(&choice, 1)?;
        let estimate = bench.sample(&choice, 4)? / 4;
        let mut row = target.row("peers", &suites::name(&*problem), "wall");
        row.repeats = (SAMPLE.as_secs_f64() / estimate.as_secs_f64().max(1e-6)).clamp(1.0, 512.0) as u32;
        bench.sample(&choice, row.repeats)?;
        row.kernel = launch.spec.label();
        row.work_group = choice.work_group;
        row.chosen_by = from;
        row.checked = "every element, against the CPU backend".to_owned();
        row.clock = "host clock around all runs and one wait".to_owned();
        row.flops = problem.flops();
        row.bytes = suites::bytes(&*problem);
        Ok(Ours { bench, choice, row })
    }
}

impl Subject for Ours {
    fn round(&mut self) -> Result<()> {
        let time = self.bench.sample(&self.choice, self.row.repeats)?;
        self.row.samples.push(time.as_secs_f64() * 1e6 / f64::from(self.row.repeats));
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        vec![self.row.clone()]
    }
}
