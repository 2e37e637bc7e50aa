//! Loops whose passes may run side by side, on the threads of rayon's pool or on fewer ([`Limited`]); without the feature
//! `parallel` they run one after the other.

#[cfg(feature = "parallel")]
use rayon::prelude::*;
use std::cell::Cell;
use std::num::NonZeroUsize;
#[cfg(feature = "parallel")]
use std::sync::{Mutex, PoisonError};

thread_local! {
    /// How many threads loops of this thread may have at most.
    static LIMIT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Loops of this thread have so many threads at most, until it is dropped.
#[derive(Debug)]
pub struct Limited {
    before: usize,
}

impl Limited {
    /// A limit within those that there are; none of its own without a number.
    pub fn to(threads: Option<NonZeroUsize>) -> Self {
        let before = LIMIT.get();
        LIMIT.set(threads.map_or(before, |threads| before.min(threads.get())));
        Limited { before }
    }
}

#[cfg(feature = "parallel")]
impl Limited {
    /// No limit: while a thread of the pool waits, it does jobs of others, whose limits are their own.
    fn lifted() -> Self {
        Limited { before: LIMIT.replace(usize::MAX) }
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        LIMIT.set(self.before);
    }
}

/// Threads that loops of this thread have: those of the pool, within the limit.
#[cfg(feature = "parallel")]
pub fn threads() -> usize {
    match LIMIT.get() {
        // The pool is not begun for it.
        1 => 1,
        limit => rayon::current_num_threads().clamp(1, limit),
    }
}

/// Threads that loops of this thread have.
#[cfg(not(feature = "parallel"))]
pub fn threads() -> usize {
    1
}

/// Whether there is a limit.
#[cfg(feature = "parallel")]
fn is_limited() -> bool {
    LIMIT.get() < usize::MAX
}

/// Does the work with each of `parts` on so many threads of the pool, the caller among them. Loops within have one.
#[cfg(feature = "parallel")]
fn shared<T: Send>(parts: Vec<T>, work: impl Fn(T) + Send + Sync) {
    let threads = threads().min(parts.len()).max(1);
    let parts = Mutex::new(parts.into_iter());
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
    let take = || {
        let _limited = Limited::to(Some(NonZeroUsize::MIN));
        while let Some(part) = next() {
            work(part);
        }
    };
    if threads == 1 {
        return take();
    }
    let _lifted = Limited::lifted();
    rayon::in_place_scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|_| take());
        }
        take();
    });
}

/// Whether the caller is a thread of a pool.
pub fn in_pool() -> bool {
    #[cfg(all(feature = "parallel", not(target_family = "wasm")))]
    return rayon::current_thread_index().is_some();
    #[cfg(not(all(feature = "parallel", not(target_family = "wasm"))))]
    false
}

/// Does the work with each of `parts`, in no order.
pub fn each<T: Send>(parts: Vec<T>, work: impl Fn(T) + Send + Sync) {
    #[cfg(feature = "parallel")]
    match is_limited() {
        true => shared(parts, work),
        false => parts.into_par_iter().for_each(work),
    }
    #[cfg(not(feature = "parallel"))]
    parts.into_iter().for_each(work);
}

/// What the work makes of each of `parts`, in their order.
pub fn map<'a, T: Sync, R: Send>(parts: &'a [T], work: impl Fn(&'a T) -> R + Send + Sync) -> Vec<R> {
    #[cfg(feature = "parallel")]
    {
        if !is_limited() {
            return parts.par_iter().map(work).collect();
        }
        let mut results: Vec<Option<R>> = parts.iter().map(|_| None).collect();
        shared(results.iter_mut().zip(parts).collect(), |(result, part)| *result = Some(work(part)));
        results.into_iter().flatten().collect()
    }
    #[cfg(not(feature = "parallel"))]
    parts.iter().map(work).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(not(feature = "parallel"))]
    use std::sync::Mutex;

    #[test]
    fn each_part_is_worked_on_once() {
        let seen = Mutex::new(Vec::new());
        each((0..100).collect(), |part: usize| seen.lock().expect("whole").push(part));
        let mut seen = seen.into_inner().expect("whole");
        seen.sort_unstable();
        assert_eq!(seen, (0..100).collect::<Vec<_>>());
        assert_eq!(map(&seen, |part| 2 * part), (0..100).map(|part| 2 * part).collect::<Vec<_>>());
    }

    #[test]
    fn no_more_threads_work_than_the_limit_lets() {
        let (all, parts) = (threads(), (0..64).collect::<Vec<usize>>());
        let (now, most) = (Mutex::new(0_usize), Mutex::new(0_usize));
        let work = |part: &usize| {
            let at_once = {
                let mut now = now.lock().expect("whole");
                *now += 1;
                *now
            };
            let mut most_seen = most.lock().expect("whole");
            *most_seen = at_once.max(*most_seen);
            drop(most_seen);
            std::thread::sleep(std::time::Duration::from_micros(200));
            // Loops within have the caller's thread alone.
            assert_eq!(map(&[*part], |inner| (*inner, threads())), [(*part, 1)]);
            *now.lock().expect("whole") -= 1;
            part * 3
        };
        for limit in [1, 2] {
            *most.lock().expect("whole") = 0;
            let _limited = Limited::to(NonZeroUsize::new(limit));
            assert!(threads() <= limit);
            assert_eq!(map(&parts, work), parts.iter().map(|part| part * 3).collect::<Vec<_>>());
            assert!(*most.lock().expect("whole") <= limit);
            // A limit within one is none that is higher.
            let _inner = Limited::to(NonZeroUsize::new(7));
            assert!(threads() <= limit);
        }
        let _none = Limited::to(None);
        assert_eq!(threads(), all);
    }

    /// A thread that waits for the others of a limited loop does a job that is nobody's part of it.
    #[cfg(feature = "parallel")]
    #[test]
    fn a_limit_is_not_that_of_jobs_which_are_done_while_a_loop_waits() {
        use std::sync::Barrier;
        use std::sync::mpsc::{Receiver, channel};
        use std::time::Duration;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("two threads");
        let (tell, told) = channel::<(std::thread::ThreadId, usize)>();
        let (release, released) = channel::<()>();
        let (both, released) = (Barrier::new(2), Mutex::new(Some(released)));
        let waits: &Mutex<Option<Receiver<()>>> = &released;
        let caller = pool.install(|| {
            let caller = std::thread::current().id();
            let _limited = Limited::to(NonZeroUsize::new(2));
            each(vec![0, 1], |_: i32| {
                both.wait();
                if std::thread::current().id() == caller {
                    let (tell, release) = (tell.clone(), release.clone());
                    rayon::spawn(move || {
                        tell.send((std::thread::current().id(), LIMIT.get())).expect("a test");
                        release.send(()).expect("a part that waits");
                    });
                } else if let Some(released) = waits.lock().expect("whole").take() {
                    // Until then this thread takes no job.
                    released.recv_timeout(Duration::from_secs(60)).expect("the job");
                }
            });
            caller
        });
        assert_eq!(told.recv().expect("the job"), (caller, usize::MAX));
    }
}
