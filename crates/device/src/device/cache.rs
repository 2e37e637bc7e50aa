//! Compiled kernels on disk, so that a driver compiles a kernel once and not at each start.
//!
//! One file for each kernel, in the folder `kernels` of the directory that also holds the tuner's
//! record. Its name is the hash of all that decides what a driver makes of a text: the API, the
//! device, the driver, the options and the text itself. What lies in it is what the driver gave
//! (an OpenCL program binary, a Vulkan pipeline cache), behind a hash of the key and these bytes.
//!
//! | event | what comes of it |
//! |---|---|
//! | a file is damaged, cut short, or another kernel's | it is not used, and replaced by the next compilation |
//! | something else has its name: a pipe, a device, a link | the same |
//! | the driver refuses what it once gave | the text is compiled, and the file replaced |
//! | several processes write one file | each replaces it whole; the last one stays |
//! | the folder cannot be read or written | every start compiles; a line in the log |
//! | the folder grows beyond its bound | the files that were longest unused go |

use crate::error::{Error, Result};
use crate::sorted;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Names the directory of all that is kept on disk.
const VARIABLE: &str = "DIPTYCH_CACHE_DIR";

/// The folder of compiled kernels in it.
const FOLDER: &str = "kernels";

/// How a file begins. Its last letter goes up when the format changes.
const MAGIC: &[u8; 16] = b"diptych kernel 2";

/// Bytes of a hash.
const HASH_BYTES: usize = 32;

/// Bytes before what the driver gave.
const HEADER_BYTES: u64 = (MAGIC.len() + HASH_BYTES) as u64;

/// Bytes of all files together.
const MAX_CACHE_BYTES: u64 = 256 << 20;

/// Bytes of one file. Drivers give from some kilobytes to about a megabyte for a kernel.
const MAX_FILE_BYTES: u64 = 32 << 20;

/// `DIPTYCH_CACHE_DIR` if it is set, else `diptych` in the platform's cache directory.
pub fn default_dir() -> Result<PathBuf> {
    if let Some(directory) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        return Ok(directory.into());
    }
    platform_dir().map_err(|reason| {
        Error::unsupported("a default cache directory", format!("{reason}; set {VARIABLE}"))
    })
}

#[cfg(feature = "disk")]
fn platform_dir() -> Result<PathBuf, String> {
    use etcetera::BaseStrategy;
    let base = etcetera::base_strategy::choose_native_strategy().map_err(|error| error.to_string())?;
    Ok(base.cache_dir().join("diptych"))
}

#[cfg(not(feature = "disk"))]
fn platform_dir() -> Result<PathBuf, String> {
    Err("the crate was built without the feature `disk`".to_owned())
}

/// The compiled kernels in one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelCache {
    folder: PathBuf,
    bound: u64,
}

/// What a compiled kernel is found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheKey(blake3::Hash);

impl CacheKey {
    /// The key of all `parts` in this order.
    pub fn of(parts: &[&str]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            // With its length, so that no two lists of parts are one text.
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        CacheKey(hasher.finalize())
    }
}

impl KernelCache {
    /// The kernels in `directory`, which need not be there yet.
    pub fn within(directory: &Path) -> Self {
        KernelCache { folder: directory.join(FOLDER), bound: MAX_CACHE_BYTES }
    }

    fn path(&self, key: CacheKey) -> PathBuf {
        self.folder.join(key.0.to_hex().as_str())
    }

    /// Whether there is a file of `key`, whole or not.
    #[cfg(feature = "opencl")]
    pub(crate) fn has(&self, key: CacheKey) -> bool {
        self.path(key).exists()
    }

    /// What was kept under `key`, if it is there and whole.
    pub fn get(&self, key: CacheKey) -> Option<Vec<u8>> {
        let path = self.path(key);
        let contents = match read(&path) {
            Ok(contents) => contents?,
            Err(error) => {
                tracing::warn!("{}: {error}: the kernel is compiled anew", path.display());
                return None;
            }
        };
        let Some(bytes) = unsealed(key, &contents) else {
            tracing::warn!("{} is not whole, or another kernel's: it is compiled anew", path.display());
            return None;
        };
        // Its age decides what to remove first; a read-only folder keeps the old one.
        #[cfg(feature = "disk")]
        let _ =
            File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(bytes.to_vec())
    }

    /// Keeps `bytes` under `key`. That it fails is no error of the kernel's: it is logged.
    pub fn put(&self, key: CacheKey, bytes: &[u8]) {
        if let Err(error) = self.write(key, bytes).and_then(|()| self.trim()) {
            tracing::warn!("{}: {error}", self.folder.display());
        }
    }

    fn write(&self, key: CacheKey, bytes: &[u8]) -> std::io::Result<()> {
        if bytes.len() as u64 > MAX_FILE_BYTES - HEADER_BYTES {
            return Err(std::io::Error::other(format!("{} bytes are too many to keep", bytes.len())));
        }
        std::fs::create_dir_all(&self.folder)?;
        crate::disk::replace(&self.path(key), ".kernel-", false, |file| {
            file.write_all(MAGIC)?;
            file.write_all(seal(key, bytes).as_bytes())?;
            file.write_all(bytes)
        })
    }

    /// Removes the files that were longest unused, until three quarters of the bound are left.
    fn trim(&self) -> std::io::Result<()> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            // Another process may be removing it.
            let Ok((path, about)) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?))) else {
                continue;
            };
            if about.is_file() {
                files.push((about.modified().unwrap_or(SystemTime::UNIX_EPOCH), about.len(), path));
            }
        }
        let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        if bytes <= self.bound {
            return Ok(());
        }
        sorted::sort(&mut files, Ord::cmp);
        for (_, length, path) in files {
            if bytes <= self.bound / 4 * 3 {
                break;
            }
            if std::fs::remove_file(path).is_ok() {
                bytes -= length;
            }
        }
        Ok(())
    }
}

/// The contents of the file at `path`; none if there is none.
///
/// # Errors
/// If it is not a regular file of at most [`MAX_FILE_BYTES`] bytes: to open a pipe would wait for its writer,
/// and a device has no end.
fn read(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let about = match path.symlink_metadata() {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !about.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    if about.len() > MAX_FILE_BYTES {
        return Err(std::io::Error::other(format!(
            "{} bytes, at most {MAX_FILE_BYTES} are read",
            about.len()
        )));
    }
    let mut contents = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES).read_to_end(&mut contents)?;
    Ok(Some(contents))
}

/// The hash that says that `bytes` are whole and those of `key`.
fn seal(key: CacheKey, bytes: &[u8]) -> blake3::Hash {
    blake3::keyed_hash(key.0.as_bytes(), bytes)
}

/// The bytes of a file whose beginning and hash are right.
fn unsealed(key: CacheKey, contents: &[u8]) -> Option<&[u8]> {
    let (hash, bytes) = contents.strip_prefix(MAGIC)?.split_at_checked(HASH_BYTES)?;
    (seal(key, bytes).as_bytes() == hash).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(bound: u64) -> (tempfile::TempDir, KernelCache) {
        let directory = tempfile::tempdir().expect("a directory");
        let cache = KernelCache { bound, ..KernelCache::within(directory.path()) };
        (directory, cache)
    }

    #[test]
    fn what_was_put_is_got_and_nothing_else() {
        let (_directory, cache) = cache(MAX_CACHE_BYTES);
        let key = CacheKey::of(&["gpu", "driver", "text"]);
        assert_eq!(cache.get(key), None);
        cache.put(key, b"binary");
        assert_eq!(cache.get(key).as_deref(), Some(&b"binary"[..]));
        for other in [&["gpu", "driver2", "text"][..], &["gpu", "drivertext"], &["gpudriver", "", "text"]] {
            assert_ne!(CacheKey::of(other), key);
            assert_eq!(cache.get(CacheKey::of(other)), None);
        }
        cache.put(key, b"");
        assert_eq!(cache.get(key).as_deref(), Some(&b""[..]), "replaced as a whole");
    }

    #[test]
    fn a_damaged_file_is_ignored_and_replaced() {
        let (_directory, cache) = cache(MAX_CACHE_BYTES);
        let key = CacheKey::of(&["text"]);
        cache.put(key, b"a binary of some length");
        let whole = std::fs::read(cache.path(key)).expect("the file");
        let mut damages: Vec<Vec<u8>> = (0..whole.len()).map(|length| whole[..length].to_vec()).collect();
        damages.extend((0..whole.len()).map(|place| {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            damaged
        }));
        damages.push([&whole[..], b"more"].concat());
        for damaged in damages {
            std::fs::write(cache.path(key), &damaged).expect("damage");
            assert_eq!(cache.get(key), None, "{damaged:?}");
        }
        cache.put(key, b"a binary of some length");
        assert_eq!(std::fs::read(cache.path(key)).expect("the file"), whole);
    }

    #[test]
    fn the_file_of_another_kernel_is_ignored_and_replaced() {
        let (_directory, cache) = cache(MAX_CACHE_BYTES);
        let keys = ["one", "two"].map(|text| CacheKey::of(&["gpu", text]));
        cache.put(keys[0], b"one's binary");
        cache.put(keys[1], b"two's binary");
        let (one, two) = (cache.path(keys[0]), cache.path(keys[1]));
        let between = one.with_extension("between");
        for (from, to) in [(&one, &between), (&two, &one), (&between, &two)] {
            std::fs::rename(from, to).expect("swapped");
        }
        assert_eq!(keys.map(|key| cache.get(key)), [None, None]);
        cache.put(keys[0], b"one's binary");
        assert_eq!(cache.get(keys[0]).as_deref(), Some(&b"one's binary"[..]));
    }

    #[cfg(unix)]
    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let (directory, cache) = cache(MAX_CACHE_BYTES);
        let key = CacheKey::of(&["text"]);
        cache.put(key, b"binary");
        let path = cache.path(key);
        let whole = directory.path().join("whole");
        std::fs::rename(&path, &whole).expect("moved");
        let pipe = |path: &Path| {
            let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo");
            assert!(made.success());
        };
        let hole = |path: &Path| File::create(path).and_then(|file| file.set_len(1 << 40)).expect("a hole");
        let link = |to: &Path, path: &Path| std::os::unix::fs::symlink(to, path).expect("a link");
        let plants: [&dyn Fn(&Path); 5] =
            [&pipe, &hole, &|path| link(Path::new("/dev/zero"), path), &|path| link(&whole, path), &|path| {
                link(Path::new("/nonexistent"), path)
            }];
        for (index, plant) in plants.into_iter().enumerate() {
            std::fs::remove_file(&path)
                .or_else(|error| if index == 0 { Ok(()) } else { Err(error) })
                .expect("free");
            plant(&path);
            assert_eq!(cache.get(key), None, "plant {index}");
            cache.put(key, b"binary");
            assert_eq!(cache.get(key).as_deref(), Some(&b"binary"[..]), "plant {index} is replaced");
        }
        assert!(whole.is_file(), "what a link leads to is left alone");
    }

    #[test]
    fn the_longest_unused_go_first() {
        let (_directory, cache) = cache(1000);
        let keys: Vec<CacheKey> =
            (0..10).map(|index: usize| CacheKey::of(&[index.to_string().as_str()])).collect();
        for (age, &key) in keys.iter().enumerate() {
            cache.put(key, &[0; 100]);
            let file = File::options().append(true).open(cache.path(key));
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1 + age as u64);
            if let Ok(file) = file {
                file.set_modified(time).expect("a time");
            }
        }
        let kept: Vec<bool> = keys.iter().map(|&key| cache.path(key).exists()).collect();
        assert!(kept[9] && !kept[0], "{kept:?}");
        let first = kept.iter().position(|&kept| kept).expect("one is kept");
        assert!(kept[first..].iter().all(|&kept| kept), "{kept:?}");
        assert!(kept.iter().filter(|&&kept| kept).count() * 148 <= 1000);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_no_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        std::fs::write(&file, b"not a folder").expect("a file");
        let cache = KernelCache::within(&file);
        let key = CacheKey::of(&["text"]);
        cache.put(key, b"binary");
        assert_eq!(cache.get(key), None);
    }
}
