//! One problem of a network: what its search begins with, and what is kept of it.

use super::rows::{recalled, recorded, same_trial, timing};
use super::*;
use crate::tune::Bench as _;
use crate::tune::db::Relative;
use crate::tune::db::Verdict as RowVerdict;
use crate::tune::heat::HOT;
use std::collections::HashSet;

/// Candidates at most that a search begins with, of problems like this one: they were compiled for
/// those, and kernels' texts hold no extents. And of the other API, which are new here.
const MAX_SAME_API: usize = 12;
const MAX_OTHER_API: usize = 3;
/// Defaults of other problems at most that a search begins with.
const MAX_DEFAULTS: usize = 8;
/// How far behind the best of its problem such a candidate may be, and what an octave between the
/// problems counts for.
const MAX_LOG_TIME_BEHIND: f64 = 0.3;
const LOG_TIME_PER_OCTAVE: f64 = 0.1;
/// Times of other problems at most that a search looks at.
const MAX_HINTS: usize = 256;

impl Tuner {
    pub(super) fn open(&self, job: Job) -> Result<Current> {
        let limits = self.device.info().limits.clone();
        let relatives = self.relatives(&job.key);
        // At most a tenth of the time goes to warming up; once the device is warm it stays so.
        let heat = self.budget.map_or(HOT, |budget| HOT.min(budget / 10));
        let bench = OpBench::new(Arc::clone(&self.device), Arc::clone(&job.op))?;
        let bench = bench.in_layout(job.layout).with_heat(self.heat, heat);
        let search = match self.budget {
            Some(budget) => {
                let left = budget.saturating_sub(self.report.spent);
                Search::Budget(self.share(&job, relatives.is_empty(), left))
            }
            None => self.search,
        };
        let on_record = self.lookup(&self.database, &*job.op, job.layout);
        let mut warm: Vec<Choice> = on_record.map(|(choice, _)| choice).into_iter().collect();
        let fits = |choice: &Choice| bench.fits(choice).is_ok();
        warm.extend(self.defaults_of_similar(&job.key).into_iter().filter(fits).take(MAX_DEFAULTS));
        warm.extend(begin_with(&relatives, &fits));
        let mut seen = HashSet::new();
        warm.retain(|choice| seen.insert(*choice));
        let hints = relatives.iter().take(MAX_HINTS).map(|near| (near.choice, near.behind, near.weight));
        let device = DeviceKey::of(self.device.info());
        let keys = {
            let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
            Keys::new(device, job.key.clone(), Arc::clone(&job.op), limits, &database)
        };
        let known = self.known(&job, &keys);
        let (hints, seed) = (hints.collect(), self.seed);
        let options = TuneOptions { search, warm, hints, known: known.clone(), seed, ..Default::default() };
        let run = Tuning::new(&bench, options)?;
        Ok(Current { job, bench, keys, known, run })
    }

    /// What the record knows of problems like this one.
    pub(super) fn relatives(&self, problem: &ProblemKey) -> Vec<Relative> {
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        database.relatives(&DeviceKey::of(self.device.info()), problem)
    }

    /// What untuned sessions run for the other problems of the same kernels, the nearest first. They
    /// are compiled for those anyway, and are the same in every run: what is good for one size is
    /// then tried at the next, however short the search.
    fn defaults_of_similar(&self, problem: &ProblemKey) -> Vec<Choice> {
        let near = |(key, choice): &(ProblemKey, Choice)| Some((problem.distance(key)?, *choice));
        let mut near: Vec<(f64, Choice)> = self.defaults.iter().filter_map(near).collect();
        near.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut seen = Vec::new();
        for (_, choice) in near {
            if !seen.contains(&choice) {
                seen.push(choice);
            }
        }
        seen
    }

    /// What the record has on a problem's candidates: which must not be tried again, and the times
    /// of a run that was cancelled.
    fn known(&self, job: &Job, keys: &Keys) -> Vec<Trial> {
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = database.tried(&DeviceKey::of(self.device.info()), &job.key);
        rows.filter_map(|row| {
            let choice = row.key.choice.resolve(&job.key.op)?;
            // Of another text or tuner version: it says nothing about today's kernel.
            (keys.of(&choice) == row.key).then_some(())?;
            if !row.verdict.bars() && self.retune {
                return None;
            }
            recalled(choice, row)
        })
        .collect()
    }

    /// Records the present problem's trials. Of a run that was `cancelled` no default wins: the
    /// problem is not judged yet.
    pub(super) fn close(&mut self, cancelled: bool) -> Result<()> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let Some(verdict) = current.run.verdict() else {
            return Err(Error::Internal("a tuning run ended without a verdict".to_owned()));
        };
        let time_of = |choice: &Choice| {
            let trial = verdict.trials.iter().find(|trial| trial.choice == *choice);
            trial.and_then(|trial| trial.median)
        };
        let default_time = time_of(&verdict.default);
        let rows: Vec<Row> = verdict
            .trials
            .iter()
            .filter(|trial| !current.known.iter().any(|known| same_trial(known, trial)))
            .filter_map(|trial| {
                let verdict = match recorded(&trial.outcome)? {
                    RowVerdict::Winner if cancelled && verdict.interval.is_none() => RowVerdict::Loser,
                    verdict => verdict,
                };
                Some(Row::measured(current.keys.of(&trial.choice), verdict, timing(trial, default_time)))
            })
            .collect();
        self.heat = current.bench.heat();
        self.report.clock = current.bench.clock().kind().to_string();
        self.report.problems.push(ProblemReport {
            nodes: current.job.nodes.clone(),
            op: current.job.op.name(),
            problem: current.job.key.shape.clone(),
            layout: current.job.layout,
            default: verdict.default,
            choice: verdict.choice,
            default_time,
            time: verdict.choice.as_ref().and_then(time_of),
            speed_up: verdict.speed_up,
            interval: verdict.interval,
            cut_short: verdict.cut_short,
            spent: verdict.spent,
            trials: verdict.trials.clone(),
        });
        self.database.lock().unwrap_or_else(PoisonError::into_inner).append_all(rows)
    }
}

/// The candidates to begin with, from what problems like this one had: the fastest and nearest.
fn begin_with(relatives: &[Relative], fits: &dyn Fn(&Choice) -> bool) -> Vec<Choice> {
    let mut near: Vec<(f64, &Relative)> = relatives
        .iter()
        .filter(|near| near.behind <= MAX_LOG_TIME_BEHIND)
        .map(|near| (near.behind + LOG_TIME_PER_OCTAVE * near.distance, near))
        .collect();
    near.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let (mut chosen, mut same_api, mut other_api) = (Vec::new(), 0, 0);
    for (_, relative) in near {
        let (count, most) =
            if relative.other_api { (&mut other_api, MAX_OTHER_API) } else { (&mut same_api, MAX_SAME_API) };
        if *count < most && !chosen.contains(&relative.choice) && fits(&relative.choice) {
            chosen.push(relative.choice);
            *count += 1;
        }
    }
    chosen
}
