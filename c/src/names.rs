//! Messages in the words of the header: the library's name Rust's methods and fields.

use std::borrow::Cow;

/// What the library's messages name, and what a program in C calls it. Longer texts come before their beginnings.
pub(crate) const NAMES: &[(&str, &str)] = &[
    (
        "a tensor of this input in FastestOptions::inputs, of the extents to measure",
        "them from diptych_options_dimension",
    ),
    ("in LoadOptions::files", "from diptych_options_file"),
    ("in the load options", "from diptych_options_dimension"),
    ("caches: found", "diptych_options_caches: found"),
    ("Session::carry runs it", "without diptych_options_caches it runs"),
    ("this session carries outputs (Session::carry)", "this session carries outputs"),
    ("LoadOptions::dimensions", "diptych_options_dimension"),
    ("SessionOptions::dimensions", "diptych_options_dimension"),
    ("LoadOptions::values", "diptych_options_value"),
    ("the graph was not kept (SessionOptions::keep_graph)", "the graph was not kept"),
    ("SessionOptions::open", "diptych_options_dimension"),
    ("BatchOptions::", "diptych_batch_options."),
    ("Caches::new", "diptych_options_caches"),
    (" (Caches::with_masks)", ""),
    ("Session::cache", "diptych_options_caches"),
    ("Session::reset", "diptych_reset"),
];

/// A message of the library in these words.
pub(crate) fn in_c(message: &str) -> Cow<'_, str> {
    diptych::internals::package::worded(message, NAMES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn messages_name_the_headers_functions() {
        let message = "node \"r\": found none; it depends on the input \"size\": give its value when the file is read \
                       (LoadOptions::values; --value size=...)";
        assert!(in_c(message).ends_with("give its value when the file is read (diptych_options_value)"));
        assert_eq!(in_c("BatchOptions::max_batch: found 0"), "diptych_batch_options.max_batch: found 0");
        assert!(matches!(in_c("nothing to say"), Cow::Borrowed("nothing to say")));
    }

    /// The texts of a file, but for comments and for tests, which come last.
    fn texts(source: &str) -> String {
        let source = source.split("\n#[cfg(test)]\nmod").next().unwrap_or_default();
        let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
        let parts = code.flat_map(|line| line.split('"').skip(1).step_by(2).map(str::to_owned));
        parts.collect::<Vec<_>>().join("\n")
    }

    fn visit(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "tests") {
                visit(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("tests.rs") {
                found.push(texts(&std::fs::read_to_string(&path).expect("a file")));
            }
        }
    }

    #[test]
    fn every_option_that_the_library_names_has_its_own_name_here() {
        let mut found = Vec::new();
        visit(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../src"), &mut found);
        let (mut named, mut missing) = (0, Vec::new());
        for text in &found {
            let options = [
                "LoadOptions::",
                "SessionOptions::",
                "BatchOptions::",
                "FastestOptions::",
                "Caches::",
                "load options",
            ];
            for line in text.lines().filter(|line| options.iter().any(|option| line.contains(option))) {
                named += 1;
                let told = in_c(line);
                if options.iter().any(|option| told.contains(option)) {
                    missing.push(told.into_owned());
                }
            }
        }
        assert!(named >= 8, "{named}");
        assert!(missing.is_empty(), "{missing:#?}");
    }
}
