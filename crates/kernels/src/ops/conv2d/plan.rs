//! What `conv2d` is, and its kernels.

use super::{
    Conv2d, Conv2dOp, cpu, direct, grouped, matrix, oracle, shallow, sliding, split, tiled, winograd,
};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::Residual;
use crate::error::Result;
use crate::ops::convolution::Convolution;
use crate::ops::kernel::Kernel;
use crate::ops::operands::Operands;
use crate::ops::reference::Sum;
use crate::ops::windowed::ConvolutionOptions;
use crate::shape::Shape;

impl ConvolutionOptions for Conv2d {
    fn kernels() -> &'static [&'static dyn Kernel<Conv2dOp>] {
        &[
            &matrix::MATRIX,
            &matrix::MATRIX_PTX,
            &direct::Direct,
            &tiled::TILED,
            &split::SPLIT,
            &shallow::Shallow,
            &sliding::Sliding,
            &grouped::Grouped,
            &winograd::WINOGRAD2,
            &winograd::WINOGRAD4,
        ]
    }

    fn op(
        &self,
        [input, weights]: [Shape; 2],
        (bias, residual): (bool, Residual),
        precision: Precision,
    ) -> Result<Conv2dOp> {
        Conv2dOp::new(input, weights, self, bias, residual, precision)
    }

    fn weights(problem: &Convolution) -> Shape {
        let [kernel_h, kernel_w] = problem.kernel;
        Shape::nhwc(problem.output.c, kernel_h, kernel_w, problem.group_inputs())
    }

    fn channels(problem: &Convolution) -> String {
        match problem.groups {
            1 => format!("o{}", problem.output.c),
            groups => format!("o{} groups{groups}", problem.output.c),
        }
    }

    fn oracle(op: &Conv2dOp, operands: &Operands<'_>) -> Sum {
        oracle::oracle(op, operands)
    }

    fn cpu(op: &Conv2dOp, constants: &Operands<'_>, shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        cpu::kernel(op, constants, shelf)
    }
}
