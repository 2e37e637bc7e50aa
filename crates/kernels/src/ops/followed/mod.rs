//! An op and a function of each element of its result, as one kernel
//!
//! | operand | shape | order |
//! |---|---|---|
//! | the op's operands | | |
//! | `v1`, ... (`arg1`, ...) | one number for each channel of the result | packed as a bias is, or as they are |
//! | `z1`, ... (behind these) | as the result | as the result |
//!
//! `y[.., c] = f(x[.., c], v1[c], ..., z1[.., c], ...)`, where `x` is what the op gives. The function is a [`Program`]. The op's own
//! kernels call it in f32 with each value before they store the result, so a function that no epilogue has a place for takes no
//! kernel of its own.
//!
//! A followed op has the name of its op, whose texts it runs.

mod cpu;
mod examples;
mod kernel;
mod op;
mod operator;

pub(super) use examples::behind;
pub use operator::Followed;

use super::elementwise::Program;
use super::op::Op;
use super::operands::{OperandInfo, Role};
use crate::emit::Operand;
use crate::error::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// An op with a function of each element of its result.
#[derive(Debug, Clone)]
pub struct FollowedOp {
    op: Arc<dyn Op>,
    program: Program,
    /// How many of its inputs behind the first are numbers of channels; the others are elements of the same places.
    channels: usize,
}

/// The operand that is input `place` of a function behind an op.
pub(super) const fn operand(place: usize) -> Operand {
    Operand::Arg(place as u8)
}

/// Whether an op has no weights: then numbers of channels lie as they are.
fn is_plain(infos: &[OperandInfo]) -> bool {
    infos.iter().all(|info| matches!(info.operand, Operand::Src | Operand::Dst))
}

impl FollowedOp {
    /// `op` followed by `program`, whose first input is the op's result; the next ones are numbers of `channels`, the others are
    /// elements of the same places.
    ///
    /// # Errors
    /// If kernels of `op` call no such function, if fewer than `channels` inputs stand behind the first, or if the function reads
    /// numbers of channels and `op` has weights but no bias.
    pub fn new(op: Arc<dyn Op>, program: Program, channels: usize) -> Result<Self> {
        let refuse = |found: String, wanted: &str| {
            Err(Error::unsupported(op.name(), format!("{found}, wanted {wanted}")))
        };
        let infos = op.operands();
        let results = infos.iter().filter(|info| info.role.writes()).count();
        if !op.calls_function() || results != 1 {
            return refuse(
                format!("a function behind an op of {results} results"),
                "an op of one result whose kernels call a function of each element",
            );
        }
        let others = program.inputs() - 1;
        let is_packed = infos.iter().any(|info| info.operand == Operand::Bias) || is_plain(&infos);
        if channels > others || channels > 0 && !is_packed {
            let found = format!("{channels} of {others} inputs that are numbers of channels");
            return refuse(
                found,
                "at most as many as there are, and an op that has no weights, or that packs them as it packs its bias",
            );
        }
        Ok(FollowedOp { op, program, channels })
    }

    /// What the op writes.
    fn result(&self) -> Result<OperandInfo> {
        let found = self.op.operands().into_iter().find(|info| info.role.writes());
        found.ok_or_else(|| Error::Internal(format!("{} writes nothing", self.op.name())))
    }

    /// The inputs of the program that are numbers of channels, and those that are elements.
    fn inputs(&self) -> [Range<usize>; 2] {
        [1..1 + self.channels, 1 + self.channels..self.program.inputs()]
    }

    /// The operands that it reads beside those of the op.
    fn others(&self) -> Result<Vec<OperandInfo>> {
        let bias = self.op.operands().into_iter().find(|info| info.operand == Operand::Bias);
        let result = self.result()?;
        let count = bias.map_or(result.map.c, |bias| bias.elements());
        let [channels, elements] = self.inputs();
        let vectors = channels.map(|place| OperandInfo::vector(operand(place), count));
        let elements =
            elements.map(|place| OperandInfo { operand: operand(place), role: Role::Input, ..result });
        Ok(vectors.chain(elements).collect())
    }

    /// Whether it gives 0 where all of its inputs are 0.
    fn keeps_zero(&self) -> bool {
        self.program.of_number(0.0) == 0.0
    }
}
