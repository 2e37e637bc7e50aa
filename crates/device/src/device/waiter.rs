//! A thread of a device that waits for the driver where the caller must not block.

use super::signal::Signal;
use crate::sync::mpsc::{Sender, channel};
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Mutex, lock};
use crate::unwind::caught;
use std::fmt;
use std::sync::Arc;

type Job = Box<dyn FnOnce() + Send>;

/// One thread, started when it is first needed and joined when this is dropped: a driver may be
/// unloaded at the end of the process, and a thread that is still inside it would crash.
///
/// It is to be dropped before what the waits use, and a wait must not own the device that owns this.
#[derive(Default)]
pub(super) struct Waiter(Mutex<Option<Thread>>);

struct Thread {
    jobs: Sender<Job>,
    handle: JoinHandle<()>,
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiter")
    }
}

impl Waiter {
    /// Calls `wait` on the thread, after the waits before it, and sets `signal` if it fails. Where the
    /// system gives no thread, the wait blocks the caller.
    pub(super) fn wait(
        &self,
        signal: &Arc<Signal>,
        wait: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) {
        let signal = Arc::clone(signal);
        let job: Job = Box::new(move || {
            // An application's callback may run inside. Its panic must not leave others waiting.
            let result = caught("the wait", wait).map_err(|error| error.to_string());
            if let Err(message) = result.and_then(|waited| waited) {
                signal.set(Err(message));
            }
        });
        if let Some(job) = self.send(job) {
            job();
        }
    }

    /// Gives `job` to the thread, or back if there is none.
    fn send(&self, job: Job) -> Option<Job> {
        let mut thread = lock(&self.0);
        let thread = match thread.as_mut() {
            Some(thread) => thread,
            None => match start() {
                Ok(started) => thread.insert(started),
                Err(error) => {
                    tracing::warn!("no thread to wait on: {error}");
                    return Some(job);
                }
            },
        };
        thread.jobs.send(job).err().map(|unsent| unsent.0)
    }
}

#[expect(clippy::disallowed_methods, reason = "a thread waits for the device, so that tasks do not")]
fn start() -> std::io::Result<Thread> {
    let (jobs, received) = channel::<Job>();
    let work = move || received.into_iter().for_each(|job| job());
    let handle = thread::Builder::new().name("diptych-wait".to_owned()).spawn(work)?;
    Ok(Thread { jobs, handle })
}

impl Drop for Waiter {
    #[expect(clippy::disallowed_methods, reason = "the thread ends before the device does")]
    fn drop(&mut self) {
        let Some(Thread { jobs, handle }) = lock(&self.0).take() else { return };
        // Ends the thread after its last job.
        drop(jobs);
        // A task that is woken on the thread may drop the device there.
        if handle.thread().id() != thread::current().id() && handle.join().is_err() {
            tracing::warn!("the thread that waits for the device panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[test]
    fn every_wait_has_ended_once_the_waiter_is_dropped() {
        let ended = Arc::new(AtomicUsize::new(0));
        let waiter = Waiter::default();
        for _ in 0..3 {
            let ended = Arc::clone(&ended);
            waiter.wait(&Arc::default(), move || {
                std::thread::sleep(Duration::from_millis(20));
                ended.fetch_add(1, Ordering::SeqCst);
                Ok(())
            });
        }
        drop(waiter);
        assert_eq!((ended.load(Ordering::SeqCst), Arc::strong_count(&ended)), (3, 1));
    }

    #[test]
    fn a_wait_that_fails_or_panics_says_so_and_the_next_one_goes_on() {
        let waiter = Waiter::default();
        let signals: [Arc<Signal>; 3] = Default::default();
        waiter.wait(&signals[0], || Err("lost".to_owned()));
        waiter.wait(&signals[1], || panic!("planted"));
        let last = Arc::clone(&signals[2]);
        waiter.wait(&signals[2], move || {
            last.set(Ok(()));
            Ok(())
        });
        drop(waiter);
        let found = signals.map(|signal| signal.get());
        let wanted = [Err("lost".to_owned()), Err("the wait panicked: planted".to_owned()), Ok(())];
        assert_eq!(found, wanted.map(Some));
    }

    #[test]
    fn the_waiter_may_be_dropped_on_its_own_thread() {
        let waiter = Arc::new(Waiter::default());
        let (gone, signal) = (Arc::new(Signal::default()), Arc::new(Signal::default()));
        let (own, told) = (Arc::clone(&waiter), Arc::clone(&gone));
        waiter.wait(&signal, move || {
            while Arc::strong_count(&own) > 1 {
                std::thread::sleep(Duration::from_millis(1));
            }
            drop(own);
            told.set(Ok(()));
            Ok(())
        });
        drop(waiter);
        while gone.get().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(signal.get(), None);
    }
}
