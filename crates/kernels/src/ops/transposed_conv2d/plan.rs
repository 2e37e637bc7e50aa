//! What `transposed_conv2d` is, and its kernel.

use super::{TransposedConv2d, TransposedConv2dOp, cpu, direct, oracle};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::Residual;
use crate::error::Result;
use crate::ops::convolution::Convolution;
use crate::ops::halves::{self, Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::operands::Operands;
use crate::ops::problem;
use crate::ops::reference::Sum;
use crate::ops::windowed::ConvolutionOptions;
use crate::shape::Shape;

impl ConvolutionOptions for TransposedConv2d {
    const HAS_IMAGES: bool = false;

    fn kernels() -> &'static [&'static dyn Kernel<TransposedConv2dOp>] {
        &[&direct::Direct]
    }

    fn op(
        &self,
        [input, weights]: [Shape; 2],
        (bias, residual): (bool, Residual),
        precision: Precision,
    ) -> Result<TransposedConv2dOp> {
        TransposedConv2dOp::new(input, weights, self, bias, residual, precision)
    }

    fn weights(problem: &Convolution) -> Shape {
        let [kernel_h, kernel_w] = problem.kernel;
        Shape::nhwc(problem.output.c, kernel_h, kernel_w, problem.input.c)
    }

    /// The output's extents, and how much of the first window lies before it, say all about the padding.
    fn problem_key(problem: &Convolution) -> String {
        let (x, y, [kh, kw], [sh, sw]) = (problem.input, problem.output, problem.kernel, problem.stride);
        let [top, left] = problem.before;
        let mut key = format!(
            "n{} h{} w{} c{} o{} kernel{kh}x{kw} stride{sh}x{sw} to{}x{}",
            x.n, x.h, x.w, x.c, y.c, y.h, y.w
        );
        if [top, left] != [0, 0] {
            key.push_str(&format!(" before{top},{left}"));
        }
        key + &problem::epilogue(&problem.epilogue)
    }

    /// Two for each tap of each input pixel, as if all of them were inside of the output.
    fn flops(problem: &Convolution) -> u64 {
        let taps = problem.kernel[0] * problem.kernel[1] * problem.output.c;
        2 * problem.input.elements() as u64 * taps as u64
    }

    fn terms(problem: &Convolution) -> usize {
        let Convolution { kernel, stride, .. } = *problem;
        kernel[0].div_ceil(stride[0]) * kernel[1].div_ceil(stride[1]) * problem.input.c
    }

    fn oracle(op: &TransposedConv2dOp, operands: &Operands<'_>) -> Sum {
        oracle::oracle(op, operands)
    }

    fn cpu(
        op: &TransposedConv2dOp,
        constants: &Operands<'_>,
        shelf: Shelf<'_>,
    ) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::Transposed::new(op, constants, shelf)?))
    }

    fn reach(problem: &Convolution, inputs: &Reaches<'_>, constants: &Operands<'_>) -> Reach {
        halves::finished(&problem.epilogue, Reach::ALL, inputs, constants)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Op;
    use crate::shape::Padding;

    #[test]
    fn the_key_says_where_the_output_begins() {
        let key = |padding| {
            let options = TransposedConv2d { stride: [2, 2], padding, ..Default::default() };
            let (input, weights) = (Shape::nhwc(1, 5, 7, 8), Shape::nhwc(4, 4, 4, 8));
            let op = TransposedConv2dOp::new(input, weights, &options, true, false, Precision::F32);
            Op::problem_key(&op.expect("windows"))
        };
        assert_eq!(key(Padding::Valid), "n1 h5 w7 c8 o4 kernel4x4 stride2x2 to12x16 bias");
        assert_eq!(key(Padding::Same), "n1 h5 w7 c8 o4 kernel4x4 stride2x2 to10x14 before1,1 bias");
    }
}
