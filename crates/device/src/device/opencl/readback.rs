//! What a run has read, where it lies.

use super::Inner;
use super::staging::Pinned;
use crate::device::Readback;
use std::sync::Arc;

/// The parts of a block.
pub(super) fn parts<'a>(block: &'a [u8], places: &[(usize, usize)]) -> Vec<&'a [u8]> {
    places.iter().map(|&(at, length)| &block[at..at + length]).collect()
}

/// What a run read, in the host's memory.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) bytes: Vec<u8>,
    /// Offset and length of each read.
    pub(super) places: Vec<(usize, usize)>,
}

impl Readback for Read {
    fn parts(&self) -> Vec<&[u8]> {
        parts(&self.bytes, &self.places)
    }
}

/// What a run read, in a block of pinned memory that is kept for other runs once this is dropped.
pub(super) struct InPinned {
    pub(super) device: Arc<Inner>,
    pub(super) block: Option<Pinned>,
    pub(super) bytes: usize,
    pub(super) places: Vec<(usize, usize)>,
}

impl std::fmt::Debug for InPinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} buffers in pinned memory", self.places.len())
    }
}

impl Readback for InPinned {
    fn parts(&self) -> Vec<&[u8]> {
        self.block.as_ref().map_or_else(Vec::new, |block| parts(block.bytes(self.bytes), &self.places))
    }
}

impl Drop for InPinned {
    fn drop(&mut self) {
        if let (Some(staging), Some(block)) = (&self.device.staging, self.block.take()) {
            staging.keep([block], []);
        }
    }
}
