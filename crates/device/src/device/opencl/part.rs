//! Parts of buffers, released in the reverse order of their making.
//!
//! NVIDIA's driver (580.159) crashes in `clReleaseMemObject` when parts of a buffer that overlap without one holding
//! the other were used by kernels and are released in any other order: in 30 buffers with 6 or 36 random parts each,
//! by creation, size, offset or chance, each order crashed, and only the reverse one did not.

use super::call::{Memory, Owned};
use crate::device::lock;
use crate::error::Result;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// A buffer's memory, with the parts of it that kernels were given.
pub(super) struct BufferMemory {
    parts: Mutex<Parts>,
    /// Behind its parts, which go first.
    memory: Owned<Memory>,
}

/// Where a part begins, and its bytes.
type Region = (u64, u64);

/// Parts in the order of their making. One that nobody uses any more stays until those made after it are gone, and is
/// used again if its region is wanted again.
#[derive(Default)]
struct Parts {
    stack: Vec<(Region, Arc<Owned<Memory>>)>,
    places: HashMap<Region, usize>,
}

/// What a kernel is given: an image, a buffer, or a part of one.
pub(super) enum ArgumentMemory {
    Image(Arc<Owned<Memory>>),
    Whole(Arc<BufferMemory>),
    Part { memory: Arc<Owned<Memory>>, of: Arc<BufferMemory> },
}

impl BufferMemory {
    pub(super) fn new(memory: Owned<Memory>) -> Self {
        BufferMemory { parts: Mutex::default(), memory }
    }

    pub(super) fn memory(&self) -> &Owned<Memory> {
        &self.memory
    }

    /// The part at `region`, made by `make` unless it is there.
    pub(super) fn part(
        self: &Arc<Self>,
        region: Region,
        make: impl FnOnce() -> Result<Owned<Memory>>,
    ) -> Result<ArgumentMemory> {
        let Parts { stack, places } = &mut *lock(&self.parts);
        if let Some((_, memory)) = places.get(&region).and_then(|&place| stack.get(place)) {
            return Ok(ArgumentMemory::Part { memory: Arc::clone(memory), of: Arc::clone(self) });
        }
        let memory = Arc::new(make()?);
        places.insert(region, stack.len());
        stack.push((region, Arc::clone(&memory)));
        Ok(ArgumentMemory::Part { memory, of: Arc::clone(self) })
    }

    /// Releases the parts that nobody uses and after which no part was made that somebody does.
    fn trim(&self) {
        let Parts { stack, places } = &mut *lock(&self.parts);
        while let Some((region, _)) = stack.pop_if(|(_, memory)| Arc::strong_count(memory) == 1) {
            places.remove(&region);
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        while self.stack.pop().is_some() {}
    }
}

impl fmt::Debug for BufferMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.memory.fmt(f)
    }
}

impl ArgumentMemory {
    pub(super) fn memory(&self) -> &Owned<Memory> {
        match self {
            ArgumentMemory::Image(memory) | ArgumentMemory::Part { memory, .. } => memory,
            ArgumentMemory::Whole(whole) => &whole.memory,
        }
    }

    /// Lets it go, with what may be released then.
    pub(super) fn release(self) {
        if let ArgumentMemory::Part { memory, of } = self {
            drop(memory);
            of.trim();
        }
    }
}
