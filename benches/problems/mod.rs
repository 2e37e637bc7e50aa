//! Single ops through criterion: device time where there is a device, the host's clock on the CPU.

#[path = "../../crates/cli/src/bench/cpu.rs"]
mod cpu;
#[path = "../../crates/cli/src/bench/suites.rs"]
#[expect(dead_code, reason = "each bench has its own suite, and sizes are for the report")]
pub mod suites;

use crate::backends::contexts;
use anyhow::{Result, bail};
use cpu::CpuOp;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId};
use diptych::Choice;
use diptych::internals::tune::{Bench, Check, OpBench};
use diptych_kernels::ops::Op;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Dispatches of one recording at most: each has arguments and timestamps of its own.
const MOST: u64 = 256;
/// What takes longer in one run is for `diptych bench --longest`.
const LONGEST: Duration = Duration::from_millis(100);

/// Times every problem on every backend. Each is checked first; one that is wrong stops the run.
///
/// # Errors
/// If a result is wrong or a backend fails.
pub fn run(group: &mut BenchmarkGroup<'_, WallTime>, problems: &[Arc<dyn Op>]) -> Result<()> {
    let contexts = contexts();
    for problem in problems {
        for context in &contexts {
            // The backend first: criterion cuts the names of its folders at 64 letters.
            let name = format!("{} {}", context.info().backend, suites::name(&**problem));
            let timed = match context.shared_device() {
                Some(device) => Timed::device(OpBench::new(device, Arc::clone(problem))?),
                None => Timed::host(Arc::clone(problem)),
            };
            match timed {
                Ok(Some(mut timed)) => {
                    let id = BenchmarkId::from_parameter(name);
                    group.bench_function(id, |bencher| bencher.iter_custom(|runs| timed.time(runs)));
                }
                Ok(None) => eprintln!("skipping {name}: one run takes over {LONGEST:?}, or it is not in f32"),
                Err(error) => bail!("{name}: {error:#}"),
            }
        }
    }
    Ok(())
}

/// A problem on a backend, checked.
enum Timed {
    Device(Box<OpBench>, Choice),
    Host(Box<CpuOp>),
}

impl Timed {
    fn device(mut bench: OpBench) -> Result<Option<Self>> {
        let choice = bench.default_choice()?;
        bench.prepare(&choice)?;
        if let Check::Wrong { detail } = bench.check(&choice)? {
            bail!("wrong: {detail}");
        }
        let short = bench.sample(&choice, 1)? <= LONGEST;
        Ok(short.then(|| Timed::Device(Box::new(bench), choice)))
    }

    fn host(problem: Arc<dyn Op>) -> Result<Option<Self>> {
        if problem.precision() != diptych::Precision::F32 {
            return Ok(None);
        }
        let mut op = CpuOp::new(problem)?;
        op.check()?;
        let start = Instant::now();
        op.run()?;
        Ok((start.elapsed() <= LONGEST).then(|| Timed::Host(Box::new(op))))
    }

    /// The time of so many runs. Criterion takes no errors: what was checked does not fail, or the
    /// benchmark stops.
    fn time(&mut self, runs: u64) -> Duration {
        let timed = match self {
            Timed::Device(bench, choice) => (0..runs.div_ceil(MOST))
                .map(|part| {
                    let repeats = MOST.min(runs - part * MOST);
                    Ok(bench.sample(choice, u32::try_from(repeats)?)?)
                })
                .sum::<Result<Duration>>(),
            Timed::Host(op) => {
                let start = Instant::now();
                (0..runs).try_for_each(|_| op.run()).map(|()| start.elapsed())
            }
        };
        timed.unwrap_or_else(|error| panic!("a run failed after it was checked: {error:#}"))
    }
}
