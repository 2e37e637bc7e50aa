//! Those who wait for a request's answer.

use super::queue::Queue;
use super::slot::{Slot, Stage, ended};
use crate::error::{Error, Result};
use crate::host::HostTensor;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};

impl Queue {
    /// A request behind the others.
    pub(super) fn push(self: &Arc<Self>, inputs: Vec<HostTensor>) -> Result<Ticket> {
        let slot = self.append(inputs, true)?.ok_or_else(ended)?;
        Ok(Ticket { slot, queue: Arc::clone(self) })
    }

    /// [`Queue::push`], if it need not be held back.
    pub(super) fn push_if_room(self: &Arc<Self>, inputs: Vec<HostTensor>) -> Result<Option<Ticket>> {
        let slot = self.append(inputs, false)?;
        Ok(slot.map(|slot| Ticket { slot, queue: Arc::clone(self) }))
    }
}

/// A request to a [`Batch`](super::Batch), to await or to wait for. If it is dropped before its run has begun, the request is
/// withdrawn.
///
/// ```
/// # use diptych::{Backend, Batch, BatchOptions, Context, DevicePool, Function, Graph, HostTensor, Shape, Term};
/// # let mut graph = Graph::new();
/// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
/// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
/// # graph.output(double)?;
/// # let input = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]);
/// # let batch = Batch::new(&Context::new(Backend::Cpu)?, &graph, BatchOptions::default())?;
/// let ticket = batch.submit([("x", input(1.0)?)])?;
/// println!("the request is on its way");
/// assert_eq!(ticket.wait()?[0].to_f32()[0], 2.0);
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a request whose ticket is dropped is withdrawn"]
pub struct Ticket {
    slot: Arc<Slot>,
    queue: Arc<Queue>,
}

impl Ticket {
    /// Blocks until the outputs are there.
    ///
    /// ```
    /// # use diptych::{Backend, Batch, BatchOptions, Context, DevicePool, Function, Graph, HostTensor, Shape, Term};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// # graph.output(double)?;
    /// # let input = |value: f32| HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]);
    /// # let batch = Batch::new(&Context::new(Backend::Cpu)?, &graph, BatchOptions::default())?;
    /// let outputs = batch.submit([("x", input(1.0)?)])?.wait()?;
    /// assert_eq!(outputs[0].to_f32()[0], 2.0);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Batch::run`](super::Batch::run).
    #[expect(clippy::disallowed_methods, reason = "whoever calls it may wait: others await the ticket")]
    pub fn wait(self) -> Result<Vec<HostTensor>> {
        let mut held = self.slot.lock();
        loop {
            match std::mem::replace(&mut held.0, Stage::Over) {
                Stage::Answered(result) => return result,
                other => held.0 = other,
            }
            held = self.slot.changed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Blocks while the request is held back.
    #[expect(clippy::disallowed_methods, reason = "whoever calls it may wait: others await the room")]
    pub(super) fn wait_for_room(&self) {
        let mut held = self.slot.lock();
        while matches!(held.0, Stage::Waiting) {
            held = self.slot.changed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ready when the request is not held back.
    pub(super) fn poll_room(&mut self, context: &Context<'_>) -> Poll<()> {
        let mut held = self.slot.lock();
        if !matches!(held.0, Stage::Waiting) {
            return Poll::Ready(());
        }
        held.1 = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Future for Ticket {
    type Output = Result<Vec<HostTensor>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut held = self.slot.lock();
        match std::mem::replace(&mut held.0, Stage::Over) {
            Stage::Answered(result) => return Poll::Ready(result),
            Stage::Over => {
                let found = "a ticket that was polled after its answer".to_owned();
                return Poll::Ready(Err(Error::Internal(found)));
            }
            other => held.0 = other,
        }
        held.1 = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if matches!(self.slot.lock().0, Stage::Answered(_) | Stage::Over) {
            return;
        }
        self.queue.withdraw(&self.slot);
    }
}
