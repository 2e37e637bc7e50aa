//! Collects the examples in the documentation of the crates below `diptych`.
//!
//! They show what a program writes, so that they use `diptych`, on which those crates cannot depend.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Sources whose examples are for features that are off by default: the feature `conversions` asks for them.
const CONVERSIONS: &str = "crates/base/src/host/conversions";

/// The crates, by their folders.
const CRATES: [&str; 6] = ["base", "emit", "kernels", "device", "graph", "import"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The examples of one source, each below the place where it stands.
fn examples(name: &str, text: &str, out: &mut String) {
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let Some(line) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            assert!(!inside, "{name}:{number}: an example without an end");
            continue;
        };
        let line = line.strip_prefix(' ').unwrap_or(line);
        match line.strip_prefix("```") {
            Some(kind) if !inside => {
                inside = true;
                writeln!(out, "# {name}:{}\n\n```{kind}", number + 1).expect("text");
            }
            Some(_) => {
                inside = false;
                out.push_str("```\n\n");
            }
            None if inside => writeln!(out, "{line}").expect("text"),
            None => {}
        }
    }
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the repository");
    let mut all = String::new();
    for part in CRATES {
        let folder = root.join("crates").join(part).join("src");
        println!("cargo::rerun-if-changed={}", folder.display());
        let mut files = Vec::new();
        sources(&folder, &mut files);
        files.sort();
        for file in files {
            let text = std::fs::read_to_string(&file).expect("a source");
            let name = file.strip_prefix(&root).expect("below the root").display().to_string();
            if !name.starts_with(CONVERSIONS) || std::env::var_os("CARGO_FEATURE_CONVERSIONS").is_some() {
                examples(&name, &text, &mut all);
            }
        }
    }
    // They name files of the repository as its root's programs would.
    let data = format!("\"{}/examples/", root.display());
    let out = std::env::var_os("OUT_DIR").expect("a folder");
    std::fs::write(Path::new(&out).join("examples.md"), all.replace("\"examples/", &data))
        .expect("the examples");
}
