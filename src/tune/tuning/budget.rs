//! What a tuning run may still spend.

use super::*;

impl TuningRun {
    pub(super) fn budget(&self) -> Option<Duration> {
        match self.options.search {
            Search::Budget(budget) => Some(budget),
            _ => None,
        }
    }

    /// What one more candidate would cost.
    pub(super) fn candidate_cost(&self) -> Duration {
        self.costs.iter().take(4).map(Cost::usual).sum()
    }

    /// Finalists of the duel.
    pub(super) fn finalists(&self) -> usize {
        let most = self.options.finalists.max(1);
        if self.budget().is_some() && !self.paired { most.min(2) } else { most }
    }

    /// Whether what is left of the budget, less what race and duel need, is less than `cost`.
    pub(super) fn time_is_up(&self, cost: Duration) -> bool {
        // In pairs, a submission holds several rounds of all.
        let duel = match self.paired {
            true => self.options.rule.looks[0].div_ceil(DUEL_ROUNDS_PER_SUBMISSION) * 2,
            false => self.options.rule.looks[0] * (1 + self.finalists()),
        };
        let samples = match self.phase {
            Phase::Screen => 2 * MAX_BUDGET_RACERS + duel,
            Phase::Race => duel,
            Phase::Duel | Phase::Confirm => 0,
        };
        // Half as much again: without its first look, a duel keeps the default.
        let samples = samples + samples / 2;
        let reserve = self.costs[3].usual().saturating_mul(u32::try_from(samples).unwrap_or(u32::MAX));
        let reserve = reserve + self.confirmation_reserve();
        // Warming up is not this problem's: the next ones profit as well.
        let spent = self.spent.saturating_sub(self.costs[4].total);
        self.budget().is_some_and(|budget| spent + reserve + cost > budget)
    }
}
