//! What `arg` is as an op of rows. `serial`: one line along the axis per invocation.

use super::{ArgOp, OP, cpu, group, oracle};
use crate::dtype::DType;
use crate::emit::{Operand, Value};
use crate::ops::kernel::{Constants, Kernel};
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::rows::{Rows, RowsOp, word_key, word_number};
use crate::ops::spec::{Params, unsigned};
use crate::shape::Shape;

impl RowsOp for ArgOp {
    const NAME: &'static str = OP;
    const KERNEL: &'static str = "serial";
    const TEXT: &'static str = crate::emit::text!("../../../shaders/arg/serial.wgsl");
    const UNTUNABLE: &'static str = "the kernel of an index follows from its axis";

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&Rows, &group::Group]
    }

    fn problem_key(&self) -> String {
        let which = if self.largest { "max" } else { "min" };
        format!("{} along{} {which}{}", self.input, self.axis, word_key(self.dtype))
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

    fn params(&self) -> Params {
        let [_, count, inner] = self.extents();
        vec![("lines", unsigned(self.invocations())), ("count", unsigned(count)), ("inner", unsigned(inner))]
    }

    fn constants(&self) -> Constants {
        vec![("LARGEST", Value::U32(u32::from(self.largest))), ("SOURCE", word_number(self.dtype))]
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, get(operands, Operand::Src).unwrap_or_default())
    }

    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let &[src] = inputs else { return };
        cpu::compute(self, src, dst);
    }
}
