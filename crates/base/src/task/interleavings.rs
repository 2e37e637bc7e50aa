//! Work on a thread of its own in the orders that it and who awaits it may take.

use super::offload;
use crate::sync::interleavings::{check, dropped_after, inline};
use crate::sync::thread;
use shuttle::future::block_on;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

#[test]
fn who_awaits_work_on_a_thread_is_woken() {
    check(|| {
        assert_eq!(block_on(offload(|| Ok(1)).expect("a thread")).expect("its result"), 1);
        // By one task first, and then by another one.
        let mut work = offload(|| Ok(2)).expect("a thread");
        let found = dropped_after(1, &mut work).unwrap_or_else(|| block_on(work));
        assert_eq!(found.expect("its result"), 2);
        assert_eq!(offload(|| Ok(3)).expect("a thread").wait().expect("its result"), 3);
    });
}

#[test]
fn work_that_nobody_awaits_is_done_all_the_same() {
    check(|| {
        let done = Arc::new(AtomicUsize::new(0));
        for polls in 0..3 {
            let counted = Arc::clone(&done);
            let work = move || Ok(counted.fetch_add(1, SeqCst));
            drop(dropped_after(polls, offload(work).expect("a thread")));
        }
        while done.load(SeqCst) < 3 {
            thread::yield_now();
        }
    });
}

#[test]
fn a_task_may_be_polled_where_the_work_ends() {
    check(|| {
        let task = inline(async { offload(|| Ok(1))?.await });
        assert_eq!(task.recv().expect("it came to its end").expect("its result"), 1);
    });
}
