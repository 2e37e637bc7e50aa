//! Convolutions and poolings of quantized values.

use super::products::{ByteWeights, Channels};
use super::values::{activation_bounds, both, operator};
use super::{Bytes, Grid, Pass, Quantized};
use crate::emit::{Bits, Operand};
use crate::error::Result;
use crate::graph::Value;
use crate::host::HostTensor;
use crate::lower::unit::{Input, Unit};
use crate::ops::bytes::ByteRange;
use crate::ops::conv2d::Conv2d;
use crate::ops::depthwise::Depthwise;
use crate::ops::gemm::Gemm;
use crate::ops::pointwise::Pointwise;
use crate::ops::pool::{Pool, Pooling};
use crate::ops::quantization::Rounding;
use crate::ops::quantized_conv2d::QuantizedConv2d;
use crate::ops::quantized_depthwise::QuantizedDepthwise;
use crate::ops::quantized_pool::{QuantizedPool, QuantizedPooling};
use crate::ops::reduce::{Reduce, Reduction};
use crate::shape::{Border, Padding};

/// The most elements of a window whose sums have 32 bits.
const MOST_TAPS: usize = 1 << 22;

/// A convolution's windows over bytes.
struct Windows {
    stride: [usize; 2],
    dilation: [usize; 2],
    padding: Padding,
}

/// The constant that a unit is given as `operand`; nothing where it is given a value of a run, or nothing.
pub(super) fn constant(unit: &Unit, operand: Operand) -> Option<&HostTensor> {
    match unit.input(operand) {
        Ok(Input::Constant(tensor, _)) => Some(tensor),
        _ => None,
    }
}

/// Whether a unit reads these operands, and perhaps a constant bias, and nothing else.
pub(super) fn reads_only(unit: &Unit, operands: &[Operand]) -> bool {
    unit.inputs.iter().all(|(operand, input)| match operand {
        Operand::Bias => matches!(input, Input::Constant(..)),
        operand => operands.contains(operand),
    })
}

impl Pass<'_, '_> {
    /// The bytes of what an operator of windows or a product computes of quantized values, to which `x` is rounded.
    pub(super) fn of_windows(&mut self, name: &str, x: Value, grid: Grid) -> Result<Option<Bytes>> {
        let Some((y, bounds)) = self.within_bounds(x) else { return Ok(None) };
        let Some(unit) = self.writer(y).cloned() else { return Ok(None) };
        if (self.alone)(&unit.name) || !self.is_read_once(y) {
            return Ok(None);
        }
        let to = (grid, bounds);
        if let Some(&Pool { pooling, window, stride, padding, activation }) = operator(&unit) {
            let Some(own) = activation_bounds(activation) else { return Ok(None) };
            let Some(x) = self.source(&unit, Operand::Src) else { return Ok(None) };
            let taps = window.iter().product::<usize>();
            // TensorFlow Lite rounds halves away from the stored 0. A change of scale wants whole windows.
            let whole = padding == Padding::Valid;
            let pooling = match (pooling, self.rounding) {
                (Pooling::Max, _) if x.grid == grid => QuantizedPooling::Max,
                (Pooling::Average, Rounding::Away) if x.grid == grid => {
                    QuantizedPooling::Mean(grid.offset as u8)
                }
                (Pooling::Average, Rounding::Even | Rounding::EvenOfReciprocal) if whole => {
                    let factor = x.grid.scale / grid.scale * (1.0 / taps as f32);
                    QuantizedPooling::Scaled { zero: x.grid.zero, factor: Bits(factor) }
                }
                _ => return Ok(None),
            };
            let range = grid.range(both(own, bounds));
            let options = QuantizedPool { pooling, window, stride, padding, range };
            return self.pooled(name, x, options);
        }
        if let Some(reduce) = operator::<Reduce>(&unit) {
            return self.mean(name, &unit, &reduce.clone(), to);
        }
        let product = if let Some(&options) = operator::<Gemm>(&unit) {
            self.multiplied(name, &unit, options, to)?
        } else {
            self.convolved(name, &unit, to)?
        };
        match product {
            Some(bytes) => Ok(Some(bytes)),
            None => self.exact(name, &unit, to),
        }
    }

    /// The quantized value that a unit reads as `operand`.
    pub(super) fn source(&self, unit: &Unit, operand: Operand) -> Option<Quantized> {
        self.quantization(unit.input(operand).ok()?.value()?)
    }

    /// A pooling of quantized maps.
    pub(super) fn pooled(
        &mut self,
        name: &str,
        x: Quantized,
        options: QuantizedPool,
    ) -> Result<Option<Bytes>> {
        if self.network.dims(x.value)?.rank() != 4 || options.window.iter().product::<usize>() > MOST_TAPS {
            return Ok(None);
        }
        let Some(bytes) = self.bytes_of(x)? else { return Ok(None) };
        let value = self.add(name, options, &[(Operand::Src, bytes.value)])?;
        Ok(Some(Bytes { value, ..bytes }))
    }

    /// The mean over height and width.
    fn mean(
        &mut self,
        name: &str,
        unit: &Unit,
        reduce: &Reduce,
        (grid, bounds): (Grid, [f32; 2]),
    ) -> Result<Option<Bytes>> {
        let Some(x) = self.source(unit, Operand::Src) else { return Ok(None) };
        let dims = self.network.dims(x.value)?;
        let &[batch, height, width, channels] = dims.extents() else { return Ok(None) };
        let mut axes = Vec::with_capacity(reduce.axes.len());
        for &axis in &reduce.axes {
            axes.push(dims.axis("reduce", axis)?);
        }
        crate::sorted::sort(&mut axes, Ord::cmp);
        axes.dedup();
        if reduce.reduction != Reduction::Mean || axes != [1, 2] {
            return Ok(None);
        }
        let factor = x.grid.scale / grid.scale * (1.0 / (height * width) as f32);
        let pooling = QuantizedPooling::Scaled { zero: x.grid.zero, factor: Bits(factor) };
        let (window, stride, padding) = ([height, width], [1, 1], Padding::Valid);
        let options = QuantizedPool { pooling, window, stride, padding, range: grid.range(bounds) };
        match self.pooled(name, x, options)? {
            Some(bytes) if !reduce.keep_dims => self.reshaped(bytes, &[batch, channels]),
            bytes => Ok(bytes),
        }
    }

    /// A convolution without groups, or of each channel by itself.
    fn convolved(
        &mut self,
        name: &str,
        unit: &Unit,
        (grid, bounds): (Grid, [f32; 2]),
    ) -> Result<Option<Bytes>> {
        let (windows, depthwise, activation) = if let Some(&own) = operator::<Conv2d>(unit) {
            if own.groups != 1 || own.border != Border::Zeros {
                return Ok(None);
            }
            let Conv2d { stride, dilation, padding, activation, .. } = own;
            (Windows { stride, dilation, padding }, false, activation)
        } else if let Some(&Pointwise { activation }) = operator(unit) {
            let (one, padding) = ([1, 1], Padding::Valid);
            (Windows { stride: one, dilation: one, padding }, false, activation)
        } else if let Some(&Depthwise { stride, dilation, padding, activation }) = operator(unit) {
            (Windows { stride, dilation, padding }, true, activation)
        } else {
            return Ok(None);
        };
        let Some(own) = activation_bounds(activation) else { return Ok(None) };
        if !reads_only(unit, &[Operand::Src, Operand::Weights]) {
            return Ok(None);
        }
        let (Some(x), Some(weights)) = (self.source(unit, Operand::Src), constant(unit, Operand::Weights))
        else {
            return Ok(None);
        };
        let channels = self.network.dims(x.value)?.extents().last().copied().unwrap_or(0);
        // Several outputs of each channel have no op of bytes; of one channel they are a convolution of all.
        let kind = match (depthwise, weights.shape().c) {
            (false, _) => Channels::Mixed,
            (true, outputs) if outputs == channels => Channels::Apart,
            (true, _) if channels == 1 => Channels::One,
            (true, _) => return Ok(None),
        };
        let (derived, bias) = (self.network.graph.derived(), constant(unit, Operand::Bias));
        let Some(weights) = ByteWeights::of(derived, weights, bias, x.grid.scale, kind) else {
            return Ok(None);
        };
        let depthwise = kind == Channels::Apart;
        let Some(bytes) = self.bytes_of(x)? else { return Ok(None) };
        self.convolve(
            name,
            (bytes, x.grid),
            (&weights, depthwise),
            &windows,
            (grid, grid.range(both(own, bounds))),
        )
        .map(Some)
    }

    fn convolve(
        &mut self,
        name: &str,
        (x, from): (Bytes, Grid),
        (weights, depthwise): (&ByteWeights, bool),
        windows: &Windows,
        (grid, range): (Grid, ByteRange),
    ) -> Result<Bytes> {
        let operands = weights.operands(self, [from, grid], depthwise)?;
        let mut inputs = vec![(Operand::Src, x.value)];
        inputs.extend(operands);
        let &Windows { stride, dilation, padding } = windows;
        let outside = from.zero;
        let value = match depthwise {
            true => {
                self.add(name, QuantizedDepthwise { stride, dilation, padding, outside, range }, &inputs)?
            }
            false => {
                self.add(name, QuantizedConv2d { stride, dilation, padding, outside, range }, &inputs)?
            }
        };
        Ok(Bytes { value, channels: weights.outputs() })
    }

    /// Rows times a constant matrix.
    fn multiplied(
        &mut self,
        name: &str,
        unit: &Unit,
        options: Gemm,
        (grid, bounds): (Grid, [f32; 2]),
    ) -> Result<Option<Bytes>> {
        let plain =
            Gemm { transpose_b: options.transpose_b, activation: options.activation, ..Gemm::default() };
        let Some(own) = activation_bounds(options.activation).filter(|_| options == plain) else {
            return Ok(None);
        };
        let (Some(x), Some(matrix)) = (self.source(unit, Operand::A), constant(unit, Operand::B)) else {
            return Ok(None);
        };
        if !reads_only(unit, &[Operand::A, Operand::B]) || matrix.shape().n * matrix.shape().h != 1 {
            return Ok(None);
        }
        let (derived, bias) = (self.network.graph.derived(), constant(unit, Operand::Bias));
        let weights = ByteWeights::of_matrix(derived, matrix, options.transpose_b, bias, x.grid.scale);
        let Some(weights) = weights else { return Ok(None) };
        let extents = self.network.dims(x.value)?.extents().to_vec();
        let depth = extents.last().copied().unwrap_or(1);
        if weights.depth() != depth {
            return Ok(None);
        }
        let Some(bytes) = self.bytes_of(x)? else { return Ok(None) };
        let rows = extents.iter().product::<usize>() / depth.max(1);
        let Some(maps) = self.reshaped(bytes, &[rows, 1, 1, depth])? else { return Ok(None) };
        let windows = Windows { stride: [1, 1], dilation: [1, 1], padding: Padding::Valid };
        let to = (grid, grid.range(both(own, bounds)));
        let product = self.convolve(name, (maps, x.grid), (&weights, false), &windows, to)?;
        let Some(&output) = unit.outputs.first() else { return Ok(None) };
        let extents = self.network.dims(output)?.extents().to_vec();
        self.reshaped(product, &extents)
    }
}
