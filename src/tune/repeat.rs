//! Runs that repeat one whose output was right, and must give the same bits.
//!
//! A kernel with a race, or on a device with a fault, may be right in most runs. One that is wrong in a part `p` of its
//! runs passes one check with probability `1 - p`, and all of [`LEAST_RUNS`] more with `(1 - p)^64`: 0.1 % for one run of
//! ten, 52 % for one of a hundred. Where runs are short there are up to four times as many: 8 % for one of a hundred.
//! What depends on the device's clock shows after a pause, what is left behind in caches and local memory behind another
//! kernel's run, and what depends on values with other inputs. So there are eight rounds of each kind:
//!
//! | round | runs |
//! |---|---|
//! | 0 | one by one, each waited for |
//! | 1 | back to back |
//! | 2, 5, 7 | in four groups, each after a pause |
//! | 3, 6 | behind runs of another kernel |
//! | 4, 5, 6, 7 | with other inputs |

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Rounds of repeated runs.
pub const ROUNDS: u32 = 8;
/// Runs in all rounds together, at least.
pub const LEAST_RUNS: u32 = 64;
/// Runs of a round at most, and for how long, where more than the least are made.
const MOST_RUNS_OF_ROUND: u32 = 32;
const ROUND_TIME: Duration = Duration::from_millis(2);
/// Groups of a round with pauses.
const GROUPS: u32 = 4;
/// Pauses in all rounds together.
pub const PAUSES: u32 = 3 * GROUPS;

/// How often an output was looked at, and how often it was another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Repeats {
    /// Runs whose output differed from the first, in any bit.
    pub differed: u32,
    /// Runs.
    pub runs: u32,
}

impl Repeats {
    /// Whether there were as many runs as a choice needs, and all gave the same bits.
    pub fn is_steady(&self) -> bool {
        self.differed == 0 && self.runs >= LEAST_RUNS
    }
}

impl fmt::Display for Repeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its output differed in {} of {} runs", self.differed, self.runs)
    }
}

/// One round of repeated runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// Runs, at least one.
    pub runs: u32,
    /// Groups that they are made in, before each of which the device is left alone for `pause`.
    pub groups: u32,
    /// How long the device is left alone.
    pub pause: Duration,
    /// Whether another kernel runs before each.
    pub between: bool,
    /// Whether they read other inputs than the first run did.
    pub other_inputs: bool,
}

impl Round {
    /// Round `number` of those with `runs` runs each.
    pub fn new(number: u32, runs: u32, pause: Duration) -> Self {
        let runs = runs.max(1);
        let (groups, pause) = match number % ROUNDS {
            0 => (runs, Duration::ZERO),
            2 | 5 | 7 => (GROUPS.min(runs), pause),
            _ => (1, Duration::ZERO),
        };
        Round {
            runs,
            groups,
            pause,
            between: matches!(number % ROUNDS, 3 | 6),
            other_inputs: number % ROUNDS >= ROUNDS / 2,
        }
    }

    /// Runs of each round of a kernel that takes so long.
    pub fn runs_of(time: Duration) -> u32 {
        let fitting = ROUND_TIME.as_secs_f64() / time.as_secs_f64().max(1e-7);
        (fitting as u32).clamp(LEAST_RUNS / ROUNDS, MOST_RUNS_OF_ROUND)
    }
}

/// What a round of repeated runs gave.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Repeated {
    /// Runs whose output differed from the one that was right.
    pub differed: u32,
    /// What was wrong with the first of them.
    pub detail: Option<String>,
    /// What is wrong with every output for the other inputs.
    pub wrong: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_of_every_kind() {
        for time in [0, 1, 60, 250, 1000, 100_000].map(Duration::from_micros) {
            let runs = Round::runs_of(time);
            let rounds: Vec<Round> =
                (0..ROUNDS).map(|number| Round::new(number, runs, Duration::from_millis(10))).collect();
            let all: u32 = rounds.iter().map(|round| round.runs).sum();
            assert!((LEAST_RUNS..=4 * LEAST_RUNS).contains(&all), "{all} for {time:?}");
            let pauses = rounds.iter().filter(|round| !round.pause.is_zero()).map(|round| round.groups);
            assert_eq!(pauses.sum::<u32>(), PAUSES);
            assert_eq!(rounds.iter().filter(|round| round.between).count(), 2);
            assert_eq!(rounds.iter().filter(|round| round.other_inputs).count(), 4);
            assert!(rounds.iter().all(|round| (1..=round.runs).contains(&round.groups)));
        }
        assert_eq!(Round::runs_of(Duration::ZERO), 32);
    }
}
