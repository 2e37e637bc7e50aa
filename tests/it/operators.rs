//! The book's table of operators (`docs/book/src/operators.md`): its names are those that the loaders read, and its numbers
//! their constants.

use diptych_import::model::operators;
use std::collections::BTreeSet;
use std::path::Path;

const PAGE: &str = "docs/book/src/operators.md";

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text below a heading, up to the next one.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, behind) =
        page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{PAGE}: no {heading}"));
    behind.split("\n#").next().unwrap_or_default()
}

/// The names in the first column of a section's table.
fn names(section: &str) -> Vec<&str> {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.flat_map(|row| row.split(" | ").next().unwrap_or_default().split('`'))
        .filter(|name| !name.trim().is_empty())
        .collect()
}

/// What a table lacks, has for nothing, or has twice.
fn differences(heading: &str, code: &[&str]) -> Vec<String> {
    let page = read(PAGE);
    let listed = names(section(&page, heading));
    let (known, rows): (BTreeSet<&str>, BTreeSet<&str>) =
        (code.iter().copied().collect(), listed.iter().copied().collect());
    let twice = rows.iter().filter(|name| listed.iter().filter(|own| own == name).count() > 1);
    let missing = known.difference(&rows).map(|name| format!("{heading}: no row has {name}"));
    let superfluous = rows.difference(&known).map(|name| format!("{heading}: {name} is not read"));
    missing.chain(superfluous).chain(twice.map(|name| format!("{heading}: {name} twice"))).collect()
}

#[test]
fn the_table_has_the_operators_that_the_loaders_read() {
    let onnx = operators::onnx_names();
    let of = |wanted: &str| -> Vec<&str> {
        onnx.iter().filter(|(domain, _)| *domain == wanted).map(|&(_, name)| name).collect()
    };
    let (standard, microsoft, tflite) = (of(""), of("com.microsoft"), operators::tflite_names());
    assert_eq!(standard.len() + microsoft.len(), onnx.len(), "a domain without a table");
    let mut differ = differences("## ONNX", &standard);
    differ.extend(differences("### com.microsoft", &microsoft));
    differ.extend(differences("## TensorFlow Lite", &tflite));
    assert!(differ.is_empty(), "{PAGE}: {differ:#?}");

    let counts = [
        (PAGE, format!("read {} operators of ONNX ({} standard ones,", onnx.len(), standard.len())),
        (PAGE, format!("{} of com.microsoft) and {} of TensorFlow Lite", microsoft.len(), tflite.len())),
        (
            "README.md",
            format!("TensorFlow Lite ({} operators) and ONNX ({} operators", tflite.len(), onnx.len()),
        ),
        ("CHANGELOG.md", format!("float models of {} operators", tflite.len())),
    ];
    for (file, count) in counts {
        assert!(read(file).contains(&count), "{file}: no \"{count}\"");
    }
}

/// Constants of the loaders, and what the page says of them.
#[rustfmt::skip]
const NUMBERS: &[(&str, &str, &str)] = &[
    ("base/src/dims.rs", "const MAX_RANK: usize = 6;", "at most six axes"),
    ("import/src/model/input_dependence.rs", "const MOST_BY_VALUE: usize = 4096;", "at most 4,096 elements"),
    ("import/src/model/build/axes.rs", "const MOST_LISTED: usize = 1 << 16;", "at most 65,536 numbers"),
    ("import/src/model/build/unfolded.rs", "const MOST_TAPS: usize = 1 << 10;", "at most 1,024 taps"),
    ("import/src/model/build/pooling.rs", "const MAX_TAPS: usize = 256;", "Windows with dilations have at most 256 taps"),
    ("import/src/model/build/recurrent.rs", "const MOST_UNROLLED: usize = 1024;", "More than 1,024 steps: **CPU**"),
    ("import/src/model/build/spectra.rs", "const MAX_LENGTH: usize = 1 << 13;", "transforms of 1 to 8,192 elements"),
    ("import/src/model/build/operands.rs", "const MOST_EXACT: i64 = 1 << 24;", "whole numbers up to 2^24"),
    ("import/src/model/build/indexing.rs", "const MAX_PLACES: usize = 1 << 24;", "chooses from at most 2^24 elements"),
    ("import/src/model/onnx/import.rs", "RangeInclusive<i64> = 1..=28;", "Versions 1 to 28"),
    ("import/src/model/onnx/columns.rs", "const MAX_PLACES: usize = 1 << 24;", "the taps times the blocks are at most 2^24"),
    ("import/src/model/onnx/products.rs", "const MAX_ROWS: usize = 6;", "square matrices of at most 6 rows"),
    ("import/src/model/onnx/states.rs", "const MAX_TOKENS: usize = 1024;", "at most 1,024 tokens in a run"),
    ("import/src/model/onnx/states.rs", "const MAX_TAPS: usize = 256;", "one filter of 1 to 256 taps"),
    ("import/src/model/onnx/control.rs", "const MAX_TURNS: usize = 4096;", "at most 4,096 iterations"),
    ("import/src/model/onnx/sequences.rs", "const MAX_LENGTH: usize = 4096;", "sequences of at most 4,096 tensors"),
    ("import/src/model/onnx/pixels.rs", "const MAX_PIXELS: usize = 1 << 24;", "at most 2^24 pixels"),
    ("import/src/model/tflite/calls.rs", "const MAX_CALLS: usize = 8192;", "at most 8,192 calls"),
];

#[test]
fn the_numbers_on_the_page_are_the_loaders_constants() {
    let page = read(PAGE);
    for (file, constant, text) in NUMBERS {
        assert!(
            read(&format!("crates/{file}")).contains(constant),
            "crates/{file}: no \"{constant}\" ({PAGE}: {text})"
        );
        assert!(page.contains(text), "{PAGE}: no \"{text}\" (crates/{file}: {constant})");
    }
}

/// The table of `docs/book/src/an-op.md` names functions, and the page's paths are files or folders.
#[test]
fn the_way_of_an_op_names_what_is_there() {
    let page = read("docs/book/src/an-op.md");
    let rows = section(&page, "## Step by step")
        .lines()
        .filter(|line| line.contains("| `src/") || line.contains("| `crates/"));
    let mut count = 0;
    for row in rows {
        let columns: Vec<&str> = row.split(" | ").collect();
        let file = columns[1].trim_matches('`');
        let text = read(file);
        for function in columns[2].split(", ") {
            let function = function.trim_matches('`');
            let declared = |end: &str| text.contains(&format!("fn {function}{end}"));
            assert!(declared("(") || declared("<"), "{file}: no function {function}");
            count += 1;
        }
    }
    assert!(count > 19, "{count} functions");
    for path in page
        .split('`')
        .filter(|path| ["src/", "crates/", "shaders/"].iter().any(|folder| path.starts_with(folder)))
    {
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(path).exists(), "no {path}");
    }
}
