//! What `arg` is as an op of rows.

use super::{ArgOp, OP, cpu, oracle};
use crate::dtype::DType;
use crate::emit::Operand;
use crate::ops::kernel::Kernel;
use crate::ops::loops::{AsNest, OpNest, OperandSet};
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::rows::{RowsOp, word_key};
use crate::shape::Shape;

impl RowsOp for ArgOp {
    const NAME: &'static str = OP;
    const UNTUNABLE: &'static str = "the kernel of an index follows from its axis";

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&AsNest::REDUCTIONS, &AsNest::ELEMENTS]
    }

    fn problem_key(&self) -> String {
        format!("{} along{} {}{}", self.input, self.axis, self.reduction.name(), word_key(self.dtype))
    }

    fn inputs(&self) -> Vec<(Operand, Shape)> {
        vec![(Operand::Src, self.input.shape())]
    }

    fn output(&self) -> Shape {
        self.output.shape()
    }

    fn flops(&self) -> u64 {
        self.input.elements() as u64
    }

    fn dtype(&self, operand: Operand) -> DType {
        if operand == Operand::Dst { DType::F32 } else { self.dtype }
    }

    fn nest(&self) -> Option<OpNest> {
        Some(OpNest::new(self.as_nest()?, vec![Operand::Src]).with_halves(OperandSet::NONE))
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, get(operands, Operand::Src).unwrap_or_default())
    }

    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let &[src] = inputs else { return };
        cpu::compute(self, src, dst);
    }
}
