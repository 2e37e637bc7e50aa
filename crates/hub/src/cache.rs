//! Where files of a repository lie in the cache, as `huggingface_hub` lays them out: `blobs/<etag>` has the contents,
//! `snapshots/<commit>/<file>` links to them, and `refs/<revision>` says which commit a revision was.

use std::io::Result;
use std::path::{Path, PathBuf};

/// What is behind the etag in the name of a file that is not whole yet.
const PART: &str = ".diptych-part";

/// Whether a revision is a commit, which always means the same files.
pub(crate) fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a server's text may be the name of a file in the cache.
pub(crate) fn is_name(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_+=.".contains(&byte);
    (1..=200).contains(&text.len())
        && text.bytes().all(letter)
        && !text.starts_with('.')
        && !text.ends_with(PART)
}

/// The folder of a repository.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(cache: &Path, repository: &str) -> Self {
        Folder(cache.join(format!("models--{}", repository.replace('/', "--"))))
    }

    /// The commit that a revision is, as far as the cache knows.
    pub(crate) fn commit(&self, revision: &str) -> Option<String> {
        if is_commit(revision) {
            return Some(revision.to_owned());
        }
        let commit = std::fs::read_to_string(self.0.join("refs").join(revision)).ok()?;
        Some(commit.trim().to_owned()).filter(|commit| is_name(commit))
    }

    /// Notes which commit a revision is.
    pub(crate) fn set_commit(&self, revision: &str, commit: &str) -> Result<()> {
        let path = self.0.join("refs").join(revision);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, commit)
    }

    /// A file of a commit, if it is there.
    pub(crate) fn file(&self, commit: &str, file: &str) -> Option<PathBuf> {
        Some(self.0.join("snapshots").join(commit).join(file)).filter(|path| path.is_file())
    }

    /// The files that are there of a revision.
    pub(crate) fn files(&self, revision: &str) -> Vec<String> {
        let mut files = Vec::new();
        if let Some(commit) = self.commit(revision) {
            listed(&self.0.join("snapshots").join(commit), "", 8, &mut files);
        }
        files
    }

    /// The contents with an etag, and where they are while they come.
    pub(crate) fn contents(&self, etag: &str) -> (PathBuf, PathBuf) {
        let blobs = self.0.join("blobs");
        (blobs.join(etag), blobs.join(format!("{etag}{PART}")))
    }

    /// Makes contents the file of a commit.
    pub(crate) fn link(&self, commit: &str, file: &str, etag: &str) -> Result<PathBuf> {
        let path = self.0.join("snapshots").join(commit).join(file);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        if path.is_file() {
            return Ok(path);
        }
        if path.is_symlink() {
            // What it leads to was deleted.
            std::fs::remove_file(&path)?;
        }
        let up = "../".repeat(2 + file.matches('/').count());
        let linked = symlink(Path::new(&format!("{up}blobs/{etag}")), &path);
        // Windows lets not everybody make links, and another process may have made this one.
        match linked {
            Err(_) if path.is_file() => Ok(path),
            Err(_) if cfg!(windows) => std::fs::rename(self.contents(etag).0, &path).map(|()| path),
            linked => linked.map(|()| path),
        }
    }
}

#[cfg(unix)]
use std::os::unix::fs::symlink;

#[cfg(windows)]
fn symlink(to: &Path, path: &Path) -> Result<()> {
    let to = to.to_string_lossy().replace('/', "\\");
    std::os::windows::fs::symlink_file(to, path)
}

#[cfg(not(any(unix, windows)))]
fn symlink(_: &Path, _: &Path) -> Result<()> {
    Err(std::io::Error::other("this system has no links"))
}

/// The files in a folder and its folders, down to a depth.
fn listed(folder: &Path, before: &str, depth: usize, files: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let path = entry.path();
        if path.is_file() {
            files.push(format!("{before}{name}"));
        } else if path.is_dir() && depth > 0 {
            listed(&path, &format!("{before}{name}/"), depth - 1, files);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_elsewhere_is_no_name() {
        for name in ["5f3c-1a2b", "da39a3ee5e6b4b0d3255bfef95601890afd80709", "abc==", "1.2"] {
            assert!(is_name(name), "{name}");
        }
        for name in
            ["", ".", "..", ".hidden", "../x", "a/b", "a\\b", "a:b", "a b", "x.diptych-part", "\u{e4}"]
        {
            assert!(!is_name(name), "{name}");
        }
        assert!(!is_name(&"a".repeat(201)));
    }
}
