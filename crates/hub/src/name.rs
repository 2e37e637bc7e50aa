//! Names of models.

use crate::Error;
use std::str::FromStr;

/// The name of a model: `OWNER/NAME`, `OWNER/NAME:FILE` or `OWNER/NAME@REVISION:FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Name {
    /// The repository, `OWNER/NAME`.
    pub repository: String,
    /// The branch, tag or commit; `main` unless it is named.
    pub revision: String,
    /// The file within the repository.
    pub file: Option<String>,
}

/// Whether a letter does something to a terminal: control characters, among them the beginning of escape sequences, and
/// what changes the direction of a text.
fn commands(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a path has plain names alone, and so stays in its folder, and is safe to print.
pub(crate) fn is_plain(path: &str) -> bool {
    let plain = |part: &str| {
        !matches!(part, "" | "." | "..") && !part.contains(['\\', ':']) && !part.contains(commands)
    };
    !path.is_empty() && path.split('/').all(plain)
}

/// A path from a folder without the parts that stay where they are, as in `./model.onnx_data`; nothing if it may lead out.
pub(crate) fn within(path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    Some(parts.join("/")).filter(|path| is_plain(path))
}

impl FromStr for Name {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |found: &str| Error::Name { name: text.to_owned(), found: found.to_owned() };
        let (head, file) = match text.split_once(':') {
            Some((head, file)) => (head, Some(file)),
            None => (text, None),
        };
        let (repository, revision) = head.split_once('@').unwrap_or((head, "main"));
        let letter = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        let parts: Vec<&str> = repository.split('/').collect();
        if parts.len() > 2 || !is_plain(repository) || !parts.iter().all(|part| part.chars().all(letter)) {
            return Err(wrong("a repository of another form"));
        }
        if !is_plain(revision) {
            return Err(wrong("a revision of another form"));
        }
        if let Some(file) = file
            && !is_plain(file)
        {
            return Err(wrong("a file of another form"));
        }
        Ok(Name {
            repository: repository.to_owned(),
            revision: revision.to_owned(),
            file: file.map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_repository_a_revision_and_a_file() {
        let name = |text: &str| {
            let Name { repository, revision, file } = text.parse().expect("a name");
            (repository, revision, file)
        };
        assert_eq!(name("some-one/net.2"), ("some-one/net.2".into(), "main".into(), None));
        assert_eq!(name("gpt2"), ("gpt2".into(), "main".into(), None));
        let file = Some("onnx/model.onnx".into());
        assert_eq!(name("a/b:onnx/model.onnx"), ("a/b".into(), "main".into(), file.clone()));
        assert_eq!(name("a/b@v1:onnx/model.onnx"), ("a/b".into(), "v1".into(), file));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for text in
            ["", "a/b/c", "../b", "a/..", "a b/c", "a/b:", "a/b:/etc/x", "a/b:../x", "a/b:x/../y", "a/b@:x"]
        {
            let error = text.parse::<Name>().expect_err(text);
            assert!(error.to_string().contains("wanted OWNER/NAME, "), "{error}");
        }
        assert!(
            !is_plain("C:x") && !is_plain("a\\b") && is_plain("a?b#c%d") && is_plain("\u{e4} \u{6a21}.onnx")
        );
        for letter in ['\0', '\x07', '\n', '\r', '\x1b', '\x7f', '\u{9b}', '\u{202e}', '\u{2066}'] {
            let error = format!("a/b:x{letter}[2J.onnx").parse::<Name>().expect_err("no name").to_string();
            assert!(!error.contains(letter), "{error:?}");
            assert_eq!(within(&format!("x{letter}")), None);
        }
        assert_eq!(within("./a//b/./c.bin").as_deref(), Some("a/b/c.bin"));
        for path in ["", ".", "/etc/x", "../x", "a/../x", "./../x", "C:x", "a\\b"] {
            assert_eq!(within(path), None, "{path}");
        }
    }
}
