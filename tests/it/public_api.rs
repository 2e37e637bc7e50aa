//! The public API as a reviewed file: `docs/public-api.txt` must be what the sources say.
//!
//! It lists each name that `src/lib.rs` exports and does not hide, with its public fields or variants and
//! its methods; implementations of other crates' traits are left out. A change to the API is a change to that
//! file: `DIPTYCH_UPDATE_API=1 cargo test --test it public_api` writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The crates below that items are exported from.
const PARTS: &[&str] = &["base", "emit", "kernels", "device", "graph", "import"];

const LISTING: &str = "docs/public-api.txt";
const HEADER: &str = "\
What the crate exports and documents: paths, fields, variants and methods, without the implementations of
other crates' traits. Written and compared by `tests/it/public_api.rs`; a change here is a change to the API.
";

/// The library's sources.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("bin") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// One item of a source: its attributes and its lines, which rustfmt has indented.
struct Item {
    hidden: bool,
    may_grow: bool,
    lines: Vec<String>,
}

impl Item {
    /// Its declaration in one line, without the body.
    fn signature(&self) -> String {
        let mut text = String::new();
        for line in self.lines.iter().map(|line| line.trim()) {
            let ends = line.ends_with('{') || line.ends_with(';');
            text.push_str(line.trim_end_matches(['{', ';']).trim_end());
            text.push(' ');
            if ends {
                break;
            }
        }
        let text = text.split(" where ").next().unwrap_or_default();
        let text = text.trim().trim_end_matches([',', '}']).trim_end().trim_end_matches('{').trim_end();
        let text = text.trim_end_matches(" {}").replace("( ", "(").replace(", )", ")").replace(" )", ")");
        if text.starts_with("pub const ") {
            return text.split(" = ").next().unwrap_or_default().to_owned();
        }
        match text.split_once('(') {
            // A tuple of private fields.
            Some((name, fields)) if name.starts_with("pub struct") && !fields.contains("pub ") => {
                name.to_owned()
            }
            _ => text,
        }
    }
}

/// The items among `lines` that are indented by `indent` spaces.
fn items(lines: &[&str], indent: usize) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let (mut hidden, mut may_grow, mut open, mut is_value) = (false, false, false, false);
    for line in lines {
        let depth = line.len() - line.trim_start().len();
        let text = line.trim();
        if text.is_empty() || text.starts_with("//") || depth < indent {
            continue;
        }
        if open {
            if let Some(item) = items.last_mut() {
                item.lines.push((*line).to_owned());
            }
            // A value in the next line ends with it. What else an item opened with is closed at its own indent.
            if is_value {
                (open, is_value) = (!text.ends_with(';'), !text.ends_with(';'));
            } else if depth == indent && text.starts_with(['}', ')', ']']) {
                open = text.ends_with('{') || text.ends_with('(');
            }
        } else if text.starts_with("#[") {
            hidden |= text == "#[doc(hidden)]";
            may_grow |= text == "#[non_exhaustive]";
        } else {
            items.push(Item { hidden, may_grow, lines: vec![(*line).to_owned()] });
            (hidden, may_grow) = (false, false);
            let ends = text.ends_with(';') || text.ends_with(',') || text.ends_with('}');
            (open, is_value) = (!ends, text.ends_with(" ="));
        }
    }
    items
}

/// The name that a declaration gives, if it is of one of `kinds`.
fn declared<'a>(signature: &'a str, kinds: &[&str]) -> Option<&'a str> {
    let mut words = signature.split_whitespace();
    if words.next()? != "pub" {
        return None;
    }
    let kind = words.find(|word| !matches!(*word, "const" | "async" | "unsafe") || kinds.contains(word))?;
    let name = words.next()?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    kinds.contains(&kind).then_some(&name[..end])
}

/// What a block's lines say of the API: public fields, variants or methods.
fn members(item: &Item, every: bool) -> Vec<String> {
    let body: Vec<&str> = item.lines.iter().skip(1).map(String::as_str).collect();
    let mut found = Vec::new();
    for member in items(&body, 4).iter().filter(|member| !member.hidden) {
        let signature = member.signature();
        if signature.starts_with("pub ") || (every && !signature.starts_with([')', '}', '>'])) {
            let fields = items(&member.lines.iter().skip(1).map(String::as_str).collect::<Vec<_>>(), 8);
            let fields: Vec<String> = fields.iter().map(Item::signature).collect();
            let variant = every && !signature.contains("fn ") && !fields.is_empty();
            found.push(match variant {
                true => format!("{} {{ {} }}", signature, fields.join(", ")),
                false => signature,
            });
        }
    }
    found
}

/// The names of a `use` line, with the crate's module that they come from.
fn exported(item: &Item) -> Vec<(String, String)> {
    let text: String = item.lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    let Some(path) = text.strip_prefix("pub use ") else { return Vec::new() };
    let path = path.strip_prefix("crate::").unwrap_or(path);
    let path = path.trim_end_matches(';');
    let names = match path.split_once('{') {
        Some((_, names)) => names.trim_end_matches('}'),
        None => path.rsplit("::").next().unwrap_or(path),
    };
    // `diptych_import::model::Model` is of the module `model` of that crate.
    let module = path.split("::").find(|part| !part.starts_with("diptych_")).unwrap_or(path).to_owned();
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| (name.to_owned(), module.clone())).collect()
}

/// The type that an `impl` block without a trait is of.
fn implemented(signature: &str) -> Option<&str> {
    let mut of = signature.strip_prefix("impl")?;
    if of.starts_with('<') {
        let mut depth = 0;
        let end = of.find(|c: char| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        });
        of = &of[end? + 1..];
    }
    let of = of.trim();
    let end = of.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(of.len());
    (!signature.contains(" for ")).then_some(&of[..end])
}

/// What the sources declare of the exported names, and of others of the same names.
struct Declaration {
    module: String,
    signature: String,
    members: Vec<String>,
}

fn listing() -> String {
    const KINDS: &[&str] = &["struct", "enum", "trait", "fn", "const", "type"];
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.join("src");
    let read = |path: &Path| std::fs::read_to_string(path).expect("a source");
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let lib = read(&root.join("lib.rs"));
    for item in items(&lib.lines().collect::<Vec<_>>(), 0).iter().filter(|item| !item.hidden) {
        names.extend(exported(item));
        names.extend(declared(&item.signature(), &["mod"]).map(|name| (name.to_owned(), name.to_owned())));
    }
    let mut paths: BTreeMap<String, Vec<String>> =
        names.keys().map(|name| (name.clone(), vec![format!("diptych::{name}")])).collect();
    // A public module of nothing but other modules' items.
    let nn = read(&root.join("nn.rs"));
    for item in items(&nn.lines().collect::<Vec<_>>(), 0) {
        for (name, module) in exported(&item) {
            paths.entry(name.clone()).or_default().push(format!("diptych::nn::{name}"));
            names.insert(name, module);
        }
    }
    let mut files = Vec::new();
    let crates = std::fs::read_dir(package.join("crates")).expect("the crates below");
    let crates = crates.map(|entry| entry.expect("an entry").path().join("src"));
    for root in crates.filter(|path| PARTS.iter().any(|part| path.ends_with(Path::new(part).join("src")))) {
        sources(&root, &mut files);
    }
    sources(&root, &mut files);
    files.sort();
    let mut declarations: BTreeMap<&str, Vec<Declaration>> = BTreeMap::new();
    let mut methods: Vec<(String, String, Vec<String>)> = Vec::new();
    for file in &files {
        let text = read(file);
        let place = file.strip_prefix(package).expect("below the root");
        let path: PathBuf = place.iter().skip_while(|part| *part != "src").skip(1).collect();
        let top = path.iter().next().expect("a name").to_string_lossy();
        let module = top.trim_end_matches(".rs").to_owned();
        let own =
            if path.ends_with("mod.rs") { path.parent().and_then(Path::file_name) } else { path.file_stem() };
        let own = own.unwrap_or_default().to_string_lossy().into_owned();
        for item in items(&text.lines().collect::<Vec<_>>(), 0).iter().filter(|item| !item.hidden) {
            let signature = item.signature();
            if let Some(of) = implemented(&signature).filter(|of| names.contains_key(*of)) {
                methods.push((of.to_owned(), module.clone(), members(item, false)));
            }
            let Some(name) = declared(&signature, KINDS) else { continue };
            // A module that is exported has what its own file declares.
            let is_exported = || {
                let parent = root.join(&module).join("mod.rs");
                place.starts_with("src")
                    && parent.is_file()
                    && read(&parent).contains(&format!("pub mod {own};"))
            };
            if names.get(&own).is_some_and(|of| *of == module) && is_exported() {
                methods.push((own.clone(), module.clone(), vec![signature.clone()]));
            }
            if let Some((name, _)) = names.get_key_value(name) {
                let every = signature.starts_with("pub enum") || signature.starts_with("pub trait");
                let members = if signature.contains("fn ") { Vec::new() } else { members(item, every) };
                let may_grow = if item.may_grow { "#[non_exhaustive] " } else { "" };
                let (module, signature) = (module.clone(), format!("{may_grow}{signature}"));
                declarations.entry(name).or_default().push(Declaration { module, signature, members });
            }
        }
    }
    let mut text = HEADER.to_owned();
    for (name, module) in &names {
        let declared = declarations.get(name.as_str()).map(Vec::as_slice).unwrap_or_default();
        let (own, others): (Vec<_>, Vec<_>) = declared.iter().partition(|found| found.module == *module);
        let title = own.first().map_or(name.as_str(), |own| own.signature.as_str());
        let paths = paths.get(name).map(|paths| paths.join(", ")).unwrap_or_default();
        writeln!(text, "\n# {paths}\n{title}").expect("text");
        for member in own.iter().flat_map(|own| &own.members) {
            writeln!(text, "    {member}").expect("text");
        }
        // A module that has another item of this name means that one.
        let of = methods
            .iter()
            .filter(|(of, module, _)| of == name && !others.iter().any(|other| other.module == *module));
        let of: BTreeSet<&String> = of.flat_map(|(_, _, methods)| methods).collect();
        for method in of {
            writeln!(text, "    {method}").expect("text");
        }
    }
    text
}

#[test]
fn the_api_is_the_one_that_was_reviewed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(LISTING);
    let found = listing();
    if std::env::var_os("DIPTYCH_UPDATE_API").is_some() {
        std::fs::write(&path, &found).expect("the listing");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (kept, found) = (lines(&kept), lines(&found));
    let gone = kept.iter().filter(|line| !found.contains(line)).map(|line| format!("- {line}"));
    let new = found.iter().filter(|line| !kept.contains(line)).map(|line| format!("+ {line}"));
    let difference: Vec<String> = gone.chain(new).collect();
    assert!(
        kept == found,
        "the API is not {LISTING}; if it should change, set DIPTYCH_UPDATE_API=1 and review the difference:\n{}",
        difference.join("\n")
    );
}

#[test]
fn hidden_and_private_items_are_no_part_of_the_listing() {
    let text = listing();
    let has = |line: &str| text.lines().any(|found| found == line);
    assert!(has("pub struct Session"), "{text}");
    assert!(text.contains("    pub fn run_into("), "{text}");
    assert!(has("#[non_exhaustive] pub enum Backend") && text.contains("    pub fn in_flight("), "{text}");
    assert!(has("    Auto") && has("    pub shape: Shape"), "{text}");
    for hidden in ["pub struct Comparison", "pub fn shared_device", "pub fn begin_problem", "\nops", "trials"]
    {
        assert!(!text.contains(hidden), "{hidden:?} is listed");
    }
}
