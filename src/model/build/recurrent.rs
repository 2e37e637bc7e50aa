//! Recurrent layers, one step after the other.
//!
//! | cell | gates | state |
//! |---|---|---|
//! | LSTM | `i f g o` of `W x + R h + b` | `c' = s(f) c + s(i) a(g)`, `h' = s(o) a(c')` |
//! | GRU | `z r n` | `h' = (1 - z) n + z h` |
//! | plain | one | `h' = a(W x + R h + b)` |

use super::builder::Builder;
use super::cells::{Cell, State};
use super::each::Arg;
use super::moves::one_of;
use super::operand::Operand;
use super::products::dense;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// The most steps: each is a dozen nodes.
pub(crate) const MAX_STEPS: usize = 1024;

/// One direction of a layer: a cell, and what each step makes of the input alone.
pub(crate) struct Layer {
    /// `columns features`.
    pub(crate) weights: Operand,
    pub(crate) bias: Option<Operand>,
    pub(crate) cell: Cell,
}

/// The steps of a sequence.
#[derive(Clone)]
pub(crate) struct Steps {
    pub(crate) count: usize,
    /// Whether the last one comes first.
    pub(crate) backwards: bool,
    /// How many steps each sequence of the batch has, `batch 1`; all of them if it is not given.
    pub(crate) lengths: Option<Operand>,
}

impl Layer {
    /// The outputs of all steps in the order of time, `batch units` each, and the last state. `x` is `time batch
    /// features`; without a state before the first step it is zeros.
    pub(crate) fn unrolled(
        &self,
        b: &mut Builder,
        x: Operand,
        steps: &Steps,
        mut state: Option<State>,
    ) -> Result<(Vec<Operand>, Option<State>), Reason> {
        // The products with the input, of all steps at once.
        let sums = dense(b, "inputs", x, &self.weights, self.bias.as_ref(), None)?;
        let mut outputs = Vec::with_capacity(steps.count);
        for step in 0..steps.count {
            let at = if steps.backwards { steps.count - 1 - step } else { step };
            let own = one_of(b, "step", &sums, 0, at)?;
            let before = state.clone();
            let mut next = self.cell.step(b, own, state)?;
            let mut output = next.output.clone();
            if let Some(lengths) = &steps.lengths {
                let within =
                    b.apply("within", Function::Less, &[(at as f32).into(), lengths.clone().into()])?;
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
}
