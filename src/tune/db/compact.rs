//! Keeps a database within its bounds.

use super::{Bounds, Database, Entry, MachineRow, NetworkRow, Verdict};
use crate::sorted;
use crate::tune::key::{ChoiceKey, TUNER_VERSION};
use std::collections::BTreeMap;

impl Database {
    /// Whether the database exceeds its bounds.
    pub(super) fn is_large(&self) -> bool {
        self.exceeds(self.bounds)
    }

    fn exceeds(&self, bounds: Bounds) -> bool {
        self.bytes > bounds.max_bytes
            || self.len() + self.networks.len() + self.machines.len() + self.foreign.len() > bounds.max_rows
    }

    pub(super) fn compact_if_large(&mut self) {
        if self.is_large() {
            self.shrink();
        }
    }

    /// Drops superseded and retired rows, then the oldest groups until the target is met.
    pub(super) fn shrink(&mut self) {
        self.keep_newest();
        // Room below the bounds, so that the next append does not compact again.
        let Bounds { max_rows, max_bytes } = self.bounds;
        let target = Bounds { max_rows: max_rows / 4 * 3, max_bytes: max_bytes / 4 * 3 };
        if !self.exceeds(target) {
            return;
        }
        // Their age is not known.
        self.foreign.clear();
        self.count_bytes();
        // Verdicts on networks may take a quarter of the target.
        self.keep_networks(target.max_rows / 4, target.max_bytes / 4);
        let mut ages: Vec<_> = self
            .groups
            .iter()
            .map(|(key, group)| {
                let newest = group.values().map(|entry| entry.row.from.unix_ms).max().unwrap_or(0);
                (newest, key.clone())
            })
            .collect();
        sorted::sort(&mut ages, Ord::cmp);
        let last = ages.pop();
        let mut rows = self.len() + self.networks.len() + self.machines.len();
        for (_, key) in ages {
            if self.bytes <= target.max_bytes && rows <= target.max_rows {
                return;
            }
            if let Some(group) = self.groups.remove(&key) {
                rows -= group.len();
                self.bytes -= group.values().map(|entry| entry.bytes).sum::<u64>();
            }
        }
        // One problem alone may be too large: its winners stay the longest.
        let Some(group) = last.and_then(|(_, key)| self.groups.get_mut(&key)) else { return };
        let mut oldest: Vec<_> = group
            .iter()
            .map(|(tried, entry)| {
                let row = &entry.row;
                (row.verdict == Verdict::Winner, row.from.unix_ms, tried.clone())
            })
            .collect();
        sorted::sort(&mut oldest, Ord::cmp);
        for (_, _, tried) in oldest {
            if self.bytes <= target.max_bytes && group.len() <= target.max_rows {
                break;
            }
            if let Some(entry) = group.remove(&tried) {
                self.bytes -= entry.bytes;
            }
        }
        self.groups.retain(|_, group| !group.is_empty());
    }

    /// Keeps the newest row of each choice, and none of an older tuner version.
    fn keep_newest(&mut self) {
        for group in self.groups.values_mut() {
            let mut newest: BTreeMap<ChoiceKey, Entry> = BTreeMap::new();
            for ((choice, tuner, _), entry) in std::mem::take(group) {
                if tuner < TUNER_VERSION {
                    continue;
                }
                if newest.get(&choice).is_none_or(|old| entry.newer_than(old)) {
                    newest.insert(choice, entry);
                }
            }
            let keyed = |(choice, entry): (ChoiceKey, Entry)| {
                ((choice, entry.row.key.tuner, entry.row.key.source), entry)
            };
            *group = sorted::map(newest.into_iter().map(keyed));
        }
        self.groups.retain(|_, group| !group.is_empty());
        self.count_bytes();
    }

    fn count_bytes(&mut self) {
        let rows = self.groups.values().flat_map(BTreeMap::values).map(|entry| entry.bytes);
        let networks = self.networks.values().map(NetworkRow::bytes);
        let machines = self.machines.values().map(MachineRow::bytes);
        let foreign = self.foreign.iter().map(|line| line.len() as u64 + 1);
        self.bytes = rows.chain(networks).chain(machines).chain(foreign).sum();
    }
}
