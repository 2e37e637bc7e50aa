//! What `depthwise` is, and its kernels.

use super::{Depthwise, DepthwiseOp, cpu, direct, local, micro, multiplier, oracle, rows};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::{Operand, Residual};
use crate::error::Result;
use crate::ops::convolution::Convolution;
use crate::ops::halves::{self, Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::operands::Operands;
use crate::ops::plan::Choice;
use crate::ops::reference::Sum;
use crate::ops::spec::{self, Params};
use crate::ops::windowed::ConvolutionOptions;
use crate::shape::Shape;

impl ConvolutionOptions for Depthwise {
    /// A window is short: its loads are in flight together, and few invocations suffice.
    const SHARE: u64 = 4;
    const MIXES_CHANNELS: bool = false;

    fn kernels() -> &'static [&'static dyn Kernel<DepthwiseOp>] {
        // `local` pays where caches are poor, and that a measurement says.
        &[&micro::Micro, &rows::Rows, &direct::Direct, &local::Local, &multiplier::Multiplier]
    }

    fn op(
        &self,
        [input, weights]: [Shape; 2],
        (bias, residual): (bool, Residual),
        precision: Precision,
    ) -> Result<DepthwiseOp> {
        DepthwiseOp::new(input, weights, self, bias, residual, precision)
    }

    fn weights(problem: &Convolution) -> Shape {
        let [kernel_h, kernel_w] = problem.kernel;
        Shape::nhwc(1, kernel_h, kernel_w, problem.output.c)
    }

    fn channels(problem: &Convolution) -> String {
        format!("mult{}", problem.group_outputs())
    }

    fn params(problem: &Convolution) -> Params {
        spec::window_params(problem)
    }

    /// Weights as `[slice][kh][kw][4]` over the output channels.
    fn pack(problem: &Convolution, _choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        match operand {
            Operand::Weights => {
                spec::pack_window(data, problem.kernel[0] * problem.kernel[1], problem.output.c)
            }
            _ => spec::pack_channels(data, problem.output.slices()),
        }
    }

    fn oracle(op: &DepthwiseOp, operands: &Operands<'_>) -> Sum {
        oracle::oracle(op, operands)
    }

    fn cpu(op: &DepthwiseOp, constants: &Operands<'_>, shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        cpu::kernel(op, constants, shelf)
    }

    fn reach(problem: &Convolution, inputs: &Reaches<'_>, constants: &Operands<'_>) -> Reach {
        halves::convolved(problem, true, inputs, constants)
    }
}
