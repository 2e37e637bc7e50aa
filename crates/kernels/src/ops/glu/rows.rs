//! What `glu` is as an op of rows.

use super::{GluOp, OP, oracle};
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::workers::each;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::ops::kernel::Kernel;
use crate::ops::loops::{AsNest, OpNest, OperandSet};
use crate::ops::operands::Operands;
use crate::ops::reference::Reference;
use crate::ops::rows::RowsOp;
use crate::shape::Shape;

impl RowsOp for GluOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&AsNest::ELEMENTS]
    }

    fn problem_key(&self) -> String {
        format!("{} {}", self.program.key(), self.src)
    }

    fn inputs(&self) -> Vec<(Operand, Shape)> {
        vec![(Operand::Src, self.src.shape())]
    }

    fn output(&self) -> Shape {
        self.dst.shape()
    }

    fn flops(&self) -> u64 {
        (self.program.steps().len() * self.dst.elements()) as u64
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    fn nest(&self) -> Option<OpNest> {
        let halves = if self.precision.storage() == DType::F16 { OperandSet::ALL } else { OperandSet::NONE };
        Some(OpNest::new(self.as_nest()?, vec![Operand::Src]).with_halves(halves))
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands)
    }

    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let &[src] = inputs else { return };
        let n = self.columns();
        let rows = independent_rows(dst.len() / n, MOVED * n);
        each(dst.chunks_mut(rows * n).zip(src.chunks(2 * rows * n)), |(dst, src)| {
            for (dst, src) in dst.chunks_exact_mut(n).zip(src.chunks_exact(2 * n)) {
                let (first, second) = src.split_at(n);
                self.program.apply(&[first, second], dst);
            }
        });
    }
}
