//! The kernels of a nest as those of an op that computes one.

use super::{LoopsOp, OpNest, OperandSet, flat, rows};
use crate::dtype::Precision;
use crate::emit::{Binding, Body};
use crate::limits::Limits;
use crate::ops::definition::Definition;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry};
use crate::ops::plan::Choice;
use crate::ops::rows::wide_obstacle;
use crate::ops::spec::Params;
use std::sync::Arc;

/// A kernel of a nest, for an op that is one ([`Definition::nest`]).
#[derive(Debug)]
pub(in crate::ops) struct AsNest {
    name: &'static str,
    kernel: &'static dyn Kernel<LoopsOp>,
}

impl AsNest {
    /// `rows`: an element of the result, or four of them, per invocation, of an op that reduces nothing, or axes of one place.
    pub(in crate::ops) const ELEMENTS: AsNest = AsNest { name: "rows", kernel: &flat::Flat };
    /// `group`: rows of an op that reduces them, each by one or several invocations of a work-group.
    pub(in crate::ops) const REDUCTIONS: AsNest = AsNest { name: "group", kernel: &rows::Rows };

    /// What `of` gives of the op as a nest, if it is one.
    fn with<O: Definition, T>(
        &self,
        op: &O,
        of: impl FnOnce(&dyn Kernel<LoopsOp>, &LoopsOp) -> T,
    ) -> Option<T> {
        let OpNest { nest, operands, halves } = op.nest()?;
        let loops = LoopsOp::new(Arc::new(nest), halves, OperandSet::NONE, op.precision()).ok()?;
        Some(of(self.kernel, &LoopsOp { sources: operands, ..loops }))
    }
}

impl<O: Definition> Kernel<O> for AsNest {
    fn entry(&self) -> VariantEntry {
        VariantEntry { name: self.name, ..self.kernel.entry() }
    }

    fn offers(&self, op: &O, limits: &Limits) -> Vec<Offer> {
        self.with(op, |kernel, op| kernel.offers(op, limits)).unwrap_or_default()
    }

    fn grid(&self, op: &O, tile: [u32; 3]) -> [u32; 3] {
        self.with(op, |kernel, op| kernel.grid(op, tile)).unwrap_or([1; 3])
    }

    fn obstacle(&self, op: &O, _limits: &Limits) -> Option<String> {
        op.operands().into_iter().find_map(|info| wide_obstacle(info.dtype))
    }

    fn choice_obstacle(&self, op: &O, choice: &Choice, limits: &Limits) -> Option<String> {
        self.with(op, |kernel, op| kernel.choice_obstacle(op, choice, limits))?
    }

    fn work_groups(&self, op: &O, tile: [u32; 3]) -> Vec<[u32; 3]> {
        self.with(op, |kernel, op| kernel.work_groups(op, tile)).unwrap_or_default()
    }

    fn bindings(&self, op: &O, choice: &Choice) -> Vec<Binding> {
        self.with(op, |kernel, op| kernel.bindings(op, choice)).unwrap_or_default()
    }

    fn params(&self, op: &O, choice: &Choice) -> Params {
        self.with(op, |kernel, op| kernel.params(op, choice)).unwrap_or_default()
    }

    fn constants(&self, op: &O, choice: &Choice, limits: &Limits) -> Constants {
        self.with(op, |kernel, op| kernel.constants(op, choice, limits)).unwrap_or_default()
    }

    fn body(&self, op: &O, choice: &Choice) -> Body {
        self.with(op, |kernel, op| kernel.body(op, choice)).unwrap_or_default()
    }

    fn precision(&self, op: &O) -> Option<Precision> {
        self.with(op, |kernel, op| kernel.precision(op))?
    }
}
