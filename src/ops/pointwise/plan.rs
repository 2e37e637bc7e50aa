//! What `pointwise` is, and its kernels.

use super::{OP, Pointwise, PointwiseOp, cpu, direct, matrix, micro, oracle, split, tiled};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::Epilogue;
use crate::error::Result;
use crate::ops::convolution::Convolution;
use crate::ops::definition::Definition;
use crate::ops::expected;
use crate::ops::halves::{self, Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::op::Op;
use crate::ops::operands::{OperandInfo, Operands};
use crate::ops::problem;
use crate::ops::reference::Reference;
use crate::ops::spec::extent;
use crate::shape::Shape;

impl Definition for PointwiseOp {
    const NAME: &'static str = OP;
    const MIXES_CHANNELS: bool = true;
    const HALVES: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&matrix::MATRIX, &matrix::MATRIX_PTX, &micro::Micro, &tiled::Tiled, &split::Split, &direct::Direct]
    }

    fn packing(&self) -> Option<String> {
        Some(self.0.packing())
    }

    fn problem_key(&self) -> String {
        problem::convolution(&self.0, &format!("o{}", self.0.output.c))
    }

    fn precision(&self) -> Precision {
        self.0.precision
    }

    fn flops(&self) -> u64 {
        self.0.flops()
    }

    fn dst_depth(&self) -> u32 {
        extent(self.0.output.slices())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        self.0.operands(Shape::nhwc(self.0.output.c, 1, 1, self.0.input.c))
    }

    fn maps(&self) -> Option<[Shape; 2]> {
        Some([self.0.input, self.0.output])
    }

    fn epilogue(&self) -> Epilogue {
        self.0.epilogue
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        Reference::Sum(oracle::oracle(self, operands))
    }

    fn expected(&self, operands: &Operands<'_>) -> Result<Reference> {
        let (problem, plain) = (&self.0, self.plain());
        expected::of_sum(self, &plain, problem.terms(), &problem.epilogue, operands)
    }

    fn cpu(&self, constants: &Operands<'_>, shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::kernel(self, constants, shelf)?))
    }

    fn reach(&self, inputs: &Reaches<'_>, constants: &Operands<'_>) -> Reach {
        halves::convolved(&self.0, false, inputs, constants)
    }

    /// 1x1 convolutions of one input with one activation and no residual are one with their weights
    /// stacked.
    fn stack(&self, parts: &[&dyn Op], multiple: usize) -> Option<Self> {
        let part = |part: &&dyn Op| {
            let problem = part.as_any().downcast_ref::<PointwiseOp>()?.0;
            let Epilogue { activation, residual, .. } = problem.epilogue;
            let kin = problem.input == self.0.input && problem.precision == self.0.precision;
            let same = kin && activation == self.0.epilogue.activation && !residual.is_some();
            same.then_some((problem.output.c, problem.epilogue.bias))
        };
        let parts: Option<Vec<(usize, bool)>> = parts.iter().map(part).collect();
        let parts = parts.filter(|_| !self.0.epilogue.residual.is_some())?;
        let padded = parts.iter().map(|(channels, _)| channels.checked_next_multiple_of(multiple));
        let channels = padded.sum::<Option<usize>>()?;
        let Convolution { input, precision, epilogue: Epilogue { activation, .. }, .. } = self.0;
        let (options, weights) = (Pointwise { activation }, Shape::nhwc(channels, 1, 1, input.c));
        let bias = parts.iter().any(|(_, bias)| *bias);
        PointwiseOp::new(input, weights, &options, bias, false, precision).ok()
    }
}
