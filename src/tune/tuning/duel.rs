//! The duel of a tuning run: the finalists and the default, round by round.

use super::action::log;
use super::*;

impl TuningRun {
    /// The candidates of a round of the duel, in a random order.
    fn members(&mut self, baseline: usize) -> Vec<usize> {
        let mut members = self.live.clone();
        members.push(baseline);
        self.random.shuffle(&mut members);
        members
    }

    /// Some rounds in one submission. If it fails, one round is sampled one by one, which shows who
    /// no longer runs.
    pub(super) async fn hold_bout(&mut self, bench: &mut dyn Bench) {
        let Some(baseline) = self.baseline else {
            self.bout = false;
            return;
        };
        let members = self.members(baseline);
        let seconds = |index: usize| self.entries[index].times.last().copied().unwrap_or_default();
        let round: f64 = members.iter().map(|&index| seconds(index)).sum();
        let runs = (DUEL_ROUND_TIME.as_secs_f64() / round.max(1e-9)).clamp(1.0, 16.0) as u32;
        let looks = self.options.rule.looks;
        let next = looks.into_iter().find(|&look| look > self.rounds).unwrap_or(looks[1]);
        let rounds = next.saturating_sub(self.rounds).clamp(1, DUEL_ROUNDS_PER_SUBMISSION);
        let choices: Vec<(Choice, u32)> =
            members.iter().map(|&index| (self.entries[index].choice, runs)).collect();
        let together = bench.together_async(&choices, rounds).await;
        self.bout = false;
        let Ok(times) = together else {
            self.queue = members;
            return;
        };
        let of = |member: usize| members.iter().position(|&other| other == member);
        let Some(anchors) = of(baseline).and_then(|place| times.get(place)) else { return };
        for (&index, own) in members.iter().zip(&times) {
            let entry = &mut self.entries[index];
            entry.times.extend(own.iter().map(Duration::as_secs_f64));
            if index != baseline {
                entry.duel.extend(own.iter().zip(anchors).map(|(own, anchor)| log(*own) - log(*anchor)));
            }
        }
        self.rounds += rounds;
    }

    /// Books the round that was sampled and fills the next one; false when the duel is over.
    pub(super) fn next_duel_round(&mut self, bench: &mut dyn Bench) -> bool {
        let Some(baseline) = self.baseline else { return false };
        let round = std::mem::take(&mut self.round);
        let anchor = round.iter().find(|(index, _)| *index == baseline).map(|(_, time)| *time);
        if let Some(anchor) = anchor {
            self.rounds += 1;
            for (index, time) in round.iter().filter(|(index, _)| *index != baseline) {
                self.entries[*index].duel.push(time - anchor);
            }
        }
        self.live.retain(|&index| self.entries[index].state == State::Live);
        let short = |&index: &usize| {
            self.entries[index].times.last().is_none_or(|&seconds| seconds <= MAX_PAIRED_TIME.as_secs_f64())
        };
        let in_bouts = bench.interleaves() && self.live.iter().chain([&baseline]).all(short);
        // In bouts a whole duel costs some ten milliseconds. Whatever the budget says, what all was
        // compiled and timed for is not thrown away for them.
        let up = !in_bouts && self.time_is_up(self.costs[3].usual());
        if self.options.rule.looks.contains(&self.rounds) || (up && self.rounds > 0) {
            self.look(bench);
            self.cut_short |= up;
        }
        let over = up || self.live.is_empty() || self.rounds >= self.options.rule.looks[1];
        if over {
            return false;
        }
        if in_bouts {
            self.bout = true;
        } else {
            self.queue = self.members(baseline);
        }
        true
    }

    /// Judges the duel so far. Those that are judged either way are not sampled again, unless one
    /// that is still open is ahead of them.
    fn look(&mut self, bench: &mut dyn Bench) {
        let rivals = self.finalists();
        let mut open = Vec::new();
        for &index in &self.live.clone() {
            match self.options.rule.call(&self.entries[index].duel, rivals) {
                Call::Better(interval) => self.entries[index].better = Some(interval),
                Call::Undecided => open.push(index),
                Call::NotBetter => {
                    self.entries[index].state = State::Out;
                    bench.release(&self.entries[index].choice);
                }
            }
        }
        let centre = |index: usize| median(&self.entries[index].duel).unwrap_or(f64::INFINITY);
        let best = self.winner().map(&centre).unwrap_or(f64::INFINITY);
        open.retain(|&index| centre(index) < best);
        if open.is_empty() {
            self.live.clear();
        } else {
            self.live.retain(|&index| self.entries[index].state == State::Live);
        }
    }
}
