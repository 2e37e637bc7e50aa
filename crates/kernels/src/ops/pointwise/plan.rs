//! What `pointwise` is, and its kernels.

use super::{Pointwise, PointwiseOp, cpu, direct, matrix, micro, oracle, split, tiled};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::{Epilogue, Operand, Residual};
use crate::error::Result;
use crate::ops::convolution::Convolution;
use crate::ops::kernel::Kernel;
use crate::ops::op::Op;
use crate::ops::operands::Operands;
use crate::ops::plan::Choice;
use crate::ops::reference::Sum;
use crate::ops::spec::{self, Params, unsigned};
use crate::ops::windowed::ConvolutionOptions;
use crate::shape::Shape;

impl ConvolutionOptions for Pointwise {
    fn kernels() -> &'static [&'static dyn Kernel<PointwiseOp>] {
        &[&matrix::MATRIX, &matrix::MATRIX_PTX, &micro::Micro, &tiled::TILED, &split::SPLIT, &direct::Direct]
    }

    fn op(
        &self,
        [input, weights]: [Shape; 2],
        (bias, residual): (bool, Residual),
        precision: Precision,
    ) -> Result<PointwiseOp> {
        PointwiseOp::new(input, weights, self, bias, residual, precision)
    }

    fn weights(problem: &Convolution) -> Shape {
        Shape::nhwc(problem.output.c, 1, 1, problem.input.c)
    }

    /// The scalars of the kernels whose grid is a row of pixels.
    fn params(problem: &Convolution) -> Params {
        vec![
            ("plane", unsigned(problem.output.w * problem.output.h)),
            ("src_c4", unsigned(problem.input.slices())),
            ("dst_c4", unsigned(problem.output.slices())),
            ("batch", unsigned(problem.output.n)),
        ]
    }

    /// Of `direct` and `micro`: weights as `[slice][input slice][lane][4]`, in whole tiles of slices.
    fn pack(problem: &Convolution, choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        let slices = problem.output.slices().next_multiple_of(choice.tile[1].max(1) as usize);
        if operand != Operand::Weights {
            return spec::pack_channels(data, slices);
        }
        let sources = problem.input.slices();
        let mut out = vec![0.0; slices * sources * 16];
        for (o, row) in data.chunks_exact(problem.input.c).enumerate() {
            let first = 16 * sources * (o / 4) + o % 4;
            for (k, &weight) in row.iter().enumerate() {
                out[first + 4 * k] = weight;
            }
        }
        out
    }

    fn oracle(op: &PointwiseOp, operands: &Operands<'_>) -> Sum {
        oracle::oracle(op, operands)
    }

    fn cpu(op: &PointwiseOp, constants: &Operands<'_>, shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::kernel(op, constants, shelf)?))
    }

    /// 1x1 convolutions of one input with one activation and no residual are one with their weights
    /// stacked.
    fn stack(op: &PointwiseOp, parts: &[&dyn Op], multiple: usize) -> Option<PointwiseOp> {
        let part = |part: &&dyn Op| {
            let problem = part.as_any().downcast_ref::<PointwiseOp>()?.0;
            let Epilogue { activation, residual, .. } = problem.epilogue;
            let kin = problem.input == op.0.input && problem.precision == op.0.precision;
            let same = kin && activation == op.0.epilogue.activation && !residual.is_some();
            same.then_some((problem.output.c, problem.epilogue.bias))
        };
        let parts: Option<Vec<(usize, bool)>> = parts.iter().map(part).collect();
        let parts = parts.filter(|_| !op.0.epilogue.residual.is_some())?;
        let padded = parts.iter().map(|(channels, _)| channels.checked_next_multiple_of(multiple));
        let channels = padded.sum::<Option<usize>>()?;
        let Convolution { input, precision, epilogue: Epilogue { activation, .. }, .. } = op.0;
        let (options, weights) = (Pointwise { activation }, Shape::nhwc(channels, 1, 1, input.c));
        let bias = parts.iter().any(|(_, bias)| *bias);
        PointwiseOp::new(input, weights, &options, bias, false, precision).ok()
    }
}
