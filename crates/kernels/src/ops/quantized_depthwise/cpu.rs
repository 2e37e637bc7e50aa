//! The depthwise convolution of bytes on the CPU.

use super::{OP, QuantizedDepthwiseOp};
use crate::cpu::blocks::{independent_rows, products};
use crate::cpu::bytes::channels::Channels;
use crate::cpu::bytes::{Finish, GROUP, LANES, bytes, bytes_mut};
use crate::cpu::workers::each;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::byte_windows;
use crate::ops::convolution::Convolution;
use crate::ops::operands::Operands;

/// Takes weights, bias and scale, whose lengths were checked.
pub(super) fn kernel(op: &QuantizedDepthwiseOp, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
    let [weights, bias, scale] = byte_windows::constants(op, constants)?;
    // The kernels multiply bytes as they are.
    let mut sums = vec![0; op.channels];
    for row in bytes(weights).chunks(op.channels) {
        sums.iter_mut().zip(row).for_each(|(sum, byte)| *sum += i32::from(byte.cast_signed()));
    }
    let of_sums = bias.iter().zip(sums);
    let bias: Vec<i32> = of_sums
        .map(|(bias, sum): (&f32, i32)| bias.to_bits().cast_signed().wrapping_sub(sum.wrapping_mul(128)))
        .collect();
    let finish = Finish { bias: &bias, scale, bounds: op.range.steps(), zero: op.range.zero };
    let taps = op.windows.kernel[0] * op.windows.kernel[1];
    // Where windows move by one pixel, the bytes of neighbouring pixels are as those of more channels, with the same weights
    // again: a vector is full of them.
    let together = if op.windows.stride[1] == 1 { pixels_of_vectors(op.channels) } else { 1 };
    let width = op.channels * together;
    let repeated: Vec<f32> =
        weights.chunks(op.windows.input.c).flat_map(|row| row.repeat(together)).collect();
    let (bias, scale) = (bias.repeat(together), scale.repeat(together));
    let channels = Channels::new(taps, width, &repeated, Finish { bias: &bias, scale: &scale, ..finish });
    Ok(Box::new(OnCpu { windows: op.windows, together, channels, outside: vec![op.outside; width] }))
}

/// The pixels of so many channels that fill whole vectors.
fn pixels_of_vectors(channels: usize) -> usize {
    // The greatest power of two that divides both.
    let shared = 1 << channels.trailing_zeros().min(VECTOR.ilog2());
    if channels < VECTOR { VECTOR / shared } else { 1 }
}

/// Bytes of the widest vector.
const VECTOR: usize = 64;

/// Products of bytes that take as long as one multiply-add of f32.
const PER_MULTIPLY: usize = 2;

#[derive(Debug)]
struct OnCpu {
    /// Channels are counted in words.
    windows: Convolution,
    /// Pixels that are summed at a time, where all their taps are inside.
    together: usize,
    channels: Channels,
    /// What lies outside the input, for all channels.
    outside: Vec<u8>,
}

impl CpuKernel for OnCpu {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, dst) = (input(OP, inputs, Operand::Src)?, output(OP, outputs, Operand::Dst)?);
        let Convolution { input, output, kernel, .. } = self.windows;
        check_len(OP, "src", src.len(), input.elements())?;
        check_len(OP, "dst", dst.len(), output.elements())?;
        let taps = (kernel[0] * kernel[1]).next_multiple_of(GROUP);
        let work = products([LANES * output.c, taps]) / PER_MULTIPLY;
        let row = output.w * output.c;
        let part = independent_rows(output.n * output.h, output.w * work);
        let src = bytes(src);
        each(dst.chunks_mut(part * row).enumerate(), |(index, dst)| {
            for (at, dst) in dst.chunks_mut(row).enumerate() {
                self.row(src, index * part + at, bytes_mut(dst));
            }
        });
        Ok(())
    }
}

impl OnCpu {
    /// An output row, counted through all images.
    fn row(&self, src: &[u8], row: usize, dst: &mut [u8]) {
        let Convolution { input, output, kernel, stride, dilation, before, .. } = self.windows;
        let channels = LANES * input.c;
        let (image, top) = (row / output.h, row % output.h * stride[0]);
        let line = |a: usize| {
            let y = (top + a * dilation[0]).checked_sub(before[0]).filter(|&y| y < input.h)?;
            let first = (image * input.h + y) * input.w * channels;
            src.get(first..first + input.w * channels)
        };
        let lines: Vec<Option<&[u8]>> = (0..kernel[0]).map(line).collect();
        // Columns all of whose taps are inside.
        let span = (kernel[1] - 1) * dilation[1];
        let inner = before[1]..(input.w + before[1]).saturating_sub(span).min(output.w);
        let mut taps: Vec<&[u8]> = Vec::with_capacity((kernel[0] * kernel[1]).next_multiple_of(GROUP));
        let mut column = 0;
        while column < output.w {
            let count = match inner.contains(&column) {
                true if self.together > 1 => self.together.min(inner.end - column),
                _ => 1,
            };
            taps.clear();
            for line in &lines {
                for b in 0..kernel[1] {
                    let x = (column * stride[1] + b * dilation[1]).checked_sub(before[1]);
                    let own = x.map(|x| x * channels..(x + count) * channels);
                    let own = line.zip(own).and_then(|(line, own)| line.get(own));
                    taps.push(
                        own.unwrap_or_else(|| self.outside.get(..count * channels).unwrap_or_default()),
                    );
                }
            }
            // Their weights are zero.
            taps.resize(taps.len().next_multiple_of(GROUP), taps.first().copied().unwrap_or_default());
            let own = column * channels..(column + count) * channels;
            self.channels.pixel(&taps, dst.get_mut(own).unwrap_or_default());
            column += count;
        }
    }
}
