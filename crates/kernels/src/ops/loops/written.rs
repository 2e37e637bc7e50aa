//! The last text of a nest's kernel: planning asks for its statements, and then for the scalars that these name.

use crate::emit::Body;
use crate::ops::spec::Params;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// A kernel's statements.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) body: Body,
    /// The scalars that they name.
    pub(super) params: Params,
    /// Whether these are all of their numbers.
    pub(super) has_all: bool,
}

/// A text, and the invocations of a row that it is for.
type TextFor = (u32, Arc<Written>);

/// The last text, and how many invocations of a row it is for. It follows from the nest, so that it takes no part in comparisons.
#[derive(Debug, Clone, Default)]
pub(super) struct LastText(Arc<Mutex<Option<TextFor>>>);

impl LastText {
    /// The text for `invocations` of a row, which `write` writes if the last one was for another number of them.
    pub(super) fn of(&self, invocations: u32, write: impl FnOnce() -> Written) -> Arc<Written> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, text)) = last.filter(|(own, _)| *own == invocations) {
            return text;
        }
        let text = Arc::new(write());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((invocations, Arc::clone(&text)));
        text
    }
}

impl PartialEq for LastText {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for LastText {}

impl Hash for LastText {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
