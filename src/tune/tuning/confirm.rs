//! The end of a tuning run: outputs are looked at again ([`super::super::repeat`]).
//!
//! First that of the best that beats the default. If it is flaky, the next one takes its place. Then that of the default,
//! which untuned sessions run. If the default is flaky and nothing beat it, it is replaced by the slowest candidate that is
//! steady: the comparisons with it are worth nothing, and what is slow asks the least of the device. Where none was timed,
//! as in a search of the default alone, the op's other kernels are tried, from the least preferred one on.

use super::*;
use crate::sorted;
use crate::tune::repeat::{PAUSES, ROUNDS, Round};

/// How long a pause is at most, and which part of the budget.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_PER_BUDGET: u32 = 256;
/// A confirmation that takes longer than this and than the budget is not begun: the default stays.
const MAX_OVERRUN: Duration = Duration::from_millis(250);
/// The most of a budget that is kept for it, as a part of the budget.
const MAX_RESERVE: u32 = 4;

impl TuningRun {
    fn pause(&self) -> Duration {
        self.budget().map_or(PAUSE, |budget| PAUSE.min(budget / PAUSE_PER_BUDGET))
    }

    /// The time of a run of `index`, if it was timed.
    fn time_of(&self, index: usize) -> Duration {
        let seconds = self.entries.get(index).and_then(|entry| median(&entry.times));
        seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or_default()
    }

    /// What confirming one candidate is likely to cost.
    fn confirmation(&self) -> Duration {
        let time = self.baseline.map_or(Duration::ZERO, |baseline| self.time_of(baseline));
        let round = match self.costs[6].count {
            // A run with what is copied and summed up around it.
            0 => self.repeat_cost + 2 * time * Round::runs_of(time),
            _ => self.costs[6].mean(),
        };
        round * ROUNDS + self.pause() * PAUSES
    }

    /// What is kept of the budget for it: for a winner, and for the default.
    pub(super) fn confirmation_reserve(&self) -> Duration {
        // What was compared in a duel is not thrown away for a default that can be looked at another time.
        let default = self.entries.first().is_some_and(|entry| !entry.is_steady());
        let both = default && self.phase != Phase::Duel;
        let cost = match self.phase {
            Phase::Confirm => return Duration::ZERO,
            _ => self.confirmation() * if both { 2 } else { 1 },
        };
        self.budget().map_or(Duration::ZERO, |budget| cost.min(budget / MAX_RESERVE))
    }

    /// Whether `index` may be recorded as the choice. Where there was no time to look at the default again, it is what an
    /// untuned session runs in any case.
    pub(super) fn is_confirmed(&self, index: usize) -> bool {
        self.entries.get(index).is_some_and(|entry| {
            entry.is_steady()
                || index == 0 && entry.repeated.differed == 0 && !matches!(entry.state, State::Settled(_))
        })
    }

    /// The next round, if one is left.
    pub(super) fn unconfirmed(&mut self, bench: &mut dyn Bench) -> Option<Action> {
        if let Some(winner) = self.winner()
            && !self.entries[winner].is_steady()
        {
            return self.round_of(bench, winner, false);
        }
        let confirmed = self.winner().is_some();
        if let Some(baseline) = self.baseline
            && !self.entries[baseline].is_steady()
        {
            return self.round_of(bench, baseline, baseline == 0);
        }
        match self.baseline {
            None if !confirmed => self.replacement(bench),
            _ => None,
        }
    }

    /// A round of `index`, if there is time for all of its rounds: a `default` is chosen without them.
    fn round_of(&mut self, bench: &mut dyn Bench, index: usize, default: bool) -> Option<Action> {
        if self.entries[index].rounds == 0 {
            self.repeat_cost = bench.repeat_cost().max(self.repeat_cost);
            let late = match default {
                true => self.time_is_up(self.confirmation()),
                false => {
                    let most = self.budget().map_or(Duration::MAX, |budget| budget.max(MAX_OVERRUN));
                    self.confirmation() > most
                }
            };
            if late {
                self.cut_short = true;
                return None;
            }
        }
        Some(Action::Confirm(index))
    }

    /// What is done next to find a candidate that takes the place of a flaky default.
    fn replacement(&mut self, bench: &mut dyn Bench) -> Option<Action> {
        loop {
            if let Some(index) = self.replacement {
                match self.entries[index].state {
                    State::Waiting => return Some(Action::Prepare(index)),
                    State::Prepared => return Some(Action::Check(index)),
                    State::Checked | State::Live if !self.entries[index].is_steady() => {
                        return Some(Action::Confirm(index));
                    }
                    State::Checked | State::Live => {
                        self.entries[index].state = State::Live;
                        self.baseline = Some(index);
                        return None;
                    }
                    _ => self.replacement = None,
                }
            }
            if self.time_is_up(self.confirmation()) {
                self.cut_short = true;
                return None;
            }
            let index = self.next_replacement(bench)?;
            match bench.fits(&self.entries[index].choice) {
                Ok(()) => {
                    // Most were let go when they lost.
                    self.entries[index].state = State::Waiting;
                    self.replacement = Some(index);
                }
                Err(error) => self.refuse(index, &error),
            }
        }
    }

    /// The slowest of those that were timed, then what was not tried yet.
    fn next_replacement(&mut self, bench: &dyn Bench) -> Option<usize> {
        let usable = |index: &usize| matches!(self.entries[*index].state, State::Live | State::Out);
        let mut timed: Vec<(f64, usize)> = (0..self.entries.len())
            .filter(usable)
            .filter_map(|index| Some((self.entries[index].score()?, index)))
            .collect();
        sorted::sort(&mut timed, |(a, _), (b, _)| b.total_cmp(a));
        if let Some((_, index)) = timed.first() {
            return Some(*index);
        }
        let waiting = |entries: &[Entry]| entries.iter().rposition(|entry| entry.state == State::Waiting);
        if waiting(&self.entries).is_none() {
            for (variant, tile) in bench.space() {
                let choice =
                    Choice::new(variant, tile, bench.table(variant, tile)).with_layout(bench.layout());
                if self.entries.iter().all(|entry| entry.choice != choice) {
                    self.entries.push(Entry::new(choice));
                }
            }
        }
        waiting(&self.entries)
    }

    /// One round of runs of `index`.
    pub(super) async fn confirm(&mut self, bench: &mut dyn Bench, index: usize) -> Result<()> {
        let choice = self.entries[index].choice;
        let runs = Round::runs_of(self.time_of(index));
        let round = Round::new(self.entries[index].rounds, runs, self.pause());
        let found = bench.repeat_async(&choice, &round).await?;
        self.entries[index].repeat(&round, found);
        // What takes the default's place may not have been timed.
        if self.entries[index].is_steady() && self.entries[index].times.is_empty() {
            let time = bench.sample_async(&choice, 1).await?;
            self.entries[index].times.push(time.as_secs_f64());
        }
        Ok(())
    }

    /// Lets go of a candidate that was found out at the end.
    pub(super) fn found_out(&mut self, bench: &mut dyn Bench, index: usize) {
        if matches!(self.entries[index].state, State::Settled(_)) {
            self.entries[index].better = None;
            bench.release(&self.entries[index].choice);
            if self.baseline == Some(index) {
                // Another substitute is one that was timed as well.
                self.baseline = None;
            }
        }
    }
}
