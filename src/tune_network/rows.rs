//! From trials to the record's rows, and back.

use crate::ops::Choice;
use crate::tune::db::{Row, Timing, Verdict as RowVerdict};
use crate::tune::{Outcome, Trial};
use std::time::Duration;

/// What the record keeps of an outcome; nothing of a candidate that was not judged.
pub(super) fn recorded(outcome: &Outcome) -> Option<RowVerdict> {
    Some(match outcome {
        Outcome::Winner => RowVerdict::Winner,
        Outcome::Loser { .. } => RowVerdict::Loser,
        // Versions that do not know of flaky kernels must not use one: how often it differed is a field of the row.
        Outcome::Wrong { detail } | Outcome::Flaky { detail, .. } => {
            RowVerdict::Wrong { detail: detail.clone() }
        }
        Outcome::Rejected { .. } | Outcome::Barred { .. } | Outcome::Cancelled => return None,
        Outcome::Failed { message } => RowVerdict::Failed { reason: message.clone() },
        Outcome::TimedOut { .. } => RowVerdict::TimedOut,
    })
}

/// A row as a trial of an earlier run; none for a candidate without a time.
pub(super) fn recalled(choice: Choice, row: &Row) -> Option<Trial> {
    let time = row.time.as_ref();
    let outcome = match &row.verdict {
        verdict if verdict.bars() => Outcome::Barred { verdict: row.reason() },
        _ => Outcome::Loser { ratio: time.and_then(Timing::ratio)? },
    };
    let tenths = time.map(|time| [time.p10_ns, time.p90_ns].map(Duration::from_nanos));
    Some(Trial {
        choice,
        outcome,
        median: time.map(|time| Duration::from_nanos(time.median_ns)),
        tenths,
        spread: None,
        percentiles: tenths,
        relative: time.and_then(Timing::ratio),
        samples: time.map_or(0, |time| time.samples as usize),
        repeats: row.repeats,
    })
}

/// Whether `trial` is what was `known` of its candidate: nothing new to record.
pub(super) fn same_trial(known: &Trial, trial: &Trial) -> bool {
    let found = |trial: &Trial| (trial.choice, trial.median, trial.samples, trial.repeats);
    found(known) == found(trial) && trial.outcome != Outcome::Winner
}

pub(super) fn timing(trial: &Trial, default: Option<Duration>) -> Option<Timing> {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let [p10, p90] = trial.percentiles?;
    Some(Timing {
        median_ns: nanoseconds(trial.median?),
        p10_ns: nanoseconds(p10),
        p90_ns: nanoseconds(p90),
        samples: u32::try_from(trial.samples).unwrap_or(u32::MAX),
        // From samples taken beside each other, where there are such: whatever the clock did.
        default_ns: trial
            .relative
            .filter(|relative| *relative > 0.0)
            .and_then(|relative| Duration::try_from_secs_f64(trial.median?.as_secs_f64() / relative).ok())
            .or(default)
            .map(nanoseconds),
    })
}
