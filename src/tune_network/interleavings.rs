//! The thread of a tuner in the orders that it and its tuner may take.

use super::thread::Thread;
use crate::sync::interleavings::{check, dropped_after, inline};
use shuttle::future::block_on;
use std::future::poll_fn;
use std::time::Duration;

type Steps = Thread<Vec<u64>, usize>;

fn steps() -> Steps {
    let step = |work: &mut Vec<u64>, budget: Duration| {
        work.push(budget.as_secs());
        work.len()
    };
    Thread::start(step).expect("a thread")
}

fn send(thread: &Steps, work: Vec<u64>, seconds: u64) {
    thread.send(work, Duration::from_secs(seconds)).expect("a thread that lives");
}

#[test]
fn work_comes_back_to_who_waits_or_awaits() {
    check(|| {
        let thread = steps();
        send(&thread, Vec::new(), 1);
        let (work, _) = thread.wait().expect("the work");
        send(&thread, work, 2);
        let (work, _) = block_on(poll_fn(|task| thread.poll(task))).expect("the work");
        send(&thread, work, 3);
        // A step that is not awaited to its end is fetched by the next one.
        let early = dropped_after(2, poll_fn(|task| thread.poll(task))).flatten();
        let done = early.or_else(|| thread.wait_for(Duration::MAX).expect("a thread that lives"));
        assert_eq!(done, Some((vec![1, 2, 3], 3)));
    });
}

#[test]
fn a_thread_whose_work_nobody_fetches_ends() {
    check(|| {
        for polls in 0..3 {
            let thread = steps();
            send(&thread, Vec::new(), 1);
            drop(dropped_after(polls, poll_fn(|task| thread.poll(task))));
        }
    });
}

#[test]
fn a_task_that_is_polled_by_the_thread_may_drop_it() {
    check(|| {
        let thread = steps();
        send(&thread, Vec::new(), 1);
        let task = inline(async move { poll_fn(|task| thread.poll(task)).await });
        assert_eq!(task.recv().expect("it came to its end"), Some((vec![1], 1)));
    });
}
