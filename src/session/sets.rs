//! Buffers for the values of runs on the CPU, kept from one run to the next.

use crate::cpu::aligned::Aligned;
use crate::error::Result;
use crate::sync::{Mutex, lock};

/// Sets of buffers that are kept for later runs.
pub(super) const MAX_IDLE_SETS: usize = 4;

/// The buffers of one run.
pub(super) type Buffers = Vec<Aligned>;

/// Sets of buffers that no run uses, which all plans of a session share. A run takes one or makes one, and never waits
/// for another run: a worker that waits for a part of one run may begin the next on the same stack.
#[derive(Debug, Default)]
pub(super) struct Sets(Mutex<Vec<Buffers>>);

impl Sets {
    /// Buffers that no other run uses, of at least so many elements each. Plans have their largest buffer first: a set
    /// that served another one grows least then.
    pub(super) fn take(&self, lengths: &[usize]) -> Result<Buffers> {
        let mut set = lock(&self.0).pop().unwrap_or_default();
        set.resize_with(set.len().max(lengths.len()), Aligned::default);
        for (own, &elements) in set.iter_mut().zip(lengths) {
            if own.len() < elements {
                // What is too small goes before there is more.
                *own = Aligned::default();
                *own = Aligned::try_zeros(elements, "the values of a run")?;
            }
        }
        Ok(set)
    }

    /// Takes back the buffers of a run that is over.
    pub(super) fn put(&self, set: Buffers) {
        let mut idle = lock(&self.0);
        if idle.len() < MAX_IDLE_SETS {
            idle.push(set);
        }
    }

    /// Frees buffers that are more than twice as large as any plan wants: `wanted`, in bytes.
    pub(in crate::session) fn shrink(&self, wanted: &[u64]) {
        for set in lock(&self.0).iter_mut() {
            for (place, own) in set.iter_mut().enumerate() {
                let wanted = wanted.get(place).copied().unwrap_or(0);
                if size_of_val(&**own) as u64 > wanted.saturating_mul(2) {
                    *own = Aligned::default();
                }
            }
        }
    }

    /// How many sets no run uses.
    #[cfg(test)]
    pub(super) fn idle(&self) -> usize {
        lock(&self.0).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_serves_smaller_plans_and_grows_for_larger_ones() {
        let sets = Sets::default();
        let place = |set: &Buffers| set[0].as_ptr();
        let first = sets.take(&[100, 10]).expect("memory");
        let first_place = place(&first);
        let other = sets.take(&[100, 10]).expect("memory");
        assert_ne!(place(&other), first_place);
        sets.put(first);
        let smaller = sets.take(&[50]).expect("memory");
        assert_eq!((place(&smaller), smaller.len()), (first_place, 2));
        sets.put(smaller);
        let larger = sets.take(&[80, 20, 5]).expect("memory");
        assert_eq!(place(&larger), first_place);
        assert_eq!(larger.iter().map(|own| own.len()).collect::<Vec<_>>(), [100, 20, 5]);
        sets.put(larger);
        assert_eq!(sets.idle(), 1);
        sets.shrink(&[4 * 60, 4 * 5]);
        assert_eq!(
            sets.take(&[1]).expect("memory").iter().map(|own| own.len()).collect::<Vec<_>>(),
            [100, 0, 0]
        );
    }
}
