//! What becomes of rows while another process holds the file's lock: nobody waits for long, and nothing is lost.

use super::{Database, file, io};
use crate::error::{Error, Result};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// Whether an error says that somebody else held a lock for too long.
pub(crate) fn is_held(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::TimedOut)
}

impl Database {
    /// Rows that are not in the file yet, because another process held its lock. They count as any other, and are written
    /// with the next rows that are added while the lock is free, or by [`Database::save`].
    ///
    /// ```
    /// let database = diptych::Database::in_memory();
    /// assert_eq!(database.unsaved(), 0);
    /// ```
    pub fn unsaved(&self) -> usize {
        self.unsaved.lines().count()
    }

    /// How long a lock is waited for from now on, if it is not [`file::LOCK_WAIT`]; what was said before.
    #[cfg(any(feature = "cpu", test))]
    pub(crate) fn set_patience(&mut self, patience: Option<Duration>) -> Option<Duration> {
        std::mem::replace(&mut self.patience, patience)
    }

    /// How long a lock is waited for now. Who waited in vain does not wait again.
    pub(in crate::tune) fn patience(&self) -> Duration {
        if self.busy { Duration::ZERO } else { self.patience.unwrap_or(file::LOCK_WAIT) }
    }

    /// Notes whether a lock was free.
    pub(in crate::tune) fn waited<T>(&mut self, outcome: Result<T>) -> Result<T> {
        self.busy = outcome.as_ref().is_err_and(is_held);
        outcome
    }

    /// The lock of the file at `path`.
    pub(super) fn locked(&mut self, path: &Path) -> Result<File> {
        let lock = file::lock(path, self.patience()).map_err(io(path));
        self.waited(lock)
    }

    /// Appends lines to the file, and those that are not there yet before them.
    pub(super) fn write_lines(&mut self, lines: String) -> Result<()> {
        let Some(path) = self.file.clone() else { return Ok(()) };
        self.unsaved += &lines;
        if self.unsaved.is_empty() {
            return Ok(());
        }
        let appended = file::append(&path, self.unsaved.as_bytes(), self.patience()).map_err(io(&path));
        let length = match self.waited(appended) {
            Err(error) if is_held(&error) => {
                tracing::warn!("the tuner's record: {error}; {} rows are in memory only", self.unsaved());
                return Ok(());
            }
            appended => {
                self.unsaved.clear();
                appended?
            }
        };
        if length > self.bounds.max_bytes || self.is_large() {
            // There will be another time.
            match self.compact() {
                Err(error) if is_held(&error) => {}
                compacted => compacted?,
            }
        }
        Ok(())
    }
}
