//! The licences of what is compiled into a package that is handed on: a wheel, a library, an npm package.
//!
//! ```text
//! cargo run --package diptych-notices -- write diptych-c FOLDER
//! cargo run --package diptych-notices -- check diptych-c FOLDER
//! ```
//!
//! `write` puts into the folder the project's own licences, `THIRD-PARTY.txt` with the crates of the locked tree and the
//! texts that they carry, and what the compiler has of Rust's standard library. `check` reads such a folder again, and
//! fails if a crate of the tree is not named there.

#![forbid(unsafe_code)]
#![warn(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod texts;
mod tree;

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, Subcommand};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tree::{Crate, Wanted};

/// The file of the crates' licences.
const THIRD_PARTY: &str = "THIRD-PARTY.txt";
/// The file of those of Rust's standard library.
const LIBRARY: &str = "RUST-LIBRARY.html";
/// The project's own.
const OWN: [(&str, &str); 2] = [
    ("LICENSE-APACHE", include_str!("../../../LICENSE-APACHE")),
    ("LICENSE-MIT", include_str!("../../../LICENSE-MIT")),
];

/// The licences of what is compiled into a package.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Writes them.
    Write(Package),
    /// Looks whether all are there.
    Check(Package),
}

#[derive(clap::Args)]
struct Package {
    #[command(flatten)]
    wanted: Wanted,
    /// Where the files are.
    folder: PathBuf,
}

fn main() -> Result<()> {
    match Arguments::parse().verb {
        Verb::Write(package) => write(&package),
        Verb::Check(package) => check(&package),
    }
}

fn write(Package { wanted, folder }: &Package) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    for (name, text) in OWN {
        put(name, text)?;
    }
    let library = library()?;
    if let Some(text) = &library {
        put(LIBRARY, text)?;
    }
    put(THIRD_PARTY, &page(wanted, &tree::crates(wanted)?, library.is_some())?)
}

fn check(Package { wanted, folder }: &Package) -> Result<()> {
    for (name, text) in OWN {
        ensure!(read(&folder.join(name))? == text, "{name} of {} is not the project's", folder.display());
    }
    let text = read(&folder.join(THIRD_PARTY))?;
    let crates = tree::crates(wanted)?;
    let missing: Vec<String> =
        crates.iter().filter(|one| !text.lines().any(|line| line == title(one))).map(title).collect();
    ensure!(missing.is_empty(), "{THIRD_PARTY} of {} lacks {missing:?}", folder.display());
    println!("{}: {} crates", folder.display(), crates.len());
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// What the compiler has of the licences of Rust's standard library. Some distributions leave it out.
fn library() -> Result<Option<String>> {
    let root = tree::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let path = Path::new(root.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    if path.exists() { read(&path).map(Some) } else { Ok(None) }
}

/// The line that names a crate.
fn title(one: &Crate) -> String {
    format!("{} {}: {}", one.name, one.version, one.licence)
}

/// `THIRD-PARTY.txt`: the crates, and each text once.
fn page(wanted: &Wanted, crates: &[Crate], library: bool) -> Result<String> {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut texts = Vec::new();
    let mut page =
        format!("Compiled into {} beside Diptych itself, {} crates:\n\n", wanted.package, crates.len());
    for one in crates {
        let mut own = Vec::new();
        for text in texts::of(one)? {
            let number = *numbers.entry(text.clone()).or_insert_with(|| {
                texts.push(text);
                texts.len()
            });
            own.push(format!("[{number}]"));
        }
        writeln!(page, "{}", title(one))?;
        writeln!(page, "    {} {}", one.repository.as_deref().unwrap_or("crates.io"), own.join(" "))?;
    }
    let compiler = tree::output(Command::new("rustc").arg("--version"))?;
    let whose = match library {
        true => format!("its notices are in {LIBRARY}"),
        false => "its notices are in its repository, https://github.com/rust-lang/rust".to_owned(),
    };
    writeln!(page, "\nAnd the standard library of {}: Apache-2.0 OR MIT; {whose}.", compiler.trim())?;
    for (text, number) in texts.iter().zip(1..) {
        writeln!(page, "\n{:-<80}\n[{number}]\n\n{text}", "")?;
    }
    Ok(page)
}

#[cfg(test)]
mod tests;
