//! Comparing what a candidate computes with what is expected of it.

use super::operands::{decode, encode};
use super::{OpBench, Prepared};
use crate::device::{Resource, Wait};
use crate::dtype::DType;
use crate::emit::Access;
use crate::error::{Error, Result};
use crate::layout::Form;
use crate::ops::Choice;
use crate::tune::bench::Check;
use crate::tune::problem::Expectation;

impl OpBench {
    /// Runs a prepared candidate once, over a destination that holds something else.
    pub(super) async fn checked(&mut self, wait: Wait, choice: &Choice) -> Result<Check> {
        self.expect(choice.variant)?;
        let prepared = self.prepared(choice)?;
        let recording = self.record(prepared, 0, 1)?;
        let (target, dtype) = self.target(prepared)?;
        let bindings = &prepared.launch.spec.interface.bindings;
        let Some(binding) = bindings.iter().find(|binding| binding.access != Access::Read) else {
            return Err(Error::Internal("a kernel without a destination".to_owned()));
        };
        let form = self.op.form(binding.operand, choice).unwrap_or(Form::Rows);
        let before = self.stored(choice, binding)?;
        let slice = match &target {
            Resource::Buffer(slice) => slice,
            Resource::Image(_) => {
                let stored = self.run_on_image(wait, prepared, &target, &before, dtype).await?;
                return Ok(self.expected(choice).compare(form, &stored));
            }
        };
        let before = encode(&before, dtype);
        let read = wait.run(&*self.device, &[(slice, &before)], &recording, &[slice]).await?;
        let stored = decode(read.first().map_or(&[], Vec::as_slice), dtype);
        Ok(self.expected(choice).compare(form, &stored))
    }

    /// The destination of set 0 and the type of its elements.
    fn target(&self, prepared: &Prepared) -> Result<(Resource, DType)> {
        let key = prepared.arguments.iter().find(|key| key.access != Access::Read);
        key.and_then(|key| Some((self.resources.get(key)?.first()?.clone(), key.dtype)))
            .ok_or_else(|| Error::Internal("a kernel without a destination".to_owned()))
    }

    /// Works out once what is expected of `variant`.
    fn expect(&mut self, variant: &'static str) -> Result<()> {
        if !self.variants.contains_key(variant) {
            let own = Expectation::of_variant(&*self.op, &self.operands, variant)?;
            self.variants.insert(variant, own);
        }
        Ok(())
    }

    fn expected(&self, choice: &Choice) -> &Expectation {
        self.variants.get(choice.variant).and_then(Option::as_ref).unwrap_or(&self.expected)
    }
}
