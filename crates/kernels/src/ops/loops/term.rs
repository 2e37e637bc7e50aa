//! What indices are sums of.

use super::index::Index;
use crate::ops::remap::Rule;
use std::fmt;

/// What is added up.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::ops) enum Term {
    /// The place along an axis.
    Axis(u8),
    /// What an index divided by so many is, rounded down.
    Quotient(Box<Index>, i64),
    /// What is left of it.
    Remainder(Box<Index>, i64),
    /// An index that is from 0 on and below the number wherever it is used: a guard keeps it so.
    Inside(Box<Index>, i64),
    /// The coordinate that the rule for those outside `0 .. n` makes of an index.
    Ruled(Mirror, Box<Index>, i64),
}

/// A rule by which every coordinate has an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::ops) enum Mirror {
    /// The mirror image without the edge.
    Reflect,
    /// The mirror image with the edge.
    Symmetric,
    /// The nearest element.
    Edge,
}

impl Mirror {
    /// The rule of a move, as far as it is one of these.
    pub(in crate::ops) const fn of(rule: &Rule) -> Option<Self> {
        match rule {
            Rule::Reflect => Some(Mirror::Reflect),
            Rule::Symmetric => Some(Mirror::Symmetric),
            Rule::Edge => Some(Mirror::Edge),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Mirror::Reflect => "reflect",
            Mirror::Symmetric => "symmetric",
            Mirror::Edge => "edge",
        }
    }

    pub(super) const fn coordinate(self, at: i64, extent: i64) -> i64 {
        let mirrored = match self {
            Mirror::Reflect if at < 0 => -at,
            Mirror::Reflect if at >= extent => 2 * extent - 2 - at,
            Mirror::Symmetric if at < 0 => -1 - at,
            Mirror::Symmetric if at >= extent => 2 * extent - 1 - at,
            _ => at,
        };
        // Bounded, so that whatever is computed where nothing is read stays an element.
        if mirrored < 0 {
            0
        } else if mirrored >= extent {
            extent - 1
        } else {
            mirrored
        }
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        for (term, factor) in self.terms() {
            let sign = if *factor < 0 || is_first { "" } else { "+" };
            is_first = false;
            write!(f, "{sign}")?;
            if *factor != 1 {
                write!(f, "{factor}")?;
            }
            match term {
                Term::Axis(axis) => write!(f, "i{axis}")?,
                Term::Quotient(of, by) => write!(f, "({of})/{by}")?,
                Term::Remainder(of, by) => write!(f, "({of})%{by}")?,
                Term::Inside(of, most) => write!(f, "({of})in{most}")?,
                Term::Ruled(rule, of, extent) => write!(f, "{}({of})of{extent}", rule.name())?,
            }
        }
        if self.constant() != 0 || is_first {
            let sign = if self.constant() < 0 || is_first { "" } else { "+" };
            write!(f, "{sign}{}", self.constant())?;
        }
        Ok(())
    }
}

impl Term {
    pub(super) fn range(&self, extents: &[usize]) -> [i64; 2] {
        match self {
            Term::Axis(axis) => {
                let extent = extents.get(usize::from(*axis)).copied().unwrap_or(1);
                [0, extent.max(1) as i64 - 1]
            }
            Term::Quotient(of, by) => of.range(extents).map(|end| end.div_euclid(*by)),
            Term::Remainder(_, most) | Term::Ruled(_, _, most) => [0, most - 1],
            Term::Inside(of, most) => {
                let [least, largest] = of.range(extents);
                [least.clamp(0, most - 1), largest.clamp(0, most - 1)]
            }
        }
    }
}
