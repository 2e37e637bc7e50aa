//! The 2D convolution: windows gathered into rows, then one matrix product per group.

use super::blocks::{cut_product, with_scratch};
use super::check_len;
use super::depthwise::Channelwise;
use super::pointwise::{RowProduct, transpose};
use super::product::{Factors, Matrix, multiply};
use super::tail::Tail;
use crate::error::Result;
use crate::ops::Convolution;
use crate::ops::conv2d::Conv2dOp;
use rayon::prelude::*;

/// A 2D convolution with its constants, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub struct Conv2dKernel(Form);

#[derive(Debug, Clone)]
enum Form {
    /// One tap that reads every pixel once.
    Rows(RowProduct),
    /// One input channel per group.
    Channels(Channelwise),
    Windows(Windows),
}

impl Conv2dKernel {
    /// Lays out the weights (`oc kh kw c/groups`).
    ///
    /// # Errors
    /// If a constant is missing, not wanted, or of another length than the op says.
    pub fn new(op: &Conv2dOp, weights: &[f32], bias: Option<&[f32]>, slope: Option<&[f32]>) -> Result<Self> {
        let conv = op.0;
        let output = conv.output;
        let depth = conv.kernel[0] * conv.kernel[1] * conv.group_inputs();
        check_len("conv2d", "weights", weights.len(), depth * output.c)?;
        let tail = Tail::new("conv2d", &conv.epilogue, output.c, bias, slope)?;
        let same_pixels = conv.before == [0, 0]
            && conv.stride == [1, 1]
            && (output.h, output.w) == (conv.input.h, conv.input.w);
        if conv.kernel == [1, 1] && conv.groups == 1 && same_pixels {
            let rows = output.n * output.h * output.w;
            return Ok(Conv2dKernel(Form::Rows(RowProduct::new(
                "conv2d",
                rows,
                conv.input.c,
                output.c,
                weights,
                tail,
            )?)));
        }
        let mut transposed = vec![0.0; weights.len()];
        if conv.group_inputs() == 1 {
            // `oc kh kw` to `kh kw oc`.
            transpose(weights, depth, &mut transposed);
            return Ok(Conv2dKernel(Form::Channels(Channelwise::new("conv2d", conv, transposed, tail))));
        }
        let group = depth * conv.group_outputs();
        for (weights, transposed) in weights.chunks_exact(group).zip(transposed.chunks_exact_mut(group)) {
            transpose(weights, depth, transposed);
        }
        Ok(Conv2dKernel(Form::Windows(Windows { conv, depth, weights: transposed, tail })))
    }

    /// Reads `src` and `residual` and writes `dst`, all NHWC.
    ///
    /// # Errors
    /// If a slice is missing, not wanted, or of another length than the op says.
    pub fn run(&self, src: &[f32], residual: Option<&[f32]>, dst: &mut [f32]) -> Result<()> {
        match &self.0 {
            Form::Rows(product) => product.run(src, residual, dst),
            Form::Channels(channelwise) => channelwise.run(src, residual, dst),
            Form::Windows(windows) => windows.run(src, residual, dst),
        }
    }
}

/// The general convolution.
#[derive(Debug, Clone)]
struct Windows {
    conv: Convolution,
    /// Values of one window of one group: `kh * kw * group_inputs`.
    depth: usize,
    /// Per group, `depth x group_outputs`.
    weights: Vec<f32>,
    tail: Tail,
}

impl Windows {
    fn run(&self, src: &[f32], residual: Option<&[f32]>, dst: &mut [f32]) -> Result<()> {
        let Convolution { input, output, groups, .. } = self.conv;
        check_len("conv2d", "src", src.len(), input.elements())?;
        check_len("conv2d", "dst", dst.len(), output.elements())?;
        self.tail.check_residual(residual, output.elements())?;

        let (depth, columns, outputs) = (self.depth, output.c, self.conv.group_outputs());
        let rows = output.n * output.h * output.w;
        let cut = cut_product(1, rows, depth + columns);
        dst.par_chunks_mut(cut.rows * columns).enumerate().try_for_each(|(index, dst)| {
            let first = index * cut.rows;
            let rows = dst.len() / columns;
            with_scratch(rows * depth, |windows| {
                for group in 0..groups {
                    for (row, window) in windows.chunks_exact_mut(depth).enumerate() {
                        self.gather(src, first + row, group, window);
                    }
                    let weights = self.weights.get(group * depth * outputs..).unwrap_or_default();
                    multiply(
                        [rows, outputs, depth],
                        dst.get_mut(group * outputs..).unwrap_or_default(),
                        columns,
                        Matrix { data: windows, strides: [depth, 1] },
                        Matrix { data: weights, strides: [outputs, 1] },
                        Factors::PLAIN,
                        cut.parallelism,
                    )?;
                }
                Ok(())
            })?;
            self.tail.apply(dst, columns, residual.and_then(|residual| residual.get(first * columns..)));
            Ok(())
        })
    }

    /// Copies the window of output pixel `pixel` (counted over batch, rows and columns), zeros
    /// outside the input.
    fn gather(&self, src: &[f32], pixel: usize, group: usize, window: &mut [f32]) {
        let Convolution { input, output, kernel, dilation, .. } = self.conv;
        let inputs = self.conv.group_inputs();
        let (n, i, j) = (pixel / (output.h * output.w), pixel / output.w % output.h, pixel % output.w);
        let row_values = input.w * input.c;
        for (a, taps) in window.chunks_exact_mut(kernel[1] * inputs).enumerate() {
            let Some(row) = self.conv.source(0, i, a) else {
                taps.fill(0.0);
                continue;
            };
            let row = (n * input.h + row) * row_values;
            let row = src.get(row..row + row_values).unwrap_or_default();
            // Neighbouring taps of an ungrouped convolution are one run of memory.
            let ends = (self.conv.source(1, j, 0), self.conv.source(1, j, kernel[1] - 1));
            if let (1, 1, (Some(start), Some(_))) = (self.conv.groups, dilation[1], ends)
                && let Some(run) = row.get(start * inputs..start * inputs + taps.len())
            {
                taps.copy_from_slice(run);
                continue;
            }
            for (b, tap) in taps.chunks_exact_mut(inputs).enumerate() {
                let start = self.conv.source(1, j, b).map(|column| column * input.c + group * inputs);
                match start.and_then(|start| row.get(start..start + inputs)) {
                    Some(values) => tap.copy_from_slice(values),
                    None => tap.fill(0.0),
                }
            }
        }
    }
}
