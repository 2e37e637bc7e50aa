//! The header has what the sources export, with the same comments. That it is what cbindgen makes of them byte for byte
//! is checked by `scripts/c test`.

use std::collections::BTreeMap;
use std::path::Path;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn sources() -> String {
    let read = |name| {
        let path = Path::new(ROOT).join("src").join(format!("{name}.rs"));
        let text = std::fs::read_to_string(&path).expect("a source");
        text.split("#[cfg(test)]").next().expect("what is before the tests").to_owned()
    };
    [
        "batch", "calls", "devices", "errors", "frames", "into", "options", "session", "tensors", "tickets",
        "typed",
    ]
    .map(read)
    .concat()
}

fn header() -> String {
    std::fs::read_to_string(Path::new(ROOT).join("include/diptych.h")).expect("the header")
}

/// What is between the first parenthesis of `text` and its partner.
fn parameters(text: &str) -> &str {
    let inside = text.split_once('(').expect("parameters").1;
    let mut depth = 1;
    let end = inside.char_indices().find(|&(_, character)| {
        depth += i32::from(character == '(') - i32::from(character == ')');
        depth == 0
    });
    &inside[..end.expect("a closing parenthesis").0]
}

/// The functions with the names of their parameters.
fn exported(sources: &str) -> BTreeMap<String, Vec<String>> {
    let functions = sources.split("#[unsafe(no_mangle)]").skip(1);
    let of = |text: &str| {
        let text = text.split_once(" fn ").expect("a function").1;
        let name = text.split('(').next().expect("its name").to_owned();
        let names = parameters(text).split(',').filter_map(|parameter| parameter.split_once(':'));
        (name, names.map(|(name, _)| name.trim().to_owned()).collect())
    };
    functions.map(of).collect()
}

/// The prototypes with the names of their parameters.
fn declared(header: &str) -> BTreeMap<String, Vec<String>> {
    let code: String =
        header.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join(" ");
    let prototypes = code.split(';').filter(|text| !text.contains("typedef") && text.contains("diptych_"));
    let of = |text: &str| {
        let before = text.split('(').next()?;
        let name = before.rsplit([' ', '*']).next()?.to_owned();
        let named = |parameter: &str| parameter.rsplit([' ', '*']).next().map(str::to_owned);
        let names = parameters(text).split(',').filter_map(named).filter(|name| name != "void").collect();
        name.starts_with("diptych_").then_some((name, names))
    };
    prototypes.filter(|text| text.contains('(')).filter_map(of).collect()
}

#[test]
fn the_header_declares_every_function() {
    let (exported, declared) = (exported(&sources()), declared(&header()));
    assert!(exported.len() > 15, "{exported:?}");
    assert_eq!(declared, exported, "scripts/c header writes it");
}

#[test]
fn the_header_has_the_comments_of_what_is_public() {
    let (sources, header) = (sources(), header());
    let mut block: Vec<&str> = Vec::new();
    let mut seen = 0;
    for line in sources.lines().map(str::trim) {
        match line.strip_prefix("///") {
            Some(text) => block.push(text.trim()),
            None if line.starts_with("#[") => {}
            None => {
                if line.starts_with("pub ") && !line.starts_with("pub(") {
                    seen += block.len();
                    let missing = block.iter().find(|text| !text.is_empty() && !header.contains(**text));
                    assert_eq!(missing, None, "{line}: scripts/c header writes it");
                }
                block.clear();
            }
        }
    }
    assert!(seen > 60, "{seen} lines");
}
