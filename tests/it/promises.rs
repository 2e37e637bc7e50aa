//! `SECURITY.md`: each promise has tests, and they exist.

use std::path::Path;

/// The names in backticks, in their order.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn each_promise_is_backed_by_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("SECURITY.md")).expect("SECURITY.md");
    let (_, promises) = text.split_once("|---|---|---|\n").expect("a table");
    let mut missing = Vec::new();
    let mut rows = 0;
    for row in promises.lines().take_while(|line| line.starts_with('|')) {
        rows += 1;
        let tests = row.trim_end_matches('|').rsplit('|').next().unwrap_or("");
        let mut source: Option<(&str, String)> = None;
        let mut found = 0;
        for name in quoted(tests) {
            if name.ends_with(".rs") {
                source = Some((name, std::fs::read_to_string(root.join(name)).unwrap_or_default()));
            } else if let Some((path, source)) = &source {
                found += 1;
                let test = format!("#[test]\nfn {name}(");
                let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
                if !lines.join("\n").contains(&test) {
                    missing.push(format!("{path}: {name}"));
                }
            }
        }
        if found == 0 {
            missing.push(format!("any test of {row}"));
        }
    }
    assert!(rows > 5, "{rows} promises");
    assert!(missing.is_empty(), "{missing:#?}");
}
