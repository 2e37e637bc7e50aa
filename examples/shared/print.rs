//! Printing results and errors, and the checks before long work.

use anyhow::{Context as _, Result, bail, ensure};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// An error and its causes, leaving out causes that the text contains already.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            text += if text.is_empty() { "" } else { ": " };
            text += &cause;
        }
    }
    text
}

/// Writes a result to standard output.
pub fn text(text: &str) -> Result<()> {
    std::io::stdout().write_all(text.as_bytes()).context("writing to standard output")
}

/// Checks that the output has a folder, and that it overwrites no input.
pub fn check_output(output: &Path, sources: &[&Option<PathBuf>]) -> Result<()> {
    if let Some(folder) = output.parent()
        && !folder.as_os_str().is_empty()
    {
        ensure!(folder.is_dir(), "--output: there is no folder {}", folder.display());
    }
    let Ok(output) = output.canonicalize() else {
        return Ok(()); // It does not exist yet.
    };
    for source in sources.iter().copied().flatten() {
        if source.canonicalize().is_ok_and(|source| source == output) {
            bail!("--output would overwrite {}", source.display());
        }
    }
    Ok(())
}
