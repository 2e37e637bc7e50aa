//! A run that is awaited instead of waited for.

use super::{Inner, run};
use crate::device::Readback;
use crate::device::signal::Signal;
use crate::error::Result;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// What a run has read, without blocking the calling thread while the device works: a thread of the device waits for it
/// and wakes the task. The thread ends with the device. No executor is needed beyond one that polls the future. Dropping
/// the future waits until the work is done, because the driver copies to memory that the run owns. Where threads cannot be
/// started, the wait blocks.
pub(super) async fn arrived(inner: Arc<Inner>, flight: Box<dyn run::Running>) -> Result<Box<dyn Readback>> {
    let last = match flight.last() {
        Some(last) => last.retained()?,
        None => inner.lane().marker()?,
    };
    let done = Arc::new(Signal::default());
    let arrived = Arc::clone(&done);
    let patience = Arc::clone(&inner.patience);
    inner.waiter.wait(&done, move || {
        patience.wait(&last).map_err(|error| error.to_string())?;
        arrived.set(Ok(()));
        Ok(())
    });
    let arrival = poll_fn(|context| match done.get_or_wake(context.waker()) {
        Some(result) => Poll::Ready(result),
        None => Poll::Pending,
    });
    if arrival.await.is_err()
        && let Some(error) = inner.patience.given_up()
    {
        return Err(error);
    }
    // Which fails as the wait did, if it did.
    flight.wait()
}
