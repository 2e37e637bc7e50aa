//! Values that show elements of others.

use crate::graph::Value;
use std::collections::HashMap;

/// A value that shows elements of another one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Alias {
    /// The value that holds the elements: no alias itself.
    pub(crate) of: Value,
    /// Its first element there.
    pub(crate) offset: usize,
}

/// The values of a network that show elements of others.
#[derive(Debug, Default)]
pub(super) struct Aliases(HashMap<Value, Alias>);

impl Aliases {
    /// Where the elements of `value` are.
    pub(super) fn resolve(&self, value: Value) -> Alias {
        self.0.get(&value).copied().unwrap_or(Alias { of: value, offset: 0 })
    }

    /// Notes that `value` shows elements of `of` from `offset` on.
    pub(super) fn insert(&mut self, value: Value, of: Value, offset: usize) {
        let alias = self.resolve(of);
        self.0.insert(value, Alias { of: alias.of, offset: alias.offset + offset });
    }

    /// Has `value`, and all that showed elements of it, show the elements of `of`: the value that holds these.
    pub(super) fn show(&mut self, value: Value, of: Value) -> Value {
        let Alias { of, offset } = self.resolve(of);
        let shown = self.0.values_mut().filter(|alias| alias.of == value);
        shown.for_each(|alias| *alias = Alias { of, offset: offset + alias.offset });
        self.0.insert(value, Alias { of, offset });
        of
    }

    /// Has all that showed elements of `value` from `begin` on show those of `of`, which holds them.
    pub(super) fn show_part(&mut self, value: Value, of: Value, begin: usize) {
        for alias in self.0.values_mut().filter(|alias| alias.of == value && alias.offset >= begin) {
            *alias = Alias { of, offset: alias.offset - begin };
        }
    }
}
