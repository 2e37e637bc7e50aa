//! What was measured of a device: lines of the record of their own kind.

use super::row::Provenance;
use super::{Database, MergePolicy};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::limits::machine::Measured;
use crate::tune::key::DeviceKey;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The most devices that a record keeps; the oldest go first.
const MAX_MACHINES: usize = 64;

/// What the figures of a device depend on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MachineKey {
    /// The device under one API and driver.
    pub device: DeviceKey,
}

/// The figures of a device.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MachineRow {
    /// The device.
    pub key: MachineKey,
    /// What was measured.
    pub measured: Measured,
    /// Where.
    pub from: Provenance,
}

impl MachineRow {
    /// Figures that were measured now.
    pub fn measured(device: DeviceKey, measured: Measured) -> Self {
        MachineRow { key: MachineKey { device }, measured, from: Provenance::measured() }
    }

    fn line(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| Error::Internal(format!("a device's row: {error}")))
    }

    /// Bytes of its line, the end included.
    pub(super) fn bytes(&self) -> u64 {
        self.line().map_or(0, |line| line.len() as u64 + 1)
    }
}

impl Database {
    /// What was measured of exactly this device and driver.
    #[doc(hidden)]
    pub fn machine(&self, device: &DeviceKey) -> Option<&MachineRow> {
        self.machines.get(device)
    }

    /// The figures of every device.
    #[doc(hidden)]
    pub fn machines(&self) -> impl Iterator<Item = &MachineRow> {
        self.machines.values()
    }

    /// `limits` with what was measured of the device, if that is on record.
    pub(crate) fn known_limits<'l>(&self, device: &DeviceKey, limits: &'l Limits) -> Cow<'l, Limits> {
        match self.machine(device) {
            Some(row) => Cow::Owned(Limits { measured: Some(row.measured), ..limits.clone() }),
            None => Cow::Borrowed(limits),
        }
    }

    /// Adds the figures of a device, to the file too if there is one, as [`Database::append`] does.
    ///
    /// # Errors
    /// If the file cannot be written; the row is then kept in memory.
    #[doc(hidden)]
    pub fn append_machine(&mut self, row: MachineRow) -> Result<()> {
        let line = row.line()? + "\n";
        self.insert_machine(row, MergePolicy::Newest);
        if self.file.is_none() {
            self.compact_if_large();
            return Ok(());
        }
        self.write_lines(line)
    }

    /// Puts a row in its place; false if one was there and one of the two is gone.
    pub(super) fn insert_machine(&mut self, row: MachineRow, policy: MergePolicy) -> bool {
        let old = self.machines.get(&row.key.device);
        let replaces = match (old, policy) {
            (None, _) | (_, MergePolicy::Theirs) => true,
            (_, MergePolicy::Ours) => false,
            (Some(old), MergePolicy::Newest) => {
                let rank = |row: &MachineRow| (row.from.unix_ms, row.line().unwrap_or_default());
                rank(&row) > rank(old)
            }
        };
        let was_there = old.is_some();
        if replaces {
            let gone = old.map_or(0, MachineRow::bytes);
            self.bytes = self.bytes - gone + row.bytes();
            self.machines.insert(row.key.device.clone(), row);
        }
        while self.machines.len() > MAX_MACHINES {
            let oldest = self.machines.values().min_by_key(|row| row.from.unix_ms);
            let Some(oldest) = oldest.map(|row| row.key.device.clone()) else { break };
            if let Some(row) = self.machines.remove(&oldest) {
                self.bytes -= row.bytes();
            }
        }
        !was_there
    }

    /// Reads a line, if it has the figures of a device as this version writes them.
    pub(super) fn read_machine(&mut self, text: &str) -> bool {
        let Ok(row) = serde_json::from_str::<MachineRow>(text) else { return false };
        // A line with fields of another version is kept as it is, and not used.
        if row.line().ok().as_deref() != Some(text) {
            return false;
        }
        self.report.machines += 1;
        if !self.insert_machine(row, MergePolicy::Newest) {
            self.report.superseded += 1;
        }
        true
    }

    /// The lines of the devices.
    pub(super) fn machine_lines(&self) -> impl Iterator<Item = Result<String>> {
        self.machines.values().map(MachineRow::line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Family;

    fn device(driver: &str) -> DeviceKey {
        DeviceKey {
            gpu: "Vivante GC7000".to_owned(),
            family: Family::Unknown.to_string(),
            driver: driver.to_owned(),
            api: "OpenCL".to_owned(),
        }
    }

    fn figures(least_work_group: u32) -> Measured {
        Measured {
            launch_ns: 30_000,
            copy_mb: 5000,
            cached_mb: 10_000,
            local_mb: 40_000,
            f32_millions: 10_000,
            f16_millions: None,
            i8_millions: Some(40_000),
            least_work_group,
        }
    }

    #[test]
    fn the_newest_figures_of_a_driver_survive_a_file_and_a_merge() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut database = Database::open(folder.path()).expect("a record");
        database.append_machine(MachineRow::measured(device("1"), figures(1))).expect("appended");
        database.append_machine(MachineRow::measured(device("2"), figures(2))).expect("appended");
        let mut newer = MachineRow::measured(device("1"), figures(16));
        newer.from.unix_ms += 1000;
        database.append_machine(newer).expect("appended");

        let read = Database::open(folder.path()).expect("the record");
        assert_eq!(read.load_report().to_string(), "0 rows, 1 superseded, 3 figures of devices");
        assert_eq!(read.machines().count(), 2);
        let limits = Limits::opencl();
        let known = read.known_limits(&device("1"), &limits);
        assert_eq!(known.measured, Some(figures(16)));
        assert_eq!(read.known_limits(&device("3"), &limits).measured, None);

        let mut merged = Database::in_memory();
        merged.merge(&read, MergePolicy::Newest);
        assert_eq!(merged.machine(&device("2")).map(|row| row.measured), Some(figures(2)));
        assert_eq!(merged.text().expect("text"), read.text().expect("text"));
        assert_eq!(Database::from_text(&merged.text().expect("text")).machines().count(), 2);
    }

    #[test]
    fn a_record_keeps_the_figures_of_64_devices() {
        let mut database = Database::in_memory();
        for number in 0..70 {
            let mut row = MachineRow::measured(device(&number.to_string()), figures(1));
            row.from.unix_ms = number;
            database.append_machine(row).expect("memory takes it");
        }
        assert_eq!(database.machines().count(), 64);
        assert_eq!(database.machines().map(|row| row.from.unix_ms).min(), Some(6));
    }
}
