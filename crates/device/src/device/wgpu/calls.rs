//! Counts of what the crate asks of wgpu, for applications that watch what a frame costs, and for tests.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often the crate has called wgpu since the device was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WgpuCalls {
    /// Submissions to the queue.
    pub submits: u64,
    /// Polls of the device.
    pub polls: u64,
    /// Buffers mapped.
    pub maps: u64,
    /// Copies between buffers, and writes from the host.
    pub copies: u64,
}

/// The counters of a device.
#[derive(Debug, Default)]
pub(super) struct Counters {
    submits: AtomicU64,
    polls: AtomicU64,
    maps: AtomicU64,
    copies: AtomicU64,
}

impl Counters {
    pub(super) fn submit(&self) {
        self.submits.fetch_add(1, Ordering::Relaxed);
    }

    #[cfg(not(target_family = "wasm"))]
    pub(super) fn poll(&self) {
        self.polls.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn map(&self) {
        self.maps.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn copy(&self) {
        self.copies.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn calls(&self) -> WgpuCalls {
        let [submits, polls, maps, copies] = [&self.submits, &self.polls, &self.maps, &self.copies]
            .map(|counter| counter.load(Ordering::Relaxed));
        WgpuCalls { submits, polls, maps, copies }
    }
}
