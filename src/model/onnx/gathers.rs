//! `Gather`: elements along one axis.

use super::import::{Import, Op};
use crate::model::build::{Count, Operand, axis, gathered};
use crate::model::reason::Reason;

/// `Gather`: elements along an axis by their indices, of which negative ones count from the end.
pub(super) fn gather<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let place = axis(op.int("axis", 0), i.extents_of(op, 0)?.len())?;
    let indices = i.slot(op, 1)?;
    // A constant that is read by value is one of the graph once.
    let x = match &indices {
        Operand::Constant(..) => i.slot(op, 0)?,
        Operand::Value(_) => Operand::Value(i.mapped(op, 0)?),
    };
    let slot = gathered(i, x, indices, (place, 0), Count::FromEnd)?;
    i.set(op, 0, slot)
}
