//! Work that is awaited: how the blocking calls wait for it, and how it shares a thread.
//!
//! What blocks is a few lines around what is awaited, and is not there on `wasm32`, whose one thread is the page's.

mod offload;
mod turns;

pub use offload::{Running, offload};
pub use turns::Turns;

use crate::unwind::caught;
use std::future::Future;
use std::pin::Pin;
use std::task::{Poll, Waker};

/// What is awaited. Any thread may do so, but where there is only one.
#[cfg(not(target_family = "wasm"))]
pub type Awaited<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// What is awaited. Any thread may do so, but where there is only one.
#[cfg(target_family = "wasm")]
pub type Awaited<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// What another thread may be given, where there is one.
#[cfg(not(target_family = "wasm"))]
pub trait Movable: Send {}
#[cfg(not(target_family = "wasm"))]
impl<T: Send + ?Sized> Movable for T {}
/// What another thread may be given, where there is one.
#[cfg(target_family = "wasm")]
pub trait Movable {}
#[cfg(target_family = "wasm")]
impl<T: ?Sized> Movable for T {}

/// What is awaited on the thread that asked for it.
pub type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Wakes a task. An application's executor may run the task at once: its panic must not end a thread that serves
/// others.
pub fn wake(waker: Waker) {
    if let Err(error) = caught("a task that was woken", || waker.wake()) {
        tracing::error!("{error}");
    }
}

/// Waits for `work`.
#[cfg(not(target_family = "wasm"))]
#[expect(clippy::disallowed_methods, reason = "callers that may block call it")]
pub fn block_on<F: Future>(work: F) -> F::Output {
    pollster::block_on(work)
}

/// What comes of work that awaits nothing, as on the CPU; none if it did.
pub fn at_once<F: Future>(work: F) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(work).poll(&mut context) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}

/// Awaits both, the first one first; the other one is dropped where the first fails. In a browser they take turns.
pub async fn both<A, B, E>(
    first: impl Future<Output = Result<A, E>>,
    second: impl Future<Output = Result<B, E>>,
) -> Result<(A, B), E> {
    let (mut first, mut second) = (std::pin::pin!(first), std::pin::pin!(second));
    let (mut one, mut other) = (None, None);
    std::future::poll_fn(|context| {
        if one.is_none()
            && let Poll::Ready(outcome) = first.as_mut().poll(context)
        {
            one = Some(outcome?);
        }
        if other.is_none()
            && let Poll::Ready(outcome) = second.as_mut().poll(context)
        {
            other = Some(outcome?);
        }
        match (one.take(), other.take()) {
            (Some(one), Some(other)) => Poll::Ready(Ok((one, other))),
            some => {
                (one, other) = some;
                Poll::Pending
            }
        }
    })
    .await
}

/// Begins `work`; what comes of it, if that is known at once.
#[cfg(target_family = "wasm")]
pub async fn begun<T>(work: &mut Awaited<'_, T>) -> Option<T> {
    let once = |context: &mut std::task::Context<'_>| match work.as_mut().poll(context) {
        Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
        Poll::Pending => Poll::Ready(None),
    };
    std::future::poll_fn(once).await
}

#[cfg(shuttle)]
mod interleavings;
