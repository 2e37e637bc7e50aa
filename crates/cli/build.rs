//! What `diptych --version` says: the version, and from a clone of the repository the commit that it is built from.

use std::path::Path;
use std::process::Command;

/// What git says of the repository that this package is in; none where there is no git, and in a packaged crate.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// The commit, if the repository is the project's own: a package may lie within another.
fn commit() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if !Path::new(&top).join("crates/cli/build.rs").exists() {
        return None;
    }
    // It is written to with each commit.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["rev-parse", "--short=9", "HEAD"])
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let version = commit().map_or_else(|| version.clone(), |commit| format!("{version} ({commit})"));
    println!("cargo::rustc-env=DIPTYCH_VERSION={version}");
}
