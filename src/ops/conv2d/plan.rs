//! What `conv2d` is, and its kernels.

use super::{Conv2dOp, OP, cpu, direct, grouped, matrix, oracle, shallow, sliding, split, tiled, winograd};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::Epilogue;
use crate::error::Result;
use crate::ops::definition::Definition;
use crate::ops::expected;
use crate::ops::halves::{self, Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands};
use crate::ops::problem;
use crate::ops::reference::Reference;
use crate::ops::spec::extent;
use crate::shape::Shape;

impl Definition for Conv2dOp {
    const NAME: &'static str = OP;
    const MIXES_CHANNELS: bool = true;
    const HALVES: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[
            &matrix::MATRIX,
            &matrix::MATRIX_PTX,
            &direct::Direct,
            &tiled::Tiled,
            &split::Split,
            &shallow::Shallow,
            &sliding::Sliding,
            &grouped::Grouped,
            &winograd::WINOGRAD2,
            &winograd::WINOGRAD4,
        ]
    }

    fn packing(&self) -> Option<String> {
        Some(self.0.packing())
    }

    fn problem_key(&self) -> String {
        let channels = match self.0.groups {
            1 => format!("o{}", self.0.output.c),
            groups => format!("o{} groups{groups}", self.0.output.c),
        };
        problem::convolution(&self.0, &channels)
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
        let [kernel_h, kernel_w] = self.0.kernel;
        self.0.operands(Shape::nhwc(self.0.output.c, kernel_h, kernel_w, self.0.group_inputs()))
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
        cpu::kernel(self, constants, shelf)
    }

    fn reach(&self, inputs: &Reaches<'_>, constants: &Operands<'_>) -> Reach {
        halves::convolved(&self.0, false, inputs, constants)
    }
}
