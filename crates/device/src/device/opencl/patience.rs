//! How long a wait for the device may take, and what becomes of memory that it does not let go of.

use super::call::{Event, Lane, Owned, check, wait_for};
use super::{cl, lock};
use crate::clock::Instant;
use crate::error::{Error, Result};
use cl3::event::CL_EVENT_COMMAND_EXECUTION_STATUS;
use cl3::types::{cl_device_id, cl_int};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How long a thread looks again and again before it sleeps in between, and for how long it sleeps.
const SPIN_TIME: Duration = Duration::from_millis(1);
const PAUSE: Duration = Duration::from_micros(200);

/// How many contexts of a device gave up their last wait; above 0 the device is taken to be hung. NVIDIA's driver waits for a
/// device where memory of it is released, so nothing of a hung one is released. Others are as they were.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hung(&'static AtomicUsize);

impl Hung {
    /// The state of a device, which lives as long as the process: a device has one handle, which all contexts on it share.
    pub(super) fn of(device: cl_device_id) -> Self {
        static DEVICES: Mutex<Vec<(usize, Hung)>> = Mutex::new(Vec::new());
        let (device, mut known) = (device as usize, lock(&DEVICES));
        if let Some((_, hung)) = known.iter().find(|(own, _)| *own == device) {
            return *hung;
        }
        let hung = Hung(Box::leak(Box::default()));
        known.push((device, hung));
        hung
    }

    /// Whether it has come to no end.
    pub(super) fn is_now(self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// The limit of a device's waits.
///
/// OpenCL waits without one. With one, an event is asked whether it has completed.
pub(super) struct Patience {
    limit: Option<Duration>,
    /// Whether the last wait was given up.
    spent: AtomicBool,
    hung: Hung,
}

impl Patience {
    pub(super) fn new(limit: Option<Duration>, hung: Hung) -> Self {
        Patience { limit, spent: AtomicBool::new(false), hung }
    }

    /// Whether waits have a limit.
    pub(super) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    fn spend(&self, spent: bool) {
        match (self.spent.swap(spent, Ordering::Relaxed), spent) {
            (false, true) => self.hung.0.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.hung.0.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
    }

    /// The error of the last wait, if it was given up.
    pub(super) fn given_up(&self) -> Option<Error> {
        let limit = self.limit.filter(|_| self.spent.load(Ordering::Relaxed))?;
        Some(Error::TimedOut { api: "OpenCL", limit })
    }

    /// Waits until `event` has completed.
    ///
    /// # Errors
    /// [`Error::TimedOut`] after the limit; as `clWaitForEvents`.
    pub(super) fn wait(&self, event: &Owned<Event>) -> Result<()> {
        self.wait_within(event, self.limit)
    }

    /// Waits until `event` has completed, but only asks once whether it has if the last wait was given up: for memory that is
    /// about to be released.
    ///
    /// # Errors
    /// [`Error::TimedOut`] after the limit, or at once if the last wait was given up; as `clWaitForEvents`.
    pub(super) fn wait_again(&self, event: &Owned<Event>) -> Result<()> {
        self.wait_within(event, if self.given_up().is_some() { Some(Duration::ZERO) } else { self.limit })
    }

    #[expect(clippy::disallowed_methods, reason = "a browser has no OpenCL")]
    fn wait_within(&self, event: &Owned<Event>, limit: Option<Duration>) -> Result<()> {
        if let Some(limit) = limit {
            let start = Instant::now();
            while !has_ended(event)? {
                let waited = start.elapsed();
                if waited >= limit {
                    self.spend(true);
                    let limit = self.limit.unwrap_or(limit);
                    return Err(Error::TimedOut { api: "OpenCL", limit });
                }
                if waited < SPIN_TIME {
                    std::thread::yield_now();
                } else {
                    std::thread::sleep(PAUSE.min(limit - waited));
                }
            }
            self.spend(false);
        }
        wait_for(event)
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        self.spend(false);
    }
}

/// Whether the command has completed or failed.
fn has_ended(event: &Owned<Event>) -> Result<bool> {
    let status = cl::get_event_data(event.raw(), CL_EVENT_COMMAND_EXECUTION_STATUS);
    let status = check("clGetEventInfo", status)?.try_into().map(cl_int::from_ne_bytes);
    let status = status.map_err(|_| Error::Internal("clGetEventInfo gave no status".to_owned()))?;
    Ok(status <= cl3::event::CL_COMPLETE)
}

/// Drops `memory`, which the device may copy from or to, once all that was enqueued on `lanes` has completed. If that
/// is not known, it is left where it is: a driver writes to memory whenever it gets to it.
pub(super) fn let_go<T>(lanes: &[Lane<'_>], memory: T) {
    // All are asked: each hands what was enqueued on it to the device.
    let drained = lanes.iter().map(|lane| lane.drain()).filter(|drained| !drained).count() == 0;
    if !drained {
        tracing::warn!("the device did not come to an end: its memory on the host is left to it");
        std::mem::forget(memory);
    }
}

/// Waits for the queue when dropped, unless [`Drain::done`] says that nothing borrowed is in flight any more.
///
/// Held while the device copies from or to memory that is only borrowed, so that an early return
/// cannot free it under the driver.
pub(super) struct Drain<'a> {
    lane: Lane<'a>,
    armed: bool,
}

impl<'a> Drain<'a> {
    pub(super) fn new(lane: Lane<'a>) -> Self {
        Drain { lane, armed: true }
    }

    /// Everything has completed.
    pub(super) fn done(mut self) {
        self.armed = false;
    }
}

impl Drop for Drain<'_> {
    fn drop(&mut self) {
        if self.armed {
            // Whoever owns the memory asks again with `let_go`, where waits have a limit.
            let _ = self.lane.drain();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::opencl::call::Kind;
    use std::ffi::c_void;
    use std::ptr;

    /// Objects of no driver, whose releases are counted.
    enum Counted {}

    static RELEASED: AtomicUsize = AtomicUsize::new(0);

    impl Kind for Counted {
        const RELEASE: &'static str = "release";

        unsafe fn release(_: *mut c_void) -> std::result::Result<(), cl_int> {
            RELEASED.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    #[test]
    fn a_hung_device_stops_no_other_ones_releases() {
        let [hung, other] = [1, 2].map(|device| Hung::of(ptr::without_provenance_mut(device)));
        let released = |hung: Hung| {
            let before = RELEASED.load(Ordering::Relaxed);
            // SAFETY: what releases it does not look at it.
            drop(unsafe { Owned::<Counted>::new(ptr::null_mut(), hung) });
            RELEASED.load(Ordering::Relaxed) - before
        };
        let [first, second] = [0, 1].map(|_| Patience::new(Some(Duration::ZERO), hung));
        first.spend(true);
        assert_eq!([released(hung), released(other)], [0, 1]);
        // Another context of the same device.
        second.spend(true);
        first.spend(false);
        assert_eq!([released(hung), released(other)], [0, 1]);
        assert!(Hung::of(ptr::without_provenance_mut(1)).is_now());
        drop(second);
        assert_eq!([released(hung), released(other)], [1, 1]);
    }
}
