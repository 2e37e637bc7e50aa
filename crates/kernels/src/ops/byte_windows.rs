//! A base for convolutions of bytes whose ranges are known: such an op says its kernels, the shape of its weights, its oracle and
//! what the CPU computes, and all else is written here once.

use super::bytes::{self, ByteRange, LANES, bytes, numbers};
use super::convolution::{Convolution, WindowOptions};
use super::definition::Definition;
use super::kernel::Kernel;
use super::operands::{OperandInfo, Operands, get, need};
use super::operator::{Arguments, Lowered, Options};
use super::problem;
use super::reference::Reference;
use super::spec::extent;
use crate::cpu::shelf::Shelf;
use crate::cpu::{CpuKernel, check_len};
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::shape::Shape;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// The convolution of bytes of concrete shapes whose options are `O`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ByteWindows<O> {
    /// Channels are counted in words.
    pub(super) windows: Convolution,
    /// Output channels; of a depthwise convolution those of the last word too.
    pub(super) channels: usize,
    /// The byte that lies outside the input.
    pub(super) outside: u8,
    /// The bytes that results may be.
    pub(super) range: ByteRange,
    options: PhantomData<O>,
}

/// The options of a convolution of bytes: what differs from op to op. The functions without a comment are those of [`Definition`].
pub(super) trait ByteOptions: Options + Copy {
    fn kernels() -> &'static [&'static dyn Kernel<ByteWindows<Self>>];

    /// The op for an input and weights of these shapes, in words.
    fn op(&self, shapes: [Shape; 2]) -> Result<ByteWindows<Self>>;

    /// The shape of its weights, in words.
    fn weights(op: &ByteWindows<Self>) -> Shape;

    /// What the problem's key says of output channels.
    fn channels(op: &ByteWindows<Self>) -> String;

    fn flops(op: &ByteWindows<Self>) -> u64;

    fn oracle(op: &ByteWindows<Self>, operands: &Operands<'_>) -> Reference;

    fn cpu(op: &ByteWindows<Self>, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>>;
}

impl<O> ByteWindows<O> {
    /// Windows over words of shape `input`, for so many output channels in so many groups of words.
    pub(super) fn of(
        op: &'static str,
        [input, weights]: [Shape; 2],
        [channels, groups]: [usize; 2],
        options: WindowOptions,
        (outside, range): (u8, ByteRange),
    ) -> Result<Self> {
        let windows = bytes::windows(op, [input, weights], [channels, groups], options)?;
        Ok(ByteWindows { windows, channels, outside, range, options: PhantomData })
    }

    /// The bytes one by one, which is exact. `terms` says which bytes of a pixel output channel and tap multiply, and by which weights
    /// from one on.
    pub(super) fn exact(
        &self,
        operands: &Operands<'_>,
        terms: impl Fn(usize, usize) -> (Range<usize>, usize),
    ) -> Reference {
        let of = |operand| get(operands, operand).unwrap_or_default();
        let (src, weights) = (bytes(of(Operand::Src)), bytes(of(Operand::Weights)));
        let (bias, scale) = (of(Operand::Bias), of(Operand::Scale));
        let windows = &self.windows;
        let (x, y, [kernel_h, kernel_w]) = (windows.input, windows.output, windows.kernel);
        let mut found = vec![0; LANES * y.elements()];
        for (pixel, found) in found.chunks_mut(LANES * y.c).enumerate() {
            let (image, row, column) = (pixel / (y.h * y.w), pixel / y.w % y.h, pixel % y.w);
            for (channel, byte) in found.iter_mut().enumerate() {
                let mut sum = bias.get(channel).map_or(0, |bias| bias.to_bits().cast_signed());
                for tap in 0..kernel_h * kernel_w {
                    let place = windows
                        .source(0, row, tap / kernel_w)
                        .zip(windows.source(1, column, tap % kernel_w))
                        .map(|(at, across)| ((image * x.h + at) * x.w + across) * LANES * x.c);
                    let (of_pixel, first) = terms(channel, tap);
                    for (k, weight) in of_pixel.zip(first..) {
                        let value = place.and_then(|place| src.get(place + k)).copied();
                        let value = i32::from(value.unwrap_or(self.outside)) - 128;
                        let weight = weights.get(weight).map_or(0, |weight| weight.cast_signed());
                        sum = sum.wrapping_add(value * i32::from(weight));
                    }
                }
                *byte = self.range.of(sum as f32 * scale.get(channel).copied().unwrap_or(0.0));
            }
        }
        Reference::exact(numbers(&found).into_iter())
    }
}

/// Weights, bias and scale among `constants`, of the right lengths.
pub(super) fn constants<'a, O: ByteOptions>(
    op: &ByteWindows<O>,
    constants: &'a Operands<'_>,
) -> Result<[&'a [f32]; 3]> {
    let [weights, bias, scale] =
        [Operand::Weights, Operand::Bias, Operand::Scale].map(|operand| need(O::NAME, constants, operand));
    let (weights, bias, scale) = (weights?, bias?, scale?);
    check_len(O::NAME, "weights", weights.len(), O::weights(op).elements())?;
    check_len(O::NAME, "bias", bias.len(), op.channels)?;
    check_len(O::NAME, "scale", scale.len(), op.channels)?;
    Ok([weights, bias, scale])
}

/// The op of a node with `Src`, `Weights`, `Bias` and `Scale`.
pub(super) fn lower<O: ByteOptions>(options: &O, arguments: Arguments<'_>) -> Result<Lowered> {
    let op = options.op(bytes::maps(O::NAME, arguments)?)?;
    bytes::check_channels(O::NAME, arguments, op.channels)?;
    Ok(Lowered::Op(Arc::new(op)))
}

impl<O: ByteOptions> Definition for ByteWindows<O> {
    const NAME: &'static str = O::NAME;
    const ROWS: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        O::kernels()
    }

    fn problem_key(&self) -> String {
        let windows = problem::convolution(&self.windows, &O::channels(self));
        format!("{windows} outside{} {}", self.outside, self.range.key())
    }

    fn precision(&self) -> Precision {
        Precision::F32
    }

    fn flops(&self) -> u64 {
        O::flops(self)
    }

    fn dst_depth(&self) -> u32 {
        extent(self.windows.output.c)
    }

    fn operands(&self) -> Vec<OperandInfo> {
        bytes::operands(&self.windows, O::weights(self), self.channels)
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        O::oracle(self, operands)
    }

    fn cpu(&self, constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        O::cpu(self, constants)
    }
}
