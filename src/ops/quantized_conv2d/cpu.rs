//! The convolution of bytes on the CPU.

use super::windows::{Windows, sums};
use super::{OP, QuantizedConv2dOp};
use crate::cpu::bytes::Finish;

use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::operands::{Operands, need};

/// Takes weights, bias and scale, whose lengths were checked.
pub(super) fn kernel(op: &QuantizedConv2dOp, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
    let [weights, bias, scale] =
        [Operand::Weights, Operand::Bias, Operand::Scale].map(|operand| need(OP, constants, operand));
    let (weights, bias, scale) = (weights?, bias?, scale?);
    check_len(OP, "weights", weights.len(), op.weights().elements())?;
    check_len(OP, "bias", bias.len(), op.channels)?;
    check_len(OP, "scale", scale.len(), op.channels)?;
    // The kernels multiply bytes as they are.
    let of_sums = bias.iter().zip(sums(weights, op.channels));
    let bias: Vec<i32> =
        of_sums.map(|(bias, sum)| bias.to_bits().cast_signed().wrapping_sub(sum.wrapping_mul(128))).collect();
    let finish = Finish { bias: &bias, scale, bounds: op.range.steps(), zero: op.range.zero };
    let windows = Windows::new(op.windows, weights, finish, op.outside);
    Ok(Box::new(OnCpu { windows, lengths: [op.windows.input, op.windows.output].map(|map| map.elements()) }))
}

#[derive(Debug)]
struct OnCpu {
    windows: Windows,
    /// Words of the input and of the output.
    lengths: [usize; 2],
}

impl CpuKernel for OnCpu {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, dst) = (input(OP, inputs, Operand::Src)?, output(OP, outputs, Operand::Dst)?);
        check_len(OP, "src", src.len(), self.lengths[0])?;
        check_len(OP, "dst", dst.len(), self.lengths[1])?;
        self.windows.run(src, dst);
        Ok(())
    }
}
