//! A candidate in a tuning run: its state and its samples.

use super::repeat::{ROUNDS, Repeated, Repeats, Round};
use super::statistics::{Interval, median, percentile, spread};
use super::verdict::{Outcome, Trial};
use crate::error::Error;
use crate::ops::Choice;
use crate::sorted;
use std::time::Duration;

/// How far a candidate has come.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum State {
    /// Nothing was done yet.
    Waiting,
    /// It compiles.
    Prepared,
    /// It gives the right result.
    Checked,
    /// It was timed and may win.
    Live,
    /// It was timed and cannot win.
    Out,
    /// It cannot be used, or the run ended.
    Settled(Outcome),
}

/// A candidate and its samples.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) choice: Choice,
    pub(super) state: State,
    /// How long its check took, which is its first run.
    pub(super) checked_in: Duration,
    /// Runs inside one sample.
    pub(super) repeats: u32,
    /// How often `repeats` was raised.
    pub(super) raised: u32,
    /// How often the first sample was taken again.
    pub(super) retaken: u32,
    /// Whether it was timed in pairs: a median of rounds has no outliers.
    pub(super) paired: bool,
    /// `ln` of its time over the anchor's, one per sample.
    pub(super) scores: Vec<f64>,
    /// Seconds of one run, one per sample.
    pub(super) times: Vec<f64>,
    /// `ln` of its time over the default's, one per round of the duel.
    pub(super) duel: Vec<f64>,
    /// What a look at the duel found, if it beats the default.
    pub(super) better: Option<Interval>,
    /// Rounds of repeated runs that it has behind it, what they found, and what was wrong with the first that differed.
    pub(super) rounds: u32,
    pub(super) repeated: Repeats,
    pub(super) detail: Option<String>,
    /// What an earlier run found, where that is not measured again.
    known: Option<Trial>,
}

impl Entry {
    pub(super) fn new(choice: Choice) -> Self {
        Entry {
            choice,
            state: State::Waiting,
            checked_in: Duration::ZERO,
            repeats: 1,
            raised: 0,
            retaken: 0,
            paired: false,
            scores: Vec::new(),
            times: Vec::new(),
            duel: Vec::new(),
            better: None,
            rounds: 0,
            repeated: Repeats::default(),
            detail: None,
            known: None,
        }
    }

    /// Takes over what an earlier run found: reasons for good, and relative times above `bound`, which are not
    /// measured again.
    pub(super) fn recall(&mut self, trial: &Trial, bound: f64) {
        if let Some(repeats) = trial.repeats.filter(Repeats::is_steady) {
            (self.rounds, self.repeated) = (ROUNDS, repeats);
        }
        match &trial.outcome {
            outcome @ (Outcome::Wrong { .. }
            | Outcome::Flaky { .. }
            | Outcome::Rejected { .. }
            | Outcome::Failed { .. }
            | Outcome::TimedOut { .. }
            | Outcome::Barred { .. }) => self.state = State::Settled(outcome.clone()),
            Outcome::Winner | Outcome::Loser { .. } | Outcome::Cancelled => match trial.relative {
                Some(relative) if relative > bound => {
                    self.scores = vec![relative.ln()];
                    self.state = State::Out;
                }
                _ => return,
            },
        }
        self.known = Some(trial.clone());
    }

    /// Takes in a round of repeated runs; what differed settles it once all rounds are over.
    pub(super) fn repeat(&mut self, round: &Round, found: Repeated) {
        self.rounds += 1;
        self.repeated.runs += round.runs;
        self.repeated.differed += found.differed.min(round.runs);
        if let Some(detail) = found.detail {
            self.detail.get_or_insert(detail);
        }
        if let Some(detail) = found.wrong {
            self.state = State::Settled(Outcome::Wrong { detail });
        } else if self.rounds >= ROUNDS {
            self.judge();
        }
    }

    /// Settles it if an output differed.
    pub(super) fn judge(&mut self) {
        if self.repeated.differed > 0 && !matches!(self.state, State::Settled(_)) {
            let detail = self.detail.clone().unwrap_or_default();
            self.state = State::Settled(Outcome::Flaky { repeats: self.repeated, detail });
        }
    }

    /// Whether it was right as often as a choice must be.
    pub(super) fn is_steady(&self) -> bool {
        self.rounds >= ROUNDS && self.repeated.is_steady() && !matches!(self.state, State::Settled(_))
    }

    /// The median score. Of samples that were taken alone the lower one of an even count: of two the
    /// faster counts, because outliers are slow.
    pub(super) fn score(&self) -> Option<f64> {
        if let [_] | [] = self.scores[..] {
            return self.scores.first().copied();
        }
        if self.paired {
            return median(&self.scores);
        }
        let mut sorted = self.scores.clone();
        sorted::sort(&mut sorted, f64::total_cmp);
        sorted.get(sorted.len().saturating_sub(1) / 2).copied()
    }

    /// Settles it with what the driver said.
    pub(super) fn refuse(&mut self, error: &Error) {
        self.state = State::Settled(match error.without_node() {
            Error::Reject { .. } | Error::Unsupported { .. } => {
                Outcome::Rejected { reason: error.to_string() }
            }
            Error::TimedOut { limit, .. } => Outcome::TimedOut { after: *limit },
            _ => Outcome::Failed { message: error.to_string() },
        });
    }

    /// Its trial, given the winner's score; none if nothing was done with it.
    pub(super) fn trial(&self, wins: bool, winner: Option<f64>, anchor: f64) -> Option<Trial> {
        let score = self.score();
        let ratio = score.zip(winner).map(|(score, winner)| (score - winner).exp());
        let outcome = match (&self.state, ratio) {
            _ if wins => Outcome::Winner,
            (State::Waiting, _) => return None,
            (State::Settled(outcome), _) => outcome.clone(),
            (State::Out | State::Live, Some(ratio)) => Outcome::Loser { ratio },
            _ => Outcome::Cancelled,
        };
        let repeats = (self.repeated.runs > 0).then_some(self.repeated);
        if let Some(known) = &self.known {
            return Some(Trial { outcome, repeats: repeats.or(known.repeats), ..known.clone() });
        }
        let middle = median(&self.times);
        let mut sorted = self.times.clone();
        sorted::sort(&mut sorted, f64::total_cmp);
        let tenth = |index: usize| sorted.get(index).map(|&seconds| duration(seconds));
        let cut = sorted.len() / 10;
        Some(Trial {
            choice: self.choice,
            outcome,
            median: middle.map(duration),
            tenths: tenth(cut)
                .zip(tenth(sorted.len().saturating_sub(1 + cut)))
                .map(|(low, high)| [low, high]),
            spread: spread(&self.times).zip(middle).map(|(spread, middle)| spread / middle),
            percentiles: percentile(&self.times, 0.1)
                .zip(percentile(&self.times, 0.9))
                .map(|(low, high)| [low, high].map(|seconds| Duration::from_secs_f64(seconds.max(0.0)))),
            relative: score.map(|score| (score - anchor).exp()),
            samples: self.times.len(),
            repeats,
        })
    }
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
