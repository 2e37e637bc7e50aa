//! One problem of a network: what its search begins with, and what is kept of it.

use super::guarded::Keys;
use super::jobs::Job;
use super::report::ProblemReport;
use super::rows::{recalled, recorded, same_trial, timing};
use super::work::{Current, Work};
use crate::error::{Error, Result};
use crate::ops::{Choice, OperandInfo};
use crate::sorted;
use crate::tune::db::{Relative, Row, Source, Verdict as RowVerdict};
use crate::tune::heat::HOT;
use crate::tune::key::{DeviceKey, ProblemKey};
use crate::tune::{Bench as _, OpBench, Outcome, Search, Trial, TuneOptions, TuningRun, Verdict};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

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

/// Candidates of an earlier search at most that are timed again when it goes on.
const MAX_AGAIN: usize = 3;
/// Values of all problems' operands at most that are kept from one pass to the next.
const MAX_VALUES_KEPT: usize = 32 << 20;

impl Work {
    pub(super) fn open(&self, mut job: Job) -> Result<Current> {
        let limits = self.limits();
        let relatives = self.relatives(&job.key);
        // At most a tenth of the time goes to warming up; once the device is warm it stays so.
        let heat = self.budget.map_or(HOT, |budget| HOT.min(budget / 10));
        let bench = match job.bench.take() {
            Some(bench) => *bench,
            None => OpBench::new(Arc::clone(&self.device), Arc::clone(&job.op))?,
        };
        let bench = bench.with_limits(limits.clone()).in_layout(job.layout).with_heat(self.heat, heat);
        let search = self.budget.map_or(self.search, |_| Search::Budget(job.slice));
        let device = DeviceKey::of(self.device.info());
        let keys = {
            let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
            Keys::new(device, job.key.clone(), Arc::clone(&job.op), limits, &database)
        };
        let known = self.known(&job, &keys);
        let on_record = self.lookup(&self.database, &*job.op, job.layout);
        let before = on_record.as_ref().filter(|chosen| chosen.from == Source::Exact && chosen.open);
        let before = before.map(|chosen| chosen.choice);
        let mut warm: Vec<Choice> = on_record.map(|chosen| chosen.choice).into_iter().collect();
        warm.extend(fastest(&known));
        let again = warm.len();
        let fits = |choice: &Choice| bench.fits(choice).is_ok();
        warm.extend(self.defaults_of_similar(&job.key).into_iter().filter(fits).take(MAX_DEFAULTS));
        warm.extend(begin_with(&relatives, &fits));
        let mut seen: HashSet<Choice> = known.iter().map(|trial| trial.choice).collect();
        let (again, others) = warm.split_at(again);
        seen.extend(again);
        let others: Vec<Choice> = others.iter().copied().filter(|choice| seen.insert(*choice)).collect();
        let mut warm = again.to_vec();
        warm.extend(others);
        let mut seen = HashSet::new();
        warm.retain(|choice| seen.insert(*choice));
        let hints = relatives.iter().take(MAX_HINTS).map(|near| (near.choice, near.behind, near.weight));
        let (hints, seed) = (hints.collect(), self.seed);
        let options = TuneOptions { search, warm, hints, known: known.clone(), seed, ..Default::default() };
        let run = TuningRun::new(&bench, options)?;
        Ok(Current { job, bench, keys, known, before, run })
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
        sorted::sort(&mut near, |(a, _), (b, _)| a.total_cmp(b));
        let mut seen = Vec::new();
        for (_, choice) in near {
            if !seen.contains(&choice) {
                seen.push(choice);
            }
        }
        seen
    }

    /// What the record has on a problem's candidates: which must not be tried again, and the times
    /// of a search that was cut short. Of those that are timed anew, only what this tuner has found.
    fn known(&self, job: &Job, keys: &Keys) -> Vec<Trial> {
        let own = self.report.problems.iter().find(|report| is_of(report, job));
        let own: HashSet<Choice> =
            own.into_iter().flat_map(|report| &report.trials).map(|trial| trial.choice).collect();
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = database.tried(&DeviceKey::of(self.device.info()), &job.key);
        rows.filter_map(|row| {
            let choice = row.key.choice.resolve(&job.key.op)?;
            // Of another text or tuner version: it says nothing about today's kernel.
            (keys.of(&choice) == row.key).then_some(())?;
            if !row.verdict.bars() && self.retune && !own.contains(&choice) {
                return None;
            }
            recalled(choice, row)
        })
        .collect()
    }

    /// Records the present problem's trials, and lines it up again if there may be time for more.
    pub(super) fn close(&mut self, cancelled: bool) -> Result<()> {
        let Some(Current { mut job, bench, keys, known, before, run }) = self.current.take() else {
            return Ok(());
        };
        let Some(verdict) = run.verdict() else {
            return Err(Error::Internal("a tuning run ended without a verdict".to_owned()));
        };
        let choice = kept(verdict, before).or(verdict.choice);
        let default_time = time_of(verdict, &verdict.default);
        let mut rows: Vec<Row> = verdict
            .trials
            .iter()
            .filter(|trial| {
                Some(trial.choice) == choice || !known.iter().any(|known| same_trial(known, trial))
            })
            .filter_map(|trial| {
                let outcome = match recorded(&trial.outcome)? {
                    RowVerdict::Winner | RowVerdict::Loser if Some(trial.choice) == choice => {
                        RowVerdict::Winner
                    }
                    RowVerdict::Winner => RowVerdict::Loser,
                    outcome => outcome,
                };
                let open = verdict.cut_short && outcome == RowVerdict::Winner;
                let row = Row::measured(keys.of(&trial.choice), outcome, timing(trial, default_time));
                Some(row.with_open(open).with_repeats(trial.repeats))
            })
            .collect();
        // The winner of a search that was cut short, if it is none any more and was not timed again.
        if let Some(before) = before.filter(|before| Some(*before) != choice) {
            let key = keys.of(&before);
            if rows.iter().all(|row| row.key != key) {
                let timed = known.iter().find(|trial| trial.choice == before);
                let time = timed.and_then(|trial| timing(trial, default_time));
                rows.push(Row::measured(key, RowVerdict::Loser, time));
            }
        }
        self.heat = bench.heat();
        self.report.clock = bench.clock().kind().to_string();
        let of_known =
            |choice| known.iter().find(|trial| trial.choice == choice).and_then(|trial| trial.median);
        let time = choice.and_then(|choice| time_of(verdict, &choice).or_else(|| of_known(choice)));
        self.note(&job, choice, time, verdict);
        job.time = default_time.or(job.time).or(time);
        if verdict.cut_short && !cancelled && self.budget.is_some() {
            job.pass += 1;
            let values = |job: &Job| job.op.operands().iter().map(OperandInfo::elements).sum::<usize>();
            let others = self.jobs.iter().filter(|other| other.bench.is_some()).map(values);
            let kept = others.fold(values(&job), usize::saturating_add);
            job.bench = (kept <= MAX_VALUES_KEPT).then(|| Box::new(bench));
            self.jobs.push_back(job);
        }
        let mut database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        database.append_all(rows)?;
        self.report.unsaved = database.unsaved();
        Ok(())
    }

    /// Takes the verdict of a pass into the report: in place of the last one, whose trials stay.
    fn note(&mut self, job: &Job, choice: Option<Choice>, time: Option<Duration>, verdict: &Verdict) {
        self.noted += 1;
        let place = self.report.problems.iter().position(|old| is_of(old, job));
        let mut report = ProblemReport {
            nodes: job.nodes.clone(),
            op: job.op.name(),
            problem: job.key.shape.clone(),
            layout: job.layout,
            default: verdict.default,
            choice,
            default_time: time_of(verdict, &verdict.default),
            time,
            speed_up: verdict.speed_up,
            interval: verdict.interval,
            cut_short: verdict.cut_short,
            spent: verdict.spent,
            trials: verdict.trials.clone(),
        };
        let Some(old) = place.and_then(|place| self.report.problems.get_mut(place)) else {
            self.report.problems.push(report);
            return;
        };
        if choice != verdict.choice && old.choice == choice {
            (report.speed_up, report.interval) = (old.speed_up, old.interval);
        }
        report.default_time = report.default_time.or(old.default_time);
        report.spent += old.spent;
        // What this pass did not come to judge is as it was.
        let before: HashSet<Choice> = old.trials.iter().map(|trial| trial.choice).collect();
        report.trials.retain(|trial| trial.outcome != Outcome::Cancelled || !before.contains(&trial.choice));
        let tried: HashSet<Choice> = report.trials.iter().map(|trial| trial.choice).collect();
        report.trials.extend(old.trials.drain(..).filter(|trial| !tried.contains(&trial.choice)));
        *old = report;
    }

    /// Leaves a problem open for which there is no time.
    pub(super) fn leave(&mut self, job: Job) {
        let default = self.defaults.iter().find(|(key, _)| *key == job.key).map(|(_, choice)| *choice);
        let Some(default) = default.filter(|_| !self.report.problems.iter().any(|old| is_of(old, &job)))
        else {
            return;
        };
        self.noted += 1;
        let on_record = self.lookup(&self.database, &*job.op, job.layout);
        let chosen = on_record.filter(|chosen| chosen.from == Source::Exact);
        self.report.problems.push(ProblemReport {
            op: job.op.name(),
            problem: job.key.shape,
            nodes: job.nodes,
            layout: job.layout,
            default,
            choice: Some(chosen.map_or(default, |chosen| chosen.choice)),
            default_time: None,
            time: None,
            speed_up: 1.0,
            interval: None,
            cut_short: true,
            spent: Duration::ZERO,
            trials: Vec::new(),
        });
    }
}

/// Whether a report is on the problem of `job`.
fn is_of(report: &ProblemReport, job: &Job) -> bool {
    (report.op, report.layout, &report.problem) == (job.op.name(), job.layout, &job.key.shape)
        && report.nodes == job.nodes
}

fn time_of(verdict: &Verdict, choice: &Choice) -> Option<Duration> {
    verdict.trials.iter().find(|trial| trial.choice == *choice).and_then(|trial| trial.median)
}

/// The winner `before` a search that was cut short without another: it stays, unless it failed or was slower than the
/// default now.
fn kept(verdict: &Verdict, before: Option<Choice>) -> Option<Choice> {
    let before = before.filter(|_| verdict.cut_short && verdict.interval.is_none())?;
    let again = verdict.trials.iter().find(|trial| trial.choice == before);
    let stays =
        |trial: &Trial| !trial.outcome.is_defect() && trial.relative.is_none_or(|relative| relative < 1.0);
    again.is_none_or(stays).then_some(before)
}

/// The fastest of what is known.
fn fastest(known: &[Trial]) -> Vec<Choice> {
    let timed = known.iter().filter(|trial| !trial.outcome.is_defect());
    let mut timed: Vec<(f64, Choice)> =
        timed.filter_map(|trial| Some((trial.relative?, trial.choice))).collect();
    sorted::sort(&mut timed, |(a, _), (b, _)| a.total_cmp(b));
    timed.into_iter().take(MAX_AGAIN).map(|(_, choice)| choice).collect()
}

/// The candidates to begin with, from what problems like this one had: the fastest and nearest.
fn begin_with(relatives: &[Relative], fits: &dyn Fn(&Choice) -> bool) -> Vec<Choice> {
    let mut near: Vec<(f64, &Relative)> = relatives
        .iter()
        .filter(|near| near.behind <= MAX_LOG_TIME_BEHIND)
        .map(|near| (near.behind + LOG_TIME_PER_OCTAVE * near.distance, near))
        .collect();
    sorted::sort(&mut near, |(a, _), (b, _)| a.total_cmp(b));
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
