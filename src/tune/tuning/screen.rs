//! The screen of a tuning run: which candidate is looked at next.

use super::*;

impl TuningRun {
    pub(super) fn anchor(&mut self) -> Option<Action> {
        if self.since_anchor < ANCHOR_PERIOD {
            return None;
        }
        self.baseline.map(Action::Sample)
    }

    /// The next action on the candidate at hand, or on the next one.
    pub(super) fn screen(&mut self, bench: &mut dyn Bench) -> Option<Action> {
        if let Some(anchor) = self.anchor() {
            return Some(anchor);
        }
        loop {
            if let Some(index) = self.current {
                match self.entries[index].state {
                    State::Waiting => return Some(Action::Prepare(index)),
                    State::Prepared => return Some(Action::Check(index)),
                    State::Checked if self.cold => return Some(Action::Warm(index)),
                    State::Checked if self.entries[index].times.is_empty() => {
                        return Some(Action::Estimate(index));
                    }
                    State::Checked => return Some(Action::Sample(index)),
                    _ => self.current = None,
                }
            }
            if self.baseline.is_some() && self.time_is_up(self.candidate_cost()) {
                self.cut_short |= self.budget().is_some();
                return None;
            }
            self.look_ahead(bench);
            let index = self.upcoming.pop_front()?;
            // Since it was named, a smaller work-group of its kernel may have been refused.
            match bench.fits(&self.entries[index].choice) {
                Ok(()) => self.current = Some(index),
                Err(error) => self.refuse(index, &error),
            }
        }
    }

    /// Fills the list of what is screened next, and names it to the bench.
    fn look_ahead(&mut self, bench: &mut dyn Bench) {
        let wanted = 1 + bench.width();
        while self.upcoming.len() < wanted {
            // What would not be reached within the budget is not worth compiling.
            let reach = u32::try_from(self.upcoming.len()).unwrap_or(u32::MAX);
            if reach > 0 && self.time_is_up(self.candidate_cost().saturating_mul(reach + 1)) {
                break;
            }
            let next = match &mut self.explorer {
                Some(explorer) => explorer.next(),
                None => self.order.pop(),
            };
            let Some(index) = next else { break };
            if self.entries[index].state != State::Waiting {
                continue;
            }
            match bench.fits(&self.entries[index].choice) {
                Ok(()) => self.upcoming.push_back(index),
                Err(error) => self.refuse(index, &error),
            }
        }
        if bench.width() > 0 {
            let choices: Vec<Choice> =
                self.upcoming.iter().map(|&index| self.entries[index].choice).collect();
            bench.ahead(&choices);
        }
    }

    /// Settles a candidate that cannot be used; the explorer learns to keep away from its like.
    pub(super) fn refuse(&mut self, index: usize, error: &crate::Error) {
        if let &crate::Error::TimedOut { api, limit } = error.without_node() {
            self.hung = Some((api, limit));
        }
        self.entries[index].refuse(error);
        if let Some(explorer) = &mut self.explorer {
            explorer.fail(index);
        }
    }

    /// Ends the run if the device did not come to an end: what comes behind is held up as well.
    ///
    /// # Errors
    /// If no kernel has run yet: then it is not known whose fault it is.
    pub(super) fn end_if_hung(&mut self, bench: &mut dyn Bench) -> crate::Result<()> {
        match self.hung.take() {
            None => Ok(()),
            Some((api, limit)) if self.baseline.is_none() && self.phase != Phase::Confirm => {
                Err(crate::Error::TimedOut { api, limit })
            }
            Some(_) => self.cancel(bench),
        }
    }
}
