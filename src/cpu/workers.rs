//! The workers of a run: how many there are, and that they do not sleep between its steps.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a worker stays awake without work.
const PATIENCE: Duration = Duration::from_micros(500);

/// The most workers that are kept awake for a run.
const MOST_AWAKE: usize = 16;

thread_local! {
    /// Runs on this thread's stack.
    static RUNS: Cell<usize> = const { Cell::new(0) };
    /// Whether the innermost computes everything itself.
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Workers that a step may be cut for.
pub(crate) fn workers() -> usize {
    if ALONE.get() { 1 } else { rayon::current_num_threads().max(1) }
}

/// What a run changed on its thread, put back when it ends or panics.
struct Restore(bool);

impl Restore {
    fn begin(alone: bool) -> Self {
        RUNS.set(RUNS.get() + 1);
        Restore(ALONE.replace(alone))
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        RUNS.set(RUNS.get() - 1);
        ALONE.set(self.0);
    }
}

/// Does the work on this thread, its steps in one piece each.
pub(crate) fn alone<T>(work: impl FnOnce() -> T) -> T {
    let _restore = Restore::begin(true);
    work()
}

/// Does the work on a worker of rayon's current pool. To wake a worker takes longer than many a step, so the
/// others are kept from sleeping until it is done. Nobody waits for them: one that is not free in time has no
/// part in it.
pub(crate) fn together<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    /// Tells the others, also of a panic.
    struct Done(Arc<AtomicBool>);
    impl Drop for Done {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    rayon::scope(|_| {
        let done = Done(Arc::default());
        let _restore = Restore::begin(false);
        for _ in 1..workers().min(MOST_AWAKE) {
            let done = Arc::clone(&done.0);
            rayon::spawn(move || stay_awake(&done));
        }
        work()
    })
}

/// Takes up work of the pool until `done`, or until there was none for some time. A thread that waits for a part
/// of a run must not: it would notice too late that the part is there.
fn stay_awake(done: &AtomicBool) {
    /// Attempts between two looks at the clock.
    const ATTEMPTS: usize = 64;
    let mut since = Instant::now();
    while RUNS.get() == 0 && !done.load(Ordering::Relaxed) {
        for _ in 0..ATTEMPTS {
            if done.load(Ordering::Relaxed) {
                return;
            }
            if rayon::yield_now() == Some(rayon::Yield::Executed) {
                since = Instant::now();
            } else {
                std::hint::spin_loop();
            }
        }
        if since.elapsed() > PATIENCE {
            return;
        }
        std::thread::yield_now();
    }
}
