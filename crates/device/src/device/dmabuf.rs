//! What is asked of a dma-buf before a driver is given it.

use crate::error::{Error, Result};
use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// What files of memory are called in messages.
pub(super) const WHAT: &str = "dma-buf";

/// How Linux names open dma-bufs: those with a name of their own, and the others.
const OPEN_AS: [&str; 2] = ["/dmabuf:", "anon_inode:dmabuf"];

/// Refuses a file that is no dma-buf: to import it is invalid use of a driver, which checks nothing.
///
/// # Errors
/// If the file is another, or the system does not say what it is.
pub(super) fn check(fd: BorrowedFd<'_>) -> Result<()> {
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let opened = std::fs::read_link(&link).map_err(|error| {
        Error::input(WHAT, format!("{link}: {error}"), "what the file descriptor is open as")
    })?;
    match opened.to_str() {
        Some(name) if OPEN_AS.iter().any(|known| name.starts_with(known)) => Ok(()),
        _ => {
            Err(Error::input(WHAT, format!("{:?}, which is none", opened.display().to_string()), "a dma-buf"))
        }
    }
}

/// The bytes of a buffer of the file's first `bytes`, in whole words, and those of the file: the kernel tells them at its end.
/// The file's offset, which all its descriptors share, is 0 afterwards; nobody reads a dma-buf by it.
pub(super) fn lengths(fd: BorrowedFd<'_>, bytes: u64) -> Result<(u64, u64)> {
    let said = |error: std::io::Error| {
        Error::input(WHAT, format!("file descriptor {}: {error}", fd.as_raw_fd()), "one of a dma-buf")
    };
    let mut file = File::from(fd.try_clone_to_owned().map_err(said)?);
    let length = file.seek(SeekFrom::End(0)).map_err(said)?;
    file.seek(SeekFrom::Start(0)).map_err(said)?;
    match bytes.checked_next_multiple_of(4) {
        Some(size) if (1..=length).contains(&size) => Ok((size, length)),
        _ => {
            let found = format!("{bytes} bytes of one of {length}");
            Err(Error::input(WHAT, found, "at least one byte, and whole words of four within it"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    #[test]
    fn what_is_open_as_another_file_is_no_dmabuf() {
        let mut file = tempfile::tempfile().expect("a file");
        file.set_len(4096).expect("a length");
        file.seek(SeekFrom::Start(7)).expect("a place");
        let error = check(file.as_fd()).expect_err("a file").to_string();
        assert!(error.contains("dma-buf: found \"/") && error.contains("wanted a dma-buf"), "{error}");
        assert_eq!(file.stream_position().expect("a place"), 7);
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        let error = check(reader.as_fd()).expect_err("a pipe").to_string();
        assert!(error.contains("pipe:") && error.contains("wanted a dma-buf"), "{error}");
    }

    #[test]
    fn lengths_are_those_of_whole_words_within_the_file() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(4096).expect("a length");
        assert_eq!(lengths(file.as_fd(), 4093).expect("lengths"), (4096, 4096));
        for bytes in [0, 4097, u64::MAX] {
            let error = lengths(file.as_fd(), bytes).expect_err("refused").to_string();
            assert!(error.contains(&format!("{bytes} bytes of one of 4096")), "{error}");
        }
    }
}
