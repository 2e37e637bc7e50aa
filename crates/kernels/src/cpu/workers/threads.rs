//! Who works on a run: the thread that asked for it, with helpers that do not sleep between its steps.
//!
//! To wake a thread takes longer than many a step of a network. So a run stays on the thread that asked for it, and
//! goes on whether helpers are awake or not: a part of a step is handed to one that is free at that moment. Helpers
//! are threads of a pool of their own, which wait actively during a run and for a short time after it. A caller that
//! is a worker of a pool of rayon's shares its run with the workers of that pool instead, which are as many as the
//! application wants.
//!
//! Where other programs want the processors too, helpers may cost more than they save: [`Load`] says how many threads
//! share a run's steps then. The steps are cut for as many as before, so that results are the same to the bit.

use super::load::Load;
use crate::clock::Instant;
use crate::parallel;
use rayon::{ThreadPool, ThreadPoolBuilder, Yield};
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How long a thread stays awake without work.
const PATIENCE: Duration = Duration::from_micros(500);

/// Attempts to find work between two looks at the clock.
const ATTEMPTS: usize = 64;

/// Operations of a run that pay for one more thread.
const OPERATIONS_PER_WORKER: u64 = 4_000_000;

/// How many threads compute what this one asks for.
#[derive(Debug, Clone, Copy)]
enum Team {
    /// All threads that there are, because no number was set.
    All,
    /// So many, this one among them: steps are cut for `cut`, and `sharing` of these share them.
    Some { cut: usize, sharing: usize },
}

thread_local! {
    static TEAM: Cell<Team> = const { Cell::new(Team::All) };
    /// Runs on this thread's stack.
    static RUNS: Cell<usize> = const { Cell::new(0) };
    /// Whether this thread is a helper that waits for work further down its stack.
    static HELPS: Cell<bool> = const { Cell::new(false) };
}

/// Threads that a step may be cut for.
pub fn workers() -> usize {
    match TEAM.get() {
        Team::All => parallel::threads(),
        Team::Some { cut, .. } => cut,
    }
}

/// Threads that share a step.
fn sharing() -> usize {
    match TEAM.get() {
        Team::All => workers(),
        Team::Some { sharing, .. } => sharing,
    }
}

/// A thread's team, put back as it was when the work ends or panics.
struct Restore(Team);

impl Restore {
    fn team_of(threads: usize) -> Self {
        Restore::team(threads, threads)
    }

    fn team(cut: usize, sharing: usize) -> Self {
        Restore(TEAM.replace(Team::Some { cut, sharing }))
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        TEAM.set(self.0);
    }
}

/// One in a counter, until it is dropped.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn one(counter: &'a AtomicUsize) -> (Self, usize) {
        let others = counter.fetch_add(1, Ordering::Relaxed);
        (Counted(counter), others)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// Does the work of a run of so many operations, which hands out parts with [`each`], on so many threads at most.
/// `load` is of runs of the same work.
pub fn run<T>(operations: u64, most: usize, load: &Mutex<Load>, work: impl FnOnce() -> T) -> T {
    let pays = usize::try_from(operations / OPERATIONS_PER_WORKER).unwrap_or(usize::MAX);
    let most = if most == 1 { 1 } else { most.min(parallel::threads()) };
    let threads = pays.min(most).max(1);
    if threads == 1 {
        let _restore = Restore::team_of(1);
        return work();
    }
    if rayon::current_thread_index().is_some() {
        return in_pool(threads, work);
    }
    // Runs at the same time share the threads.
    let (_run, others) = Counted::one(&UNDER_WAY);
    let left = rayon::current_num_threads().saturating_sub(others).max(1);
    let threads = match team(threads.min(left)) {
        more if more > most => 1 << most.ilog2(),
        whole => whole,
    };
    let load = || load.lock().unwrap_or_else(PoisonError::into_inner);
    let sharing = load().begin(threads);
    let _restore = Restore::team(threads, sharing);
    let start = Instant::now();
    if let Some(helpers) = helpers(sharing) {
        helpers.wake();
    }
    let result = work();
    load().end(sharing, start.elapsed());
    result
}

/// Does the work with each of `parts`, perhaps on several threads, in no order.
pub fn each<T: Send>(parts: impl ExactSizeIterator<Item = T>, work: impl Fn(T) + Sync) {
    let threads = sharing().min(parts.len());
    if threads <= 1 {
        // A part that is cut further is cut alike, whoever computes it.
        let _restore = (workers() > 1 && parts.len() > 1).then(|| Restore::team_of(1));
        for part in parts {
            work(part);
        }
        return;
    }
    let parts = Parts { parts: parts.map(|part| Mutex::new(Some(part))).collect(), threads };
    if let Some(own) = rayon::current_thread_index() {
        rayon::in_place_scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|_| parts.work(rayon::current_thread_index().unwrap_or_default(), &work));
            }
            parts.work(own, &work);
        });
        return;
    }
    match helpers(sharing()) {
        Some(helpers) => helpers.each(&parts, &work),
        None => parts.work(0, &work),
    }
}

/// The parts of a step, for so many threads. A thread begins with those that are its own: neighbours, and the same
/// from step to step, so that much of what it reads lies in its own cache.
struct Parts<T> {
    parts: Vec<Mutex<Option<T>>>,
    threads: usize,
}

impl<T> Parts<T> {
    /// The parts that a thread begins with.
    fn own(&self, thread: usize) -> Range<usize> {
        let first = |thread| thread * self.parts.len() / self.threads;
        first(thread)..first(thread + 1)
    }

    /// Works until all parts are taken: first on the thread's own, then on the last ones of the others. `more` is
    /// called before each.
    fn work_and(&self, thread: usize, work: &impl Fn(T), mut more: impl FnMut()) {
        let _restore = Restore::team_of(1);
        let thread = thread % self.threads;
        let others = (1..self.threads).flat_map(|next| self.own((thread + next) % self.threads).rev());
        for place in self.own(thread).chain(others) {
            let Some(part) = self.parts.get(place) else { return };
            let part = part.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(part) = part {
                more();
                work(part);
            }
        }
    }

    fn work(&self, thread: usize, work: &impl Fn(T)) {
        self.work_and(thread, work, || {});
    }
}

/// Threads that help callers that are no workers of rayon's. All of them are awake during a run: a job would wake
/// those that sleep.
#[derive(Debug)]
struct Helpers {
    pool: ThreadPool,
    /// How many wait actively for work, or were told to.
    awake: AtomicUsize,
    /// How many of those awake have not been asked for help.
    free: AtomicUsize,
}

/// Sizes of teams.
const TEAMS_OF: usize = 16;

/// Runs under way with helpers.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// The threads of the team that so many belong to: a power of two, or all.
fn team(threads: usize) -> usize {
    threads.next_power_of_two().min(rayon::current_num_threads().max(1))
}

/// The helpers of a team of `threads` threads, one fewer than its threads because the caller is one of them. `None` if there
/// are no others, or the pool did not start.
fn helpers(threads: usize) -> Option<&'static Helpers> {
    static TEAMS: [OnceLock<Option<Helpers>>; TEAMS_OF] = [const { OnceLock::new() }; TEAMS_OF];
    let others = team(threads).checked_sub(1).filter(|others| *others > 0)?;
    let started = TEAMS.get(threads.next_power_of_two().ilog2() as usize)?;
    let started = started.get_or_init(|| {
        let builder = ThreadPoolBuilder::new().num_threads(others);
        let pool = builder.thread_name(|index| format!("diptych helper {index}")).build().ok()?;
        Some(Helpers { pool, awake: AtomicUsize::default(), free: AtomicUsize::default() })
    });
    started.as_ref()
}

impl Helpers {
    /// Sees to it that all are awake, soon.
    fn wake(&'static self) {
        let wanted = self.pool.current_num_threads();
        let one_more = |awake| (awake < wanted).then_some(awake + 1);
        while self.awake.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok() {
            self.pool.spawn(|| self.stay_awake());
        }
    }

    /// Whether one was free, who is not any more.
    fn take(&self) -> bool {
        let one_fewer = |free: usize| free.checked_sub(1);
        self.free.fetch_update(Ordering::Acquire, Ordering::Relaxed, one_fewer).is_ok()
    }

    /// Helps until there was nothing to do for some time.
    #[expect(clippy::disallowed_methods, reason = "threads of a pool call it")]
    fn stay_awake(&self) {
        let (_awake, mut since) = (Counted(&self.awake), Instant::now());
        // Asked for twice, and taken up while it waits for work.
        if HELPS.replace(true) {
            return;
        }
        self.free.fetch_add(1, Ordering::Release);
        loop {
            for _ in 0..ATTEMPTS {
                match rayon::yield_now() {
                    Some(Yield::Executed) => since = Instant::now(),
                    _ => std::hint::spin_loop(),
                }
            }
            if UNDER_WAY.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            // One that was asked already must not leave.
            if since.elapsed() > PATIENCE && self.take() {
                break;
            }
        }
        HELPS.set(false);
    }

    /// [`each`] with those that are free.
    fn each<T: Send>(&'static self, parts: &Parts<T>, work: &(impl Fn(T) + Sync)) {
        let most = parts.threads - 1;
        self.wake();
        let (finished, mut asked) = (AtomicUsize::new(0), 0);
        self.pool.in_place_scope(|scope| {
            parts.work_and(0, work, || {
                while asked < most && self.take() {
                    asked += 1;
                    scope.spawn(|_| {
                        let _finished = Finished { helpers: self, finished: &finished };
                        parts.work(rayon::current_thread_index().unwrap_or_default() + 1, work);
                    });
                }
            });
            // The scope's own wait sleeps at once.
            let (mut attempts, since) = (0_usize, Instant::now());
            while finished.load(Ordering::Acquire) < asked {
                attempts += 1;
                if attempts.is_multiple_of(ATTEMPTS) && since.elapsed() > PATIENCE {
                    break;
                }
                std::hint::spin_loop();
            }
        });
    }
}

/// Tells the caller that a helper has finished, even if its work panicked.
struct Finished<'a> {
    helpers: &'a Helpers,
    finished: &'a AtomicUsize,
}

impl Drop for Finished<'_> {
    fn drop(&mut self) {
        self.helpers.free.fetch_add(1, Ordering::Release);
        self.finished.fetch_add(1, Ordering::Release);
    }
}

/// Does the work of a run on a worker of rayon's, while the others are kept from sleeping. Nobody waits for them: one
/// that is not free in time has no part in it.
fn in_pool<T>(threads: usize, work: impl FnOnce() -> T) -> T {
    /// Ends a run, also if it panics.
    struct EndOfRun(Arc<AtomicBool>);
    impl Drop for EndOfRun {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
            RUNS.set(RUNS.get() - 1);
        }
    }
    let end = EndOfRun(Arc::default());
    RUNS.set(RUNS.get() + 1);
    let _restore = Restore::team_of(threads);
    for _ in 1..threads {
        let done = Arc::clone(&end.0);
        rayon::spawn(move || stay_awake(&done));
    }
    work()
}

/// Takes up work of the pool until `done`, or until there was none for some time. A thread that waits for a part
/// of a run must not: it would notice too late that the part is there.
#[expect(clippy::disallowed_methods, reason = "threads of a pool call it")]
fn stay_awake(done: &AtomicBool) {
    let mut since = Instant::now();
    while RUNS.get() == 0 && !done.load(Ordering::Relaxed) {
        for _ in 0..ATTEMPTS {
            if done.load(Ordering::Relaxed) {
                return;
            }
            if rayon::yield_now() == Some(Yield::Executed) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Operations that all threads are worth.
    const MANY: u64 = u64::MAX;

    fn run<T>(operations: u64, most: usize, work: impl FnOnce() -> T) -> T {
        super::run(operations, most, &Mutex::default(), work)
    }

    /// Sums in parts, each of which has parts of its own.
    fn sums(len: usize) -> Vec<usize> {
        let mut sums = vec![0; len];
        each(sums.chunks_mut(3).enumerate(), |(index, sums)| {
            each(sums.iter_mut().enumerate(), |(place, sum)| *sum += 1 + 3 * index + place);
        });
        sums
    }

    #[test]
    fn each_part_is_computed_once() {
        let check = || {
            for len in [0, 1, 2, 7, 100] {
                assert_eq!(sums(len), (1..=len).collect::<Vec<_>>());
            }
        };
        check();
        for _ in 0..100 {
            run(0, usize::MAX, check);
            for most in [usize::MAX, 2, 3] {
                run(MANY, most, check);
            }
        }
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| run(MANY, usize::MAX, check)));
            }
        });
        for threads in [1, 3] {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            pool.install(|| run(MANY, usize::MAX, check));
            pool.broadcast(|_| run(MANY, usize::MAX, check));
        }
    }

    #[test]
    fn no_more_threads_compute_than_a_run_may_have() {
        for most in [1, 2, 3, 5, usize::MAX] {
            let threads = run(MANY, most, workers);
            assert!((1..=most).contains(&threads), "{threads} of {most}");
            assert!(threads <= rayon::current_num_threads());
        }
        assert_eq!(run(0, usize::MAX, workers), 1);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_no_other_run() {
        let parts = || {
            run(MANY, usize::MAX, || {
                each((0..100).collect::<Vec<_>>().into_iter(), |part| assert_ne!(part, 57, "as wanted"));
            });
        };
        for _ in 0..10 {
            assert!(std::panic::catch_unwind(parts).is_err());
            assert!(matches!(TEAM.get(), Team::All));
            assert_eq!(run(MANY, usize::MAX, || sums(10)), (1..=10).collect::<Vec<_>>());
        }
    }

    #[test]
    fn runs_that_fewer_threads_share_are_cut_alike() {
        let cuts = |shared| {
            let _restore = Restore::team(4, shared);
            let mut cuts = vec![(0, 0); 8];
            each(cuts.iter_mut(), |cut| *cut = (workers(), sharing()));
            (workers(), cuts)
        };
        let all = cuts(4);
        assert_eq!(all, (4, vec![(1, 1); 8]));
        for sharing in [1, 2, 3] {
            assert_eq!(cuts(sharing), all);
        }
        // One part is cut further as if it were the run.
        let _restore = Restore::team(4, 1);
        each([()].into_iter(), |()| assert_eq!(workers(), 4));
    }

    #[test]
    fn a_run_has_as_many_threads_as_pay() {
        if rayon::current_num_threads() == 1 {
            return;
        }
        let load = Mutex::default();
        let run_for = |alone, helped| {
            super::run(MANY, 2, &load, || {
                std::thread::sleep(Duration::from_millis(if sharing() == 1 { alone } else { helped }));
                (workers(), sharing())
            })
        };
        let mut seen = vec![run_for(1, 1)];
        seen.extend((0..10).map(|_| run_for(1, 30)));
        // Runs of other tests leave these fewer threads at times.
        if seen.iter().all(|(cut, _)| *cut == 2) {
            assert_eq!((seen[0], seen[10]), ((2, 2), (2, 1)), "{seen:?}");
        }
    }
}
