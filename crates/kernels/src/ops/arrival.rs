//! Reductions that end in the work-group that arrives last, in one launch in place of two.
//!
//! Each work-group stores what it has found in scratch memory ([`Binding::scratch`]), passes a barrier, and adds 1 to a
//! counter there. The one that finds that all others have added theirs takes what is stored and goes on; the others end.
//!
//! **Why this is sound.** Neither WGSL nor OpenCL C 1.2 has a fence of more than a work-group: `storageBarrier` and
//! `mem_fence` order what one work-group sees, and their atomic operations are relaxed. So that the counter was read does
//! not say that the values stored before it are seen. What both languages do promise is enough:
//!
//! - *Coherence.* All operations on one atomic word happen in one order, which all work-groups see. So each value is an
//!   atomic word of its own, which holds either the value or nothing, and nothing in between. Zero is nothing: a word is
//!   the complement of an f32's bits, of which only the NaN of all ones is zero, and that is stored as another NaN.
//! - *Progress.* A store that has been executed is seen by another work-group's atomic operation at some time. A taker
//!   that finds zero tries again. All that it waits for was executed before the counter was: it waits for memory, never
//!   for a work-group that has not begun, as a spin lock would.
//!
//! The last one stores zero in the counter, and takes by an exchange with zero, so that the memory is left as it was found:
//! zeros, which it is given at first. The next launch of the queue begins when this one has ended, which both APIs order.
//! The number of attempts has a limit, behind which the result is NaN: a device that breaks these promises gives a wrong
//! result that is seen, and does not hang.

use crate::emit::Binding;
use crate::limits::{Family, Limits};

/// The most words that a work-group takes: what lies in its local memory.
const MOST_WORDS: usize = 2048;

/// The name of the constant in the kernels' texts.
pub(super) const SPINS: &str = "SPINS";

/// How often a word is looked for again. On a CPU what was executed is seen; there all loops of an invocation are
/// counted (`emit/turns.rs`).
pub(super) fn spins(limits: &Limits) -> u32 {
    if limits.family == Family::CpuDriver { 64 } else { 1 << 16 }
}

/// How much a reduction's work-groups share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Words that become one, for each part.
    values: usize,
    /// Parts of what is reduced.
    pub(super) parts: usize,
    /// Elements of a part; the last has what is left.
    pub(super) part: usize,
}

impl Arrival {
    /// For `values` results of `count` elements each, in parts of about `least` or more; `None` of too many results.
    pub(super) fn of(values: usize, count: usize, least: usize) -> Option<Self> {
        let most = MOST_WORDS / values.max(1);
        let parts = count.div_ceil(least).min(most).max(1);
        let part = count.div_ceil(parts).max(1);
        // Without empty parts.
        let parts = count.div_ceil(part).max(1);
        (most > 0).then_some(Arrival { values, parts, part })
    }

    /// Words that the last one takes.
    pub(super) fn words(&self) -> usize {
        self.values * self.parts
    }

    /// The scratch memory of `reductions` of these: for each a counter, then its words.
    pub(super) fn binding(&self, reductions: usize) -> Binding {
        Binding::scratch(reductions * (1 + self.words()))
    }
}

/// Why so many results cannot be made by one work-group.
pub(super) fn too_many(values: usize) -> String {
    format!("{values} results of a work-group, it takes at most {MOST_WORDS} words")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything_and_none_is_empty() {
        for values in [4, 12, 48, 700, 2048] {
            for count in [1, 1023, 1024, 1025, 12_544, 65_536, 1_000_003] {
                let arrival = Arrival::of(values, count, 1024).expect("few values");
                let Arrival { parts, part, .. } = arrival;
                assert!(parts * part >= count && (parts - 1) * part < count, "{values} {count}: {arrival:?}");
                assert!(arrival.words() <= MOST_WORDS && (parts == 1 || part > 512), "{arrival:?}");
            }
        }
        assert_eq!(Arrival::of(2049, 5, 1024), None);
    }
}
