//! Random numbers of a session whose extents each run decides: all parts of a run draw by its number, whichever plans run.

use crate::graph::{Key, key_of};

/// How many runs there were.
#[derive(Debug, Default)]
pub(super) struct Draws {
    runs: u64,
    /// The plan of the last part that ran last, and the run that it counts as the next.
    next: Option<(u64, u64)>,
}

impl Draws {
    /// The key of the run that begins.
    pub(super) fn begin(&mut self, seed: u64) -> Key {
        let key = key_of(seed, self.runs);
        self.runs = self.runs.wrapping_add(1);
        key
    }

    /// Notes that the last part of the run that was begun runs by this plan: whether the plan has to be told the run's key. A
    /// plan that runs again has counted by itself.
    pub(super) fn end_by(&mut self, plan: u64) -> bool {
        self.next.replace((plan, self.runs)) != Some((plan, self.runs.wrapping_sub(1)))
    }
}
