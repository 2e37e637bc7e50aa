//! The candidates that are about to be tried, written to disk first: one that crashes the process or the
//! machine is known at the next start, and not tried again.
//!
//! Each process has a file of its own in the folder `journal` beside the database, and holds its
//! lock while it runs. A line is added before a candidate is compiled and before it first runs, and another
//! when that is over. A process that opens the journal reads the files that no process holds: a candidate
//! that was begun and not ended becomes a row [`Verdict::Crashed`], or where several were under way, as when
//! some are compiled ahead, rows [`Verdict::Suspect`]: those are tried again one at a time. A process that was killed on purpose looks the same as one that crashed.

use super::db::{Database, LOCK_WAIT, Row, Verdict, io, open_lock, wait_for};
use super::key::Key;
use crate::error::Result;
use crate::sorted;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The journal's folder beside the database.
const FOLDER: &str = "journal";

/// What is about to happen to a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Its text goes to the driver's compiler.
    Compile,
    /// It runs.
    Run,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Compile => "compiling",
            Phase::Run => "running",
        })
    }
}

/// A line of a journal's file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Begin { id: u64, phase: Phase, key: Box<Key> },
    End { id: u64 },
}

/// The candidates that a tuner is about to try, written to a file beside its record first. Cheap to clone; may be shared by
/// threads.
///
/// ```
/// use diptych::{Database, Journal};
///
/// # let folder = tempfile::tempdir().unwrap();
/// let mut database = Database::open(folder.path())?;
/// let journal = Journal::open(folder.path(), &mut database)?;
/// // Tuner::journal(journal) writes down what it is about to try.
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Journal(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: File,
    next: u64,
    /// Candidates under way.
    open: Vec<u64>,
}

impl Journal {
    /// Opens a journal for this process in `directory`, the database's. The candidates that earlier
    /// processes crashed on are first appended to `database`.
    ///
    /// ```
    /// use diptych::{Database, Journal};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// let mut database = Database::open(folder.path())?;
    /// let journal = Journal::open(folder.path(), &mut database)?;
    /// assert!(folder.path().join("journal").is_dir());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the folder or a file in it cannot be written, or another process holds its lock for two seconds.
    pub fn open(directory: impl AsRef<Path>, database: &mut Database) -> Result<Self> {
        let folder = directory.as_ref().join(FOLDER);
        std::fs::create_dir_all(&folder).map_err(io(&folder))?;
        // Held while files are made and looked at, so that nobody takes a file for a dead
        // process's between its making and its locking.
        let gate = folder.join("lock");
        let lock = open_lock(&gate).map_err(io(&gate))?;
        let waited = wait_for(&lock, &gate, database.patience()).map_err(io(&gate));
        database.waited(waited)?;
        recover(&folder, database)?;
        let (path, file) = create(&folder)?;
        Ok(Journal(Arc::new(Mutex::new(Inner { path, file, next: 0, open: Vec::new() }))))
    }

    /// Writes down that `key`'s candidate is about to be compiled or run. When this returns the
    /// line is on the disk: it survives a machine that stops.
    ///
    /// # Errors
    /// If it cannot be written; the candidate should then not be tried.
    #[doc(hidden)]
    pub fn begin(&self, phase: Phase, key: &Key) -> Result<Trial> {
        let mut inner = self.lock();
        let id = inner.next;
        inner.next += 1;
        let path = inner.path.clone();
        inner.write(&Line::Begin { id, phase, key: Box::new(key.clone()) }).map_err(io(&path))?;
        inner.file.sync_data().map_err(io(&path))?;
        inner.open.push(id);
        Ok(Trial { journal: self.clone(), id, struck: false })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // The lines are whole whatever happened to the thread that held the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn write(&mut self, line: &Line) -> std::io::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        self.file.write_all(text.as_bytes())
    }

    fn strike(&mut self, id: u64) -> std::io::Result<()> {
        self.open.retain(|&open| open != id);
        if self.open.is_empty() {
            self.file.set_len(0)?;
            self.file.seek(SeekFrom::Start(0))?;
            return Ok(());
        }
        self.write(&Line::End { id })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // With trials left open (their threads panicked) the next start needs the file.
        if self.open.is_empty() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A candidate under way. Dropping it ends it, except in a panic: that counts as a crash.
#[derive(Debug)]
#[must_use = "a trial that is dropped is struck at once"]
pub struct Trial {
    journal: Journal,
    id: u64,
    struck: bool,
}

impl Trial {
    /// Ends the candidate, whatever came of it.
    ///
    /// # Errors
    /// If the file cannot be written; the candidate may then count as crashed.
    pub fn finish(mut self) -> Result<()> {
        self.struck = true;
        let mut inner = self.journal.lock();
        let path = inner.path.clone();
        inner.strike(self.id).map_err(io(&path))
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if !self.struck
            && !std::thread::panicking()
            && let Err(error) = self.journal.lock().strike(self.id)
        {
            tracing::warn!("the tuner's journal: {error}");
        }
    }
}

/// A new file of this process, locked.
fn create(folder: &Path) -> Result<(PathBuf, File)> {
    let mut number = 0u32;
    loop {
        let path = folder.join(format!("{}-{number}.jsonl", std::process::id()));
        match OpenOptions::new().create_new(true).read(true).write(true).open(&path) {
            Ok(file) => {
                // Nobody else can have it: the gate is held.
                wait_for(&file, &path, LOCK_WAIT).map_err(io(&path))?;
                return Ok((path, file));
            }
            // Another journal of this process, or one of a process that had the same id.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number < u32::MAX => {
                number += 1
            }
            Err(error) => return Err(io(&path)(error)),
        }
    }
}

/// Appends the candidates that ended processes left open, then removes their files.
fn recover(folder: &Path, database: &mut Database) -> Result<()> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io(folder))? {
        let entry = entry.map_err(io(folder))?;
        let path = entry.path();
        // Pipes and the like are no journals, and reading one may wait for ever.
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && path.extension().is_some_and(|extension| extension == "jsonl") {
            paths.push(path);
        }
    }
    sorted::sort(&mut paths, Ord::cmp);
    for path in paths {
        let mut file = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => file,
            // Its process has just ended and removed it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(io(&path)(error)),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(error)) => return Err(io(&path)(error)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io(&path))?;
        // Before the file goes: a process that ends here leaves both, and the rows are the same.
        let under_way = unstruck(&bytes);
        let others = under_way.len().saturating_sub(1);
        database.append_all(under_way.into_iter().map(|(phase, key)| {
            let verdict = if others == 0 { Verdict::Crashed } else { Verdict::Suspect };
            let mut row = Row::measured(key, verdict, None);
            row.from.note = format!("the process ended while {phase} it");
            if others > 0 {
                row.from.note += &format!(", with {others} more under way");
            }
            row
        }))?;
        // Where there are no files, it is nothing that could be closed.
        #[cfg_attr(target_family = "wasm", expect(clippy::drop_non_drop, reason = "there are no files"))]
        drop(file);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(&path)(error)),
            _ => {}
        }
    }
    Ok(())
}

/// The candidates that were begun and not ended. A torn last line was not begun.
fn unstruck(bytes: &[u8]) -> Vec<(Phase, Key)> {
    let mut open = BTreeMap::new();
    for line in bytes.split(|&byte| byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(Line::Begin { id, phase, key }) => {
                open.insert(id, (phase, *key));
            }
            Ok(Line::End { id }) => {
                open.remove(&id);
            }
            Err(_) => {}
        }
    }
    open.into_values().collect()
}
