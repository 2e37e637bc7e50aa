//! What the sessions of one network for several extents have in common: constants, packed and uploaded once.

use crate::cpu::shelf::Shelves;
use crate::device::Slice;
use crate::host::HostTensor;
use crate::sync::{Mutex, lock};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Constants of sessions that are alive.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// What kernels of the CPU have packed.
    pub(super) shelves: Shelves,
    /// What lies on a device, by what it was made of.
    uploaded: Mutex<HashMap<String, Weak<Uploaded>>>,
    /// Whether they have one copy of the states.
    keeps_states: AtomicBool,
}

/// A constant on a device.
#[derive(Debug)]
pub(super) struct Uploaded {
    pub(super) slice: Slice,
    /// What it was made of, which stays where it is meanwhile: its place is a part of the name.
    _tensor: HostTensor,
}

impl Shared {
    /// Has sessions that are made from now on share their states.
    pub(super) fn keep_states(&self) {
        self.keeps_states.store(true, Ordering::Relaxed);
    }

    pub(super) fn keeps_states(&self) -> bool {
        self.keeps_states.load(Ordering::Relaxed)
    }

    /// The name of a state by its place among those of a graph, if sessions share it.
    pub(super) fn state_name(&self, index: usize, bytes: u64) -> Option<String> {
        self.keeps_states().then(|| format!("state {index} of {bytes} bytes"))
    }

    /// The constant of this name, if some session has it.
    pub(super) fn known(&self, name: &str) -> Option<Arc<Uploaded>> {
        lock(&self.uploaded).get(name).and_then(Weak::upgrade)
    }

    /// Lets other sessions have a constant, as long as somebody holds it.
    pub(super) fn keep(&self, name: String, slice: Slice, tensor: HostTensor) -> Arc<Uploaded> {
        let uploaded = Arc::new(Uploaded { slice, _tensor: tensor });
        lock(&self.uploaded).insert(name, Arc::downgrade(&uploaded));
        uploaded
    }

    /// Forgets what no session has any more.
    pub(super) fn sweep(&self) {
        self.shelves.sweep();
        lock(&self.uploaded).retain(|_, uploaded| uploaded.strong_count() > 0);
    }
}
