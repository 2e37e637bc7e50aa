//! What the command line says: results on standard output, everything else on standard error.
//!
//! A reader may stop reading, as `head` does. Then there is nothing left to say: a command ends, and that is no failure.

use anyhow::Result;
use std::fmt::Display;
use std::io::{ErrorKind, Write};

/// Writes a result and ends its line.
///
/// # Errors
/// If it cannot be written; [`nobody_reads`] tells whether the reader is gone.
pub(crate) fn print(text: impl Display) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{text}")?;
    Ok(stdout.flush()?)
}

/// Writes a line to standard error, if anybody reads it.
pub(crate) fn say(text: impl Display) {
    // Where a message about this error would go, nobody would read it either.
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}

/// Whether a command failed because the reader of its output is gone.
pub(crate) fn nobody_reads(error: &anyhow::Error) -> bool {
    let closed = |error: &std::io::Error| error.kind() == ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref().is_some_and(closed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn a_reader_that_is_gone_is_told_from_other_failures() {
        let failed =
            |kind: ErrorKind| -> Result<()> { Err(std::io::Error::from(kind)).context("standard output") };
        assert!(nobody_reads(&failed(ErrorKind::BrokenPipe).expect_err("failed")));
        assert!(!nobody_reads(&failed(ErrorKind::StorageFull).expect_err("failed")));
        assert!(!nobody_reads(&anyhow::anyhow!("another")));
    }
}
