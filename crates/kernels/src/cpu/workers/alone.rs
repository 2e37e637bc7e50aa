//! The caller computes a run by itself.

use std::sync::Mutex;

/// What the caller alone needs to know of other programs.
#[derive(Debug, Default)]
pub struct Load;

/// Threads that a step may be cut for.
pub fn workers() -> usize {
    1
}

/// Does the work of a run of so many operations, on so many threads at most.
pub fn run<T>(_operations: u64, _most: usize, _load: &Mutex<Load>, work: impl FnOnce() -> T) -> T {
    work()
}

/// Does the work with each of `parts`.
pub fn each<T: Send>(parts: impl ExactSizeIterator<Item = T>, work: impl Fn(T) + Sync) {
    parts.for_each(work);
}
