//! `y[i] = f(x0[p(i)], x1[q(i)], ...)` with reductions within: one kernel that is composed of what nodes compute
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x0` ... `x6` | any | rows |
//! | `y` | any | rows |
//!
//! A [`Nest`] says what is computed: reads of elements at places that follow from those along the axes of the result and of
//! loops, functions of them, and reductions along axes, of which others may follow. Moves, functions of each element,
//! reductions, softmax and normalisations are nests of one or a few nodes; what two of them compute one behind the other is a
//! nest again ([`Nest::after`]). Oracle, bound, texts and the CPU's kernel follow from the nest alone.
//!
//! Sums are in f32 in every precision. A mean is a sum and a quotient.

mod compose;
mod cpu;
mod evaluation;
mod examples;
mod flat;
mod index;
#[cfg(test)]
mod index_tests;
mod nest;
mod operator;
mod oracle;
mod plan;
mod rows;
mod term;
#[cfg(test)]
mod tests;
mod text;

pub use compose::Sources;
pub(super) use examples::{NUMBERS, examples};
pub(super) use index::{Index, Mirror};
pub use nest::Nest;
pub(super) use nest::{Guard, Node, Nodes, element};
pub use operator::Loops;

use crate::dtype::Precision;
use crate::error::Result;
use std::sync::Arc;

const OP: &str = "loops";

/// A nest with a precision.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LoopsOp {
    nest: Arc<Nest>,
    precision: Precision,
}

impl LoopsOp {
    /// The op that computes `nest`.
    ///
    /// # Errors
    /// If it is no nest that kernels compute.
    pub fn new(nest: Arc<Nest>, precision: Precision) -> Result<Self> {
        let nest = Nest::clone(&nest).checked()?;
        Ok(LoopsOp { nest: Arc::new(nest), precision: precision.with_f32_sums() })
    }
}
