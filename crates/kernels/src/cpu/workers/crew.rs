//! Who works on a run in a page whose threads share the module's memory: the thread that asked for it, and helpers.
//!
//! WebAssembly starts no threads. The page starts web workers, each of which calls [`help`] and stays there. A page's own
//! thread may not sleep, so the caller never does: it locks nothing that another thread holds for long, and at the end of a step
//! it looks again and again whether the helpers have finished the parts that they took, which are the last ones.
//!
//! Steps are cut for as many threads as there are meant to be, whoever is there already, so that results are the same
//! to the bit. [`Load`] says how many of them share a run while other programs want the processors.

use super::load::Load;
use crate::clock::Instant;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};
use std::thread::Thread;
use std::time::Duration;

/// How long a helper stays awake without work.
const PATIENCE: Duration = Duration::from_micros(500);

/// Attempts to find work between two looks at the clock.
const ATTEMPTS: usize = 256;

/// Operations of a run that pay for one more thread.
const OPERATIONS_PER_WORKER: u64 = 4_000_000;

/// The most helpers.
const MOST: usize = 63;

/// The threads that a run may have, the caller's included.
static THREADS: AtomicUsize = AtomicUsize::new(1);

/// The helpers that have come.
static HELPERS: [OnceLock<Thread>; MOST] = [const { OnceLock::new() }; MOST];

/// How many steps were handed out.
static STEPS: AtomicUsize = AtomicUsize::new(0);

/// The step that is being worked on.
static STEP: Mutex<Option<Step>> = Mutex::new(None);

/// A step whose parts are handed out.
struct Step {
    /// Takes parts until there are none left.
    work: &'static (dyn Fn() + Sync),
    /// How many more helpers may join.
    room: usize,
    /// Helpers that have joined and not left.
    inside: usize,
}

/// The threads that compute what a thread asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Team {
    /// How many a step is cut for.
    cut: usize,
    /// How many share its parts.
    sharing: usize,
}

impl Team {
    /// All threads that there are.
    const ALL: Team = Team { cut: usize::MAX, sharing: usize::MAX };
}

thread_local! {
    static TEAM: Cell<Team> = const { Cell::new(Team::ALL) };
}

/// Says how many threads runs may have, the caller's included. Helpers come when they are ready.
#[cfg_attr(test, expect(unreachable_pub, reason = "a page's package calls it"))]
pub fn set_threads(threads: usize) {
    THREADS.store(threads.clamp(1, MOST + 1), Ordering::Relaxed);
}

/// Threads that a step may be cut for.
pub fn workers() -> usize {
    TEAM.get().cut.min(THREADS.load(Ordering::Relaxed))
}

/// Threads that share its parts.
fn sharing() -> usize {
    TEAM.get().sharing.min(workers())
}

/// A thread's team, put back as it was when the work ends or panics.
struct Restore(Team);

impl Restore {
    fn team_of(threads: usize) -> Self {
        Restore::team(threads, threads)
    }

    fn team(cut: usize, sharing: usize) -> Self {
        Restore(TEAM.replace(Team { cut, sharing }))
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        TEAM.set(self.0);
    }
}

/// Does the work of a run of so many operations, which hands out parts with [`each`], on so many threads at most.
/// `load` is of runs of the same work.
pub fn run<T>(operations: u64, most: usize, load: &Mutex<Load>, work: impl FnOnce() -> T) -> T {
    let pays = usize::try_from(operations / OPERATIONS_PER_WORKER).unwrap_or(usize::MAX);
    let threads = pays.min(most).min(workers()).max(1);
    if threads == 1 {
        let _restore = Restore::team_of(1);
        return work();
    }
    let sharing = held(load).begin(threads);
    let _restore = Restore::team(threads, sharing);
    let start = Instant::now();
    let result = work();
    held(load).end(sharing, start.elapsed());
    result
}

/// Does the work with each of `parts`, perhaps on several threads, in no order.
pub fn each<T: Send>(parts: impl ExactSizeIterator<Item = T>, work: impl Fn(T) + Sync) {
    let threads = sharing().min(parts.len());
    if threads <= 1 {
        // A part that is cut further is cut alike, whoever computes it.
        let _restore = (workers() > 1 && parts.len() > 1).then(|| Restore::team_of(1));
        return parts.for_each(work);
    }
    let parts: Vec<Mutex<Option<T>>> = parts.map(|part| Mutex::new(Some(part))).collect();
    let next = AtomicUsize::new(0);
    with_helpers(threads - 1, &|| {
        let _restore = Restore::team_of(1);
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            // Nobody else has this number.
            let part = held(part).take();
            part.into_iter().for_each(&work);
        }
    });
}

/// A lock that others hold for a few instructions only.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(guard)) => return guard.into_inner(),
            Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
        }
    }
}

/// Calls `work` on this thread, and on as many helpers as have time. Returns when all of them have.
fn with_helpers(helpers: usize, work: &(dyn Fn() + Sync)) {
    // SAFETY: only the lifetime changes. Helpers find `work` in `STEP` alone, and `End` takes it from there and waits for
    // those that have it before this function returns or unwinds: `work` outlives the calls of it. The test below
    // has helpers call closures that borrow from their callers' stacks.
    let work: &'static (dyn Fn() + Sync) = unsafe { std::mem::transmute(work) };
    {
        let mut step = held(&STEP);
        if step.is_some() {
            drop(step);
            // Another thread's run has the helpers.
            return work();
        }
        *step = Some(Step { work, room: helpers, inside: 0 });
    }
    let _end = EndOfStep;
    STEPS.fetch_add(1, Ordering::Release);
    for helper in HELPERS.iter().map_while(OnceLock::get).take(helpers) {
        helper.unpark();
    }
    work();
}

/// Ends a step: nobody joins it any more, and those who have are waited for.
struct EndOfStep;

impl Drop for EndOfStep {
    fn drop(&mut self) {
        loop {
            let mut step = held(&STEP);
            match &mut *step {
                Some(Step { room, inside, .. }) if *inside > 0 => *room = 0,
                _ => {
                    *step = None;
                    return;
                }
            }
            drop(step);
            for _ in 0..ATTEMPTS {
                std::hint::spin_loop();
            }
        }
    }
}

/// A helper within a step, until it is dropped.
struct Inside;

impl Inside {
    /// Joins the step that is being worked on, if it wants more helpers.
    fn join() -> Option<(Inside, &'static (dyn Fn() + Sync))> {
        let mut step = held(&STEP);
        let step = step.as_mut().filter(|step| step.room > 0)?;
        step.room -= 1;
        step.inside += 1;
        Some((Inside, step.work))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if let Some(step) = held(&STEP).as_mut() {
            step.inside -= 1;
        }
    }
}

/// Helps with runs of other threads, and does not return. A thread that may sleep calls it.
#[cfg_attr(test, expect(unreachable_pub, reason = "a page's package calls it"))]
pub fn help() {
    let own = std::thread::current();
    if !HELPERS.iter().any(|place| place.set(own.clone()).is_ok()) {
        return;
    }
    let mut seen = 0;
    loop {
        seen = next_after(seen);
        if let Some((_inside, work)) = Inside::join() {
            work();
        }
    }
}

/// Waits until the number of steps that were handed out is no longer `seen`, and returns it.
#[expect(clippy::disallowed_methods, reason = "a thread that may sleep calls it")]
fn next_after(seen: usize) -> usize {
    let mut since = Instant::now();
    loop {
        for _ in 0..ATTEMPTS {
            match STEPS.load(Ordering::Acquire) {
                steps if steps != seen => return steps,
                _ => std::hint::spin_loop(),
            }
        }
        if since.elapsed() > PATIENCE {
            // Whoever hands out a step says so after it was counted.
            std::thread::park();
            since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums in parts, each of which has parts of its own.
    fn sums(len: usize) -> Vec<usize> {
        let mut sums = vec![0; len];
        each(sums.chunks_mut(3).enumerate(), |(index, sums)| {
            each(sums.iter_mut().enumerate(), |(place, sum)| *sum += 1 + 3 * index + place);
        });
        sums
    }

    #[test]
    fn each_part_is_computed_once_with_and_without_helpers() {
        let check = |operations, most| {
            run(operations, most, &Mutex::default(), || {
                for len in [0, 1, 2, 7, 100] {
                    assert_eq!(sums(len), (1..=len).collect::<Vec<_>>());
                }
            });
        };
        check(u64::MAX, usize::MAX);
        set_threads(4);
        check(u64::MAX, usize::MAX);
        for _ in 0..3 {
            std::thread::spawn(help);
        }
        for pause in 0..400 {
            // Helpers fall asleep in between.
            std::thread::sleep(PATIENCE * (pause % 40 / 39 * 4));
            check(u64::MAX, usize::MAX);
            check(u64::MAX, 2);
            check(0, usize::MAX);
        }
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..200).for_each(|_| check(u64::MAX, usize::MAX)));
            }
        });
        let several = || {
            let ids = Mutex::new(std::collections::HashSet::new());
            run(u64::MAX, usize::MAX, &Mutex::default(), || {
                each(0..64, |_| {
                    std::thread::sleep(Duration::from_micros(300));
                    ids.lock().expect("whole").insert(std::thread::current().id());
                });
            });
            ids.into_inner().expect("whole").len()
        };
        assert!((0..20).any(|_| several() > 1), "no helper helped");
        let few = |most| {
            run(u64::MAX, most, &Mutex::default(), || {
                let now = (AtomicUsize::new(0), AtomicUsize::new(0));
                each(0..64, |_| {
                    let at_once = now.0.fetch_add(1, Ordering::SeqCst) + 1;
                    now.1.fetch_max(at_once, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_micros(100));
                    assert_eq!(workers(), 1);
                    now.0.fetch_sub(1, Ordering::SeqCst);
                });
                (workers(), now.1.into_inner())
            })
        };
        // Runs that have become slow try fewer threads: this one alone has all parts of the next, and they are cut as before.
        let slow = Mutex::default();
        for took in [20, 20, 20, 40, 40, 40].map(Duration::from_millis) {
            let mut load: MutexGuard<'_, Load> = held(&slow);
            let threads = load.begin(2);
            load.end(threads, took);
        }
        let own = std::thread::current().id();
        run(u64::MAX, 2, &slow, || {
            assert_eq!((workers(), sharing()), (2, 1));
            each(0..64, |_| assert_eq!(std::thread::current().id(), own));
        });
        for most in [1, 2, 3] {
            let (workers, at_once) = few(most);
            assert!(workers == most && at_once <= most, "{at_once} of {workers}, wanted {most} at most");
        }
        // A helper ends with what it panics in.
        let failed = std::panic::catch_unwind(|| {
            run(u64::MAX, usize::MAX, &Mutex::default(), || each(0..100, |_| panic!("as wanted")));
        });
        assert!(failed.is_err() && TEAM.get() == Team::ALL);
        check(u64::MAX, usize::MAX);
    }
}
