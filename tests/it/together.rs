//! Threads that work at the same time, and tasks that are polled where they are woken. Whatever does not come to its
//! end fails, and says what it was doing.

use std::fmt::Display;
use std::future::Future;
use std::io::Write;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// Some hundred times what the work of a test takes.
const LIMIT: Duration = Duration::from_secs(300);

/// What the threads of a test are doing.
struct Doing(Vec<Mutex<String>>);

/// A thread's place among the others.
pub(crate) struct Place<'a> {
    pub(crate) thread: usize,
    doing: &'a Doing,
}

impl Place<'_> {
    /// Notes what the thread is about to do.
    pub(crate) fn does(&self, what: impl Display) {
        *self.doing.0[self.thread].lock().unwrap_or_else(PoisonError::into_inner) = what.to_string();
    }
}

/// Tells that a thread has ended, also by a panic.
struct Ended(Sender<()>);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// Does `work` on so many threads, which begin at the same moment; what it gives on each. If one does not end the
/// process is aborted: there is no other way to get rid of a thread.
pub(crate) fn together<T: Send>(title: &str, threads: usize, work: impl Fn(Place<'_>) -> T + Sync) -> Vec<T> {
    let doing = Doing((0..threads).map(|_| Mutex::new("begins".to_owned())).collect());
    let (barrier, (tell, ended)) = (Barrier::new(threads), channel());
    std::thread::scope(|scope| {
        let start = |thread| {
            let (ended, barrier, work, doing) = (Ended(tell.clone()), &barrier, &work, &doing);
            scope.spawn(move || {
                let _ended = ended;
                barrier.wait();
                let place = Place { thread, doing };
                let outcome = work(place);
                Place { thread, doing }.does("has ended");
                outcome
            })
        };
        let started: Vec<_> = (0..threads).map(start).collect();
        let end = Instant::now() + LIMIT;
        for _ in 0..threads {
            let left = end.saturating_duration_since(Instant::now());
            if ended.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                hung(title, &doing);
            }
        }
        started.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

fn hung(title: &str, doing: &Doing) -> ! {
    // Not `eprintln`, which tests keep until they end.
    let mut stderr = std::io::stderr().lock();
    let _ = writeln!(stderr, "{title}: not at the end after {LIMIT:?}");
    for (thread, what) in doing.0.iter().enumerate() {
        // A thread does not hold this lock while it hangs.
        let what = what.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(stderr, "  thread {thread}: {what}");
    }
    drop(stderr);
    std::process::abort()
}

/// A task that is polled by whoever wakes it, within the call: the hardest that an executor may be on those who wake.
struct Inline<T> {
    task: Mutex<Task<T>>,
    tell: Sender<T>,
}

struct Task<T> {
    /// None while it is polled, and after its end.
    future: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    /// Woken while it was polled.
    again: bool,
}

impl<T: Send + 'static> Inline<T> {
    fn lock(&self) -> MutexGuard<'_, Task<T>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll(self: &Arc<Self>) {
        let waker = Waker::from(Arc::clone(self));
        loop {
            let mut task = self.lock();
            let Some(mut future) = task.future.take() else {
                task.again = true;
                return;
            };
            task.again = false;
            drop(task);
            if let Poll::Ready(outcome) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                // And all that it owns. A panic in there is a task that tells nothing.
                drop(future);
                let _ = self.tell.send(outcome);
                return;
            }
            let mut task = self.lock();
            task.future = Some(future);
            if !task.again {
                return;
            }
        }
    }
}

impl<T: Send + 'static> Wake for Inline<T> {
    fn wake(self: Arc<Self>) {
        self.poll();
    }
}

/// Has `work` polled by those who wake it, from the first poll on; what came of it, once it has been dropped.
pub(crate) fn inline<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Receiver<T> {
    let (tell, told) = channel();
    let task = Task { future: Some(Box::pin(work)), again: false };
    Arc::new(Inline { task: Mutex::new(task), tell }).poll();
    told
}

/// Polls `work` so many times, with a moment in between, and drops it; what came of it, if it was ready.
pub(crate) fn dropped_after<F: Future>(polls: usize, work: F) -> Option<F::Output> {
    let mut work = std::pin::pin!(work);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..polls {
        if let Poll::Ready(outcome) = work.as_mut().poll(&mut context) {
            return Some(outcome);
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    None
}
