//! Waits for a driver in the orders that a device's threads may take. The driver is played by the models.

use super::signal::Signal;
use super::waiter::Waiter;
use crate::sync::interleavings::{check, dropped_after, inline};
use crate::sync::mpsc::channel;
use crate::sync::thread;
use shuttle::future::block_on;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// Waits on the device's thread for the device, while another thread that polls the driver may set the signal.
async fn arrival(waiter: Arc<Waiter>, signal: Arc<Signal>) -> Result<(), String> {
    let (polls, watched, own) = (Arc::clone(&signal), Arc::clone(&signal), Arc::clone(&signal));
    let (work, done) = channel();
    thread::spawn(move || {
        // The device is done. Who notices it first calls back.
        work.send(()).expect("the wait is under way, or will be");
        polls.set(Ok(()));
    });
    waiter.wait(&watched, move || {
        done.recv().map_err(|_| "the device is gone".to_owned())?;
        own.set(Ok(()));
        Ok(())
    });
    poll_fn(|context| signal.get_or_wake(context.waker()).map_or(Poll::Pending, Poll::Ready)).await
}

#[test]
fn who_awaits_a_device_is_woken_and_may_drop_it() {
    check(|| {
        let waiter = Arc::new(Waiter::default());
        let awaits = |waiter: &Arc<Waiter>| arrival(Arc::clone(waiter), Arc::default());
        assert_eq!(block_on(awaits(&waiter)), Ok(()));
        for polls in 0..3 {
            drop(dropped_after(polls, awaits(&waiter)));
        }
        let last = inline(awaits(&waiter));
        drop(waiter);
        assert_eq!(last.recv(), Ok(Ok(())));
    });
}

#[test]
fn a_wait_that_fails_says_so_to_all_who_ask() {
    check(|| {
        let (waiter, signal) = (Waiter::default(), Arc::new(Signal::default()));
        let asks = Arc::clone(&signal);
        let asks = thread::spawn(move || {
            block_on(poll_fn(|context| asks.get_or_wake(context.waker()).map_or(Poll::Pending, Poll::Ready)))
        });
        waiter.wait(&signal, || Err("lost".to_owned()));
        drop(waiter);
        assert_eq!(asks.join().expect("no panic"), Err("lost".to_owned()));
        assert_eq!(signal.get(), Some(Err("lost".to_owned())));
    });
}

#[cfg(feature = "wgpu")]
#[test]
fn who_blocks_is_told() {
    check(|| {
        let signal = Arc::new(Signal::default());
        let told = Arc::clone(&signal);
        // A model's time never runs out: who is not woken waits for ever.
        let blocks = thread::spawn(move || told.get_within(std::time::Duration::MAX));
        let others = Arc::clone(&signal);
        let others = thread::spawn(move || others.set(Err("late".to_owned())));
        signal.set(Ok(()));
        let found = blocks.join().expect("no panic").expect("a result");
        others.join().expect("no panic");
        // Set once.
        assert_eq!(signal.get(), Some(found));
    });
}
