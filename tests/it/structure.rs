//! The rules of `ARCHITECTURE.md`, checked against the sources: imports only go down the layers, APIs and
//! `unsafe` stay where they belong, nothing outside an op's folder asks which op it has, files stay short,
//! every kernel has one text, and every doc comment says its own subject.
//!
//! The sources are read as text: comments and tests are left out of all rules but the last one, strings are not distinguished.

use diptych::Dialect;
use diptych_kernels::ops;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The folders of the sources: the crate for programs, and those that it consists of.
const SOURCES: &[&str] = &[
    "src",
    "crates/base/src",
    "crates/emit/src",
    "crates/kernels/src",
    "crates/device/src",
    "crates/graph/src",
    "crates/import/src",
];

/// The layer of each top-level module. Between crates the compiler keeps the order too. A module may use its own layer and those below.
const LAYERS: &[(u32, &[&str])] = &[
    (
        0,
        &[
            "error", "dtype", "dims", "shape", "layout", "host", "word", "alloc", "file", "vector", "erf",
            "sorted", "weights", "clock", "disk", "parallel", "random", "sync", "task", "unwind",
        ],
    ),
    // `text!` is a macro of `emit`.
    (1, &["emit", "limits", "text"]),
    (2, &["cpu"]),
    (3, &["ops", "nn"]),
    (4, &["device"]),
    (5, &["tune", "pick"]),
    (6, &["calibration", "graph", "compute", "source", "options", "context"]),
    (7, &["lower"]),
    (8, &["tune_network"]),
    (9, &["session", "eager", "product", "model"]),
    (10, &["batch", "fastest"]),
];

/// Imports that go down the layers and are forbidden all the same: the first module uses the second.
/// What to compute and how to talk to a driver are kept apart, up to the layers that need both.
const FORBIDDEN: &[(&str, &str)] = &[("device", "ops"), ("device", "cpu")];

/// The crates of each API, and the files that may name them. A folder ends in `/`.
const MAY_NAME: &[(&[&str], &[&str])] = &[
    (
        &["wgpu"],
        &[
            "crates/device/src/device/wgpu/",
            "src/context.rs",
            "src/context/dmabuf.rs",
            "src/session/encode.rs",
            "src/session/buffers.rs",
            "src/lib.rs",
        ],
    ),
    (
        &["opencl3", "cl3"],
        &[
            "crates/device/src/device/opencl/",
            "src/context.rs",
            "src/context/dmabuf.rs",
            "src/session/enqueue.rs",
            "src/lib.rs",
        ],
    ),
    (&["naga"], &["crates/emit/src/emit/", "crates/kernels/src/ops/custom/"]),
];

/// Files outside `crates/kernels/src/ops/` that may name an op, and the ops that they name; none stands for any. All
/// else walks the registry, and treats every op alike.
const MAY_NAME_OPS: &[(&str, &[&str])] = &[
    // What applications name.
    ("src/lib.rs", &[]),
    ("src/nn.rs", &[]),
    ("crates/graph/src/graph/attention.rs", &[]),
    ("crates/graph/src/graph/build.rs", &[]),
    ("crates/graph/src/graph/dynamic.rs", &[]),
    ("crates/graph/src/graph/elementwise.rs", &[]),
    ("crates/graph/src/graph/expression.rs", &["elementwise"]),
    ("crates/graph/src/graph/integers.rs", &[]),
    ("crates/graph/src/graph/layers.rs", &[]),
    ("crates/graph/src/graph/moves.rs", &[]),
    ("crates/graph/src/graph/quantized.rs", &[]),
    ("crates/graph/src/graph/packed.rs", &[]),
    ("crates/graph/src/graph/random.rs", &[]),
    ("crates/graph/src/graph/reductions.rs", &[]),
    ("crates/graph/src/graph/sampling.rs", &[]),
    // Whether a value may have a sign, by its operator.
    ("crates/graph/src/graph/signs.rs", &[]),
    // The rule of each operator for several samples.
    ("crates/graph/src/graph/samples/", &[]),
    ("src/eager.rs", &[]),
    ("src/product.rs", &["gemm"]),
    ("crates/import/src/model/", &[]),
    // What was measured on phones were convolutions.
    ("src/tune/phones.rs", &["conv2d", "pointwise"]),
    // What is put between ops: changes of form, and copies of views.
    ("src/lower/", &["convert", "copy"]),
    // What is recognised, and what it becomes.
    (
        "src/lower/idioms/",
        &[
            "attention",
            "attention_join",
            "conv2d",
            "depthwise",
            "elementwise",
            "gate",
            "gather",
            "gemm",
            "gemm_rows",
            "glu",
            "loops",
            "mlp",
            "normalize",
            "one_hot",
            "pointwise",
            "pool",
            "quantized_gemm",
            "reduce",
            "remap",
            "softmax",
            "squeeze",
        ],
    ),
    // What is computed on bytes, and what it becomes.
    (
        "src/lower/quantized/",
        &[
            "concat",
            "conv2d",
            "depthwise",
            "dequantize",
            "elementwise",
            "gemm",
            "pointwise",
            "pool",
            "quantize",
            "quantized_binary",
            "quantized_conv2d",
            "quantized_depthwise",
            "quantized_lookup",
            "quantized_pool",
            "reduce",
            "remap",
            "transposed_conv2d",
        ],
    ),
    ("src/lower/chain.rs", &["elementwise", "gemm"]),
    ("src/tune/op_bench/images.rs", &["convert"]),
];

/// Where `unsafe` may be used.
const MAY_BE_UNSAFE: &[(&str, &str)] = &[
    ("crates/device/src/device/", "drivers are called through C, and the ops' kernels run unchecked"),
    ("src/context/dmabuf.rs", "how a decoder has arranged its memory is the caller's promise"),
    ("crates/import/src/model/tflite/tables.rs", "flatbuffers' accessors trust their verifier"),
    (
        "crates/kernels/src/cpu/arch.rs",
        "a module of WebAssembly that loads has the vectors that it was compiled for",
    ),
    (
        "crates/kernels/src/cpu/bytes/sums.rs",
        "it checks all places of a tile once, then calls the instructions of the machine",
    ),
    (
        "crates/kernels/src/cpu/bytes/channels.rs",
        "it checks all places of a pixel once, then calls the instructions of the machine",
    ),
    ("crates/kernels/src/cpu/bytes/lookup.rs", "instructions that a machine was asked for"),
    ("crates/kernels/src/cpu/bytes/packed.rs", "instructions that a machine was asked for"),
    (
        "crates/kernels/src/cpu/bytes/avx512_packed.rs",
        "instructions of AVX-512, once all lengths were checked",
    ),
    ("crates/kernels/src/cpu/bytes/avx2_packed.rs", "instructions of AVX2, once all lengths were checked"),
    ("crates/kernels/src/cpu/bytes/avx512.rs", "instructions of AVX-512, once all places were checked"),
    (
        "crates/kernels/src/cpu/bytes/avx512_channels.rs",
        "instructions of AVX-512, once all places were checked",
    ),
    ("crates/kernels/src/cpu/bytes/avx2.rs", "instructions of AVX2, once all places were checked"),
    ("crates/kernels/src/cpu/bytes/neon.rs", "instructions of NEON, once all places were checked"),
    ("crates/kernels/src/cpu/bytes/neon_channels.rs", "instructions of NEON, once all places were checked"),
    (
        "crates/kernels/src/cpu/bytes/neon_dot.rs",
        "instructions that Rust has no stable functions for, once all places were checked",
    ),
    (
        "crates/kernels/src/cpu/bytes/neon_i8mm.rs",
        "instructions that Rust has no stable functions for, once all places were checked",
    ),
    ("crates/kernels/src/cpu/micro.rs", "a check for each value and vector costs as much as short products"),
    (
        "crates/kernels/src/cpu/products.rs",
        "vectors are loaded without a check for each, which costs more than the product",
    ),
    (
        "crates/kernels/src/cpu/workers/crew.rs",
        "web workers call what lies on another one's stack; std's scopes begin threads",
    ),
    ("crates/kernels/src/cpu/product.rs", "the `gemm` crate takes pointers and strides"),
];

/// Where the host's clocks, and waits for wgpu's devices, are named: a browser has no clock of std's, and its only thread must not
/// wait. What else blocks, and std's sorters, `clippy.toml` lists, which does not see these: a clock that `clock` exports is std's
/// own type, and a way to poll is a variant.
const MAY_READ_CLOCKS: &[(&str, &[&str])] = &[
    ("PollType::Wait", &["crates/device/src/device/wgpu/submission.rs"]),
    ("wait_indefinitely", &[]),
    ("Instant", &["crates/base/src/clock.rs"]),
    ("SystemTime", &["crates/base/src/clock.rs", "crates/device/src/device/cache.rs"]),
];

/// How no doc comment begins: it is shown alone, without the item that such words refer to.
const NO_BEGINNINGS: &[&str] = &["The same", "Those of", "That of", "As "];

/// The most lines of a file, its tests and the examples of its documentation not counted: about 400.
const MAX_LINES: usize = 420;

/// Files that are longer, with the reason.
const LONG: &[(&str, &str)] = &[("crates/graph/src/graph/mod.rs", "most of it is documentation")];

/// The folder of an op that the registry does not list: its kernels are an application's.
const UNLISTED_OP: &str = "custom";

/// The folder of the pieces that kernels of several ops include.
const PIECES: &str = "shared";

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

/// Every source file of the repository in Rust, of all packages. Links, builds and hidden folders are left out.
fn repository() -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let entry = entry.expect("an entry");
            let (path, kind) = (entry.path(), entry.file_type().expect("a type"));
            let name = entry.file_name().to_string_lossy().into_owned();
            if kind.is_dir() && !name.starts_with('.') && !["target", "node_modules"].contains(&&*name) {
                folders.push(path);
            } else if kind.is_file() && name.ends_with(".rs") {
                found.insert(path.strip_prefix(root()).expect("below the root").to_owned());
            }
        }
    }
    found
}

/// A file of the library.
struct Source {
    /// Such as `crates/emit/src/emit/words.rs`.
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
    let all =
        SOURCES.iter().flat_map(|folder| files(folder, "rs").into_iter().map(move |path| (folder, path)));
    for (folder, path) in all {
        let mut module: Vec<String> = path
            .with_extension("")
            .components()
            .skip(Path::new(folder).components().count())
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect();
        if module.iter().any(|part| ["tests", "texts", "interleavings"].contains(&&**part)) {
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
            lines: lines_without_examples(text),
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

/// How many lines there are, the blocks of code in the documentation not counted.
fn lines_without_examples(text: &str) -> usize {
    let mut example = false;
    let counted = text.lines().filter(|line| {
        let line = line.trim_start();
        let documentation = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let fence = documentation.is_some_and(|text| text.trim_start().starts_with("```"));
        example = (example ^ fence) && documentation.is_some();
        !example && !fence
    });
    counted.count()
}

#[test]
fn examples_are_not_counted() {
    let text = "/// Says.\n///\n/// ```\n/// one();\n/// ```\nfn f() {}\n";
    assert_eq!((text.lines().count(), lines_without_examples(text)), (6, 3));
}

/// The doc comments of `text` that begin with one of [`NO_BEGINNINGS`]: the number of the line, and the line.
fn refers_elsewhere(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut before = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let marker = ["///", "//!"].into_iter().find(|marker| line.starts_with(marker));
        let marker = marker.filter(|_| !line.starts_with("////"));
        let words = line.get(3..).unwrap_or_default().trim_start();
        let is_first = marker.is_some() && marker != before;
        if is_first && NO_BEGINNINGS.iter().any(|beginning| words.starts_with(beginning)) {
            found.push((index + 1, line));
        }
        before = marker;
    }
    found
}

#[test]
fn a_comment_that_begins_with_another_item_is_seen() {
    let text = "//! The same for bytes.\n\n/// Adds.\n/// The same twice.\nfn a() {}\n    /// As [`a`].\n    fn b() {}\n\
        // The same.\n//// As a line.\n/// Asks.\nfn c() {}\n/// Those of `a`.\n//! That of `b`.\n";
    let lines: Vec<usize> = refers_elsewhere(text).into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, [1, 6, 12, 13]);
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

/// How many modules up a file's paths begin that begin with `super`, and what follows.
fn upwards(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    let first = after_word(&source.code, "super").filter(|(at, _)| !source.code[..*at].ends_with("super::"));
    first.map(|(_, rest)| {
        let (mut rest, mut up) = (rest, 1);
        while let Some(further) = rest.strip_prefix("::super") {
            (rest, up) = (further, up + 1);
        }
        (up, rest)
    })
}

/// The top-level modules that a file uses.
fn uses(source: &Source) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for (_, rest) in after_word(&source.code, "crate") {
        used.extend(first_names(rest));
    }
    for (up, rest) in upwards(source) {
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

fn layer(module: &str) -> Option<u32> {
    LAYERS.iter().find(|(_, modules)| modules.contains(&module)).map(|(layer, _)| *layer)
}

fn refuse(failures: &[String]) {
    assert!(failures.is_empty(), "{} broken rules:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn imports_only_go_down() {
    let mut failures = Vec::new();
    let behind = re_exports();
    let mut links: BTreeMap<(String, String), usize> = BTreeMap::new();
    for source in library() {
        let Some(own) = source.module.first() else { continue };
        let Some(own_layer) = layer(own) else {
            failures.push(format!("{}: module `{own}` is in no layer of the table", source.path));
            continue;
        };
        for used in uses(&source) {
            let used = if layer(&used).is_some() { used } else { behind.get(&used).cloned().unwrap_or(used) };
            match layer(&used) {
                _ if used == *own => {}
                None => {
                    failures.push(format!("{}: `crate::{used}` is in no layer of the table", source.path))
                }
                Some(layer) if layer > own_layer => failures.push(format!(
                    "{}: `{own}` of layer {own_layer} uses `{used}` of layer {layer}",
                    source.path
                )),
                Some(_) => {
                    if FORBIDDEN.contains(&(own.as_str(), used.as_str())) {
                        failures.push(format!("{}: `{own}` uses `{used}`, which is forbidden", source.path));
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

/// Folders in which no file may be used by one that it uses.
const WITHOUT_CIRCLES: &[&str] = &["batch", "cpu", "emit", "graph", "lower", "model", "session", "tune"];

/// Whole paths of a path's rest: `a::{b::c, d}` gives `a::b::c` and `a::d`.
fn whole_paths(rest: &str) -> Vec<Vec<String>> {
    let rest = rest.trim_start();
    if let Some(list) = rest.strip_prefix('{') {
        let (mut depth, mut paths, mut start) = (0, Vec::new(), 0);
        for (at, letter) in list.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    paths.extend(whole_paths(&list[start..at]));
                    start = at + 1;
                    if letter == '}' {
                        break;
                    }
                }
                _ => {}
            }
        }
        return paths;
    }
    let name: String = rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
    if name.is_empty() {
        return Vec::new();
    }
    let behind = rest[name.len()..].strip_prefix("::").map(whole_paths).unwrap_or_default();
    if behind.is_empty() {
        return vec![vec![name]];
    }
    behind.into_iter().map(|path| [vec![name.clone()], path].concat()).collect()
}

/// The library's modules, and what those of folders re-export: where each name is.
struct Modules {
    files: BTreeMap<Vec<String>, bool>,
    behind: BTreeMap<Vec<String>, BTreeMap<String, Vec<String>>>,
}

impl Modules {
    fn new(sources: &[Source]) -> Self {
        let is_folder =
            |source: &Source| source.path.ends_with("/mod.rs") || source.path.ends_with("/lib.rs");
        let files = sources.iter().map(|source| (source.module.clone(), is_folder(source))).collect();
        let mut behind = BTreeMap::new();
        for source in sources.iter().filter(|source| is_folder(source)) {
            let names: &mut BTreeMap<String, Vec<String>> = behind.entry(source.module.clone()).or_default();
            for (at, rest) in after_word(&source.code, "use") {
                let line = source.code[..at].lines().last().unwrap_or_default().trim_start();
                if !line.starts_with("pub") {
                    continue;
                }
                for path in whole_paths(rest.split(';').next().unwrap_or_default()) {
                    let (mut from, mut path) = (source.module.clone(), &path[..]);
                    while let [first, further @ ..] = path {
                        match first.as_str() {
                            "self" => {}
                            "super" => drop(from.pop()),
                            "crate" => from.clear(),
                            _ => break,
                        }
                        path = further;
                    }
                    if let Some(name) = path.last() {
                        names.insert(name.clone(), [&from, path].concat());
                    }
                }
            }
        }
        Modules { files, behind }
    }

    /// The file that a path leads to, re-exports followed.
    fn file_of(&self, path: &[String], depth: usize) -> Vec<String> {
        for end in 1..=path.len() {
            if self.files.contains_key(&path[..end]) {
                continue;
            }
            let folder = &path[..end - 1];
            let at = self.behind.get(folder).and_then(|names| names.get(&path[end - 1]));
            return match at.filter(|at| depth > 0 && **at != path[..end]) {
                Some(at) => self.file_of(&[at, &path[end..]].concat(), depth - 1),
                None => folder.to_vec(),
            };
        }
        path.to_vec()
    }

    /// The files that one uses, those of folders left out: they only show what others have.
    fn used_by(&self, source: &Source) -> BTreeSet<Vec<String>> {
        let from_root = after_word(&source.code, "crate").map(|(_, rest)| (0, rest));
        let below = upwards(source).map(|(up, rest)| (source.module.len().saturating_sub(up), rest));
        let mut used = BTreeSet::new();
        for (length, rest) in from_root.chain(below) {
            let Some(rest) = rest.strip_prefix("::") else { continue };
            for path in whole_paths(rest) {
                used.insert(self.file_of(&[&source.module[..length], &path].concat(), 8));
            }
        }
        used.retain(|file| *file != source.module && self.files.get(file) == Some(&false));
        used
    }
}

#[test]
fn re_exports_are_followed() {
    let source = |path: &str, code: &str| {
        let module = path.strip_prefix("src/").unwrap().strip_suffix(".rs").unwrap();
        let module = module.strip_suffix("/mod").unwrap_or(module).split('/').map(str::to_owned).collect();
        Source { path: path.to_owned(), module, code: code.to_owned(), lines: 1 }
    };
    let sources = [
        source("src/a/mod.rs", "mod b;\nmod c;\npub(super) use b::{One, c::Two};\nuse c::Hidden;"),
        source("src/a/b.rs", "use super::c::Three;"),
        source("src/a/c.rs", "use crate::a::{One, Hidden};"),
        source("src/d.rs", "use crate::a::{self, One};\nfn f() { super::a::b::g() }"),
    ];
    let modules = Modules::new(&sources);
    let used = |source: &Source| -> Vec<String> {
        modules.used_by(source).iter().map(|file| file.join("/")).collect()
    };
    assert_eq!(used(&sources[1]), ["a/c"]);
    assert_eq!(used(&sources[2]), ["a/b"]);
    assert_eq!(used(&sources[3]), ["a/b"]);
}

#[test]
fn no_file_is_used_by_one_that_it_uses() {
    let all = library();
    let modules = Modules::new(&all);
    let mut found = Vec::new();
    let mut links = 0;
    for folder in WITHOUT_CIRCLES {
        let own: Vec<&Source> = all
            .iter()
            .filter(|source| source.module.first().is_some_and(|first| first == folder))
            .filter(|source| !source.path.ends_with("/mod.rs"))
            .collect();
        let mut left: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> =
            own.iter().map(|source| (source.module.clone(), modules.used_by(source))).collect();
        links += left.values().map(BTreeSet::len).sum::<usize>();
        // What uses none of those that are left is in no circle, nor is what none of them uses.
        loop {
            let before = left.len();
            let names: BTreeSet<Vec<String>> = left.keys().cloned().collect();
            left.retain(|_, used| used.iter().any(|used| names.contains(used)));
            let used: BTreeSet<Vec<String>> = left.values().flatten().cloned().collect();
            left.retain(|file, _| used.contains(file));
            if left.len() == before {
                break;
            }
        }
        found.extend(left.keys().map(|file| file.join("/")));
    }
    assert!(links > 1500, "only {links} links between files were seen");
    assert!(found.is_empty(), "files that use each other, or are between such: {}", found.join(", "));
}

#[test]
fn each_api_is_named_where_it_belongs() {
    let mut failures = Vec::new();
    let mut seen = 0;
    for source in library() {
        for (names, places) in MAY_NAME {
            for name in *names {
                let named = after_word(&source.code, name)
                    .filter(|(at, rest)| rest.starts_with("::") && !within_a_path(&source.code[..*at]))
                    .count();
                seen += named;
                if named > 0 && !places.iter().any(|place| within(&source.path, place)) {
                    failures.push(format!("{}: `{name}::` belongs in {}", source.path, places.join(", ")));
                }
            }
        }
    }
    refuse(&failures);
    assert!(seen > 50, "only {seen} uses of the APIs were seen");
}

#[test]
fn an_op_is_named_in_its_folder_alone() {
    let mut names: BTreeSet<&str> = ops::all().iter().map(|entry| entry.name).collect();
    names.insert(UNLISTED_OP);
    let mut failures = Vec::new();
    let mut unused: BTreeSet<&str> = MAY_NAME_OPS.iter().map(|(place, _)| *place).collect();
    for source in library().iter().filter(|source| !source.path.starts_with("crates/kernels/src/ops/")) {
        let named: BTreeSet<String> =
            after_word(&source.code, "ops").flat_map(|(_, rest)| first_names(rest)).collect();
        for name in named.iter().map(String::as_str).filter(|name| names.contains(name)) {
            let allowed = MAY_NAME_OPS.iter().find(|(place, only)| {
                within(&source.path, place) && (only.is_empty() || only.contains(&name))
            });
            match allowed {
                Some((place, _)) => drop(unused.remove(place)),
                None => failures.push(format!("{}: names the op `{name}`", source.path)),
            }
        }
    }
    failures.extend(unused.iter().map(|place| format!("{place}: may name ops, and names none")));
    refuse(&failures);
}

/// Whether what follows `before` is a later part of a path, as in `crate::wgpu`; `::wgpu` is its first.
fn within_a_path(before: &str) -> bool {
    before
        .strip_suffix("::")
        .is_some_and(|head| head.ends_with(|c: char| c.is_alphanumeric() || "_>".contains(c)))
}

#[test]
fn unsafe_is_used_where_it_must_be() {
    let mut failures = Vec::new();
    let mut unused: BTreeSet<&str> = MAY_BE_UNSAFE.iter().map(|(place, _)| *place).collect();
    for source in library() {
        if after_word(&source.code, "unsafe").next().is_some() {
            match MAY_BE_UNSAFE.iter().find(|(place, _)| within(&source.path, place)) {
                Some((place, _)) => drop(unused.remove(place)),
                None => failures.push(format!("{}: `unsafe`", source.path)),
            }
        }
    }
    failures.extend(unused.iter().map(|place| format!("{place}: may use `unsafe`, and does not")));
    refuse(&failures);
}

#[test]
fn clocks_and_waits_for_devices_are_named_where_they_belong() {
    let mut failures = Vec::new();
    let mut unused: BTreeSet<(&str, &str)> = MAY_READ_CLOCKS
        .iter()
        .flat_map(|(word, places)| places.iter().map(|place| (*word, *place)))
        .collect();
    for source in library() {
        let times = after_word(&source.code, "time").flat_map(|(_, rest)| first_names(rest));
        let times: Vec<String> = times.collect();
        for (word, places) in MAY_READ_CLOCKS {
            let used = match *word {
                "Instant" | "SystemTime" => times.iter().any(|name| name == word),
                _ => after_word(&source.code, word).next().is_some(),
            };
            match places.iter().find(|place| **place == source.path) {
                Some(place) if used => drop(unused.remove(&(*word, *place))),
                None if used => failures.push(format!("{}: `{word}`", source.path)),
                _ => {}
            }
        }
    }
    failures.extend(unused.iter().map(|(word, place)| format!("{place}: may use `{word}`, and does not")));
    refuse(&failures);
}

/// Each crate of the library turns on the lint whose methods `clippy.toml` lists: without that line nothing would be found.
#[test]
fn the_librarys_crates_turn_on_the_list_of_methods() {
    let line = "#![cfg_attr(not(test), warn(clippy::disallowed_methods))]";
    let missing = SOURCES.iter().map(|folder| format!("{folder}/lib.rs"));
    let missing = missing.filter(|path| {
        let text = fs::read_to_string(root().join(path)).expect("a crate's first file");
        !text.lines().any(|found| found == line)
    });
    refuse(&missing.map(|path| format!("{path}: wanted {line}")).collect::<Vec<_>>());
}

/// Whether `path` is `place`, or within it if that is a folder.
fn within(path: &str, place: &str) -> bool {
    if place.ends_with('/') { path.starts_with(place) } else { path == place }
}

#[test]
fn a_doc_comment_says_its_own_subject() {
    let mut failures = Vec::new();
    let files = repository();
    for path in &files {
        let name = path.to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(root().join(path)).expect("a source file");
        let found = refers_elsewhere(&text).into_iter();
        failures.extend(found.map(|(line, text)| format!("{name}:{line}: {text}")));
    }
    refuse(&failures);
    assert!(files.len() > 500, "only {} files were found", files.len());
}

#[test]
fn files_stay_short() {
    let mut failures = Vec::new();
    for source in library() {
        match (source.lines > MAX_LINES, LONG.iter().find(|(path, _)| *path == source.path)) {
            (true, None) => failures.push(format!("{}: {} lines of {MAX_LINES}", source.path, source.lines)),
            (false, Some(_)) => failures.push(format!("{}: listed as long, and is not", source.path)),
            _ => {}
        }
    }
    refuse(&failures);
}

#[test]
fn every_kernel_has_one_text_and_every_text_a_kernel() {
    let mut failures: Vec<String> = Vec::new();
    let read = |path: &Path| fs::read_to_string(root().join(path)).unwrap_or_default();
    let mut wanted = BTreeSet::new();
    let nests = ops::all().iter().find(|entry| entry.name == "loops").expect("an op").variants();
    for entry in ops::all() {
        for variant in entry.variants() {
            // An op that is a nest of loops has its texts.
            let text = variant.template.text;
            if entry.name != "loops" && nests.iter().any(|nest| nest.template.text == text) {
                continue;
            }
            let (folder, ending) = variant.template.dialect.folder_and_ending();
            let path = PathBuf::from(format!("{folder}/{}/{}.{ending}", entry.name, variant.name));
            if read(&path) != variant.template.text {
                failures.push(format!(
                    "{}: not the text of {}'s {}",
                    path.display(),
                    entry.name,
                    variant.name
                ));
            }
            wanted.insert(path);
        }
    }
    let texts = Dialect::ALL.into_iter().flat_map(|dialect| {
        let (folder, ending) = dialect.folder_and_ending();
        files(folder, ending)
    });
    let (pieces, found): (BTreeSet<PathBuf>, BTreeSet<PathBuf>) =
        texts.partition(|path| path.parent().is_some_and(|folder| folder.ends_with(PIECES)));
    for piece in &pieces {
        let name = piece.file_stem().expect("a file").to_string_lossy().into_owned();
        let include = format!("% include \"{PIECES}/{name}\"");
        let same_language = |path: &&PathBuf| path.extension() == piece.extension();
        let included =
            found.iter().chain(&pieces).filter(same_language).any(|path| read(path).contains(&include));
        // What epilogues call is put before a text that does not name it.
        let before = read(Path::new("crates/emit/src/emit/templates.rs"))
            .contains(&format!("shared(\"{PIECES}/{name}\""));
        if !included && !before {
            failures.push(format!("{}: no kernel includes it", piece.display()));
        }
    }
    failures.extend(found.difference(&wanted).map(|path| format!("{}: of no kernel", path.display())));
    refuse(&failures);
    assert!(pieces.len() > 4, "only {} pieces were seen", pieces.len());
}

#[test]
fn every_runner_of_the_conformance_table_includes_all_of_its_modules() {
    // These run on a GPU that blocks, or look at whole tables: they are tests of their own.
    let apart = ["ends", "idle", "large", "main", "order"];
    let mut failures = Vec::new();
    for runner in ["bindings/web/dawn/examples/conformance.rs", "tools/arm/src/main.rs"] {
        let text = fs::read_to_string(root().join(runner)).expect(runner);
        for file in files("tests/conformance", "rs") {
            let module = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if !apart.contains(&module) && !text.contains(&format!("/tests/conformance/{module}.rs\"]\n")) {
                failures.push(format!("{runner} does not include tests/conformance/{module}.rs"));
            }
        }
    }
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
    // All kernels of these are those of nests of loops.
    let of_nests = BTreeSet::from(
        [
            "arg",
            "concat",
            "dequantize",
            "elementwise",
            "gather",
            "glu",
            "integer",
            "one_hot",
            "quantize",
            "softmax",
        ]
        .map(str::to_owned),
    );
    let with_texts = ops.difference(&of_nests).cloned().collect();
    for (tree, other, wanted) in
        [("crates/kernels/src/ops", UNLISTED_OP, &ops), ("shaders", PIECES, &with_texts)]
    {
        let mut folders = folders(tree);
        assert!(folders.remove(other), "no folder {tree}/{other}");
        // What an op and a function behind it are has the op's name.
        folders.remove("followed");
        folders.remove("prologue");
        assert_eq!(&folders, wanted, "folders of {tree} against the registry");
    }
    // What WGSL cannot say.
    let only = ["attention", "conv2d", "gemm", "pointwise", "quantized_conv2d", PIECES].map(str::to_owned);
    assert_eq!(folders("cl"), BTreeSet::from(only), "folders of cl");
    for op in &ops {
        let has = |file: &str| root().join("crates/kernels/src/ops").join(op).join(file).is_file();
        assert!(
            has("mod.rs") && has("examples.rs"),
            "crates/kernels/src/ops/{op}: its maths and its examples"
        );
        assert!(
            has("plan.rs") && has("oracle.rs") || has("rows.rs"),
            "crates/kernels/src/ops/{op}: its definition and its oracle"
        );
    }
}

#[test]
fn the_reader_of_paths_reads_paths() {
    let code =
        "use crate::ops::{Choice, Op};\nuse crate::{error::Error, host::{A, B}, dtype};\nlet x: Mycrate::y;";
    let source = Source {
        path: "crates/emit/src/emit/words.rs".to_owned(),
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
