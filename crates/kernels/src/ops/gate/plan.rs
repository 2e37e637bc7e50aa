//! What `gate` is, and its kernel.

use super::{GateOp, OP, cpu, maps, oracle};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::{Activation, Epilogue, Operand};
use crate::error::Result;
use crate::ops::definition::Definition;
use crate::ops::halves::{Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands, Role};
use crate::ops::problem;
use crate::ops::reference::Reference;
use crate::ops::spec::extent;
use crate::shape::Shape;

impl Definition for GateOp {
    const NAME: &'static str = OP;
    const MIXES_CHANNELS: bool = true;
    const HALVES: bool = true;
    const UNTUNABLE: Option<&'static str> = Some("a weighted map has one kernel");

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&maps::Maps]
    }

    fn problem_key(&self) -> String {
        let Shape { n, h, w, c } = self.map;
        let residual = if self.residual { " residual" } else { "" };
        let (hidden, second) = (self.second.input.c, problem::epilogue(&self.second.epilogue));
        let first = self.first.map_or(format!(" r{hidden}"), |first| {
            format!(" k{} r{hidden}{}", first.input.c, problem::epilogue(&first.epilogue))
        });
        format!("n{n} h{h} w{w} c{c}{first} then{second}{residual}")
    }

    fn precision(&self) -> Precision {
        self.second.precision
    }

    fn flops(&self) -> u64 {
        let first = self.first.map_or(0, |first| first.flops());
        first + self.second.flops() + (1 + u64::from(self.residual)) * self.map.elements() as u64
    }

    fn dst_depth(&self) -> u32 {
        extent(self.map.slices())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let second = &self.second;
        let weights = |oc: usize, c: usize| Shape::nhwc(oc, 1, 1, c);
        let mut operands = vec![OperandInfo::new(Operand::Src, self.pixel(), Role::Input)];
        if let Some(first) = &self.first {
            let weights = weights(first.output.c, first.input.c);
            operands.push(OperandInfo::new(Operand::Window, weights, Role::Constant));
            let bias = OperandInfo::vector(Operand::WindowBias, first.output.c);
            operands.extend(first.epilogue.bias.then_some(bias));
        }
        let weights = weights(second.output.c, second.input.c);
        operands.push(OperandInfo::new(Operand::Weights, weights, Role::Constant));
        let bias = OperandInfo::vector(Operand::Bias, second.output.c);
        operands.extend(second.epilogue.bias.then_some(bias));
        operands.push(OperandInfo::new(Operand::Arg(0), self.map, Role::Input));
        let residual = OperandInfo::new(Operand::Residual, self.map, Role::Input);
        operands.extend(self.residual.then_some(residual));
        operands.push(OperandInfo::new(Operand::Dst, self.map, Role::Output));
        operands
    }

    /// What happens to the sum that a factor is.
    fn epilogue(&self) -> Epilogue {
        self.second.epilogue
    }

    fn between(&self) -> Option<Epilogue> {
        self.first.map(|first| first.epilogue)
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands)
    }

    fn cpu(&self, constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::GateKernel::new(self, constants)?))
    }

    fn reach(&self, inputs: &Reaches<'_>, _constants: &Operands<'_>) -> Reach {
        let factor = match self.second.epilogue.activation {
            Activation::Sigmoid | Activation::HardSigmoid | Activation::Tanh => 1.0,
            Activation::Relu6 => 6.0,
            _ => return Reach::ALL,
        };
        let product = Reach::around(factor * inputs(Operand::Arg(0)).magnitude());
        if self.residual { product.plus(inputs(Operand::Residual)) } else { product }
    }
}
