//! Why a file is refused.

use crate::error::{Error, Hint};
use std::fmt;

/// What was found and what was wanted, before it is known in which file and at which operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::model) struct Reason {
    message: String,
    /// What would help.
    hint: Option<Box<Hint>>,
}

impl Reason {
    /// Adds what would help; it takes the place of an inner reason's hint.
    pub(in crate::model) fn hinted(self, hint: Option<Hint>) -> Self {
        Reason { hint: hint.map(Box::new).or(self.hint), ..self }
    }

    /// Puts `text` before the message.
    pub(in crate::model) fn behind(self, text: impl fmt::Display) -> Self {
        Reason { message: format!("{text}{}", self.message), ..self }
    }

    /// The error of a file, and of its operator.
    pub(in crate::model) fn in_file(self, file: &str, op: Option<(usize, String)>) -> Error {
        Error::Model { file: file.to_owned(), op, message: self.message }.hinted(self.hint.map(|hint| *hint))
    }
}

impl From<Error> for Reason {
    fn from(error: Error) -> Self {
        match error {
            Error::Hinted { source, hint } => {
                Reason { message: source.to_string(), hint: Some(Box::new(hint)) }
            }
            error => error.to_string().into(),
        }
    }
}

impl From<String> for Reason {
    fn from(message: String) -> Self {
        Reason { message, hint: None }
    }
}

impl From<&str> for Reason {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl From<Reason> for String {
    fn from(reason: Reason) -> Self {
        reason.to_string()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| hint.fmt(f))
    }
}

/// A refusal for the reason that the arguments say, which are those of `format!`.
macro_rules! refused {
    ($($message:tt)*) => {
        Err($crate::model::reason::Reason::from(format!($($message)*)))
    };
}
