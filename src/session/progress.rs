//! How far a session is that is being built, and who is told.

use std::sync::{Mutex, PoisonError};

/// How far the building of a session is, as [`Session::new_with_progress_async`](super::Session::new_with_progress_async) reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BuildProgress {
    /// Kernels that are compiled.
    pub compiled: usize,
    /// Kernels there are, each text counted once; 0 while that is not known, and on the CPU.
    pub kernels: usize,
    /// Bytes of constants that are on their way to the device.
    pub uploaded: u64,
    /// Bytes of constants there are; 0 while that is not known, and on the CPU.
    pub bytes: u64,
}

/// Who is told, from whichever thread.
#[cfg(not(target_family = "wasm"))]
pub(super) type Tell<'a> = dyn Fn(BuildProgress) + Sync + 'a;
/// Who is told.
#[cfg(target_family = "wasm")]
pub(super) type Tell<'a> = dyn Fn(BuildProgress) + 'a;

/// Tells how far a build is.
pub(super) struct Teller<'a> {
    tell: &'a Tell<'a>,
    progress: Mutex<BuildProgress>,
}

impl<'a> Teller<'a> {
    pub(super) fn new(tell: &'a Tell<'a>) -> Self {
        Teller { tell, progress: Mutex::default() }
    }

    fn change(&self, change: impl FnOnce(&mut BuildProgress)) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut progress);
        // Within the lock, so that nobody is told of less than before.
        (self.tell)(*progress);
    }

    pub(super) fn kernels(&self, kernels: usize) {
        self.change(|progress| progress.kernels += kernels);
    }

    pub(super) fn compiled(&self) {
        self.change(|progress| progress.compiled += 1);
    }

    pub(super) fn bytes(&self, bytes: u64) {
        self.change(|progress| progress.bytes += bytes);
    }

    pub(super) fn uploaded(&self, bytes: u64) {
        self.change(|progress| progress.uploaded += bytes);
    }
}

#[cfg(not(target_family = "wasm"))]
pub(super) use threaded::Told;

#[cfg(not(target_family = "wasm"))]
mod threaded {
    use super::BuildProgress;
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::task::Waker;

    /// What a build's thread has told, for the task that awaits it.
    #[derive(Debug, Default)]
    pub(in crate::session) struct Told(Mutex<State>);

    #[derive(Debug, Default)]
    struct State {
        latest: Option<BuildProgress>,
        waker: Option<Waker>,
    }

    impl Told {
        fn lock(&self) -> MutexGuard<'_, State> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        pub(in crate::session) fn tell(&self, progress: BuildProgress) {
            let waker = {
                let mut state = self.lock();
                state.latest = Some(progress);
                state.waker.take()
            };
            if let Some(waker) = waker {
                crate::task::wake(waker);
            }
        }

        /// What was told since the last call; `waker` is woken by what is told next.
        pub(in crate::session) fn take(&self, waker: &Waker) -> Option<BuildProgress> {
            let mut state = self.lock();
            state.waker = Some(waker.clone());
            state.latest.take()
        }
    }
}
