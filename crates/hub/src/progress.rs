//! How much of a file has come, on stderr.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// A line that is written again and again. It ends where the bar is dropped.
pub(crate) struct Bar<'a> {
    file: &'a str,
    size: u64,
    /// When it was written the last time.
    last: Option<Instant>,
    shown: bool,
}

impl<'a> Bar<'a> {
    /// Nothing is written where stderr is no terminal.
    pub(crate) fn new(file: &'a str, size: u64, shown: bool) -> Self {
        Bar { file, size, last: None, shown: shown && std::io::stderr().is_terminal() }
    }

    /// The line for so many bytes.
    fn line(&self, bytes: u64) -> String {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let done = 20 * bytes as u128 / u128::from(self.size.max(1));
        let (full, empty) = ("=".repeat(done as usize), " ".repeat(20usize.saturating_sub(done as usize)));
        // Control characters of a name would move the cursor.
        let file: String = self.file.chars().filter(|letter| !letter.is_control()).collect();
        format!("{file} [{full}{empty}] {:.1} of {:.1} MB", megabytes(bytes), megabytes(self.size))
    }

    /// Shows that so many bytes are there.
    pub(crate) fn show(&mut self, bytes: u64) {
        let is_due = self.last.is_none_or(|last| last.elapsed() > Duration::from_millis(200));
        if self.shown && (is_due || bytes == self.size) {
            self.last = Some(Instant::now());
            // A closed stderr ends no download.
            let _ = write!(std::io::stderr(), "\r{}", self.line(bytes.min(self.size)));
        }
    }
}

impl Drop for Bar<'_> {
    fn drop(&mut self) {
        if self.last.is_some() {
            let _ = writeln!(std::io::stderr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_the_part_that_is_there() {
        let line = |bytes, size| Bar::new("a/b.onnx", size, true).line(bytes);
        assert_eq!(line(0, 40_000_000), "a/b.onnx [                    ] 0.0 of 40.0 MB");
        assert_eq!(line(10_000_000, 40_000_000), "a/b.onnx [=====               ] 10.0 of 40.0 MB");
        assert_eq!(line(40_000_000, 40_000_000), "a/b.onnx [====================] 40.0 of 40.0 MB");
        assert_eq!(line(0, 0), "a/b.onnx [                    ] 0.0 of 0.0 MB");
    }
}
