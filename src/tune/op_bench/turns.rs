//! Several candidates in one submission.

use super::OpBench;
use crate::device::Recording;
use crate::error::Result;
use crate::ops::Choice;

impl OpBench {
    /// One recording in which the choices take turns, round by round, each `runs` times in a row.
    /// A round that does not count comes first, and every other round goes backwards.
    pub(super) fn record_turns(
        &mut self,
        choices: &[(Choice, u32)],
        rounds: usize,
    ) -> Result<(Recording, Vec<usize>)> {
        let (mut dispatches, mut owners) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            let forwards = round % 2 == 0;
            for place in 0..choices.len() {
                let index = if forwards { place } else { choices.len() - 1 - place };
                let Some((choice, runs)) = choices.get(index) else { continue };
                let runs = if round == 0 { 1 } else { (*runs).max(1) as usize };
                dispatches.extend(self.dispatches(self.prepared(choice)?, self.turn, runs)?);
                owners.extend(std::iter::repeat_n(if round == 0 { usize::MAX } else { index }, runs));
                self.turn = (self.turn + runs) % self.sets;
            }
        }
        Ok((self.device.record(&dispatches)?, owners))
    }
}
