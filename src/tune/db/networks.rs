//! Which backend runs a network the fastest: lines of the record of their own kind.

use super::row::{Provenance, cut};
use super::{Database, MergePolicy};
use crate::error::{Error, Result};
use crate::sorted;
use crate::tune::key::DeviceKey;
use serde::{Deserialize, Serialize};

/// The most verdicts on networks that a record keeps; the oldest go first.
const MAX_NETWORKS: usize = 512;

/// What a verdict on a network depends on: change any part, and it must be measured anew.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NetworkKey {
    /// Every GPU of the machine under each of its APIs, with the drivers' versions.
    ///
    /// The first field, because a file whose only line is torn is recognised by how a row begins.
    pub device: Vec<DeviceKey>,
    /// The processor's architecture, and how many threads the crate has: `x86_64, 16 threads`.
    pub cpu: String,
    /// What was measured: `wgpu`, `opencl`, `cpu`, or devices of these.
    pub candidates: Vec<String>,
    /// The hash of the network, of its inputs' extents, and of how it is to run.
    pub network: String,
    /// The session's precision.
    pub precision: String,
    /// The version of the crate, because each may have other kernels.
    #[serde(rename = "crate")]
    pub crate_version: String,
}

/// What came of a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NetworkTime {
    /// The candidate, as in [`NetworkKey::candidates`].
    pub candidate: String,
    /// The device that was opened for it; empty if none was.
    pub device: String,
    /// The median of its runs from host to host; none for one that did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ns: Option<u64>,
    /// How many runs were timed.
    pub runs: u32,
    /// Why it was not measured, or not to the end.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A verdict on a network: the times of all candidates.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NetworkRow {
    /// What the verdict depends on.
    pub key: NetworkKey,
    /// The candidates, in the order of the key.
    pub times: Vec<NetworkTime>,
    /// Where this was learnt.
    pub from: Provenance,
}

impl NetworkRow {
    /// A row measured now. Reasons longer than 2000 bytes are cut.
    pub fn measured(key: NetworkKey, mut times: Vec<NetworkTime>) -> Self {
        times.iter_mut().for_each(|time| cut(&mut time.reason));
        NetworkRow { key, times, from: Provenance::measured() }
    }

    fn line(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| Error::Internal(format!("a network's row: {error}")))
    }

    /// Bytes of its line, the end included.
    pub(super) fn bytes(&self) -> u64 {
        self.line().map_or(0, |line| line.len() as u64 + 1)
    }

    /// The order of [`MergePolicy::Newest`].
    fn newer_than(&self, other: &NetworkRow) -> bool {
        let rank = |row: &NetworkRow| (row.from.unix_ms, row.line().unwrap_or_default());
        rank(self) > rank(other)
    }
}

impl Database {
    /// The verdict on exactly this network, on these devices and drivers.
    #[doc(hidden)]
    pub fn network(&self, key: &NetworkKey) -> Option<&NetworkRow> {
        self.networks.get(key)
    }

    /// Every verdict on a network.
    #[doc(hidden)]
    pub fn networks(&self) -> impl Iterator<Item = &NetworkRow> {
        self.networks.values()
    }

    /// Adds a verdict on a network, to the file too if there is one, as [`Database::append`] does.
    ///
    /// # Errors
    /// If the file cannot be written; the row is then kept in memory.
    #[doc(hidden)]
    pub fn append_network(&mut self, row: NetworkRow) -> Result<()> {
        let line = row.line()? + "\n";
        self.insert_network(row, MergePolicy::Newest);
        if self.file.is_none() {
            self.compact_if_large();
            return Ok(());
        }
        self.write_lines(line)
    }

    /// Puts a row in its place; false if one was there and one of the two is gone.
    pub(super) fn insert_network(&mut self, row: NetworkRow, policy: MergePolicy) -> bool {
        let old = self.networks.get(&row.key);
        let replaces = match (old, policy) {
            (None, _) | (_, MergePolicy::Theirs) => true,
            (_, MergePolicy::Ours) => false,
            (Some(old), MergePolicy::Newest) => row.newer_than(old),
        };
        let was_there = old.is_some();
        if replaces {
            let gone = old.map_or(0, NetworkRow::bytes);
            self.bytes = self.bytes - gone + row.bytes();
            self.networks.insert(row.key.clone(), row);
            self.keep_networks(MAX_NETWORKS, u64::MAX);
        }
        !was_there
    }

    /// Drops the oldest verdicts on networks, until so many are left at most and take so many bytes.
    pub(super) fn keep_networks(&mut self, count: usize, bytes: u64) {
        let mut taken: u64 = self.networks.values().map(NetworkRow::bytes).sum();
        if self.networks.len() <= count && taken <= bytes {
            return;
        }
        let mut ages: Vec<_> =
            self.networks.iter().map(|(key, row)| (row.from.unix_ms, key.clone())).collect();
        sorted::sort(&mut ages, Ord::cmp);
        for (_, key) in ages {
            if self.networks.len() <= count && taken <= bytes {
                return;
            }
            if let Some(row) = self.networks.remove(&key) {
                taken -= row.bytes();
                self.bytes -= row.bytes();
            }
        }
    }

    /// Reads a line, if it is a verdict on a network as this version writes it.
    pub(super) fn read_network(&mut self, text: &str) -> bool {
        let Ok(row) = serde_json::from_str::<NetworkRow>(text) else { return false };
        // A line with fields of another version is kept as it is, and not used.
        if row.line().ok().as_deref() != Some(text) {
            return false;
        }
        self.report.networks += 1;
        if !self.insert_network(row, MergePolicy::Newest) {
            self.report.superseded += 1;
        }
        true
    }

    /// The lines of the verdicts on networks.
    pub(super) fn network_lines(&self) -> impl Iterator<Item = Result<String>> {
        self.networks.values().map(NetworkRow::line)
    }
}
