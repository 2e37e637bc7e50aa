//! The memory of the plans of a session.

use super::plan::Plan;
use super::plans::Plans;
use super::profile::MemoryUse;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Plans {
    /// Bytes of the buffers that all plans use, of which each is as large as one wants it.
    pub(super) fn wanted(&self) -> Vec<u64> {
        let mut most: Vec<u64> = Vec::new();
        for Plan { runner, .. } in self.all() {
            let own = runner.shared_values();
            most.resize(most.len().max(own.len()), 0);
            most.iter_mut().zip(own).for_each(|(most, own)| *most = (*most).max(*own));
        }
        most
    }

    /// Has plans let go of buffers that were too small for the last one, and frees what no plan wants any more.
    pub(super) fn tidy(&mut self) {
        self.shared.sweep(&self.wanted());
        let (shared, current) = (Arc::clone(&self.shared), self.current);
        let others = self.parts.iter_mut().filter(|(number, _)| Some(**number) != current);
        others.for_each(|(_, other)| other.plan.runner.leave_buffers(&shared));
    }

    /// What all plans take together. What they share counts once.
    pub(super) fn memory(&self) -> MemoryUse {
        let mut counted = BTreeSet::new();
        let planned = self.shared.bytes(&self.wanted()) + self.shared.state_bytes();
        let mut sum = MemoryUse { planned, ..MemoryUse::default() };
        for Plan { runner, .. } in self.all() {
            let twice = runner.constants().iter().filter(|(place, _)| !counted.insert(*place));
            let twice: u64 = twice.map(|(_, bytes)| bytes).sum();
            let own = runner.memory();
            let constants = own.constants.saturating_sub(twice);
            // One plan runs at a time.
            sum = MemoryUse { least: sum.least.max(own.least), ..sum.and(MemoryUse { constants, ..own }) };
        }
        sum
    }
}
