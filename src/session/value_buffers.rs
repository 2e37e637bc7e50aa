//! Buffers for values on a device, which the plans of a session use one after the other.
//!
//! Runs take place in the order in which they were submitted, and what a run reads is copied behind its last kernel: what
//! is still under way is not overwritten, whose plan it is.

use crate::device::{Buffer, Device, Memory};
use crate::error::Result;
use crate::sync::{Mutex, lock};
use std::sync::{Arc, Weak};

/// The buffers that plans take from now on, each as large as the largest plan wants it.
#[derive(Debug, Default)]
pub(super) struct ValueBuffers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Nothing where none is large enough for the next plan, or it was too large for all.
    current: Vec<Option<Arc<Buffer>>>,
    /// All that some plan may have.
    made: Vec<Weak<Buffer>>,
}

impl ValueBuffers {
    /// Buffers of at least so many bytes each. Plans have their largest one first, so that what one has grown serves the
    /// others. A plan that has smaller ones keeps them until it is asked for these.
    pub(super) fn take(&self, device: &dyn Device, wanted: &[u64]) -> Result<Vec<Arc<Buffer>>> {
        let mut state = lock(&self.0);
        let places = state.current.len().max(wanted.len());
        state.current.resize(places, None);
        let mut taken = Vec::with_capacity(wanted.len());
        for (place, &bytes) in wanted.iter().enumerate() {
            let known = state.current.get(place).cloned().flatten();
            let buffer = match known.filter(|known| known.bytes() >= bytes) {
                Some(known) => known,
                None => {
                    let buffer = Arc::new(device.alloc(bytes, Memory::Device)?);
                    state.made.retain(|made| made.strong_count() > 0);
                    state.made.push(Arc::downgrade(&buffer));
                    if let Some(slot) = state.current.get_mut(place) {
                        *slot = Some(Arc::clone(&buffer));
                    }
                    buffer
                }
            };
            taken.push(buffer);
        }
        Ok(taken)
    }

    /// Whether a plan that took these would be given the same again.
    pub(super) fn are(&self, taken: &[Arc<Buffer>]) -> bool {
        let state = lock(&self.0);
        let is = |(own, current): (&Arc<Buffer>, &Option<Arc<Buffer>>)| {
            current.as_ref().is_some_and(|current| Arc::ptr_eq(own, current))
        };
        taken.len() <= state.current.len() && taken.iter().zip(&state.current).all(is)
    }

    /// Bytes of all that plans have, or will be given.
    pub(super) fn bytes(&self) -> u64 {
        lock(&self.0).made.iter().filter_map(Weak::upgrade).map(|buffer| buffer.bytes()).sum()
    }

    /// Gives no plan more than twice what the largest one wants.
    pub(super) fn shrink(&self, wanted: &[u64]) {
        let mut state = lock(&self.0);
        for (place, slot) in state.current.iter_mut().enumerate() {
            let wanted = wanted.get(place).copied().unwrap_or(0);
            if slot.as_ref().is_some_and(|slot| slot.bytes() > wanted.saturating_mul(2)) {
                *slot = None;
            }
        }
    }
}
