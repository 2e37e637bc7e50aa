//! The steps of a recurrent layer, one after the other: of a short sequence, or of a chunk of a long one.

use super::builder::Builder;
use super::cells::{Cell, State};
use super::each::Arg;
use super::moves::one_of;
use super::operand::Operand;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// The steps of a sequence.
#[derive(Clone)]
pub(crate) struct Steps {
    pub(crate) count: usize,
    /// Whether the last one comes first.
    pub(crate) backwards: bool,
    /// How many steps each sequence of the batch has, `batch 1`; all of them if it is not given.
    pub(crate) lengths: Option<Operand>,
}

/// The outputs of steps one after the other, in the order of time, and the last state. `sums` is what they make of the
/// input alone.
pub(super) fn steps_of(
    b: &mut Builder,
    cell: &Cell,
    sums: &Operand,
    steps: &Steps,
    mut state: Option<State>,
) -> Result<(Vec<Operand>, Option<State>), Reason> {
    let mut outputs = Vec::with_capacity(steps.count);
    for step in 0..steps.count {
        let at = if steps.backwards { steps.count - 1 - step } else { step };
        let own = one_of(b, "step", sums, 0, at)?;
        let before = state.clone();
        let mut next = cell.step(b, own, state)?;
        let mut output = next.output.clone();
        if let Some(lengths) = &steps.lengths {
            let within = b.apply("within", Function::Less, &[(at as f32).into(), lengths.clone().into()])?;
            let or = |b: &mut Builder, value: Operand, other: Arg| {
                b.apply("ended", Function::Select, &[within.clone().into(), value.into(), other])
            };
            output = or(b, output, 0.0.into())?;
            let (old, old_cell) = before.map_or((None, None), |old| (Some(old.output), old.cell));
            // Without a state before it, what ended is zeros, which the output is already.
            next.output = match old {
                Some(old) => or(b, next.output, old.into())?,
                None => output.clone(),
            };
            next.cell = match next.cell {
                Some(cell) => Some(or(b, cell, old_cell.map_or(0.0.into(), Arg::from))?),
                None => None,
            };
        }
        state = Some(next);
        outputs.push(output);
    }
    if steps.backwards {
        outputs.reverse();
    }
    Ok((outputs, state))
}
