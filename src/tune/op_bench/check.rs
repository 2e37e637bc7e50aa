//! Comparing what a candidate computes with what is expected of it.

use super::operands::{Inputs, Key, decode, encode};
use super::{OpBench, Prepared};
use crate::clock::Instant;
use crate::device::{Resource, Slice, Wait};
use crate::dtype::DType;
use crate::emit::{Access, Binding, Operand};
use crate::error::{Error, Result};
use crate::layout::Form;
use crate::ops::Choice;
use crate::tune::bench::Check;
use crate::tune::problem::Expectation;

/// What a candidate has stored and what that is worth.
pub(super) struct Compared {
    pub(super) check: Check,
    pub(super) stored: Vec<u8>,
}

/// A result of a candidate that is not its last.
struct OtherResult<'a> {
    operand: Operand,
    slice: Slice,
    dtype: DType,
    /// What is there before a run.
    before: Vec<u8>,
    form: Form,
    expected: &'a Expectation,
}

impl OpBench {
    /// Runs a prepared candidate once, over a destination that holds something else.
    pub(super) async fn checked(&mut self, wait: Wait, choice: &Choice) -> Result<Check> {
        self.inputs.expect(&*self.op, choice.variant)?;
        self.repeating.forget(choice);
        let arguments = self.prepared(choice)?.arguments.clone();
        let begun = Instant::now();
        let Compared { check, stored } = self.compared(wait, &self.inputs, choice, &arguments).await?;
        self.round_trip = begun.elapsed();
        if check == Check::Correct {
            self.repeating.was_right(*choice, false, &stored);
        } else {
            let dtype = self.target(&arguments, 0)?.1;
            let ratio = self.inputs.expected(choice).ratio(self.form(choice)?, &decode(&stored, dtype));
            self.repeating.worst = self.repeating.worst.max(ratio);
        }
        Ok(check)
    }

    /// The largest error of the outputs of the candidate that was checked last that were wrong or differed, over the bound
    /// of its element; infinite where one is no number.
    pub fn worst(&self) -> f64 {
        self.repeating.worst
    }

    /// Compares what a run of the first set of operands stores.
    pub(super) async fn compared(
        &self,
        wait: Wait,
        inputs: &Inputs,
        choice: &Choice,
        arguments: &[Key],
    ) -> Result<Compared> {
        let prepared = self.prepared(choice)?;
        let before = self.stored(inputs, choice, &self.destination(choice)?)?;
        let (target, dtype) = self.target(arguments, 0)?;
        let recording = self.device.record(&self.runs(prepared, arguments, 0, 1)?)?;
        let stored = match &target {
            Resource::Buffer(slice) => {
                let before = encode(&before, dtype);
                let others = self.others(inputs, choice, arguments)?;
                let written: Vec<(&Slice, &[u8])> =
                    others.iter().map(|other| (&other.slice, &other.before[..])).collect();
                let all: Vec<(&Slice, &[u8])> = [(slice, &before[..])].into_iter().chain(written).collect();
                let reads: Vec<&Slice> = all.iter().map(|(slice, _)| *slice).collect();
                let mut read = wait.run(&*self.device, &all, &recording, &reads).await?.into_iter();
                let stored = read.next().unwrap_or_default();
                for (other, bytes) in others.iter().zip(read) {
                    let found = other.expected.compare(other.form, &decode(&bytes, other.dtype));
                    if let Check::Wrong { detail } = found {
                        let detail = format!("{}: {detail}", other.operand.name());
                        return Ok(Compared { check: Check::Wrong { detail }, stored });
                    }
                }
                stored
            }
            Resource::Image(_) => {
                let stored = self.run_on_image(wait, &recording, &target, &before, dtype).await?;
                encode(&stored, dtype)
            }
        };
        let check = inputs.expected(choice).compare(self.form(choice)?, &decode(&stored, dtype));
        Ok(Compared { check, stored })
    }

    /// What a candidate writes beside its last result.
    fn others<'a>(
        &self,
        inputs: &'a Inputs,
        choice: &Choice,
        arguments: &[Key],
    ) -> Result<Vec<OtherResult<'a>>> {
        let kernel = self.op.kernel(choice.variant)?;
        let mut others = Vec::with_capacity(inputs.others().len());
        for (operand, expected) in inputs.others() {
            let key = arguments.iter().find(|key| key.operand == *operand && key.access != Access::Read);
            let resource = key.and_then(|key| Some((self.resources.get(key)?.first()?, key.dtype)));
            let Some((Resource::Buffer(slice), dtype)) = resource else {
                return Err(Error::Internal(format!("a kernel without a buffer for {}", operand.name())));
            };
            let form = kernel.form(*operand, choice).unwrap_or(Form::Rows);
            let nothing = vec![f32::NAN; self.info(*operand)?.stored_elements(form)];
            let (slice, before) = (slice.clone(), encode(&nothing, dtype));
            others.push(OtherResult { operand: *operand, slice, dtype, before, form, expected });
        }
        Ok(others)
    }

    /// The form of what a candidate writes.
    pub(super) fn form(&self, choice: &Choice) -> Result<Form> {
        let operand = self.destination(choice)?.operand;
        Ok(self.op.kernel(choice.variant)?.form(operand, choice).unwrap_or(Form::Rows))
    }

    /// What a prepared candidate writes.
    pub(super) fn destination(&self, choice: &Choice) -> Result<Binding> {
        let Prepared { launch, .. } = self.prepared(choice)?;
        let found = launch.spec.interface.bindings.iter().find(|binding| binding.access != Access::Read);
        found.copied().ok_or_else(|| Error::Internal("a kernel without a destination".to_owned()))
    }

    /// The destination of a set and the type of its elements.
    pub(super) fn target(&self, arguments: &[Key], set: usize) -> Result<(Resource, DType)> {
        let key = arguments.iter().find(|key| key.access != Access::Read);
        key.and_then(|key| Some((self.resources.get(key)?.get(set)?.clone(), key.dtype)))
            .ok_or_else(|| Error::Internal("a kernel without a destination".to_owned()))
    }
}
