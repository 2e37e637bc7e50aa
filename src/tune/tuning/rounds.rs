//! The race of a tuning run, and its end.

use super::*;
use crate::sorted;

impl TuningRun {
    /// The next sample of the round.
    pub(super) fn queued(&mut self) -> Option<Action> {
        if !self.bout && self.queue.is_empty() {
            return None;
        }
        if let Some(baseline) = self.baseline.filter(|_| self.cold) {
            return Some(Action::Warm(baseline));
        }
        if self.bout {
            return Some(Action::Bout);
        }
        if self.phase == Phase::Race
            && let Some(anchor) = self.anchor()
        {
            return Some(anchor);
        }
        while let Some(index) = self.queue.pop() {
            let usable = self.entries[index].state == State::Live;
            if usable || self.baseline == Some(index) {
                return Some(Action::Sample(index));
            }
        }
        None
    }

    /// Closes a round or a phase and opens the next; false at the end of the run.
    pub(super) fn next_phase(&mut self, bench: &mut dyn Bench) -> bool {
        let Some(baseline) = self.baseline else {
            // A search of the default alone that found it flaky looks for what takes its place.
            let flaky = |entry: &Entry| matches!(entry.state, State::Settled(Outcome::Flaky { .. }));
            let look = self.phase != Phase::Confirm && self.entries.first().is_some_and(flaky);
            self.phase = Phase::Confirm;
            return look;
        };
        match self.phase {
            Phase::Screen => {
                self.phase = Phase::Race;
                self.cold = true;
                self.live = (0..self.entries.len())
                    .filter(|&index| index != baseline && self.entries[index].state == State::Live)
                    .collect();
                let racers = if self.budget().is_some() { MAX_BUDGET_RACERS } else { usize::MAX };
                self.cull(bench, racers);
                self.rounds = 1;
            }
            Phase::Race => {
                let half = self.live.len().div_ceil(2);
                self.rounds += 1;
                self.cull(bench, half.max(self.finalists()));
            }
            Phase::Duel => {
                if !self.next_duel_round(bench) {
                    self.phase = Phase::Confirm;
                }
                return true;
            }
            Phase::Confirm => return false,
        }
        let up = self.time_is_up(Duration::ZERO);
        if self.live.len() > self.finalists() && !up {
            self.queue = self.live.clone();
            self.random.shuffle(&mut self.queue);
            return true;
        }
        let level = self.level;
        self.live.retain(|&index| self.entries[index].score().is_some_and(|score| score < level));
        self.cull(bench, self.finalists());
        self.phase = Phase::Duel;
        self.cold = true;
        self.rounds = 0;
        self.round.clear();
        if !self.next_duel_round(bench) {
            self.phase = Phase::Confirm;
        }
        true
    }

    /// Relative noise of one sample, from the anchors' steps and the candidates' residuals.
    fn noise(&self) -> f64 {
        // The anchors' steps are no noise of pairs.
        let steps = self.anchors.windows(2).filter(|_| !self.paired);
        let mut residuals: Vec<f64> =
            steps.map(|pair| (pair[1] - pair[0]) / std::f64::consts::SQRT_2).collect();
        for entry in &self.entries {
            if let (Some(score), true) = (entry.score(), entry.scores.len() > 2) {
                residuals.extend(entry.scores.iter().map(|sample| sample - score));
            }
        }
        let assumed = if self.paired { ASSUMED_PAIR_NOISE } else { ASSUMED_NOISE };
        let least = if residuals.len() < 8 { assumed } else { MIN_NOISE };
        spread(&residuals).unwrap_or_default().max(least)
    }

    /// Drops the live candidates that cannot be the best, and all but the best `most`.
    fn cull(&mut self, bench: &mut dyn Bench, most: usize) {
        let sigma = self.noise();
        let half_width = |entry: &Entry| race_half_width(sigma, entry.scores.len(), RACE_Z);
        let scored = |index: usize| self.entries[index].score().unwrap_or(f64::INFINITY);
        let mut live = std::mem::take(&mut self.live);
        sorted::sort(&mut live, |&a, &b| scored(a).total_cmp(&scored(b)).then(a.cmp(&b)));
        let bar = live.first().map_or(f64::INFINITY, |&best| scored(best) + half_width(&self.entries[best]));
        let stays = |&index: &usize| scored(index) - half_width(&self.entries[index]) <= bar;
        // A quarter stays whatever the interval says of it: one sample that is too good to be true
        // must not end the race.
        let least = live.len().div_ceil(4).max(self.finalists());
        let keep = live.iter().take_while(|index| stays(index)).count().max(least).min(most).min(live.len());
        for &index in live.get(keep..).unwrap_or_default() {
            self.entries[index].state = State::Out;
            bench.release(&self.entries[index].choice);
        }
        live.truncate(keep);
        self.live = live;
    }

    /// The best of those that beat the default.
    pub(super) fn winner(&self) -> Option<usize> {
        (0..self.entries.len())
            .filter_map(|index| self.entries[index].better.map(|interval| (interval.centre, index)))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, index)| index)
    }

    pub(super) fn conclude(&mut self, bench: &mut dyn Bench) -> Result<()> {
        // What differed in the rounds that it had is not used; what was not confirmed is not recorded: the default stays.
        self.entries.iter_mut().for_each(Entry::judge);
        let challenger = self.winner().filter(|&index| self.is_confirmed(index));
        let chosen = challenger.or(self.baseline.filter(|&index| self.is_confirmed(index)));
        let scores = chosen.and_then(|index| self.entries[index].score());
        let trials = self.entries.iter().enumerate();
        let trials = trials
            .filter_map(|(index, entry)| entry.trial(chosen == Some(index), scores, self.level))
            .collect();
        let interval = challenger.and_then(|index| self.entries[index].better);
        let default = self.entries.first().map(|entry| entry.choice);
        let Some(default) = default else {
            return Err(crate::Error::Internal("a tuning run without candidates".to_owned()));
        };
        self.verdict = Some(Verdict {
            choice: chosen.map(|index| self.entries[index].choice),
            default,
            speed_up: interval.map_or(1.0, |interval| (-interval.centre).exp()),
            interval: interval.map(|interval| [(-interval.high).exp(), (-interval.low).exp()]),
            trials,
            spent: self.spent,
            cut_short: self.cut_short,
        });
        bench.finish()
    }
}
