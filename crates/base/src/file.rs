//! Regular files of bounded size. Anything else is refused before it is opened: to open a pipe may
//! wait for ever, and a device may have no end.

use std::fs::{File, FileType};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Opens a regular file, or a link to one, to read it.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for anything else, which it names; else the system's.
pub fn open(path: &Path) -> Result<File> {
    check(path)?;
    File::open(path)
}

/// Refuses what exists and is no regular file.
///
/// # Errors
/// Those of [`open`].
pub fn check(path: &Path) -> Result<()> {
    let found = std::fs::metadata(path)?.file_type();
    if found.is_file() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, format!("found {}, wanted a regular file", kind(found))))
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// Those of [`open`]; [`ErrorKind::FileTooLarge`] for a longer file.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    use std::io::Read;
    let file = open(path)?;
    let too_large = |length: String| {
        Error::new(ErrorKind::FileTooLarge, format!("found {length} bytes, wanted at most {limit}"))
    };
    let length = file.metadata()?.len();
    if length > limit {
        return Err(too_large(length.to_string()));
    }
    let mut bytes = Vec::new();
    let expected = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(1);
    bytes.try_reserve_exact(expected).map_err(|_| Error::from(ErrorKind::OutOfMemory))?;
    // The file may grow while it is read.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(too_large(format!("more than {limit}")));
    }
    Ok(bytes)
}

fn kind(found: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if found.is_fifo() {
            return "a pipe";
        }
        if found.is_char_device() {
            return "a character device";
        }
        if found.is_block_device() {
            return "a block device";
        }
        if found.is_socket() {
            return "a socket";
        }
    }
    if found.is_dir() { "a directory" } else { "something else" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, b"seven b").expect("written");
        assert_eq!(read(&path, 7).expect("within the limit"), b"seven b");
        let error = read(&path, 6).expect_err("beyond the limit");
        assert_eq!(error.to_string(), "found 7 bytes, wanted at most 6");
        assert_eq!(read(&folder.path().join("none"), 6).expect_err("none").kind(), ErrorKind::NotFound);
        let error = read(folder.path(), 6).expect_err("a folder");
        assert_eq!(error.to_string(), "found a directory, wanted a regular file");
    }

    #[cfg(unix)]
    #[test]
    fn pipes_and_devices_are_refused_also_behind_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo starts");
        assert!(made.success());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&pipe, &link).expect("a link");
        for (path, wanted) in [
            (pipe.as_path(), "found a pipe, wanted a regular file"),
            (&link, "found a pipe, wanted a regular file"),
            (Path::new("/dev/zero"), "found a character device, wanted a regular file"),
        ] {
            let error = open(path).expect_err("no regular file");
            assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::InvalidInput, wanted));
        }
        std::fs::write(folder.path().join("file"), b"text").expect("written");
        std::fs::remove_file(&link).expect("removed");
        std::os::unix::fs::symlink(folder.path().join("file"), &link).expect("a link");
        assert_eq!(read(&link, 10).expect("a link to a file"), b"text");
    }
}
