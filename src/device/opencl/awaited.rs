//! A run that is awaited instead of waited for.

use super::OpenClDevice;
use super::run;
use crate::device::signal::Signal;
use crate::device::{Recording, Slice};
use crate::error::Result;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

impl OpenClDevice {
    /// Writes inputs, runs a recording and reads outputs as [`crate::device::Device::run`] does,
    /// without blocking the calling thread while the device works.
    ///
    /// The work is enqueued when the future is first polled, and a thread of the device waits for it
    /// and wakes the task. The thread ends with the device. No executor is needed beyond one that
    /// polls the future. Dropping the future after that waits until the work is done, because the
    /// driver copies to memory that the future owns. Where threads cannot be started, the wait blocks.
    ///
    /// # Errors
    /// Those of [`crate::device::Device::run`].
    pub async fn run_async(
        &self,
        writes: &[(&Slice, &[u8])],
        recording: &Recording,
        reads: &[&Slice],
    ) -> Result<Vec<Vec<u8>>> {
        let flight = run::start(&self.inner, writes, recording, reads)?;
        let last = match flight.last() {
            Some(last) => last.retained()?,
            None => self.inner.lane().marker()?,
        };
        let done = Arc::new(Signal::default());
        let arrived = Arc::clone(&done);
        let patience = Arc::clone(&self.inner.patience);
        self.inner.waiter.wait(&done, move || {
            patience.wait(&last).map_err(|error| error.to_string())?;
            arrived.set(Ok(()));
            Ok(())
        });
        let arrival = poll_fn(|context| match done.get_or_wake(context.waker()) {
            Some(result) => Poll::Ready(result),
            None => Poll::Pending,
        });
        if arrival.await.is_err()
            && let Some(error) = self.inner.patience.given_up()
        {
            return Err(error);
        }
        // Which fails as the wait did, if it did.
        flight.finish()
    }
}
