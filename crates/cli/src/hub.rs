//! Models that are named after their place in the Hugging Face hub: `hf:OWNER/NAME:FILE`.

use anyhow::Result;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// What such a name begins with.
const SCHEME: &str = "hf:";

/// A command's words that name models.
pub(crate) enum Word<'a> {
    Path(&'a mut PathBuf),
    Text(&'a mut OsString),
}

/// Puts paths in the place of names in the hub, whose files are fetched unless they are there.
pub(crate) fn fetch(words: Vec<Word<'_>>) -> Result<()> {
    for word in words {
        let name = |own: &OsStr| Some(own.to_str()?.strip_prefix(SCHEME)?.to_owned());
        match word {
            Word::Path(path) => {
                if let Some(name) = name(path.as_os_str()) {
                    *path = fetched(&name)?;
                }
            }
            Word::Text(text) => {
                if let Some(name) = name(text) {
                    *text = fetched(&name)?.into();
                }
            }
        }
    }
    Ok(())
}

#[cfg(feature = "hub")]
fn fetched(name: &str) -> Result<PathBuf> {
    Ok(diptych_hub::Hub::from_env()?.progress(true).fetch(name)?)
}

#[cfg(not(feature = "hub"))]
fn fetched(name: &str) -> Result<PathBuf> {
    anyhow::bail!(
        "{SCHEME}{name}: this program was built without the feature hub: in a clone, cargo install --path crates/cli --features hub; from \
         the first release on, cargo install diptych-cli --features hub"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_the_hub_are_told_from_paths() {
        let (mut path, mut text) = (PathBuf::from("models/hf:x.tflite"), OsString::from("gemm"));
        fetch(vec![Word::Path(&mut path), Word::Text(&mut text)]).expect("no names in the hub");
        assert_eq!((path.to_str(), text.to_str()), (Some("models/hf:x.tflite"), Some("gemm")));
        for name in ["hf:", "hf:a/b/c", "hf:a/b:../c"] {
            let error = fetch(vec![Word::Path(&mut PathBuf::from(name))]).expect_err("no name of a model");
            let wanted = if cfg!(feature = "hub") { "wanted OWNER/NAME" } else { "without the feature hub" };
            assert!(error.to_string().contains(wanted), "{error}");
        }
    }
}
