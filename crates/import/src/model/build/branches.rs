//! Branches that a condition chooses which is computed at each run: both are computed.

use super::builder::{Builder, Wanted};
use super::operand::{Mapped, Operand};
use crate::model::input_dependence::help;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// A condition that is computed at each run.
pub(crate) struct Condition(Mapped);

impl Condition {
    pub(crate) fn new(condition: Mapped) -> Self {
        Condition(condition)
    }

    /// Why a branch is refused, where knowing the condition would help: the other one would have to run, too.
    pub(crate) fn refused(&self, b: &Builder, branch: &str, reason: &Reason) -> Reason {
        b.wanted.set(Wanted::Value(self.0.value));
        let reason = reason
            .clone()
            .behind(format_args!("in {branch}, which a condition computed at each run chooses: "));
        reason.hinted(help(&b.graph, &[self.0.value]))
    }

    /// What one of the branches gives, as the condition says.
    pub(crate) fn select(
        &self,
        b: &mut Builder,
        part: &str,
        [then, other]: [Operand; 2],
    ) -> Result<Operand, Reason> {
        let (own, others) = (b.shape(&then)?, b.shape(&other)?);
        if own != others {
            b.wanted.set(Wanted::Value(self.0.value));
            let reason = format!(
                "found branches that give {own:?} and {others:?} by a condition computed at each run, wanted one shape or \
                 a condition that is known"
            );
            return Err(Reason::from(reason).hinted(help(&b.graph, &[self.0.value])));
        }
        let condition = b.with_extents("condition", Operand::Value(self.0.clone()), &[])?;
        b.apply(part, Function::Select, &[condition.into(), then.into(), other.into()])
    }
}
