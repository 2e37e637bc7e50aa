//! Which rewrites a network is simplified by.

use crate::options::Rewrite;
use std::collections::BTreeSet;

/// Which rewrites may change which units.
pub(crate) struct Rewrites<'a> {
    /// Whether a node of this name stays a unit by itself.
    pub(crate) alone: &'a dyn Fn(&str) -> bool,
    /// The rewrites that are left out.
    pub(crate) without: &'a BTreeSet<Rewrite>,
}

impl Rewrites<'_> {
    /// All rewrites, of all units.
    pub(crate) const ALL: Rewrites<'static> = Rewrites { alone: &|_| false, without: &BTreeSet::new() };

    pub(super) fn has(&self, rewrite: Rewrite) -> bool {
        !self.without.contains(&rewrite)
    }
}
