//! Files that are replaced as a whole.

use std::fs::File;
use std::io::Result;
use std::path::Path;

/// Replaces the file at `path` as a whole by what `write` writes to one whose name begins with `prefix`, beside it:
/// as open to others as files are if it is `shared`, else private.
#[cfg(feature = "disk")]
pub fn replace(
    path: &Path,
    prefix: &str,
    shared: bool,
    write: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    if shared {
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder.unwrap_or(Path::new(".")))?;
    write(file.as_file_mut())?;
    file.persist(path).map(|_| ()).map_err(|error| error.error)
}

/// Refused: files are replaced with the feature `disk`.
#[cfg(not(feature = "disk"))]
pub fn replace(
    _path: &Path,
    _prefix: &str,
    _shared: bool,
    _write: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    Err(std::io::Error::new(
        std::io::ErrorKind::Unsupported,
        "the crate was built without the feature `disk`",
    ))
}
