//! The house rules of `ARCHITECTURE.md`, held against the tree: imports only go down, APIs and
//! `unsafe` stay in their rooms, files stay short, and every template has its op.
//!
//! The sources are read as text: comments and tests are left out, strings are not told apart.

use diptych::{Dialect, ops};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The floor of each top-level module. A module may use its own floor and those below.
const FLOORS: &[(u32, &[&str])] = &[
    (0, &["error", "dtype", "dims", "shape", "layout", "host", "file"]),
    (1, &["emit", "limits"]),
    (2, &["cpu", "ops"]),
    (3, &["device"]),
    (4, &["tune", "pick"]),
    (5, &["graph", "options", "context"]),
    (6, &["lower"]),
    (7, &["tuner"]),
    (8, &["session", "eager", "product", "model"]),
];

/// What the floors would allow, and is not wanted: the first uses the second.
const STRANGERS: &[(&str, &str)] =
    &[("ops", "device"), ("device", "ops"), ("cpu", "device"), ("device", "cpu"), ("cpu", "ops")];

/// Where each API may be named. A folder ends in `/`.
const ROOMS: &[(&[&str], &[&str])] = &[
    (
        &["wgpu"],
        &["src/device/wgpu/", "src/context.rs", "src/session/mod.rs", "src/session/device.rs", "src/lib.rs"],
    ),
    (&["opencl3", "cl3"], &["src/device/opencl/", "src/context.rs", "src/lib.rs"]),
];

/// Where `unsafe` may stand.
const UNSAFE: &[(&str, &str)] = &[
    ("src/device/", "drivers are called through C"),
    ("src/model/tflite/schema.rs", "flatbuffers' accessors trust their verifier"),
    ("src/cpu/product.rs", "the `gemm` crate takes pointers and strides"),
];

/// Lines a file may have, its tests not counted: about 400.
const LINES: usize = 420;

/// Files that are longer, with the reason.
const LONG: &[(&str, &str)] = &[("src/graph/mod.rs", "most of it is documentation")];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below `folder` (relative to the root) whose name ends in `.{ending}`.
fn files(folder: &str, ending: &str) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == ending) {
                found.insert(path.strip_prefix(root()).expect("below the root").to_owned());
            }
        }
    }
    found
}

/// A file of the library.
struct Source {
    /// Such as `src/emit/words.rs`.
    path: String,
    /// Such as `["emit", "words"]`.
    module: Vec<String>,
    /// Without comments and tests.
    code: String,
    lines: usize,
}

/// The library's files, those that hold only tests left out.
fn library() -> Vec<Source> {
    let mut sources = Vec::new();
    for path in files("src", "rs") {
        let mut module: Vec<String> = path
            .with_extension("")
            .components()
            .skip(1)
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect();
        if module[0] == "bin" || module.iter().any(|part| part == "tests") {
            continue;
        }
        if matches!(module.last().map(String::as_str), Some("mod" | "lib")) {
            module.pop();
        }
        let text = fs::read_to_string(root().join(&path)).expect("a source file");
        let text = without_tests(&text);
        sources.push(Source {
            path: path.to_string_lossy().replace('\\', "/"),
            module,
            lines: text.lines().count(),
            code: without_comments(text),
        });
    }
    assert!(sources.len() > 50, "only {} files were found", sources.len());
    sources
}

/// The text before the inline module of tests, which is last in a file.
fn without_tests(text: &str) -> &str {
    let mut from = 0;
    while let Some(at) = text[from..].find("\n#[cfg(test)]\n") {
        let after = from + at + "\n#[cfg(test)]\n".len();
        let next = text[after..].lines().next().unwrap_or_default();
        if next.starts_with("mod ") && next.ends_with('{') {
            return &text[..from + at];
        }
        from = after;
    }
    text
}

fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Each place of `word` in `code` where it is a word of its own: what follows it.
fn after_word<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    code.match_indices(word).filter_map(move |(at, _)| {
        let part_of_a_name = |letter: char| letter.is_alphanumeric() || letter == '_';
        let rest = &code[at + word.len()..];
        let whole = !code[..at].ends_with(part_of_a_name) && !rest.starts_with(part_of_a_name);
        whole.then_some((at, rest))
    })
}

/// The first names of a path's rest: `::a::b` gives `a`, `::{a::b, c}` gives `a` and `c`.
fn first_names(rest: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
    };
    let Some(rest) = rest.strip_prefix("::") else { return Vec::new() };
    let Some(list) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let (mut depth, mut names, mut start) = (0, Vec::new(), 0);
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.push(name(&list[start..at]));
                start = at + 1;
                if letter == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// The top-level modules that a file uses.
fn uses(source: &Source) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for (_, rest) in after_word(&source.code, "crate") {
        used.extend(first_names(rest));
    }
    for (at, rest) in after_word(&source.code, "super") {
        if source.code[..at].ends_with("super::") {
            continue;
        }
        let (mut rest, mut up) = (rest, 1);
        while let Some(further) = rest.strip_prefix("::super") {
            (rest, up) = (further, up + 1);
        }
        if up >= source.module.len() {
            used.extend(first_names(rest));
        }
    }
    used
}

/// The module behind each name that `lib.rs` re-exports: `Error` is of `error`.
fn re_exports() -> BTreeMap<String, String> {
    let text = fs::read_to_string(root().join("src/lib.rs")).expect("src/lib.rs");
    let mut behind = BTreeMap::new();
    for (_, rest) in text.match_indices("pub use ").map(|(at, found)| text.split_at(at + found.len())) {
        let statement = rest.split(';').next().unwrap_or_default();
        let mut names = statement.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
        let module = names.next().unwrap_or_default();
        for name in names.filter(|name| !name.is_empty()) {
            behind.insert(name.to_owned(), module.to_owned());
        }
    }
    behind
}

fn floor(module: &str) -> Option<u32> {
    FLOORS.iter().find(|(_, modules)| modules.contains(&module)).map(|(floor, _)| *floor)
}

fn refuse(failures: &[String]) {
    assert!(failures.is_empty(), "{} broken house rules:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn imports_only_go_down() {
    let mut failures = Vec::new();
    let behind = re_exports();
    let mut links: BTreeMap<(String, String), usize> = BTreeMap::new();
    for source in library() {
        let Some(own) = source.module.first() else { continue };
        let Some(own_floor) = floor(own) else {
            failures.push(format!("{}: module `{own}` has no floor in the table", source.path));
            continue;
        };
        for used in uses(&source) {
            let used = if floor(&used).is_some() { used } else { behind.get(&used).cloned().unwrap_or(used) };
            match floor(&used) {
                _ if used == *own => {}
                None => failures.push(format!("{}: `crate::{used}` has no floor in the table", source.path)),
                Some(floor) if floor > own_floor => failures.push(format!(
                    "{}: `{own}` on floor {own_floor} uses `{used}` on floor {floor}",
                    source.path
                )),
                Some(_) => {
                    if STRANGERS.contains(&(own.as_str(), used.as_str())) {
                        failures.push(format!("{}: `{own}` uses `{used}`, a stranger", source.path));
                    }
                    *links.entry((own.clone(), used)).or_default() += 1;
                }
            }
        }
    }
    refuse(&failures);
    // A reader of text that sees nothing would find nothing wrong.
    assert!(links.len() > 25, "only {} links between modules were seen", links.len());
}

#[test]
fn each_api_stays_in_its_rooms() {
    let mut failures = Vec::new();
    let mut seen = 0;
    for source in library() {
        for (names, rooms) in ROOMS {
            for name in *names {
                let named = after_word(&source.code, name)
                    .filter(|(at, rest)| rest.starts_with("::") && !within_a_path(&source.code[..*at]))
                    .count();
                seen += named;
                if named > 0 && !rooms.iter().any(|room| within(&source.path, room)) {
                    failures.push(format!("{}: `{name}::` belongs in {}", source.path, rooms.join(", ")));
                }
            }
        }
    }
    refuse(&failures);
    assert!(seen > 50, "only {seen} uses of the APIs were seen");
}

/// Whether what follows `before` is a later part of a path, as in `crate::wgpu`; `::wgpu` is its first.
fn within_a_path(before: &str) -> bool {
    before
        .strip_suffix("::")
        .is_some_and(|head| head.ends_with(|c: char| c.is_alphanumeric() || "_>".contains(c)))
}

#[test]
fn unsafe_stays_in_its_rooms() {
    let mut failures = Vec::new();
    let mut rooms: BTreeSet<&str> = UNSAFE.iter().map(|(room, _)| *room).collect();
    for source in library() {
        if after_word(&source.code, "unsafe").next().is_some() {
            match UNSAFE.iter().find(|(room, _)| within(&source.path, room)) {
                Some((room, _)) => drop(rooms.remove(room)),
                None => failures.push(format!("{}: `unsafe`", source.path)),
            }
        }
    }
    failures.extend(rooms.iter().map(|room| format!("{room}: listed for `unsafe`, which it has none of")));
    refuse(&failures);
}

/// Whether `path` is `room`, or within it if that is a folder.
fn within(path: &str, room: &str) -> bool {
    if room.ends_with('/') { path.starts_with(room) } else { path == room }
}

#[test]
fn files_stay_short() {
    let mut failures = Vec::new();
    for source in library() {
        match (source.lines > LINES, LONG.iter().find(|(path, _)| *path == source.path)) {
            (true, None) => failures.push(format!("{}: {} lines of {LINES}", source.path, source.lines)),
            (false, Some(_)) => failures.push(format!("{}: listed as long, and is not", source.path)),
            _ => {}
        }
    }
    refuse(&failures);
}

#[test]
fn every_template_belongs_to_an_op_and_every_kernel_has_one_template() {
    let mut wanted = BTreeSet::new();
    for entry in ops::all() {
        for variant in entry.variants() {
            // OpenCL C only where there is no WGSL to print it from.
            let folders = ["shaders", "cl"].map(|folder| {
                let ending = if folder == "cl" { "cl" } else { "wgsl" };
                PathBuf::from(format!("{folder}/{}/{}.{ending}", entry.name, variant.name))
            });
            let [wgsl, opencl] = folders;
            let by_hand = !variant.speaks(Dialect::Wgsl) && root().join(&opencl).exists();
            wanted.insert(if by_hand { opencl } else { wgsl });
        }
    }
    let found: BTreeSet<PathBuf> = files("shaders", "wgsl").into_iter().chain(files("cl", "cl")).collect();
    let (pieces, found): (BTreeSet<PathBuf>, BTreeSet<PathBuf>) =
        found.into_iter().partition(|path| path.parent().is_some_and(|folder| folder.ends_with("shared")));
    let mut failures: Vec<String> = Vec::new();
    for piece in &pieces {
        let name = piece.file_stem().expect("a file").to_string_lossy().into_owned();
        let ending = piece.extension().expect("an ending");
        let include = format!("//% include \"shared/{name}\"");
        let text = |path: &PathBuf| fs::read_to_string(root().join(path)).expect("a template");
        if !found
            .iter()
            .chain(&pieces)
            .any(|path| path.extension() == Some(ending) && text(path).contains(&include))
        {
            failures.push(format!("{}: no kernel includes it", piece.display()));
        }
    }
    failures.extend(found.difference(&wanted).map(|path| format!("{}: of no op", path.display())));
    failures.extend(wanted.difference(&found).map(|path| format!("{}: not there", path.display())));
    refuse(&failures);
}

#[test]
fn an_op_has_the_same_name_in_every_tree() {
    let folders = |parent: &str| -> BTreeSet<String> {
        fs::read_dir(root().join(parent))
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.is_dir())
            .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .collect()
    };
    let ops: BTreeSet<String> = ops::all().iter().map(|entry| entry.name.to_owned()).collect();
    // Pieces that kernels of several ops include; the op whose text is the application's.
    for (tree, other) in [("shaders", "shared"), ("src/ops", "custom")] {
        let mut folders = folders(tree);
        assert!(folders.remove(other), "no {tree}/{other}");
        assert_eq!(folders, ops, "folders of {tree} against the registry");
    }
    let by_hand = folders("cl");
    assert!(by_hand.is_subset(&ops), "folders of cl against the registry: {by_hand:?}");
    for op in &ops {
        for file in ["mod.rs", "plan.rs", "oracle.rs"] {
            assert!(root().join("src/ops").join(op).join(file).is_file(), "src/ops/{op}/{file}");
        }
    }
}

#[test]
fn the_reader_of_paths_reads_paths() {
    let code =
        "use crate::ops::{Choice, Op};\nuse crate::{error::Error, host::{A, B}, dtype};\nlet x: Mycrate::y;";
    let source = Source {
        path: "src/emit/words.rs".to_owned(),
        module: vec!["emit".to_owned(), "words".to_owned()],
        code: format!("{code}\nuse super::Dialect;\nuse super::super::shape::Shape;\nuse supernova::z;"),
        lines: 6,
    };
    let wanted = ["dtype", "error", "host", "ops", "shape"].map(str::to_owned);
    assert_eq!(uses(&source), BTreeSet::from(wanted));
    assert_eq!(
        without_tests("a\n#[cfg(test)]\nuse b;\n\n#[cfg(test)]\nmod tests {\n}"),
        "a\n#[cfg(test)]\nuse b;\n"
    );
}
