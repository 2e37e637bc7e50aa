//! The end of a tuning run: the winner's output is compared again.
//!
//! A kernel with a race, or on a device with a fault, may be right in most runs. One that is wrong in a part `p` of its
//! runs passes its first check with probability `1 - p`, and all of [`RECHECKS`] more with `(1 - p)^44`: below 1 % for one
//! run of ten, 11 % for one of twenty. What depends on the device's clock shows after a pause, so some of them come
//! behind one.

use super::*;

/// How often a winner's output is compared again: `0.9^44 < 0.01`.
pub(super) const RECHECKS: u32 = 44;
/// Pauses among them.
const PAUSES: u32 = 4;
/// How long a pause is at most, and which part of the budget.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_PER_BUDGET: u32 = 64;
/// A confirmation that takes longer than this and than the budget is not begun: the default stays.
const MAX_OVERRUN: Duration = Duration::from_millis(250);
/// The most of a budget that is kept for it, as a part of the budget.
const MAX_RESERVE: u32 = 4;

impl TuningRun {
    fn pause(&self) -> Duration {
        self.budget().map_or(PAUSE, |budget| PAUSE.min(budget / PAUSE_PER_BUDGET))
    }

    /// What a confirmation is likely to cost.
    fn confirmation(&self) -> Duration {
        let once = match self.costs[6].count {
            0 => self.recheck_cost,
            _ => self.costs[6].mean(),
        };
        once * RECHECKS + self.pause() * PAUSES
    }

    /// What is kept of the budget for it.
    pub(super) fn confirmation_reserve(&self) -> Duration {
        match self.phase {
            Phase::Confirm => Duration::ZERO,
            _ => self.budget().map_or(Duration::ZERO, |budget| self.confirmation().min(budget / MAX_RESERVE)),
        }
    }

    /// What the run has found and is to be confirmed: the best that beats the default, or what takes the place of a
    /// default that cannot be used.
    fn found(&self) -> Option<usize> {
        self.winner().or(self.baseline.filter(|&baseline| baseline != 0))
    }

    /// Whether `index` may be recorded as the choice.
    pub(super) fn is_confirmed(&self, index: usize) -> bool {
        index == 0 || self.entries.get(index).is_some_and(|entry| entry.confirmed >= RECHECKS)
    }

    /// The next comparison, if one is left.
    pub(super) fn unconfirmed(&mut self, bench: &mut dyn Bench) -> Option<Action> {
        let index = self.found().filter(|&index| !self.is_confirmed(index))?;
        if self.entries[index].confirmed == 0 {
            self.recheck_cost = bench.recheck_cost().max(self.recheck_cost);
            let most = self.budget().map_or(Duration::MAX, |budget| budget.max(MAX_OVERRUN));
            if self.confirmation() > most {
                self.cut_short = true;
                return None;
            }
        }
        Some(Action::Confirm(index))
    }

    /// Compares the output of `index` once more.
    pub(super) async fn confirm(&mut self, bench: &mut dyn Bench, index: usize) -> Result<()> {
        let Entry { choice, confirmed, .. } = self.entries[index];
        let pause = if confirmed.is_multiple_of(RECHECKS / PAUSES) { self.pause() } else { Duration::ZERO };
        match bench.recheck_async(&choice, confirmed, pause).await? {
            Check::Correct => self.entries[index].confirmed += 1,
            Check::Wrong { detail } => {
                let detail = format!("{detail}; {confirmed} comparisons before found it right");
                self.entries[index].better = None;
                self.entries[index].state = State::Settled(Outcome::Wrong { detail });
            }
        }
        Ok(())
    }
}
