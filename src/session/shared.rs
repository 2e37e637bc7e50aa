//! What the sessions of one network for several extents have in common: constants, packed and uploaded once, and buffers
//! for the values of a run.

use super::output_memory::OutputMemory;
use super::sets::Sets;
use super::value_buffers::ValueBuffers;
use crate::cpu::shelf::Shelves;
use crate::device::Slice;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::host::HostTensor;
use crate::layout::Layout;
use crate::lower::{CompiledKernels, PackedAs};
use crate::sync::{Mutex, lock};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// What sessions share on a device, by what it was made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A state by its place among those of a graph.
    State { index: usize, bytes: u64 },
    /// A constant as the graph has it, or in halves.
    Rows { place: (usize, Layout), dims: Dims, dtype: DType, halves: bool },
    /// A constant as a kernel reads it.
    Packed(PackedAs),
}

/// Constants of sessions that are alive, and buffers that one session uses at a time.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// What kernels of the CPU have packed.
    pub(super) shelves: Shelves,
    /// Buffers of runs on the CPU.
    pub(super) sets: Arc<Sets>,
    /// Buffers on a device.
    pub(super) slots: ValueBuffers,
    /// Memory of large outputs.
    spare: OnceLock<Arc<OutputMemory>>,
    /// Kernels that are compiled.
    pub(super) known: CompiledKernels,
    /// What lies on a device, by what it was made of.
    uploaded: Mutex<HashMap<Key, Weak<Uploaded>>>,
    /// Whether they have one copy of the states.
    keeps_states: AtomicBool,
}

/// A constant on a device.
#[derive(Debug)]
pub(super) struct Uploaded {
    pub(super) slice: Slice,
    /// What it was made of, which stays where it is meanwhile: its place is a part of the key.
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

    /// The key of a state by its place among those of a graph, if sessions share it.
    pub(super) fn state_key(&self, index: usize, bytes: u64) -> Option<Key> {
        self.keeps_states().then_some(Key::State { index, bytes })
    }

    /// Bytes of the states that sessions share.
    pub(super) fn state_bytes(&self) -> u64 {
        let uploaded = lock(&self.uploaded);
        let states = uploaded.iter().filter(|(key, _)| matches!(key, Key::State { .. }));
        states.filter_map(|(_, state)| Some(state.upgrade()?.slice.bytes())).sum()
    }

    /// Memory of large outputs of any session, of which there are so many.
    pub(super) fn spare(&self, outputs: usize) -> Arc<OutputMemory> {
        Arc::clone(self.spare.get_or_init(|| Arc::new(OutputMemory::new(outputs))))
    }

    /// What has this key, if some session has it.
    pub(super) fn uploaded(&self, key: &Key) -> Option<Arc<Uploaded>> {
        lock(&self.uploaded).get(key).and_then(Weak::upgrade)
    }

    /// Lets other sessions have a constant, as long as somebody holds it.
    pub(super) fn keep(&self, key: Key, slice: Slice, tensor: HostTensor) -> Arc<Uploaded> {
        let uploaded = Arc::new(Uploaded { slice, _tensor: tensor });
        lock(&self.uploaded).insert(key, Arc::downgrade(&uploaded));
        uploaded
    }

    /// Bytes of the buffers for values, where sessions want so many of each.
    pub(super) fn bytes(&self, wanted: &[u64]) -> u64 {
        match self.slots.bytes() {
            0 => wanted.iter().sum(),
            on_device => on_device,
        }
    }

    /// Forgets what no session has any more. `wanted`: bytes of the buffers that the remaining ones want.
    pub(super) fn sweep(&self, wanted: &[u64]) {
        self.sets.shrink(wanted);
        self.slots.shrink(wanted);
        self.shelves.sweep();
        lock(&self.uploaded).retain(|_, uploaded| uploaded.strong_count() > 0);
    }
}
