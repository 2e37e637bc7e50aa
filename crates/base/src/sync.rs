//! Locks, conditions, channels and threads of what has queues of its own: those of `std`, and those of shuttle in the
//! models that `scripts/concurrency` runs, which try the orders in which threads may go on.

#[cfg(shuttle)]
pub use shuttle::{
    sync::{Condvar, Mutex, MutexGuard, mpsc},
    thread,
};
use std::sync::PoisonError;
#[cfg(not(shuttle))]
pub use std::{
    sync::{Condvar, Mutex, MutexGuard, mpsc},
    thread,
};

/// Locks a mutex whose data is whole between any two calls: a panic elsewhere is no reason to refuse.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(shuttle)]
pub mod interleavings;
