//! What `mlp` is, and its kernels.

use super::{FIRST, LAST, MlpOp, OP, cpu, group, last, oracle, rows};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::{Epilogue, Operand};
use crate::error::Result;
use crate::ops::convolution::Convolution;
use crate::ops::definition::Definition;
use crate::ops::halves::{self, Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands, Renamed, Role};
use crate::ops::problem;
use crate::ops::reference::Reference;
use crate::ops::spec::extent;
use crate::shape::Shape;

impl Definition for MlpOp {
    const NAME: &'static str = OP;
    const MIXES_CHANNELS: bool = true;
    const HALVES: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&rows::Rows, &last::Last, &group::Group]
    }

    fn problem_key(&self) -> String {
        let Shape { n, c, .. } = self.rows();
        let norm = match self.norm {
            Some(norm) if norm.centred => " normalized",
            Some(_) => " uncentred",
            None => "",
        };
        let first = self.first.map_or(String::new(), |first| {
            format!(" r{}{} then", first.output.c, problem::epilogue(&first.epilogue))
        });
        format!("n{n} k{c}{norm}{first} o{}{}", self.last.output.c, problem::epilogue(&self.last.epilogue))
    }

    fn precision(&self) -> Precision {
        self.last.precision
    }

    fn flops(&self) -> u64 {
        let norm = if self.norm.is_some() { 7 * self.rows().elements() as u64 } else { 0 };
        norm + self.first.map_or(0, |first| first.flops()) + self.last.flops()
    }

    fn dst_depth(&self) -> u32 {
        extent(self.last.output.slices())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let mut operands = vec![OperandInfo::new(Operand::Src, self.rows(), Role::Input)];
        let mut layer = |layer: &Convolution, [weights, bias]: [Operand; 2]| {
            let shape = Shape::nhwc(layer.output.c, 1, 1, layer.input.c);
            operands.push(OperandInfo::new(weights, shape, Role::Constant));
            operands.extend(layer.epilogue.bias.then(|| OperandInfo::vector(bias, layer.output.c)));
        };
        if let Some(first) = &self.first {
            layer(first, [Operand::Window, Operand::WindowBias]);
        }
        layer(&self.last, [Operand::Weights, Operand::Bias]);
        operands.push(OperandInfo::new(Operand::Dst, self.last.output, Role::Output));
        operands
    }

    /// What happens to the sums of the last layer.
    fn epilogue(&self) -> Epilogue {
        self.last.epilogue
    }

    fn between(&self) -> Option<Epilogue> {
        self.first.map(|first| first.epilogue)
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        Reference::Sum(oracle::oracle(self, operands))
    }

    fn cpu(&self, constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::MlpKernel::new(self, constants)?))
    }

    /// What is divided by its standard deviation, or the root of its mean square, is at most the root of the number of
    /// terms.
    fn reach(&self, inputs: &Reaches<'_>, constants: &Operands<'_>) -> Reach {
        let rows = match self.norm {
            Some(_) => Reach::around((self.rows().c as f64).sqrt()),
            None => inputs(Operand::Src),
        };
        let layer = |layer: &Convolution, names, most: Reach| {
            let given = |operand| if operand == Operand::Src { most } else { inputs(operand) };
            halves::convolved(layer, false, &given, &constants.renamed(names))
        };
        let hidden = self.first.as_ref().map_or(rows, |first| layer(first, FIRST, rows));
        layer(&self.last, LAST, hidden)
    }
}
