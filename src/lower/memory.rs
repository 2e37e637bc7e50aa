//! The memory plan: which values of a network share a buffer.
//!
//! Values whose lifetimes do not overlap may share one. The plan is greedy by size (Pisarchyk and
//! Lee, *Efficient Memory Management for Deep Neural Net Inference*, 2020, "shared objects"): the
//! largest value first, each into the smallest buffer that is free during its lifetime.

use crate::sorted;

/// A value's size and the steps between which it must keep its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lifetime {
    /// Its size.
    pub(crate) bytes: u64,
    /// The step that writes it.
    pub(crate) first: usize,
    /// The last step that reads it (or writes it, if none reads it).
    pub(crate) last: usize,
}

impl Lifetime {
    fn overlaps(&self, other: &Lifetime) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Buffers, and which values share each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemoryPlan {
    /// Bytes of each buffer, the largest first.
    pub(crate) buffers: Vec<u64>,
    /// The buffer of each value.
    pub(crate) place: Vec<usize>,
}

/// The bytes that no plan can do without: the most that is alive at one step.
pub(crate) fn least(lifetimes: &[Lifetime]) -> u64 {
    // What begins at a step is there before what ends at it goes.
    let begin = lifetimes.iter().map(|lifetime| (lifetime.first, false, lifetime.bytes));
    let end = lifetimes.iter().map(|lifetime| (lifetime.last, true, lifetime.bytes));
    let mut events: Vec<(usize, bool, u64)> = begin.chain(end).collect();
    sorted::sort(&mut events, Ord::cmp);
    let (mut alive, mut most) = (0u64, 0);
    for (_, ends, bytes) in events {
        alive = if ends { alive.saturating_sub(bytes) } else { alive.saturating_add(bytes) };
        most = most.max(alive);
    }
    most
}

/// Places every value.
pub(crate) fn plan(lifetimes: &[Lifetime]) -> MemoryPlan {
    let mut order: Vec<usize> = (0..lifetimes.len()).collect();
    sorted::sort_by_key(&mut order, |&value| (std::cmp::Reverse(lifetimes[value].bytes), value));
    let mut buffers: Vec<(u64, Vec<usize>)> = Vec::new();
    let mut place = vec![0; lifetimes.len()];
    for value in order {
        let lifetime = lifetimes[value];
        let free = buffers
            .iter()
            .enumerate()
            .filter(|(_, (_, values))| values.iter().all(|&value| !lifetimes[value].overlaps(&lifetime)))
            .min_by_key(|(_, (bytes, _))| *bytes)
            .map(|(buffer, _)| buffer);
        let buffer = free.unwrap_or_else(|| {
            buffers.push((lifetime.bytes, Vec::new()));
            buffers.len() - 1
        });
        // Larger values were placed first, so the buffer is large enough.
        buffers[buffer].1.push(value);
        place[value] = buffer;
    }
    MemoryPlan { buffers: buffers.into_iter().map(|(bytes, _)| bytes).collect(), place }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_chain_needs_two_buffers() {
        let chain: Vec<Lifetime> =
            (0..10).map(|step| Lifetime { bytes: 100 + step as u64, first: step, last: step + 1 }).collect();
        let plan = plan(&chain);
        assert_eq!(plan.buffers, [109, 108]);
    }

    #[test]
    fn a_residual_keeps_its_buffer() {
        let lifetimes = [
            Lifetime { bytes: 64, first: 0, last: 3 },
            Lifetime { bytes: 64, first: 1, last: 2 },
            Lifetime { bytes: 64, first: 2, last: 3 },
            Lifetime { bytes: 64, first: 3, last: 4 },
        ];
        let plan = plan(&lifetimes);
        assert_eq!(plan.buffers.len(), 3);
        assert_eq!(least(&lifetimes), 192);
        assert_ne!(plan.place[0], plan.place[3], "a step's output is never its input");
    }

    proptest! {
        #[test]
        fn values_of_a_buffer_never_overlap_and_always_fit(
            values in prop::collection::vec((1u64..1000, 0usize..20, 0usize..6), 1..40)
        ) {
            let lifetimes: Vec<Lifetime> = values
                .into_iter()
                .map(|(bytes, first, length)| Lifetime { bytes, first, last: first + length })
                .collect();
            let plan = plan(&lifetimes);
            prop_assert!(plan.buffers.is_sorted_by(|one, next| one >= next));
            for (i, a) in lifetimes.iter().enumerate() {
                prop_assert!(plan.buffers[plan.place[i]] >= a.bytes);
                for (j, b) in lifetimes.iter().enumerate().skip(i + 1) {
                    prop_assert!(plan.place[i] != plan.place[j] || !a.overlaps(b));
                }
            }
            let shared: u64 = plan.buffers.iter().sum();
            prop_assert!(shared >= least(&lifetimes));
            prop_assert!(shared <= lifetimes.iter().map(|lifetime| lifetime.bytes).sum());
        }
    }
}
