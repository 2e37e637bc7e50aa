//! What `depthwise` is, and its kernels.

use super::{DepthwiseOp, OP, cpu, direct, local, micro, multiplier, oracle, rows};
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

impl Definition for DepthwiseOp {
    const NAME: &'static str = OP;

    /// A window is short: its loads are in flight together, and few invocations suffice.
    const SHARE: u64 = 4;
    const HALVES: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        // `local` pays where caches are poor, and that a measurement says.
        &[&micro::Micro, &rows::Rows, &direct::Direct, &local::Local, &multiplier::Multiplier]
    }

    fn packing(&self) -> Option<String> {
        Some(self.0.packing())
    }

    fn problem_key(&self) -> String {
        problem::convolution(&self.0, &format!("mult{}", self.multiplier()))
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
        self.0.operands(Shape::nhwc(1, kernel_h, kernel_w, self.0.output.c))
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
        halves::convolved(&self.0, true, inputs, constants)
    }
}
