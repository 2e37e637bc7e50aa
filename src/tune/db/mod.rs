//! The record: what the tuner has learnt, on this machine or elsewhere, for both APIs.
//!
//! # The file
//!
//! JSON, one [`Row`] a line, because a line can be appended without reading the rest, a torn last
//! line loses only itself, and `diff`, `grep` and a text editor work on it. Two files are merged
//! by putting one after the other.
//!
//! ```json
//! {"key":{"device":{"gpu":"NVIDIA H200","family":"NVIDIA","driver":"NVIDIA 580.95","api":"Vulkan"},
//!  "problem":{"op":"pointwise","shape":"n1 h9 w9 c1024 o1024 bias relu6","precision":"f32","layout":"c4"},
//!  "choice":{"variant":"micro","tile":[2,1,1],"work_group":[32,8,1]},
//!  "source":"af1349b9f5f9a1a6a0404dea36dcc949","tuner":1},"verdict":"winner",
//!  "time":{"median_ns":18400,"p10_ns":18300,"p90_ns":18700,"samples":40,"default_ns":31200},
//!  "from":{"origin":"measured","crate":"0.1.0","unix_ms":1763695800000}}
//! ```
//!
//! (broken here to fit the page; in the file it is one line). Of several lines with one [`Key`]
//! the newest counts. Lines of two other kinds say which backend ran a network the fastest ([`NetworkRow`]), and what was
//! measured of a device ([`MachineRow`]); versions that do not know them keep them as they are.
//!
//! # What survives
//!
//! | event | what is lost |
//! |---|---|
//! | the process is killed while it appends | at most the rows of that append |
//! | several processes and threads append | nothing: each append holds the lock of `<file>.lock` |
//! | the process is killed while it saves | nothing: the file is replaced whole, or not at all |
//! | a row of a newer version of the crate | nothing: its line is kept as it is, and not used |
//! | a line that is not JSON | that line, at the next save |
//! | the file is something else, without a row | nothing: it is refused and left as it is |
//! | the machine loses power | what was appended since the system last wrote its caches |
//!
//! # Bounds
//!
//! Above [`Bounds`] a database is compacted to three quarters of them: each (device, problem,
//! choice) keeps its newest row, rows of older tuner versions go, then lines that this version
//! cannot read, then the oldest verdicts on networks, then whole (device, problem) groups, the longest untouched first.

mod choose;
mod compact;
mod file;
mod load;
mod lookup;
mod machines;
mod networks;
mod patience;
mod relatives;
mod row;
mod share;
#[cfg(test)]
mod tests;

pub(crate) use choose::choose;
pub use choose::{Chosen, SharedDatabase};
pub(crate) use file::LOCK_WAIT;
pub(super) use file::{open_lock, wait_for};
pub use load::LoadReport;
pub use lookup::{Found, NEAR, Source};
pub use machines::{MachineKey, MachineRow};
pub use networks::{NetworkKey, NetworkRow, NetworkTime};
#[cfg(any(feature = "cpu", test))]
pub(crate) use patience::is_held;
pub use relatives::Relative;
pub use row::{Origin, Provenance, Row, Timing, Verdict};
pub use share::{Filter, MergePolicy};

use super::key::{ChoiceKey, DeviceKey, Key, ProblemKey, SourceHash};
use crate::error::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The database's file in its directory.
pub(crate) const FILE: &str = "tuning.jsonl";

/// How large a database may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Rows, lines of other versions included. Several processes may exceed it together until one
    /// of them saves the file or appends enough itself.
    pub max_rows: usize,
    /// Bytes of the file. Held by every append.
    pub max_bytes: u64,
}

impl Default for Bounds {
    /// 65536 rows, 32 MiB.
    fn default() -> Self {
        Bounds { max_rows: 1 << 16, max_bytes: 32 << 20 }
    }
}

/// A row, and its line where that says more than this version of the crate understands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    row: Row,
    line: Option<String>,
    /// Bytes of its line, the end included.
    bytes: u64,
}

impl Entry {
    fn new(row: Row) -> Self {
        Self::with_line(row).0
    }

    /// The entry of `row`, and its line.
    fn with_line(row: Row) -> (Self, String) {
        let row = row.shortened();
        let line = row.line().unwrap_or_default();
        (Entry { row, line: None, bytes: line.len() as u64 + 1 }, line)
    }

    fn line(&self) -> Result<String> {
        self.line.clone().map_or_else(|| self.row.line(), Ok)
    }

    /// The order of [`MergePolicy::Newest`].
    fn newer_than(&self, other: &Entry) -> bool {
        let rank = |entry: &Entry| (entry.row.from.unix_ms, entry.row.from.origin);
        rank(self)
            .cmp(&rank(other))
            .then_with(|| self.line().unwrap_or_default().cmp(&other.line().unwrap_or_default()))
            .is_gt()
    }
}

/// The parts of a [`Key`] within one group.
type Tried = (ChoiceKey, u32, Option<SourceHash>);
type Group = BTreeMap<Tried, Entry>;

/// The tuner's record: what it has learnt, in memory or in a file that grows with each verdict.
#[derive(Debug, Clone, Default)]
pub struct Database {
    groups: BTreeMap<(DeviceKey, ProblemKey), Group>,
    /// Which backend runs a network the fastest.
    networks: BTreeMap<NetworkKey, NetworkRow>,
    /// What was measured of devices.
    machines: BTreeMap<DeviceKey, MachineRow>,
    /// Lines of JSON that are no row of this version, kept as they are.
    foreign: BTreeSet<String>,
    /// Bytes that all of these take in a file.
    bytes: u64,
    bounds: Bounds,
    file: Option<PathBuf>,
    /// Lines for the file that wait until its lock is free.
    unsaved: String,
    /// How long the lock is waited for, if not as long as usual; and whether it was waited for in vain of late, after which
    /// nobody waits until it was free once.
    patience: Option<Duration>,
    busy: bool,
    report: LoadReport,
}

impl Database {
    /// An empty database without a file.
    ///
    /// ```
    /// let database = diptych::Database::in_memory();
    /// assert!(database.is_empty() && database.file().is_none());
    /// ```
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// The database of `directory`: the file `tuning.jsonl`, which need not exist yet. Rows that
    /// are appended go to the file at once.
    ///
    /// ```
    /// use diptych::Database;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path();
    /// let database = Database::open(folder)?;
    /// assert_eq!(database.file(), Some(folder.join("tuning.jsonl").as_path()));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the file exists and cannot be read, or is no record: it has text but no row. It is left as
    /// it is. Damaged lines beside rows are no error: see [`Database::load_report`].
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_file(directory.as_ref().join(FILE))
    }

    /// The record in the file `path`, empty if there is no such file; rows that are added are appended to it.
    ///
    /// ```
    /// use diptych::Database;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path();
    /// let database = Database::open_file(folder.join("of this application.jsonl"))?;
    /// assert!(database.is_empty());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Database::open`].
    pub fn open_file(path: impl AsRef<Path>) -> Result<Self> {
        let mut database = Database::in_memory().opened(path.as_ref())?;
        database.file = Some(path.as_ref().to_owned());
        Ok(database)
    }

    /// Adds the rows of the file at `path`, if there is one.
    fn opened(mut self, path: &Path) -> Result<Self> {
        match self.read_file(path) {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
            read => read?,
        }
        Ok(self)
    }

    /// The rows of a file, which must exist, or of `tuning.jsonl` in a directory. Rows that are
    /// appended later do not go to the file.
    ///
    /// ```
    /// use diptych::Database;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let shipped = folder.path().join("shipped.jsonl");
    /// # Database::in_memory().save(&shipped)?;
    /// // What an application ships is read, and not written to.
    /// let database = Database::load(&shipped)?;
    /// assert!(database.file().is_none());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If it cannot be read, or is no record, as in [`Database::open`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let mut path = path.as_ref().to_owned();
        if path.is_dir() {
            path.push(FILE);
        }
        let mut database = Database::in_memory();
        database.read_file(&path)?;
        Ok(database)
    }

    /// Where a user's record lies: `DIPTYCH_CACHE_DIR` if it is set, else `diptych` in the
    /// platform's cache directory (`$XDG_CACHE_HOME` or `~/.cache`, `~/Library/Caches`,
    /// `%LOCALAPPDATA%`).
    ///
    /// ```
    /// use diptych::Database;
    ///
    /// match Database::default_dir() {
    ///     Ok(folder) => println!("records are kept in {}", folder.display()),
    ///     Err(error) => println!("{error}"),
    /// }
    /// ```
    ///
    /// # Errors
    /// If the platform names no home directory.
    pub fn default_dir() -> Result<PathBuf> {
        crate::device::cache::default_dir()
    }

    /// Sets the bounds within which the database keeps rows.
    #[must_use]
    #[doc(hidden)]
    pub fn with_bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// The file that rows are appended to.
    ///
    /// ```
    /// assert!(diptych::Database::in_memory().file().is_none());
    /// ```
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// What reading the file met with.
    #[doc(hidden)]
    pub fn load_report(&self) -> &LoadReport {
        &self.report
    }

    /// The number of rows, retired ones included.
    ///
    /// ```
    /// assert_eq!(diptych::Database::in_memory().len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        self.groups.values().map(BTreeMap::len).sum()
    }

    /// Whether there are no rows.
    ///
    /// ```
    /// assert!(diptych::Database::in_memory().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Every row, by device, problem and choice.
    #[doc(hidden)]
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.groups.values().flat_map(BTreeMap::values).map(|entry| &entry.row)
    }

    /// The row of exactly this key, if there is one: whether a candidate failed before.
    #[doc(hidden)]
    pub fn get(&self, key: &Key) -> Option<&Row> {
        let group = self.groups.get(&(key.device.clone(), key.problem.clone()))?;
        group.get(&(key.choice.clone(), key.tuner, key.source)).map(|entry| &entry.row)
    }

    /// Every row on exactly this problem and device.
    #[doc(hidden)]
    pub fn tried(&self, device: &DeviceKey, problem: &ProblemKey) -> impl Iterator<Item = &Row> + use<'_> {
        let group = self.groups.get(&(device.clone(), problem.clone()));
        group.into_iter().flat_map(BTreeMap::values).map(|entry| &entry.row)
    }

    /// Adds a row, to the file too if there is one. Other processes may do so at the same time.
    ///
    /// # Errors
    /// If the file cannot be written; the row is then kept in memory.
    #[doc(hidden)]
    pub fn append(&mut self, row: Row) -> Result<()> {
        self.append_all([row])
    }

    /// Adds rows as [`Database::append`] does, in one write. While another process holds the file's lock, rows are kept in
    /// memory and go to the file with those that are added next: see [`Database::unsaved`].
    ///
    /// # Errors
    /// Those of [`Database::append`].
    #[doc(hidden)]
    pub fn append_all(&mut self, rows: impl IntoIterator<Item = Row>) -> Result<()> {
        let mut lines = String::new();
        for row in rows {
            let entry = Entry::new(row);
            lines.push_str(&entry.line()?);
            lines.push('\n');
            self.insert(entry, MergePolicy::Newest);
        }
        if self.file.is_none() {
            self.compact_if_large();
            return Ok(());
        }
        self.write_lines(lines)
    }

    /// Writes all rows to `path`, which is replaced whole. Rows that are in the file already, from
    /// another process perhaps, are merged into this database first.
    ///
    /// ```
    /// use diptych::Database;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("copy.jsonl");
    /// let mut database = Database::in_memory();
    /// database.save(&path)?;
    /// assert_eq!(Database::open_file(&path)?.len(), database.len());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read or written; it is then as it was.
    pub fn save(&mut self, path: impl AsRef<Path>) -> Result<()> {
        self.save_with(path.as_ref(), Database::compact_if_large)
    }

    fn save_with(&mut self, path: &Path, prepare: impl FnOnce(&mut Database)) -> Result<()> {
        let _lock = self.locked(path)?;
        let others = Database::in_memory().with_bounds(self.bounds).opened(path)?;
        self.merge(&others, MergePolicy::Newest);
        prepare(self);
        self.replace_locked(path)?;
        if self.file.as_deref() == Some(path) {
            self.unsaved.clear();
        }
        Ok(())
    }

    /// Writes all rows to `path` and drops what it held.
    ///
    /// # Errors
    /// If the file cannot be written; it is then as it was.
    #[doc(hidden)]
    pub fn replace(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let _lock = file::lock(path, file::LOCK_WAIT).map_err(io(path))?;
        self.replace_locked(path)
    }

    fn replace_locked(&self, path: &Path) -> Result<()> {
        let mut text = Vec::new();
        self.write(&mut text)?;
        file::replace(path, &text).map_err(io(path))
    }

    /// Writes the lines of the file: rows by device, problem and choice, then verdicts on networks, the figures of devices, then the lines
    /// of newer versions.
    ///
    /// # Errors
    /// If `out` cannot be written.
    #[doc(hidden)]
    pub fn write(&self, out: &mut dyn Write) -> Result<()> {
        for entry in self.groups.values().flat_map(BTreeMap::values) {
            writeln!(out, "{}", entry.line()?).map_err(io(Path::new("output")))?;
        }
        for line in self.network_lines().chain(self.machine_lines()) {
            writeln!(out, "{}", line?).map_err(io(Path::new("output")))?;
        }
        for line in &self.foreign {
            writeln!(out, "{line}").map_err(io(Path::new("output")))?;
        }
        Ok(())
    }

    /// Keeps the newest row of each choice, and drops the problems longest untouched until the record is within
    /// its bounds; in the file too if there is one.
    ///
    /// ```
    /// use diptych::Database;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// let mut database = Database::open(folder.path())?;
    /// database.compact()?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Database::save`].
    pub fn compact(&mut self) -> Result<()> {
        match self.file.clone() {
            Some(path) => self.save_with(&path, Database::shrink),
            None => {
                self.shrink();
                Ok(())
            }
        }
    }

    /// Puts `entry` in its place; false if a row was there and one of the two is gone.
    fn insert(&mut self, entry: Entry, policy: MergePolicy) -> bool {
        let key = &entry.row.key;
        let group = self.groups.entry((key.device.clone(), key.problem.clone())).or_default();
        let tried = (key.choice.clone(), key.tuner, key.source);
        let Some(old) = group.get_mut(&tried) else {
            self.bytes += entry.bytes;
            group.insert(tried, entry);
            return true;
        };
        let replace = match policy {
            MergePolicy::Newest => entry.newer_than(old),
            MergePolicy::Ours => false,
            MergePolicy::Theirs => true,
        };
        if replace {
            self.bytes = self.bytes - old.bytes + entry.bytes;
            *old = entry;
        }
        false
    }

    /// Keeps a line of JSON that is no row of this version.
    fn insert_foreign(&mut self, line: &str) {
        if self.foreign.insert(line.to_owned()) {
            self.bytes += line.len() as u64 + 1;
        }
    }
}

/// An [`Error::Io`] at `path`.
pub(super) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.display().to_string();
    move |source| Error::Io { path, source }
}
