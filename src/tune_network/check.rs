//! Kernels that are run again and again and compared with the oracle and with themselves, without timing.

use super::Tuner;
use super::jobs::Job;
use super::work::Work;
use crate::device::Wait;
use crate::error::Result;
use crate::graph::Graph;
use crate::ops::Choice;
use crate::task::block_on;
use crate::tune::proof;
use crate::tune::repeat::{ROUNDS, Repeats, Round};
use crate::tune::work_group::{WorkGroup, table, untuned_in};
use crate::tune::{Bench as _, Check, OpBench};
use std::sync::Arc;
use std::time::Duration;

/// How long the device is left alone before some of the runs.
const PAUSE: Duration = Duration::from_millis(10);
/// Runs of a round at most.
const MOST_RUNS: u32 = 32;
/// How often an output that was wrong is looked at again.
const WRONG_CHECKS: u32 = 3;

/// What came of a kernel's runs.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// All outputs were within their bounds, and equal to the bit.
    Steady,
    /// Every output is wrong.
    Wrong {
        /// The first element that is off.
        detail: String,
    },
    /// Some outputs are right, and others differ from them.
    Flaky {
        /// What is wrong with the first that differs.
        detail: String,
    },
    /// It did not compile, or did not run.
    Failed {
        /// The driver's words.
        message: String,
    },
}

/// A kernel that was checked.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The nodes that it serves.
    pub nodes: Vec<String>,
    /// The op.
    pub op: &'static str,
    /// The problem, as the record's key has it.
    pub problem: String,
    /// Storage and arithmetic.
    pub precision: String,
    /// The kernel, tile, work-group and layout.
    pub choice: Choice,
    /// What came of it.
    pub finding: Finding,
    /// How often it ran, and how often its output differed.
    pub repeats: Repeats,
    /// The largest error of an output that was wrong or differed over the bound of its element.
    pub worst: f64,
}

impl Checked {
    /// Whether something is wrong with it.
    pub fn is_bad(&self) -> bool {
        self.finding != Finding::Steady
    }
}

impl Tuner {
    /// Lines up every problem of `graph`'s nodes that a kernel serves, those with one kernel and those on record too.
    ///
    /// # Errors
    /// Those of [`Tuner::begin`].
    #[doc(hidden)]
    pub fn begin_all(&mut self, graph: &Graph) -> Result<()> {
        self.held.change(|work| {
            work.retune = true;
            work.begin_units(graph, false)
        })
    }

    /// Runs the kernels of the problems that are lined up `runs` times each: those that a session takes, or `every` kernel
    /// and tile with the table's work-group. Nothing is timed or recorded.
    ///
    /// # Errors
    /// If the device computes nothing, or does not come to an end.
    #[doc(hidden)]
    pub fn check(
        &mut self,
        runs: u32,
        every: bool,
        mut told: impl FnMut(&Checked, usize),
    ) -> Result<Vec<Checked>> {
        self.held.change(|work| work.check(runs, every, &mut told))
    }
}

impl Work {
    fn check(
        &mut self,
        runs: u32,
        every: bool,
        told: &mut dyn FnMut(&Checked, usize),
    ) -> Result<Vec<Checked>> {
        block_on(proof::computes(Wait::Blocks, &*self.device))?;
        let mut found = Vec::new();
        while let Some(job) = self.jobs.pop_front() {
            let choices = self.choices(&job, every);
            if choices.is_empty() {
                continue;
            }
            let bench = OpBench::checking(Arc::clone(&self.device), Arc::clone(&job.op))?;
            let mut bench = bench.in_layout(job.layout);
            for choice in choices {
                let checked = check(&mut bench, &job, choice, runs)?;
                told(&checked, self.jobs.len());
                found.push(checked);
                bench.release(&choice);
            }
            bench.finish()?;
        }
        Ok(found)
    }

    /// The kernels of a problem that are checked.
    fn choices(&self, job: &Job, every: bool) -> Vec<Choice> {
        let limits = &self.limits();
        if !every {
            let on_record = self.lookup(&self.database, &*job.op, job.layout).map(|chosen| chosen.choice);
            let choice =
                on_record.or_else(|| untuned_in(&*job.op, WorkGroup::Table, job.layout, limits).ok());
            return choice.into_iter().collect();
        }
        let kernels = job.op.kernels();
        let space = kernels.space(limits).into_iter().filter_map(|(kernel, tile)| {
            let choice = kernel.choice(tile, table(kernel, tile, limits)).with_layout(job.layout);
            let runs = kernel.serves(job.layout) && kernel.fits(&choice, limits).is_ok();
            runs.then_some(choice)
        });
        space.collect()
    }
}

/// All runs of one kernel.
fn check(bench: &mut OpBench, job: &Job, choice: Choice, runs: u32) -> Result<Checked> {
    let mut repeats = Repeats::default();
    let finding = match repeat(bench, &choice, runs, &mut repeats) {
        Ok(finding) => finding,
        // What comes behind is held up as well.
        Err(error) if matches!(error.without_node(), crate::Error::TimedOut { .. }) => return Err(error),
        Err(error) if error.is_device_lost() => return Err(error),
        Err(error) => Finding::Failed { message: error.to_string() },
    };
    let worst = if finding == Finding::Steady { 0.0 } else { bench.worst() };
    let precision = job.op.precision().to_string();
    let (nodes, op, problem) = (job.nodes.clone(), job.op.name(), job.key.shape.clone());
    Ok(Checked { nodes, op, problem, precision, choice, finding, repeats, worst })
}

fn repeat(bench: &mut OpBench, choice: &Choice, runs: u32, repeats: &mut Repeats) -> Result<Finding> {
    bench.prepare(choice)?;
    let mut first = None;
    let mut right = false;
    for _ in 0..=WRONG_CHECKS {
        repeats.runs += 1;
        match bench.check(choice)? {
            Check::Correct => {
                right = true;
                break;
            }
            Check::Wrong { detail } => {
                repeats.differed += 1;
                first.get_or_insert(detail);
            }
        }
    }
    if let Some(detail) = first.clone().filter(|_| !right) {
        return Ok(Finding::Wrong { detail });
    }
    let of_round = runs.div_ceil(ROUNDS).clamp(1, MOST_RUNS);
    for number in 0.. {
        let left = runs.saturating_sub(repeats.runs);
        if left == 0 {
            break;
        }
        let round = Round::new(number, of_round.min(left), PAUSE);
        let found = bench.repeat(choice, &round)?;
        repeats.runs += round.runs;
        repeats.differed += found.differed.min(round.runs);
        if let Some(detail) = found.wrong {
            repeats.differed += round.runs;
            return Ok(Finding::Wrong { detail });
        }
        if let Some(detail) = found.detail {
            first.get_or_insert(detail);
        }
    }
    Ok(first.map_or(Finding::Steady, |detail| Finding::Flaky { detail }))
}
