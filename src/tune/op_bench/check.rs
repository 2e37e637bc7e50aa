//! Comparing what a candidate computes with what is expected of it.

use super::operands::{decode, encode};
use super::{OpBench, Prepared};
use crate::clock::Instant;
use crate::device::{Resource, Wait};
use crate::dtype::DType;
use crate::emit::{Access, Binding};
use crate::error::{Error, Result};
use crate::layout::Form;
use crate::ops::Choice;
use crate::tune::bench::Check;
use crate::tune::problem::Expectation;

/// Runs back to back of every second comparison that repeats one.
const BACK_TO_BACK: u32 = 4;

impl OpBench {
    /// Runs a prepared candidate once, over a destination that holds something else.
    pub(super) async fn checked(&mut self, wait: Wait, choice: &Choice) -> Result<Check> {
        self.expect(choice.variant)?;
        self.right = None;
        self.compared(wait, choice, 0, 1).await
    }

    /// [`OpBench::checked`] again, on the operand sets in turns. What equals a result that was right, to the bit, is right;
    /// anything else is compared as the first time.
    pub(super) async fn rechecked(&mut self, wait: Wait, choice: &Choice, turn: u32) -> Result<Check> {
        self.expect(choice.variant)?;
        // What a run adds to cannot be run twice for one result.
        let adds = self.destination(choice)?.access == Access::ReadWrite;
        let runs = if adds || turn.is_multiple_of(2) { 1 } else { BACK_TO_BACK };
        self.compared(wait, choice, turn as usize, runs).await
    }

    /// Compares what the last of `runs` stores, the first of which is that of operand set `first`.
    async fn compared(&mut self, wait: Wait, choice: &Choice, first: usize, runs: u32) -> Result<Check> {
        let prepared = self.prepared(choice)?;
        let binding = self.destination(choice)?;
        let form = self.op.kernel(choice.variant)?.form(binding.operand, choice).unwrap_or(Form::Rows);
        let before = self.stored(choice, &binding)?;
        let last = (first + runs as usize).saturating_sub(1) % self.sets;
        let (target, dtype) = self.target(prepared, last)?;
        let (recording, begun) = (self.record(prepared, first, runs)?, Instant::now());
        let stored = match &target {
            Resource::Buffer(slice) => {
                let before = encode(&before, dtype);
                let read = wait.run(&*self.device, &[(slice, &before)], &recording, &[slice]).await?;
                read.into_iter().next().unwrap_or_default()
            }
            Resource::Image(_) => {
                let stored = self.run_on_image(wait, &recording, &target, &before, dtype).await?;
                encode(&stored, dtype)
            }
        };
        self.round_trip = begun.elapsed();
        if self.right.as_ref().is_some_and(|(of, right)| of == choice && *right == stored) {
            return Ok(Check::Correct);
        }
        let check = self.expected(choice).compare(form, &decode(&stored, dtype));
        if check == Check::Correct {
            self.right = Some((*choice, stored));
        }
        Ok(check)
    }

    /// What a prepared candidate writes.
    fn destination(&self, choice: &Choice) -> Result<Binding> {
        let bindings = &self.prepared(choice)?.launch.spec.interface.bindings;
        let found = bindings.iter().find(|binding| binding.access != Access::Read);
        found.copied().ok_or_else(|| Error::Internal("a kernel without a destination".to_owned()))
    }

    /// The destination of a set and the type of its elements.
    fn target(&self, prepared: &Prepared, set: usize) -> Result<(Resource, DType)> {
        let key = prepared.arguments.iter().find(|key| key.access != Access::Read);
        key.and_then(|key| Some((self.resources.get(key)?.get(set)?.clone(), key.dtype)))
            .ok_or_else(|| Error::Internal("a kernel without a destination".to_owned()))
    }

    /// Works out once what is expected of `variant`.
    fn expect(&mut self, variant: &'static str) -> Result<()> {
        if !self.variants.contains_key(variant) {
            let own = Expectation::of_kernel(&*self.op, &self.operands, variant)?;
            self.variants.insert(variant, own);
        }
        Ok(())
    }

    fn expected(&self, choice: &Choice) -> &Expectation {
        self.variants.get(choice.variant).and_then(Option::as_ref).unwrap_or(&self.expected)
    }
}
