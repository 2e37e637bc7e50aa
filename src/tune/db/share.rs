//! Databases in the plural: merging, importing, exporting, and tables for families of devices.

use super::{Database, Entry, Origin, Row, Verdict};
use crate::error::Result;
use crate::tune::key::{DeviceKey, ProblemKey, TUNER_VERSION};
use std::collections::BTreeMap;

/// Which row counts when two databases have different rows of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum MergePolicy {
    /// The newer one; of equally old ones the measured before the imported and the shipped, then
    /// the one whose text sorts last. The order of merging does not matter.
    #[default]
    Newest,
    /// The one that is here.
    Ours,
    /// The one that comes.
    Theirs,
}

/// Which rows to show or export. Every condition must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// The op's name.
    pub op: Option<String>,
    /// A part of the device's name, family, driver or API, in any case of letters.
    pub device: Option<String>,
    /// Winners only.
    pub winners: bool,
}

impl Filter {
    /// Whether `row` passes.
    pub fn passes(&self, row: &Row) -> bool {
        let device = &row.key.device;
        let part = self.device.as_ref().map(|part| part.to_lowercase());
        let names = [&device.gpu, &device.family, &device.driver, &device.api];
        self.op.as_ref().is_none_or(|op| *op == row.key.problem.op)
            && part.is_none_or(|part| names.iter().any(|name| name.to_lowercase().contains(&part)))
            && (!self.winners || row.verdict == Verdict::Winner)
    }
}

impl Database {
    /// Adds the rows of `other`, in memory only ([`Database::save`] writes them, with
    /// [`MergePolicy::Newest`] against what is in the file). With [`MergePolicy::Newest`] a merge
    /// can be repeated and reordered freely.
    #[doc(hidden)]
    pub fn merge(&mut self, other: &Database, policy: MergePolicy) {
        for entry in other.groups.values().flat_map(BTreeMap::values) {
            self.insert(entry.clone(), policy);
        }
        for row in other.networks.values() {
            self.insert_network(row.clone(), policy);
        }
        for row in other.machines.values() {
            self.insert_machine(row.clone(), policy);
        }
        for line in &other.foreign {
            self.insert_foreign(line);
        }
    }

    /// Adds the rows of `other` to this database's file, if it has one, and to memory.
    ///
    /// # Errors
    /// Those of [`Database::save`].
    #[doc(hidden)]
    pub fn merge_and_save(&mut self, other: &Database, policy: MergePolicy) -> Result<()> {
        let merge = |database: &mut Database| {
            database.merge(other, policy);
            database.compact_if_large();
        };
        match self.file.clone() {
            Some(path) => self.save_with(&path, merge),
            None => {
                merge(self);
                Ok(())
            }
        }
    }

    /// Merges the rows of `other`, in memory, and marks those measured elsewhere as imported, with
    /// `note`. They count only where there is no newer row.
    #[doc(hidden)]
    pub fn import(&mut self, other: &Database, note: &str) {
        self.merge(&other.marked(Origin::Imported, note), MergePolicy::Newest);
    }

    /// The rows that pass `filter`, without a file and without lines of other versions.
    #[must_use]
    #[doc(hidden)]
    pub fn export(&self, filter: &Filter) -> Database {
        let mut out = Database::in_memory().with_bounds(self.bounds);
        for entry in self.groups.values().flat_map(BTreeMap::values) {
            if filter.passes(&entry.row) {
                out.insert(entry.clone(), MergePolicy::Newest);
            }
        }
        out
    }

    /// The winners of this database as tables for whole families, marked as shipped with `note`.
    /// Where several devices of a family and API have the same problem the newest row counts.
    #[must_use]
    #[doc(hidden)]
    pub fn family_tables(&self, note: &str) -> Database {
        let mut newest: BTreeMap<(DeviceKey, ProblemKey), Entry> = BTreeMap::new();
        for row in self.rows() {
            if row.verdict != Verdict::Winner || row.key.tuner != TUNER_VERSION {
                continue;
            }
            let mut row = row.clone();
            row.key.device = DeviceKey::of_family(row.key.device.family, row.key.device.api);
            let key = (row.key.device.clone(), row.key.problem.clone());
            let entry = Entry::new(row);
            if newest.get(&key).is_none_or(|old| entry.newer_than(old)) {
                newest.insert(key, entry);
            }
        }
        let mut out = Database::in_memory().with_bounds(self.bounds);
        for entry in newest.into_values() {
            out.insert(entry, MergePolicy::Newest);
        }
        out.marked(Origin::Shipped, note)
    }

    /// A copy in memory of the rows, the measured ones with another origin and note, and without fields that this
    /// version does not know. Verdicts on networks and figures of devices are left out: they are of one machine.
    #[must_use]
    #[doc(hidden)]
    pub fn marked(&self, origin: Origin, note: &str) -> Database {
        let mut out = Database::in_memory().with_bounds(self.bounds);
        for row in self.rows() {
            let mut row = row.clone();
            if row.from.origin == Origin::Measured {
                row.from.origin = origin;
                row.from.note = note.to_owned();
            }
            out.insert(Entry::new(row), MergePolicy::Newest);
        }
        for line in &self.foreign {
            out.insert_foreign(line);
        }
        out
    }
}
