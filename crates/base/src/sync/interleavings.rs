//! Runs of models: the order in which threads go on is chosen by chance, from a seed.

use super::mpsc::{Receiver, Sender, channel};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

/// Sessions are made on the threads of models.
const STACK: usize = 4 << 20;

/// Threads that are held back at most, in orders that give every thread its way but for some moments.
const DEPTH: usize = 3;

fn number(variable: &str, default: usize) -> usize {
    match std::env::var(variable) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => default,
    }
}

/// Runs `model` in `DIPTYCH_MODELS` orders (default 1000) from `DIPTYCH_MODELS_SEED` on: half of them by chance, half with few
/// threads held back. A deadlock fails, as a panic does.
pub fn check(model: impl Fn() + Send + Sync + 'static) {
    let (orders, seed) = (number("DIPTYCH_MODELS", 1000), number("DIPTYCH_MODELS_SEED", 1) as u64);
    let model = Arc::new(model);
    let config = || {
        let mut config = Config::new();
        config.stack_size = STACK;
        config
    };
    let same = Arc::clone(&model);
    let random = RandomScheduler::new_from_seed(seed, orders.div_ceil(2));
    let by_chance = Runner::new(random, config()).run(move || same());
    let few = PctScheduler::new_from_seed(seed, DEPTH, orders / 2);
    let with_few = Runner::new(few, config()).run(move || model());
    assert_eq!(by_chance + with_few, orders);
    println!("{orders} orders from seed {seed}");
}

/// Polls `work` so many times, with others in between, and drops it; what came of it.
pub fn dropped_after<F: Future>(polls: usize, work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    for _ in 0..polls {
        if let Poll::Ready(outcome) = work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return Some(outcome);
        }
        super::thread::yield_now();
    }
    None
}

/// A task that is polled by whoever wakes it, within the call. Its lock is never held while another thread may go on.
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
    fn poll(self: &Arc<Self>) {
        let waker = Waker::from(Arc::clone(self));
        loop {
            let future = {
                let mut task = self.task.lock().expect("no panic");
                let future = task.future.take();
                task.again = future.is_none();
                future
            };
            let Some(mut future) = future else { return };
            if let Poll::Ready(outcome) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                // And all that it owns.
                drop(future);
                let _ = self.tell.send(outcome);
                return;
            }
            let mut task = self.task.lock().expect("no panic");
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
pub fn inline<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Receiver<T> {
    let (tell, told) = channel();
    let task = Task { future: Some(Box::pin(work)), again: false };
    Arc::new(Inline { task: Mutex::new(task), tell }).poll();
    told
}
