//! Recurrent layers, one step after the other.
//!
//! | cell | gates | state |
//! |---|---|---|
//! | LSTM | `i f g o` of `W x + R h + b` | `c' = s(f) c + s(i) a(g)`, `h' = s(o) a(c')` |
//! | GRU | `z r n` | `h' = (1 - z) n + z h` |
//! | plain | one | `h' = a(W x + R h + b)` |

use super::builder::Builder;
use super::cells::{Cell, State};
use super::chunks::in_chunks;
use super::moves::stacked;
use super::operand::Operand;
use super::products::dense;
use super::steps::{Steps, steps_of};
use crate::model::reason::Reason;

/// The most steps whose nodes follow one another, a dozen each. More are computed in chunks (`chunks`).
pub(crate) const MOST_UNROLLED: usize = 1024;

/// One direction of a layer: a cell, and what each step makes of the input alone.
pub(crate) struct Layer {
    /// `columns features`.
    pub(crate) weights: Operand,
    pub(crate) bias: Option<Operand>,
    pub(crate) cell: Cell,
}

impl Layer {
    /// The outputs of all steps in the order of time, `batch units` each, one behind the other along axis `along` (0 or 1) of
    /// the result, and the last state. `x` is `time batch features`; without a state before the first step it is zeros.
    pub(crate) fn run(
        &self,
        b: &mut Builder,
        part: &str,
        x: Operand,
        steps: &Steps,
        (state, along): (Option<State>, usize),
    ) -> Result<(Operand, State), Reason> {
        if steps.count == 0 {
            // The state that no step changes.
            let batch = b.shape(&x)?.get(1).copied().unwrap_or(1);
            let (width, inner) = self.cell.widths(b)?;
            let extents = if along == 0 { vec![0, batch, width] } else { vec![batch, 0, width] };
            let first = State {
                output: b.filled(&[batch, width], 0.0)?,
                cell: inner.map(|inner| b.filled(&[batch, inner], 0.0)).transpose()?,
            };
            let last = state
                .map_or_else(|| first.clone(), |own| State { cell: own.cell.or(first.cell.clone()), ..own });
            return Ok((Operand::nothing(extents, x.kind()), last));
        }
        // The products with the input, of all steps at once.
        let sums = dense(b, "inputs", x, &self.weights, self.bias.as_ref(), None)?;
        if steps.count > MOST_UNROLLED {
            let (all, last) = in_chunks(b, &self.cell, sums, steps, state)?;
            let all = if along == 0 { all } else { b.transposed(all, &[1, 0, 2])? };
            return Ok((all, last));
        }
        let (outputs, last) = steps_of(b, &self.cell, &sums, steps, state)?;
        let last = last.ok_or("found no steps, wanted at least one")?;
        Ok((stacked(b, part, outputs, along)?, last))
    }
}
