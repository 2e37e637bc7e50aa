//! The convolution of bytes on the CPU.

use super::windows::{Ending, Windows, extended, sums};
use super::{OP, QuantizedConv2dOp};
use crate::cpu::bytes::tile::{Bytes, Tile};
use crate::cpu::bytes::{Finish, LANES, Vectors, bytes_mut};
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::byte_windows;
use crate::ops::operands::Operands;

/// Takes weights, bias and scale, whose lengths were checked.
pub(super) fn kernel(op: &QuantizedConv2dOp, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
    let [weights, bias, scale] = byte_windows::constants(op, constants)?;
    let windows = Windows::new(op.windows, weights, op.channels);
    // The kernels multiply bytes as they are, or as signed ones.
    let of_sums = bias.iter().zip(sums(weights, op.channels));
    let bias = of_sums.map(|(bias, sum)| {
        let missing = windows.vectors().lacking(sum).wrapping_sub(sum.wrapping_mul(128));
        bias.to_bits().cast_signed().wrapping_add(missing)
    });
    let bias: Vec<i32> = bias.collect();
    let of_all = windows.channels();
    let to_bytes = ToBytes {
        bias: extended(&bias, of_all, 0),
        scale: extended(scale, of_all, 0.0),
        bounds: op.range.steps(),
        zero: op.range.zero,
        outside: op.outside,
        channels: LANES * op.windows.output.c,
    };
    let lengths = [op.windows.input, op.windows.output].map(|map| map.elements());
    Ok(Box::new(OnCpu { windows, to_bytes, lengths }))
}

/// Bytes on a grid that is known.
#[derive(Debug)]
struct ToBytes {
    /// A number for each channel of each panel.
    bias: Vec<i32>,
    scale: Vec<f32>,
    bounds: [i32; 2],
    zero: u8,
    outside: u8,
    /// Channels, those of the last word too.
    channels: usize,
}

impl Ending for ToBytes {
    type Item = u8;

    fn channels(&self) -> usize {
        self.channels
    }

    fn outside(&self, _image: usize) -> u8 {
        self.outside
    }

    fn finish(&self, tile: &Tile<'_>, vectors: Vectors, [channel, _]: [usize; 2], found: &mut Bytes) {
        let finish = Finish { bias: &self.bias, scale: &self.scale, bounds: self.bounds, zero: self.zero };
        tile.finish(vectors, finish, channel, found);
    }
}

#[derive(Debug)]
struct OnCpu {
    windows: Windows,
    to_bytes: ToBytes,
    /// Words of the input and of the output.
    lengths: [usize; 2],
}

impl CpuKernel for OnCpu {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, dst) = (input(OP, inputs, Operand::Src)?, output(OP, outputs, Operand::Dst)?);
        check_len(OP, "src", src.len(), self.lengths[0])?;
        check_len(OP, "dst", dst.len(), self.lengths[1])?;
        self.windows.run(&self.to_bytes, src, bytes_mut(dst));
        Ok(())
    }
}
