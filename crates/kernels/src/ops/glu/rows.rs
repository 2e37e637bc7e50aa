//! What `glu` is as an op of rows: one element per invocation, or four where a half of a row has whole vec4s.

use super::{GluOp, OP, oracle};
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::workers::each;
use crate::dtype::{DType, Precision};
use crate::emit::{Body, Operand, Value};
use crate::ops::elementwise::numbers;
use crate::ops::kernel::Constants;
use crate::ops::operands::Operands;
use crate::ops::reference::Reference;
use crate::ops::rows::RowsOp;
use crate::ops::spec::{Params, extent, unsigned};
use crate::shape::Shape;

impl GluOp {
    /// Elements of an invocation.
    fn width(&self) -> usize {
        if self.columns().is_multiple_of(4) { 4 } else { 1 }
    }
}

impl RowsOp for GluOp {
    const NAME: &'static str = OP;
    const TEXT: &'static str = crate::emit::text!("../../../shaders/glu/rows.wgsl");

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

    fn invocations(&self) -> usize {
        self.dst.elements() / self.width()
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    fn stored(&self, _operand: Operand) -> DType {
        self.precision.storage()
    }

    fn is_wide(&self, _operand: Operand) -> bool {
        self.width() == 4
    }

    fn params(&self) -> Params {
        let width = self.width();
        let mut params = vec![
            ("elements", unsigned(self.dst.elements() / width)),
            ("columns", unsigned(self.columns() / width)),
        ];
        params.extend(numbers(&self.program));
        params
    }

    fn constants(&self) -> Constants {
        vec![("LANES", Value::U32(extent(self.width())))]
    }

    fn body(&self) -> Body {
        self.program.body(DType::F32, self.width() == 4)
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
