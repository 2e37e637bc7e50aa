//! The crates of a package, as cargo resolves them.

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// The package, and how it is built.
#[derive(clap::Args)]
pub struct Wanted {
    /// A package of this workspace.
    pub package: String,
    /// For which machine, or `all`; unless given, for this one.
    #[arg(long)]
    target: Option<String>,
    /// Its features; unless given, the default ones.
    #[arg(long)]
    features: Option<String>,
}

/// A crate that others made.
#[derive(Deserialize)]
pub struct Crate {
    pub name: String,
    pub version: String,
    #[serde(rename = "license", default = "unknown")]
    pub licence: String,
    #[serde(default)]
    pub authors: Vec<String>,
    pub repository: Option<String>,
    pub manifest_path: PathBuf,
    /// Its registry; nothing for the crates of this workspace.
    source: Option<String>,
}

fn unknown() -> String {
    "an unknown licence".to_owned()
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Crate>,
}

/// What a program prints.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {errors}");
    String::from_utf8(output.stdout).with_context(|| format!("what {command:?} prints"))
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

/// The crates that are compiled into the package, by name and version; those that only run while it is built are not.
pub fn crates(wanted: &Wanted) -> Result<Vec<Crate>> {
    let target = match &wanted.target {
        Some(target) => target.clone(),
        None => {
            let words = output(Command::new("rustc").arg("-vV"))?;
            let host = words.lines().find_map(|line| line.strip_prefix("host: "));
            host.with_context(|| format!("rustc -vV names no host: {words}"))?.to_owned()
        }
    };
    let mut tree = cargo();
    tree.args(["tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]);
    tree.args(["--package", &wanted.package, "--target", &target]);
    if let Some(features) = &wanted.features {
        tree.args(["--no-default-features", "--features", features]);
    }
    let named = named(&output(&mut tree)?)?;
    let mut metadata = cargo();
    metadata.args(["metadata", "--locked", "--format-version", "1"]);
    if target != "all" {
        metadata.args(["--filter-platform", &target]);
    }
    let Metadata { packages } = serde_json::from_str(&output(&mut metadata)?).context("cargo's metadata")?;
    let is_named = |one: &Crate| named.contains(&(one.name.clone(), one.version.clone()));
    let mut found: Vec<Crate> = packages.into_iter().filter(is_named).collect();
    ensure!(
        found.len() == named.len(),
        "cargo's tree names {} crates, its metadata {}",
        named.len(),
        found.len()
    );
    found.retain(|one| one.source.is_some());
    found.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
    Ok(found)
}

/// Names and versions of a tree: lines such as `serde v1.0.228` and `serde v1.0.228 (*)`.
pub fn named(tree: &str) -> Result<BTreeSet<(String, String)>> {
    let of = |line: &str| {
        let mut words = line.split(' ');
        let (name, version) = (words.next(), words.next().and_then(|version| version.strip_prefix('v')));
        let name = name.zip(version).with_context(|| format!("cargo's tree has the line {line:?}"))?;
        Ok((name.0.to_owned(), name.1.to_owned()))
    };
    tree.lines().filter(|line| !line.is_empty()).map(of).collect()
}
