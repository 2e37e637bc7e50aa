//! The convolution of bytes of ranges of a run on the CPU.

use super::{DynamicConv2dOp, OP};
use crate::cpu::bytes::tile::{PIXELS, Tile, Words};
use crate::cpu::bytes::{Scaled, Vectors};
use crate::cpu::tail::Tail;
use crate::cpu::{CpuKernel, check_len, given, input, output};
use crate::emit::{Epilogue, Operand};
use crate::error::Result;
use crate::ops::dynamic_range::NUMBERS_OF_RANGE;
use crate::ops::operands::{Operands, get, need};
use crate::ops::quantized_conv2d::windows::{Ending, Windows, extended, sums};

/// Takes the constants, whose lengths were checked.
pub(super) fn kernel(op: &DynamicConv2dOp, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
    let weights = need(OP, constants, Operand::Weights)?;
    check_len(OP, "weights", weights.len(), op.weights().elements())?;
    let of_channels = |operand: Operand, has: bool| {
        let values = if has { need(OP, constants, operand)? } else { &[] };
        check_len(OP, operand.name(), values.len(), if has { op.channels } else { 0 })?;
        Ok(values)
    };
    let (scale, bias) =
        (of_channels(Operand::Scale, !op.sums)?, of_channels(Operand::Bias, op.epilogue.bias)?);
    // The bias is added with the product.
    let epilogue = Epilogue { bias: false, ..op.epilogue };
    let tail = Tail::new(OP, &epilogue, op.channels, None, get(constants, Operand::Slope))?;
    let windows = Windows::new(op.windows, weights, op.channels);
    let of_all = windows.channels();
    Ok(Box::new(OnCpu {
        op: *op,
        sums: extended(&sums(weights, op.channels), of_all, 0),
        scale: extended(scale, of_all, 0.0),
        bias: extended(bias, of_all, 0.0),
        windows,
        tail,
    }))
}

#[derive(Debug)]
struct OnCpu {
    op: DynamicConv2dOp,
    windows: Windows,
    /// A number for each channel of each panel.
    sums: Vec<i32>,
    scale: Vec<f32>,
    bias: Vec<f32>,
    tail: Tail,
}

/// What is made of the sums of a run.
struct ToWords<'a> {
    kernel: &'a OnCpu,
    ranges: &'a [[f32; NUMBERS_OF_RANGE]],
    residual: Option<&'a [f32]>,
    span: usize,
}

impl ToWords<'_> {
    /// Scale and zero point of a range.
    fn range(&self, index: usize) -> [f32; 2] {
        let [scale, zero, _] = self.ranges.get(index).copied().unwrap_or_default();
        [scale, zero]
    }
}

impl Ending for ToWords<'_> {
    type Item = f32;

    fn channels(&self) -> usize {
        self.kernel.op.channels
    }

    fn outside(&self, image: usize) -> u8 {
        self.range(self.kernel.op.range_of(image))[1] as u8
    }

    fn finish(&self, tile: &Tile<'_>, vectors: Vectors, [channel, pixel]: [usize; 2], found: &mut Words) {
        let OnCpu { op, sums, scale, bias, .. } = self.kernel;
        let mut pixels = [[0.0; 2]; PIXELS];
        for (at, place) in pixels.iter_mut().take(tile.pixels).enumerate() {
            *place = self.range((pixel + at) / self.span);
        }
        let scaled = Scaled { sums, scale, bias, pixels, whole: op.sums };
        tile.scaled(vectors, scaled, channel, found);
    }

    fn done(&self, [channel, pixel]: [usize; 2], dst: &mut [f32]) {
        let OnCpu { op, tail, .. } = self.kernel;
        let first = pixel * op.channels + channel;
        let residual = self.residual.and_then(|all| all.get(first..first + dst.len()));
        tail.apply_from(channel, dst, residual);
    }
}

impl CpuKernel for OnCpu {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, ranges) = (input(OP, inputs, Operand::Src)?, input(OP, inputs, Operand::Arg(0))?);
        let dst = output(OP, outputs, Operand::Dst)?;
        check_len(OP, "src", src.len(), self.op.windows.input.elements())?;
        check_len(OP, "ranges", ranges.len(), self.op.ranges.elements())?;
        check_len(OP, "dst", dst.len(), self.op.output().elements())?;
        let residual = given(inputs, Operand::Residual);
        self.tail.check_residual(residual, dst.len())?;
        let (ranges, span) = (ranges.as_chunks().0, self.op.span().max(1));
        let ending = ToWords { kernel: self, ranges, residual, span };
        self.windows.run(&ending, src, dst);
        Ok(())
    }
}
