//! The texts of a crate's licences.

use crate::OWN;
use crate::tree::Crate;
use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::Path;

/// How names of files begin that have licences and notices.
const NAMES: [&str; 6] = ["licence", "license", "unlicense", "copying", "copyright", "notice"];

/// The texts that the crate carries, without those that say the same twice; where it carries none, those of the licences
/// that it names.
pub fn of(one: &Crate) -> Result<Vec<String>> {
    let folder = one.manifest_path.parent().context("a manifest without a folder")?;
    let mut texts = carried(folder)?;
    if texts.is_empty() {
        texts = standard(one);
    }
    ensure!(
        !texts.is_empty(),
        "{} {} names {:?}, and {} has no text of it",
        one.name,
        one.version,
        one.licence,
        folder.display()
    );
    texts.dedup();
    Ok(texts)
}

/// The texts of a folder, and of a folder of licences within.
fn carried(folder: &Path) -> Result<Vec<String>> {
    let unreadable = || format!("cannot read {}", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_lowercase();
        if NAMES.iter().any(|begin| name.starts_with(begin)) && !name.ends_with(".rs") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut texts = Vec::new();
    for path in paths {
        if path.is_dir() {
            for entry in fs::read_dir(&path)? {
                texts.push(text(&entry?.path())?);
            }
        } else {
            texts.push(text(&path)?);
        }
    }
    texts.sort();
    Ok(texts)
}

fn text(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    Ok(lines.join("\n").trim_matches('\n').to_owned())
}

/// The usual texts of the licences that a crate offers, with its authors. None, unless one of them is enough.
fn standard(one: &Crate) -> Vec<String> {
    let [(_, apache), (_, mit)] = OWN;
    let authors = if one.authors.is_empty() { "its authors".to_owned() } else { one.authors.join(", ") };
    let whose = format!(
        "{} carries no text of its licence. Copyright (c) the authors that its manifest names: {authors}",
        one.name
    );
    let usual = |name: &str| match name.trim() {
        "Apache-2.0" => Some(format!("{whose}\n\n{}", apache.trim_matches('\n'))),
        // Without the project's own line of copyright.
        "MIT" => mit
            .split_once("Permission is")
            .map(|(_, text)| format!("MIT License\n\n{whose}\n\nPermission is{}", text.trim_end())),
        _ => None,
    };
    one.licence.replace('/', " OR ").split(" OR ").filter_map(usual).collect()
}
