//! One op on one backend.

use super::cpu::CpuOp;
use super::row::Row;
use super::subject::{Subject, Target};
use super::suites;
use anyhow::{Result, bail};
use diptych::Choice;
use diptych::internals::tune::{Bench, Check, OpBench};
use diptych_kernels::ops::Op;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An op on a device.
pub(super) struct DeviceOp {
    bench: OpBench,
    choice: Choice,
    row: Row,
    /// In a chain, where a run is so short that the clock's own part of it counts.
    chain: Option<Row>,
}

/// How long the short chain takes, so that the host's clock distinguishes them.
const CHAIN: f64 = 0.002;

/// Runs that last longer are not measured in a chain.
const SHORT: Duration = Duration::from_micros(100);

/// An op on the CPU.
pub(super) struct HostOp {
    op: CpuOp,
    row: Row,
}

/// A row of `problem` without samples.
pub(super) fn row(target: &Target, suite: &str, problem: &dyn Op) -> Row {
    let mut row = target.row(suite, &suites::name(problem), "device");
    row.precision = problem.precision().to_string();
    row.flops = problem.flops();
    row.bytes = suites::bytes(problem);
    row
}

/// `problem` on the backend of `target`, checked and warmed up.
///
/// # Errors
/// If no kernel serves it, the result is wrong, or one run takes longer than `longest`.
pub(super) fn subject(
    target: &Target,
    suite: &str,
    problem: Arc<dyn Op>,
    longest: Duration,
) -> Result<Box<dyn Subject>> {
    let row = row(target, suite, &*problem);
    Ok(match target.context.device() {
        Some(_) => Box::new(DeviceOp::new(target, row, problem, longest)?),
        None => Box::new(HostOp::new(row, problem, longest)?),
    })
}

fn too_long(time: Duration, longest: Duration) -> Result<()> {
    if time > longest {
        bail!("left out: one run takes {:.1} s, more than --longest", time.as_secs_f64());
    }
    Ok(())
}

impl DeviceOp {
    fn new(target: &Target, mut row: Row, problem: Arc<dyn Op>, longest: Duration) -> Result<Self> {
        let device = target.device()?;
        let on_cpu = device.info().is_cpu;
        let (choice, from) = target.choose(&*problem)?;
        let launch = problem.plan(&choice, &device.info().limits)?;
        let mut bench = OpBench::new(device, problem)?.in_layout(choice.layout);
        bench.prepare(&choice)?;
        if let Check::Wrong { detail } = bench.check(&choice)? {
            bail!("wrong: {detail}");
        }
        let estimate = bench.sample(&choice, 1)?;
        too_long(estimate, longest)?;
        row.repeats = bench.repeats(estimate);
        // The first sample of so many repeats makes their recording; clocks rise.
        bench.sample(&choice, row.repeats)?;
        row.kernel = launch.spec.label();
        row.work_group = choice.work_group;
        row.chosen_by = from;
        row.clock = bench.clock().kind().to_string();
        row.checked = "every element, against the CPU backend".to_owned();
        let short = !on_cpu && estimate < SHORT;
        let chain = short.then(|| Row {
            metric: "chain".to_owned(),
            clock: "host clock".to_owned(),
            repeats: (CHAIN / estimate.as_secs_f64().max(1e-6)).clamp(16.0, 512.0) as u32,
            ..row.clone()
        });
        Ok(DeviceOp { bench, choice, row, chain })
    }
}

impl Subject for DeviceOp {
    fn round(&mut self) -> Result<()> {
        let time = self.bench.sample(&self.choice, self.row.repeats)?;
        self.row.samples.push(time.as_secs_f64() * 1e6 / f64::from(self.row.repeats));
        if let Some(chain) = &mut self.chain {
            let time = self.bench.chained(&self.choice, chain.repeats)?;
            chain.samples.push(time.as_secs_f64() * 1e6);
        }
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        std::iter::once(&self.row).chain(&self.chain).cloned().collect()
    }
}

impl HostOp {
    fn new(mut row: Row, problem: Arc<dyn Op>, longest: Duration) -> Result<Self> {
        let mut op = CpuOp::new(problem)?;
        row.checked = op.check()?.to_owned();
        let start = Instant::now();
        op.run()?;
        let estimate = start.elapsed();
        too_long(estimate, longest)?;
        // Some milliseconds, so that the clock's own cost does not count.
        row.repeats = (0.005 / estimate.as_secs_f64().max(1e-6)).ceil().clamp(1.0, 512.0) as u32;
        row.kernel = format!("cpu_{}_f32", op_name(&row.case));
        Ok(HostOp { op, row })
    }
}

fn op_name(case: &str) -> &str {
    case.split('_').next().unwrap_or(case)
}

impl Subject for HostOp {
    fn round(&mut self) -> Result<()> {
        let start = Instant::now();
        for _ in 0..self.row.repeats {
            self.op.run()?;
        }
        self.row.samples.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(self.row.repeats));
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        vec![self.row.clone()]
    }
}
