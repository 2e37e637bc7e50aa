//! Which rewrites a network is simplified by.

use crate::options::{Rewrite, SessionOptions};
use std::collections::BTreeSet;

/// Which rewrites may change which units.
pub(crate) struct Rewrites<'a> {
    /// Whether a node of this name stays a unit by itself.
    pub(crate) alone: &'a dyn Fn(&str) -> bool,
    /// The rewrites that are left out.
    pub(crate) without: &'a BTreeSet<Rewrite>,
    /// Whether quantized operators are computed on floats.
    pub(crate) dequantize: bool,
}

impl<'a> Rewrites<'a> {
    /// All rewrites, of all units.
    pub(crate) const ALL: Rewrites<'static> =
        Rewrites { alone: &|_| false, without: &BTreeSet::new(), dequantize: false };

    /// The rewrites of a session's options.
    pub(crate) fn of(options: &'a SessionOptions, alone: &'a dyn Fn(&str) -> bool) -> Self {
        Rewrites { alone, without: &options.without_rewrites, dequantize: options.dequantize }
    }

    pub(super) fn has(&self, rewrite: Rewrite) -> bool {
        !self.without.contains(&rewrite)
    }
}
