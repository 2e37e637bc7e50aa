//! The tolerant reader: whatever a file holds, its good rows are used.

use super::{Database, Entry, MergePolicy, Row, io};
use crate::error::{Error, Result};
use serde_json::Value;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// The longest line that is looked at; rows are about 500 bytes.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// What reading a file met with. Nothing in it is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoadReport {
    /// Lines that are rows.
    pub rows: usize,
    /// Rows that a newer one of the same key replaced.
    pub superseded: usize,
    /// Rows whose op or variant this version of the crate does not have; kept, never used.
    pub inactive: usize,
    /// Rows with fields that this version does not know; used, and the fields kept.
    pub extended: usize,
    /// Lines that are verdicts on networks.
    pub networks: usize,
    /// Lines with what was measured of a device.
    pub machines: usize,
    /// Lines of JSON that are no row of this version; kept.
    pub foreign: usize,
    /// Lines that are no JSON; dropped at the next save.
    pub damaged: usize,
    /// The last line was not finished; dropped.
    pub torn: bool,
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows", self.rows)?;
        for (count, what) in [
            (self.superseded, "superseded"),
            (self.inactive, "of unknown kernels"),
            (self.extended, "with unknown fields"),
            (self.networks, "verdicts on networks"),
            (self.machines, "figures of devices"),
            (self.foreign, "lines of another version"),
            (self.damaged, "damaged lines"),
            (usize::from(self.torn), "torn last line"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

/// How the line of a row begins.
const ROW_START: &[u8] = br#"{"key":{"device":"#;

impl Database {
    /// The rows of a record that was kept as text ([`Database::text`]), in memory. What is no row of this version is
    /// treated as in a file: kept if it is JSON, else dropped.
    ///
    /// ```
    /// use diptych::Database;
    ///
    /// // A page keeps the record as text, for instance in IndexedDB.
    /// let kept = Database::in_memory().text()?;
    /// assert!(Database::from_text(&kept).is_empty());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn from_text(text: &str) -> Self {
        let mut database = Database::in_memory();
        // Memory can always be read.
        let _ = database.read(text.as_bytes());
        database
    }

    /// The rows as text, one a line, as the file has them: for an application that keeps the record elsewhere than in a
    /// file.
    ///
    /// ```
    /// let database = diptych::Database::in_memory();
    /// assert_eq!(database.text()?, "");
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a row cannot be written as JSON.
    pub fn text(&self) -> Result<String> {
        let mut text = Vec::new();
        self.write(&mut text)?;
        String::from_utf8(text).map_err(|error| Error::Internal(format!("the record is no text: {error}")))
    }

    /// Adds the rows of the file at `path`.
    ///
    /// # Errors
    /// If it cannot be read, or is not empty and shows no sign of being a record: rows are appended to
    /// a record, and what is no row goes when it is saved.
    pub(super) fn read_file(&mut self, path: &Path) -> Result<()> {
        let mut file = crate::file::open(path).map_err(io(path))?;
        let mut start = Vec::new();
        (&mut file).take(MAX_LINE_BYTES).read_to_end(&mut start).map_err(io(path))?;
        // However much damage there is before them, good rows are kept.
        if !begins_a_record(&start) && !has_a_row(&mut file).map_err(io(path))? {
            let first = &start[..start.len().min(16)];
            return Err(Error::input(
                path.display().to_string(),
                format!("a file without rows that begins \"{}\"", first.escape_ascii()),
                "a tuning record or no file",
            ));
        }
        file.seek(SeekFrom::Start(0)).map_err(io(path))?;
        self.read(file).map_err(io(path))
    }

    /// Adds the rows of a file.
    pub(super) fn read(&mut self, file: impl Read) -> std::io::Result<()> {
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            (&mut reader).take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
            if line.is_empty() {
                break;
            }
            let ended = line.last() == Some(&b'\n');
            if !ended && line.len() as u64 == MAX_LINE_BYTES {
                skip_line(&mut reader)?;
                self.report.damaged += 1;
                continue;
            }
            self.read_line(line.trim_ascii(), ended);
            // Because a file may be larger than anything this crate writes.
            if self.report.rows.is_multiple_of(4096) && self.len() > 2 * self.bounds.max_rows {
                self.shrink();
            }
        }
        Ok(())
    }

    fn read_line(&mut self, line: &[u8], ended: bool) {
        if line.is_empty() {
            return;
        }
        let Ok(text) = std::str::from_utf8(line) else {
            return self.unreadable(ended);
        };
        let Ok(row) = serde_json::from_str::<Row>(text) else {
            if self.read_network(text) || self.read_machine(text) {
                return;
            }
            if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
                return self.unreadable(ended);
            }
            self.report.foreign += 1;
            self.insert_foreign(text);
            return;
        };
        self.report.rows += 1;
        if row.key.choice.resolve(&row.key.problem.op).is_none() {
            self.report.inactive += 1;
        }
        let (mut entry, known) = Entry::with_line(row);
        // What this version wrote reads back to the same text, and has nothing more.
        if known != text && has_more(text, &entry.row) {
            self.report.extended += 1;
            entry.line = Some(text.to_owned());
            entry.bytes = text.len() as u64 + 1;
        }
        if !self.insert(entry, MergePolicy::Newest) {
            self.report.superseded += 1;
        }
    }

    fn unreadable(&mut self, ended: bool) {
        if ended {
            self.report.damaged += 1;
        } else {
            self.report.torn = true;
        }
    }
}

/// Whether a file that starts with these bytes is a record: one of its lines is a row, of any version,
/// or its first line is a damaged or unfinished row; or there are only blanks.
fn begins_a_record(start: &[u8]) -> bool {
    let mut lines =
        start.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let Some(first) = lines.next() else { return true };
    let unfinished = lines.clone().next().is_none() && !start.contains(&b'\n');
    first.starts_with(ROW_START)
        || unfinished && ROW_START.starts_with(first)
        || std::iter::once(first).chain(lines).any(is_row)
}

/// Whether a line of a file, from where it stands on, is a row. It may begin within a line.
fn has_a_row(file: &mut impl Read) -> std::io::Result<bool> {
    let (mut reader, mut line) = (BufReader::new(file), Vec::new());
    loop {
        line.clear();
        if (&mut reader).take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(false);
        }
        if is_row(line.trim_ascii()) {
            return Ok(true);
        }
        if line.last() != Some(&b'\n') {
            skip_line(&mut reader)?;
        }
    }
}

/// Whether a line is a row of this version or another: all have a key that is an object.
fn is_row(line: &[u8]) -> bool {
    // Most other lines are recognised by their first byte.
    line.starts_with(b"{")
        && serde_json::from_slice::<Value>(line)
            .is_ok_and(|value| value.get("key").is_some_and(Value::is_object))
}

/// Passes over the rest of a line.
fn skip_line(reader: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        match buffer.iter().position(|&byte| byte == b'\n') {
            Some(end) => {
                reader.consume(end + 1);
                return Ok(());
            }
            None => {
                let length = buffer.len();
                reader.consume(length);
            }
        }
    }
}

/// Whether the line has fields that the row does not.
fn has_more(line: &str, row: &Row) -> bool {
    match (serde_json::from_str(line), serde_json::to_value(row)) {
        (Ok(written), Ok(known)) => value_has_more(&written, &known),
        _ => false,
    }
}

fn value_has_more(written: &Value, known: &Value) -> bool {
    match (written, known) {
        (Value::Object(written), Value::Object(known)) => written
            .iter()
            .any(|(name, value)| known.get(name).is_none_or(|known| value_has_more(value, known))),
        _ => false,
    }
}
