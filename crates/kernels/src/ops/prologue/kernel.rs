//! A kernel of an op that computes one of its inputs.

use super::PrologueOp;
use crate::emit::{Operand, Param};
use crate::error::Result;
use crate::layout::Form;
use crate::limits::Limits;
use crate::ops::bound::{BoundKernel, MAX_BUFFERS};
use crate::ops::effort::Effort;
use crate::ops::kernel::{Offer, VariantEntry};
use crate::ops::operands::Operands;
use crate::ops::plan::{Choice, Launch};
use crate::ops::reference::Reference;
use crate::ops::spec;

/// A kernel with the nest in the place of an operand.
#[derive(Debug)]
pub(super) struct PrologueKernel<'a> {
    pub(super) op: &'a PrologueOp,
    pub(super) kernel: Box<dyn BoundKernel + 'a>,
}

impl PrologueKernel<'_> {
    /// Why it cannot compute the operand, if it cannot.
    fn obstacle(&self, choice: &Choice, limits: &Limits) -> Option<String> {
        let PrologueOp { operand, nest, .. } = self.op;
        if !self.kernel.takes_prologue(*operand, choice) {
            return Some(format!("its text computes no {}", operand.name()));
        }
        if !self.kernel.form(*operand, choice).is_some_and(Form::is_rows) {
            return Some(format!("it reads {} in another layout than rows", operand.name()));
        }
        if !nest.runs_on(limits) {
            return Some("single halves in a buffer need native half arithmetic".to_owned());
        }
        let buffers = self.buffers(choice);
        (buffers > MAX_BUFFERS).then(|| format!("{buffers} buffers, wanted at most {MAX_BUFFERS}"))
    }
}

impl BoundKernel for PrologueKernel<'_> {
    fn entry(&self) -> VariantEntry {
        self.kernel.entry()
    }

    fn offers(&self, limits: &Limits) -> Vec<Offer> {
        let mut offers = self.kernel.offers(limits);
        offers.retain(|offer| self.obstacle(&self.kernel.choice(offer.tile, [1; 3]), limits).is_none());
        offers
    }

    fn grid(&self, tile: [u32; 3]) -> [u32; 3] {
        self.kernel.grid(tile)
    }

    fn work_groups(&self, tile: [u32; 3]) -> Vec<[u32; 3]> {
        self.kernel.work_groups(tile)
    }

    fn dst_depth(&self) -> u32 {
        self.kernel.dst_depth()
    }

    fn form(&self, operand: Operand, choice: &Choice) -> Option<Form> {
        match operand {
            Operand::Read(_) => self.op.nest.source_form(operand),
            _ => self.kernel.form(operand, choice),
        }
    }

    fn joins(&self, _choice: &Choice) -> Option<Vec<(Operand, usize)>> {
        None
    }

    fn untuned(&self, limits: &Limits) -> bool {
        self.kernel.untuned(limits)
    }

    fn counted(&self, choice: &Choice) -> u64 {
        self.kernel.counted(choice)
    }

    fn effort(&self, choice: &Choice, limits: &Limits) -> Option<Effort> {
        self.kernel.effort(choice, limits)
    }

    fn estimate(&self, choice: &Choice, limits: &Limits) -> Option<f64> {
        self.kernel.estimate(choice, limits)
    }

    fn fits(&self, choice: &Choice, limits: &Limits) -> Result<()> {
        match self.obstacle(choice, limits) {
            None => self.kernel.fits(choice, limits),
            Some(obstacle) => spec::reject(self.op.op.name(), choice, obstacle),
        }
    }

    fn plan(&self, choice: &Choice, limits: &Limits) -> Result<Launch> {
        self.fits(choice, limits)?;
        let mut launch = self.kernel.plan(choice, limits)?;
        let bindings = &mut launch.spec.interface.bindings;
        let at = bindings.iter().position(|own| own.operand == self.op.operand);
        let Some((at, own)) = at.and_then(|at| Some((at, bindings.get(at)?))) else {
            return spec::reject(
                self.op.op.name(),
                choice,
                format!("it binds no {}", self.op.operand.name()),
            );
        };
        let prologue = self.op.nest.prologue(self.op.operand, own.element, launch.spec.native_half);
        bindings.splice(at..=at, prologue.bindings);
        for (name, value) in prologue.params {
            launch.spec.interface.params.push(Param { name, ty: value.ty() });
            launch.params.push(value);
        }
        launch.spec.prologue = Some(prologue.text);
        Ok(launch)
    }

    fn pack(&self, choice: &Choice, operand: Operand, data: &[f32]) -> Result<Vec<f32>> {
        match operand {
            // A constant that is read as it is.
            Operand::Read(_) => Ok(data.to_vec()),
            _ => self.kernel.pack(choice, operand, data),
        }
    }

    fn buffers(&self, choice: &Choice) -> usize {
        self.kernel.buffers(choice).saturating_sub(1) + self.op.reads().len()
    }

    fn reference(&self, _operands: &Operands<'_>, reference: Reference) -> Result<Reference> {
        Ok(reference)
    }
}
