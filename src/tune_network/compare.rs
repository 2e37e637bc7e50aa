//! Two records' choices for the same problems, timed against each other.

use super::Tuner;
use super::work::Work;
use crate::error::{Error, Result};
use crate::ops::Choice;
use crate::tune::db::{SharedDatabase, Source};
use crate::tune::heat::HOT;
use crate::tune::statistics::{Interval, signed_rank_interval};
use crate::tune::{Bench, Check, OpBench};
use std::sync::Arc;
use std::time::Duration;

/// Rounds in one submission.
const ROUNDS_PER_SUBMISSION: usize = 5;
/// How long a round of short kernels is made to last.
const ROUND_TIME: Duration = Duration::from_micros(400);
/// Runs of one kernel in a row at most.
const MAX_RUNS_IN_A_ROW: f64 = 32.0;

/// One problem's choice in two records.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The nodes of this problem.
    pub nodes: Vec<String>,
    /// The op.
    pub op: &'static str,
    /// The problem, as the record's key has it.
    pub problem: String,
    /// The choices; none where a record has no verdict on exactly this problem.
    pub choices: [Option<Choice>; 2],
    /// The second choice's time over the first one's, with its 95 % interval: 1 where both are the
    /// same; none where one is missing.
    pub ratio: Option<Interval>,
    /// The first choice's median time.
    pub time: Option<Duration>,
}

impl Tuner {
    /// Times the choices that `other` has for the problems lined up (see [`Tuner::retune`]) against
    /// those of this tuner's record, in interleaved rounds. Nothing is recorded.
    ///
    /// # Errors
    /// If the device fails, or a choice on record gives a wrong result.
    #[doc(hidden)]
    pub fn compare(&mut self, other: &SharedDatabase, rounds: usize) -> Result<Vec<Comparison>> {
        self.held.change(|work| work.compare(other, rounds))
    }
}

impl Work {
    fn compare(&mut self, other: &SharedDatabase, rounds: usize) -> Result<Vec<Comparison>> {
        let mut found = Vec::new();
        while let Some(job) = self.jobs.pop_front() {
            let op = &*job.op;
            let exact = |record| {
                let chosen = self.lookup(record, op, job.layout);
                chosen.filter(|chosen| chosen.from == Source::Exact).map(|chosen| chosen.choice)
            };
            let choices = [exact(&self.database), exact(other)];
            let (mut ratio, mut time) = (None, None);
            if let [Some(first), Some(second)] = choices {
                if first == second {
                    ratio = Some(Interval { centre: 1.0, low: 1.0, high: 1.0 });
                } else {
                    let bench = OpBench::new(Arc::clone(&self.device), Arc::clone(&job.op))?;
                    let mut bench = bench.in_layout(job.layout).with_heat(self.heat, HOT);
                    let (own, interval) = face_off(&mut bench, first, second, rounds)?;
                    (time, ratio) = (Some(own), Some(interval));
                    self.heat = bench.heat();
                }
            }
            let (nodes, op, problem) = (job.nodes, op.name(), job.key.shape);
            found.push(Comparison { nodes, op, problem, choices, ratio, time });
        }
        Ok(found)
    }
}

/// The first choice's median time, and the second one's over it.
fn face_off(
    bench: &mut dyn Bench,
    first: Choice,
    second: Choice,
    rounds: usize,
) -> Result<(Duration, Interval)> {
    for choice in [first, second] {
        bench.prepare(&choice)?;
        if let Check::Wrong { detail } = bench.check(&choice)? {
            return Err(Error::input(choice.to_string(), detail, "the result of the CPU"));
        }
    }
    while bench.warm_up(&first)? {}
    let once = bench.together(&[(first, 1), (second, 1)], 2)?;
    let round: f64 = once.iter().filter_map(|times| times.last()).map(Duration::as_secs_f64).sum();
    let runs = (ROUND_TIME.as_secs_f64() / round.max(1e-9)).clamp(1.0, MAX_RUNS_IN_A_ROW) as u32;
    let (mut differences, mut own) = (Vec::new(), Vec::new());
    while differences.len() < rounds {
        let times = bench.together(
            &[(first, runs), (second, runs)],
            ROUNDS_PER_SUBMISSION.min(rounds - differences.len()),
        )?;
        let [ours, theirs] = times.as_slice() else {
            return Err(Error::Internal(format!("{} lists of times of two kernels", times.len())));
        };
        own.extend(ours.iter().map(Duration::as_secs_f64));
        let seconds = |time: &Duration| time.as_secs_f64().max(1e-9);
        differences.extend(ours.iter().zip(theirs).map(|(a, b)| (seconds(b) / seconds(a)).ln()));
    }
    bench.finish()?;
    let middle = crate::tune::statistics::median(&own).unwrap_or_default();
    let interval = signed_rank_interval(&differences, 0.025);
    let Some(Interval { centre, low, high }) = interval else {
        return Err(Error::input("rounds", rounds.to_string(), "at least 6"));
    };
    let interval = Interval { centre: centre.exp(), low: low.exp(), high: high.exp() };
    Ok((Duration::from_secs_f64(middle), interval))
}
