//! Why a file is refused.

use crate::error::Error;
use std::fmt;

/// What was found and what was wanted, before it is known in which file and at which operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::model) struct Reason(String);

impl From<Error> for Reason {
    fn from(error: Error) -> Self {
        Reason(error.to_string())
    }
}

impl From<String> for Reason {
    fn from(message: String) -> Self {
        Reason(message)
    }
}

impl From<&str> for Reason {
    fn from(message: &str) -> Self {
        Reason(message.to_owned())
    }
}

impl From<Reason> for String {
    fn from(reason: Reason) -> Self {
        reason.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A refusal for the reason that the arguments say, which are those of `format!`.
macro_rules! refused {
    ($($message:tt)*) => {
        Err($crate::model::reason::Reason::from(format!($($message)*)))
    };
}
