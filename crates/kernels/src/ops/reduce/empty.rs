//! Reductions of nothing.

use super::{OP, ReduceOp, Reduction};
use crate::cpu::{CpuKernel, output};
use crate::emit::Operand;
use crate::error::Result;

/// A reduction of no elements on the CPU: what it begins with, or a NaN for a mean.
#[derive(Debug)]
pub(super) struct EmptyKernel(pub(super) ReduceOp);

impl CpuKernel for EmptyKernel {
    fn run(&self, _inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let mean = self.0.reduction == Reduction::Mean;
        output(OP, outputs, Operand::Dst)?.fill(if mean { f32::NAN } else { self.0.reduction.first() });
        Ok(())
    }
}
