//! What `squeeze` is, and its kernels.

use super::{OP, SqueezeOp, cpu, group, last, oracle};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::{Epilogue, Operand};
use crate::error::Result;
use crate::ops::definition::Definition;
use crate::ops::halves::{self, Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands, Role};
use crate::ops::problem;
use crate::ops::reference::Reference;
use crate::ops::spec::extent;
use crate::shape::Shape;

impl Definition for SqueezeOp {
    const NAME: &'static str = OP;
    const MIXES_CHANNELS: bool = true;
    const HALVES: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&last::Last, &group::Group]
    }

    fn problem_key(&self) -> String {
        let (Shape { n, h, w, c }, epilogue) = (self.map, problem::epilogue(&self.dense.epilogue));
        let rows = if self.rows { " rows" } else { "" };
        format!("n{n} h{h} w{w} c{c} o{}{epilogue}{rows}", self.dense.output.c)
    }

    fn precision(&self) -> Precision {
        self.dense.precision
    }

    fn flops(&self) -> u64 {
        self.map.elements() as u64 + self.dense.flops()
    }

    fn dst_depth(&self) -> u32 {
        extent(self.map.slices())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let output = self.dense.output;
        let weights = Shape::nhwc(output.c, 1, 1, self.map.c);
        let mut operands = vec![
            OperandInfo::new(Operand::Src, self.map, Role::Input),
            OperandInfo::new(Operand::Weights, weights, Role::Constant),
        ];
        operands.extend(self.dense.epilogue.bias.then(|| OperandInfo::vector(Operand::Bias, output.c)));
        operands.push(OperandInfo::new(Operand::Dst, output, Role::Output));
        operands
    }

    fn epilogue(&self) -> Epilogue {
        self.dense.epilogue
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        Reference::Sum(oracle::oracle(self, operands))
    }

    fn cpu(&self, constants: &Operands<'_>, shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::SqueezeKernel::new(self, constants, shelf)?))
    }

    /// A mean is no larger than what it is of.
    fn reach(&self, inputs: &Reaches<'_>, constants: &Operands<'_>) -> Reach {
        halves::convolved(&self.dense, false, inputs, constants)
    }
}
