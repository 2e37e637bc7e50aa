//! What runs on the CPU leave to the next ones.

use super::{CpuSession, Place};
use crate::graph::Key;
use crate::sync::{Mutex, lock};
use std::sync::Arc;

/// The states of a network.
#[derive(Debug)]
pub(super) struct States {
    pub(super) initial: Vec<Arc<[f32]>>,
    pub(super) held: Mutex<Vec<Arc<[f32]>>>,
    /// What each becomes, where it does.
    pub(super) next: Vec<Option<Place>>,
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
        let before = lock(&before.0.states.held).clone();
        let states = &self.0.states;
        for (index, (own, initial)) in lock(&states.held).iter_mut().zip(&states.initial).enumerate() {
            let other = before.get(index).filter(|other| other.len() == initial.len());
            *own = Arc::clone(other.unwrap_or(initial));
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
