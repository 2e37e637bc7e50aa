//! Verdicts: what became of each candidate, and the rule by which one beats the default. Pure over
//! samples.
//!
//! **The duel.** After the race ([`super::TuningRun`]) a few finalists are compared with the default in fresh
//! rounds. In each round every finalist and the default are sampled once, in shuffled order, and
//! the round gives one difference `d = ln(t_candidate / t_default)` for each finalist: a drift of
//! the clock is in both and cancels, and what drift there is within a round has a random sign.
//! Samples of the race do not count, because the finalists were chosen by them (the winner of a
//! noisy race is faster on paper than it is).
//!
//! **The rule.** A finalist beats the default if the Hodges-Lehmann estimate of its differences is
//! at most `-ln(1 + minimum_effect)` and the upper end of its signed-rank interval
//! ([`super::statistics::signed_rank_interval`]) is below 0. The interval's `alpha` is shared among
//! all finalists and the looks at the data (Bonferroni), so that the whole duel picks one of
//! several equal candidates with probability at most `alpha`. Anything else keeps the default.

use super::repeat::Repeats;
use super::statistics::{Interval, median, signed_rank_interval};
use crate::ops::Choice;
use std::fmt;
use std::time::Duration;

/// When a finalist beats the default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// The least speed-up that is worth leaving the default for; 0.02 is 2 %.
    pub minimum_effect: f64,
    /// The probability that a duel of equals does not keep the default.
    pub alpha: f64,
    /// Rounds after which the duel is judged; the last one ends it.
    pub looks: [usize; 2],
}

impl Default for Rule {
    /// 2 %, 1 %, and rounds 10 and 25. In ten rounds one of up to five finalists can win
    /// (`2^-10 <= 0.01 / 10`).
    fn default() -> Self {
        Rule { minimum_effect: 0.02, alpha: 0.01, looks: [10, 25] }
    }
}

/// What a duel says of one finalist.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Call {
    /// It beats the default.
    Better(Interval),
    /// It does not.
    NotBetter,
    /// More rounds may decide.
    Undecided,
}

impl Rule {
    /// Judges the differences `ln(t_candidate / t_default)` of one of `rivals` finalists.
    pub fn call(&self, differences: &[f64], rivals: usize) -> Call {
        let alpha = self.alpha / (self.looks.len() * rivals.max(1)) as f64;
        let enough = -(1.0 + self.minimum_effect).ln();
        let over = differences.len() >= self.looks[1];
        match signed_rank_interval(&without_outliers(differences), alpha) {
            Some(interval) if interval.high < 0.0 && interval.centre <= enough => Call::Better(interval),
            _ if over => Call::NotBetter,
            // Half the effect in as many rounds: the rest will not double it.
            Some(interval) if interval.centre > enough / 2.0 => Call::NotBetter,
            _ => Call::Undecided,
        }
    }
}

/// The differences no larger than four times the median of their sizes.
fn without_outliers(differences: &[f64]) -> Vec<f64> {
    let sizes: Vec<f64> = differences.iter().map(|difference| difference.abs()).collect();
    let bound = 4.0 * median(&sizes).unwrap_or_default();
    differences.iter().copied().filter(|difference| difference.abs() <= bound).collect()
}

/// What became of a candidate.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// It is to be used.
    Winner,
    /// It is correct, and slower than the winner or not significantly faster than the default.
    Loser {
        /// Its time over the winner's.
        ratio: f64,
    },
    /// Its output was wrong: it is never used.
    Wrong {
        /// The first bad element.
        detail: String,
    },
    /// Its output was right, and in some runs another one: it is never used.
    Flaky {
        /// How often.
        repeats: Repeats,
        /// What was wrong with the first output that differed.
        detail: String,
    },
    /// It cannot run on this device.
    Rejected {
        /// The broken constraint.
        reason: String,
    },
    /// The driver refused to compile or run it.
    Failed {
        /// The driver's words.
        message: String,
    },
    /// One run took longer than the limit.
    TimedOut {
        /// How long it took.
        after: Duration,
    },
    /// The record says that it must not be tried again.
    Barred {
        /// What came of it, as the record has it.
        verdict: String,
    },
    /// Tuning ended before it was judged.
    Cancelled,
}

impl Outcome {
    /// Whether the candidate itself is at fault: it is wrong, or did not run to the end.
    pub fn is_defect(&self) -> bool {
        matches!(
            self,
            Outcome::Wrong { .. }
                | Outcome::Flaky { .. }
                | Outcome::Failed { .. }
                | Outcome::TimedOut { .. }
                | Outcome::Barred { .. }
        )
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Winner => f.write_str("winner"),
            Outcome::Loser { ratio } => write!(f, "{ratio:.2} times the winner's time"),
            Outcome::Wrong { detail } => write!(f, "wrong: {detail}"),
            Outcome::Flaky { repeats, detail } => write!(f, "flaky: {repeats}: {detail}"),
            Outcome::Rejected { reason } => write!(f, "rejected: {reason}"),
            Outcome::Failed { message } => write!(f, "failed: {message}"),
            Outcome::TimedOut { after } => write!(f, "timed out after {after:.1?}"),
            Outcome::Barred { verdict } => write!(f, "on record as {verdict}"),
            Outcome::Cancelled => f.write_str("cancelled"),
        }
    }
}

/// A candidate and what was found out about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The candidate.
    pub choice: Choice,
    /// What became of it.
    pub outcome: Outcome,
    /// The median time of one run, as the clock gave it.
    pub median: Option<Duration>,
    /// A tenth of the times are below the first, and a tenth above the second.
    pub tenths: Option<[Duration; 2]>,
    /// The scaled median absolute deviation of the times, relative to the median.
    pub spread: Option<f64>,
    /// A tenth of the times are below the first, a tenth above the second (linear between samples).
    pub percentiles: Option<[Duration; 2]>,
    /// Its time over the default's, free of the clock's drift.
    pub relative: Option<f64>,
    /// Samples taken.
    pub samples: usize,
    /// How often its output was looked at again, and differed; none if it was not.
    pub repeats: Option<Repeats>,
}

/// The end of a tuning run.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What to use: the winner, or the default. None if no candidate gives the right result.
    pub choice: Option<Choice>,
    /// What an untuned session runs.
    pub default: Choice,
    /// How much faster the winner is than the default: 1 where the default stays.
    pub speed_up: f64,
    /// The interval of the speed-up, where the default was beaten.
    pub interval: Option<[f64; 2]>,
    /// Every candidate that was looked at.
    pub trials: Vec<Trial>,
    /// Time spent on the bench.
    pub spent: Duration,
    /// Whether the run was cancelled, or its budget ended it, before all candidates were judged.
    pub cut_short: bool,
}

impl Verdict {
    /// The winner's trial.
    pub fn winner(&self) -> Option<&Trial> {
        self.trials.iter().find(|trial| trial.outcome == Outcome::Winner)
    }

    /// How often the default's output differed, if it is flaky.
    pub fn flaky_default(&self) -> Option<Repeats> {
        let default = self.trials.iter().find(|trial| trial.choice == self.default)?;
        default.repeats.filter(|repeats| repeats.differed > 0)
    }

    /// Whether the default was beaten, or replaced.
    pub fn beats_default(&self) -> bool {
        self.choice.is_some_and(|choice| choice != self.default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_clear_rounds_win_and_ten_equal_ones_lose() {
        let rule = Rule::default();
        let faster: Vec<f64> = (0..10).map(|round| -0.1 + 0.002 * f64::from(round)).collect();
        assert!(matches!(rule.call(&faster, 4), Call::Better(_)));
        // Six finalists share alpha: ten rounds can no longer decide.
        assert_eq!(rule.call(&faster, 6), Call::Undecided);
        assert_eq!(rule.call(&faster[..9], 4), Call::Undecided);
        let equal: Vec<f64> = (0..10).map(|round| 0.01 * f64::from(round % 3 - 1)).collect();
        assert_eq!(rule.call(&equal, 4), Call::NotBetter);
    }

    #[test]
    fn a_few_slow_runs_hide_no_winner() {
        let mut differences: Vec<f64> = (0..25).map(|round| -0.1 + 0.002 * f64::from(round)).collect();
        for slow in [3, 11, 19] {
            differences[slow] = 1.5;
        }
        assert!(matches!(Rule::default().call(&differences, 3), Call::Better(_)));
    }

    #[test]
    fn a_significant_but_small_effect_keeps_the_default() {
        let rule = Rule::default();
        let slightly: Vec<f64> = (0..25).map(|round| -0.015 + 1e-4 * f64::from(round % 5)).collect();
        assert_eq!(rule.call(&slightly[..10], 1), Call::Undecided);
        assert_eq!(rule.call(&slightly, 1), Call::NotBetter);
    }
}
