//! What is asked of a dma-buf before a driver is given it.

use crate::error::{Error, Result};
use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// What files of memory are called in messages.
pub(super) const WHAT: &str = "dma-buf";

/// The bytes of a buffer of the file's first `bytes`, in whole words, and those of the file: the kernel tells them at its end.
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
