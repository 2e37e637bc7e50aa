//! The file under a database: locked appends, and replacement as a whole.

use crate::clock::Instant;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Result, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes at the end of a file in which its last line is looked for.
const TAIL_BYTES: u64 = 1 << 20;

/// How long a lock is waited for, unless a budget says less. Whoever holds one reads or writes a file meanwhile; one that
/// takes longer was stopped, or is on a file system that hangs.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Pauses between two looks at a lock: each twice as long as the one before.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(32)];

/// Waits for the exclusive lock of `path`, at most for `patience`; dropping the file releases it.
///
/// The lock is a file of its own, `<path>.lock`, which is never removed: a lock on the data file
/// would stay with the old file when the data is replaced. Threads that lock it separately exclude
/// each other like processes do.
pub(super) fn lock(path: &Path, patience: Duration) -> Result<File> {
    if let Some(parent) = parent(path) {
        std::fs::create_dir_all(parent)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let name = PathBuf::from(name);
    let file = open_lock(&name)?;
    wait_for(&file, &name, patience)?;
    Ok(file)
}

/// Locks `file`, which is at `path`; an error of the kind [`ErrorKind::TimedOut`] if somebody else holds the lock for
/// longer than `patience`.
#[expect(clippy::disallowed_methods, reason = "a browser has no files")]
pub(in crate::tune) fn wait_for(file: &File, path: &Path, patience: Duration) -> Result<()> {
    let (start, [mut pause, longest]) = (Instant::now(), PAUSES);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {}
        }
        let Some(left) = patience.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) else {
            let name = path.display();
            let found = format!("another process held the lock {name} for {patience:?}, and may be stopped");
            return Err(std::io::Error::new(ErrorKind::TimedOut, found));
        };
        std::thread::sleep(pause.min(left));
        pause = (2 * pause).min(longest);
    }
}

/// Opens the file of a lock, which is made if it is not there.
pub(in crate::tune) fn open_lock(path: &Path) -> Result<File> {
    match crate::file::check(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().create(true).truncate(false).write(true).open(path)
}

fn parent(path: &Path) -> Option<&Path> {
    path.parent().filter(|parent| !parent.as_os_str().is_empty())
}

/// Appends whole lines under the lock, and returns the file's length.
pub(super) fn append(path: &Path, lines: &[u8], patience: Duration) -> Result<u64> {
    let _lock = lock(path, patience)?;
    let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
    let mut length = file.seek(SeekFrom::End(0))?;
    if let Some(tail) = open_line(&mut file, length)? {
        // Because the lock is held, no process is writing this line any more: either its writer was
        // killed, or the file was edited and the last line's end left out.
        if serde_json::from_slice::<serde::de::IgnoredAny>(&tail).is_ok() {
            file.seek(SeekFrom::End(0))?;
            file.write_all(b"\n")?;
            length += 1;
        } else {
            length -= tail.len() as u64;
            file.set_len(length)?;
        }
    }
    file.seek(SeekFrom::Start(length))?;
    file.write_all(lines)?;
    Ok(length + lines.len() as u64)
}

/// The last line, if it has no end.
fn open_line(file: &mut File, length: u64) -> Result<Option<Vec<u8>>> {
    let mut tail = Vec::new();
    // Nearly always the last byte decides.
    file.seek(SeekFrom::Start(length.saturating_sub(1)))?;
    file.read_to_end(&mut tail)?;
    if tail.is_empty() || tail == b"\n" {
        return Ok(None);
    }
    tail.clear();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    file.read_to_end(&mut tail)?;
    let start = tail.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    Ok(Some(tail.split_off(start)))
}

/// Replaces the file by one with these contents. The caller holds the lock.
pub(super) fn replace(path: &Path, contents: &[u8]) -> Result<()> {
    let directory = parent(path).unwrap_or(Path::new("."));
    crate::disk::replace(path, ".tuning-", true, |file| {
        file.write_all(contents)?;
        file.sync_all()
    })?;
    // The new name lasts only when the directory is written too; where directories cannot be
    // opened the system sees to it.
    if let Ok(directory) = File::open(directory) {
        let _ = directory.sync_all();
    }
    Ok(())
}
