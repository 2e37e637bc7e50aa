//! Keeps threads that share a device from mixing their commands.

use super::lock;
use crate::error::{Error, Result};
use std::sync::{Mutex, MutexGuard};
use std::thread::{self, ThreadId};

/// A lock that refuses a thread which would wait for itself.
///
/// It is held while a sequence of commands is enqueued and, as no command may touch a mapped
/// buffer, while the host works on one.
#[derive(Default)]
pub(super) struct Order {
    commands: Mutex<()>,
    /// The thread that is inside [`crate::device::Device::map`].
    mapping: Mutex<Option<ThreadId>>,
}

impl Order {
    /// Waits until no other thread enqueues or maps.
    ///
    /// # Errors
    /// If this thread is inside `map`: it would wait for itself.
    pub(super) fn enter(&self) -> Result<MutexGuard<'_, ()>> {
        if *lock(&self.mapping) == Some(thread::current().id()) {
            return Err(Error::unsupported(
                "an OpenCL command inside Device::map",
                "the buffer is the host's until the closure returns",
            ));
        }
        Ok(lock(&self.commands))
    }

    /// Waits until no other thread enqueues or maps, and notes that this thread maps a buffer until the result is dropped.
    ///
    /// # Errors
    /// If this thread is inside `map` already: it would wait for itself.
    pub(super) fn enter_mapping(&self) -> Result<Mapping<'_>> {
        let commands = self.enter()?;
        *lock(&self.mapping) = Some(thread::current().id());
        Ok(Mapping { order: self, _commands: commands })
    }
}

/// Held while the host works on a mapped buffer.
pub(super) struct Mapping<'a> {
    order: &'a Order,
    _commands: MutexGuard<'a, ()>,
}

impl Drop for Mapping<'_> {
    fn drop(&mut self) {
        // Runs before the commands are released, so it clears this thread's mark and no other's.
        *lock(&self.order.mapping) = None;
    }
}
