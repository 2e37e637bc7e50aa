//! Functions behind an op.

use super::{FollowedOp, is_plain};
use crate::emit::{Bits, Operand};
use crate::error::Result;
use crate::ops::elementwise::{Function, Program, Source, Step};
use crate::ops::op::Op;
use std::sync::Arc;

/// `op` with `0.9 max(x, 0)^2 - 0.4` behind it, and, if it has a bias or no weights, with `gelu(x s[c]) + b[c]` and `gelu(x s[c]) + z`.
pub(crate) fn behind(op: &Arc<dyn Op>) -> Result<Vec<Box<dyn Op>>> {
    let (x, number) = (Source::Input(0), |number: f32| Source::Number(Bits(number)));
    let step = |function: Function, arguments: &[Source]| Step { function, arguments: arguments.to_vec() };
    let squared = Program::new(vec![
        step(Function::Relu, &[x]),
        step(Function::Square, &[Source::Step(0)]),
        step(Function::Mul, &[Source::Step(1), number(0.9)]),
        step(Function::Sub, &[Source::Step(2), number(0.4)]),
    ])?;
    let mut all: Vec<Box<dyn Op>> = vec![Box::new(FollowedOp::new(Arc::clone(op), squared, 0)?)];
    let infos = op.operands();
    if infos.iter().any(|info| info.operand == Operand::Bias) || is_plain(&infos) {
        let scaled = Program::new(vec![
            step(Function::Mul, &[x, Source::Input(1)]),
            step(Function::Gelu, &[Source::Step(0)]),
            step(Function::Add, &[Source::Step(1), Source::Input(2)]),
        ])?;
        all.push(Box::new(FollowedOp::new(Arc::clone(op), scaled.clone(), 2)?));
        // A number of a channel, and an element of the same place.
        all.push(Box::new(FollowedOp::new(Arc::clone(op), scaled, 1)?));
    }
    Ok(all)
}
