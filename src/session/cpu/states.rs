//! What runs on the CPU leave to the next ones.

use super::{CpuSession, ValuePlace};
use crate::dims::Dims;
use crate::graph::Key;
use crate::session::cache_state::rows_of;
use crate::sync::{Mutex, lock};
use std::ops::Range;
use std::sync::Arc;

/// The states of a network.
#[derive(Debug)]
pub(super) struct States {
    pub(super) initial: Vec<Arc<[f32]>>,
    pub(super) dims: Vec<Dims>,
    pub(super) held: Mutex<Vec<Arc<[f32]>>>,
    /// What each becomes, where it does.
    pub(super) next: Vec<Option<ValuePlace>>,
    /// Those that a run changes in place, in order: it takes them, and puts them back.
    pub(super) changed: Vec<usize>,
    /// Which of them is the key of random numbers.
    pub(super) key: Option<usize>,
}

impl States {
    pub(super) fn reset(&self) {
        lock(&self.held).clone_from(&self.initial);
    }
}

impl CpuSession {
    /// Takes the states of a session of the same network that ran before. One that has other extents there begins anew.
    pub(in crate::session) fn follow(&self, before: &CpuSession) {
        let states = &self.0.states;
        // Only one of them has them: a state that changes in place is not copied.
        let before = std::mem::replace(&mut *lock(&before.0.states.held), before.0.states.initial.clone());
        let mut before = before.into_iter();
        for (own, initial) in lock(&states.held).iter_mut().zip(&states.initial) {
            let other = before.next().filter(|other| other.len() == initial.len());
            *own = other.unwrap_or_else(|| Arc::clone(initial));
        }
    }

    /// Writes zeros to some places of each cache of `whole` places. The last `others` states are no caches.
    pub(in crate::session) fn clear_places(&self, whole: usize, places: &Range<usize>, others: usize) {
        let states = &self.0.states;
        let caches = states.dims.len().saturating_sub(others);
        for (own, &dims) in lock(&states.held).iter_mut().zip(&states.dims).take(caches) {
            for range in rows_of(dims, whole, places, own.len()) {
                if let Some(row) = Arc::make_mut(own).get_mut(range) {
                    row.fill(0.0);
                }
            }
        }
    }

    /// Draws the random numbers of this key in the next run.
    pub(in crate::session) fn draw_by(&self, key: Key) {
        let states = &self.0.states;
        let mut held = lock(&states.held);
        if let Some(own) = states.key.and_then(|place| held.get_mut(place)) {
            *own = key.map(f32::from_bits).into();
        }
    }
}
