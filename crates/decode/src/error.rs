//! Why outputs or a picture cannot be read.

use std::error::Error as StdError;
use std::fmt;

/// What this crate's functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why outputs or a picture cannot be read: what was found and what was wanted.
#[derive(Debug)]
pub struct Error {
    text: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Error { text: text.into(), source: None }
    }

    /// An error with the error that it follows from.
    #[cfg(feature = "pictures")]
    pub(crate) fn caused(text: impl Into<String>, source: impl StdError + Send + Sync + 'static) -> Self {
        Error { text: text.into(), source: Some(Box::new(source)) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
