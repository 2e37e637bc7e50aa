//! The depthwise convolution on the CPU: vectors of channels, several pixels at a time.

use super::{DepthwiseOp, OP};
use crate::cpu::blocks::independent_rows;
use crate::cpu::tail::{Tail, bounded};
use crate::cpu::{CpuKernel, check_len, given, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::convolution::Convolution;
use crate::ops::operands::{Operands, need};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use std::ops::Range;

/// Takes the weights (`1 kh kw c*M`).
pub(super) fn kernel(op: &DepthwiseOp, constants: &Operands<'_>) -> Result<Channelwise> {
    let (conv, weights) = (op.0, need(OP, constants, Operand::Weights)?);
    check_len(OP, "weights", weights.len(), conv.kernel[0] * conv.kernel[1] * conv.output.c)?;
    let tail = Tail::of(OP, &conv.epilogue, conv.output.c, constants)?;
    Ok(Channelwise::new(OP, conv, weights.to_vec(), tail))
}

/// A convolution of one input channel per group.
#[derive(Debug, Clone)]
pub(crate) struct Channelwise {
    op: &'static str,
    conv: Convolution,
    /// `kh kw oc`.
    weights: Vec<f32>,
    tail: Tail,
    arch: Arch,
}

/// Pixels whose sums are held in registers together, so that a weight is loaded once for all.
const PIXELS: usize = 4;

impl CpuKernel for Channelwise {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, residual) = (input(self.op, inputs, Operand::Src)?, given(inputs, Operand::Residual));
        self.convolve(src, residual, output(self.op, outputs, Operand::Dst)?)
    }
}

impl Channelwise {
    /// `weights` is `kh kw oc`, its length checked.
    pub(crate) fn new(op: &'static str, conv: Convolution, weights: Vec<f32>, tail: Tail) -> Self {
        Channelwise { op, conv, weights, tail, arch: Arch::new() }
    }

    fn convolve(&self, src: &[f32], residual: Option<&[f32]>, dst: &mut [f32]) -> Result<()> {
        let Convolution { output, kernel, .. } = self.conv;
        self.check(src)?;
        check_len(self.op, "dst", dst.len(), output.elements())?;
        self.tail.check_residual(residual, output.elements())?;

        let row_values = output.w * output.c;
        let block = independent_rows(output.n * output.h, row_values * kernel[0] * kernel[1]);
        dst.par_chunks_mut(block * row_values)
            .enumerate()
            .for_each(|(index, dst)| self.rows(index * block, src, residual, dst));
        Ok(())
    }

    /// Refuses an input of another length than the shapes say.
    pub(crate) fn check(&self, src: &[f32]) -> Result<()> {
        check_len(self.op, "src", src.len(), self.conv.input.elements())
    }

    /// Output rows from row `first` of all images on, as many as `dst` holds.
    pub(crate) fn rows(&self, first: usize, src: &[f32], residual: Option<&[f32]>, dst: &mut [f32]) {
        let output = self.conv.output;
        let row_values = output.w * output.c;
        for (row, dst) in dst.chunks_exact_mut(row_values).enumerate() {
            let row = first + row;
            self.arch.dispatch(Row { of: self, src, n: row / output.h, i: row % output.h, dst });
            if self.finish().is_none() {
                let residual = residual.and_then(|residual| residual.get(row * row_values..));
                self.tail.apply(dst, output.c, residual);
            }
        }
    }

    /// What the tail does to a sum, where sums are finished before they leave their registers.
    fn finish(&self) -> Option<(&[f32], Option<[f32; 2]>)> {
        self.tail.bounds().filter(|_| !self.tail.has_residual() && self.conv.output.c == self.conv.input.c)
    }

    /// The taps of axis 0 or 1 that lie inside the input for output `out`: they are consecutive.
    fn inside(&self, axis: usize, out: usize) -> Range<usize> {
        let taps = 0..self.conv.kernel[axis];
        let first = taps.clone().find(|&tap| self.conv.source(axis, out, tap).is_some());
        let last = taps.rev().find(|&tap| self.conv.source(axis, out, tap).is_some());
        match (first, last) {
            (Some(first), Some(last)) => first..last + 1,
            _ => 0..0,
        }
    }
}

/// The sums of output row `i` of image `n`.
struct Row<'a> {
    of: &'a Channelwise,
    src: &'a [f32],
    n: usize,
    i: usize,
    dst: &'a mut [f32],
}

impl WithSimd for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let of = self.of;
        let Convolution { input, output, kernel, .. } = of.conv;
        let rows = of.inside(0, self.i);
        let input_row = input.w * input.c;
        let mut j = 0;
        while j < output.w {
            let columns = of.inside(1, j);
            // The taps inside differ only at the borders; in between, pixels go together.
            let together = columns.len() == kernel[1]
                && j + PIXELS <= output.w
                && of.inside(1, j + PIXELS - 1).len() == kernel[1];
            let pixels = if together { PIXELS } else { 1 };
            let Some(dst) = self.dst.get_mut(j * output.c..(j + pixels) * output.c) else { return };
            let window = Window { of, src: self.src, n: self.n, i: self.i, j, rows: rows.clone(), columns };
            if output.c != input.c {
                dst.fill(0.0);
                for (pixel, dst) in dst.chunks_exact_mut(output.c).enumerate() {
                    window.multiplied(input_row, pixel, dst);
                }
            } else if together && window.is_triple::<S>() {
                match of.conv.stride[1] {
                    1 => window.triple::<S, PIXELS, 1, { PIXELS + 2 }>(simd, dst),
                    _ => window.triple::<S, PIXELS, 2, { 2 * PIXELS + 1 }>(simd, dst),
                }
            } else if together {
                window.channels::<S, PIXELS>(simd, input_row, dst);
            } else {
                window.channels::<S, 1>(simd, input_row, dst);
            }
            j += pixels;
        }
    }
}

/// One or more neighbouring windows of a row and the taps that lie inside.
struct Window<'a> {
    of: &'a Channelwise,
    src: &'a [f32],
    n: usize,
    i: usize,
    j: usize,
    rows: Range<usize>,
    columns: Range<usize>,
}

impl Window<'_> {
    /// Index of the first channel that tap `(a, b)` of the window `pixel` places on reads.
    #[inline(always)]
    fn start(&self, input_row: usize, a: usize, b: usize, pixel: usize) -> usize {
        let Convolution { input, stride, dilation, before, .. } = self.of.conv;
        let row = self.n * input.h + self.i * stride[0] + a * dilation[0] - before[0];
        let column = (self.j + pixel) * stride[1] + b * dilation[1] - before[1];
        row * input_row + column * input.c
    }

    /// `P` pixels with as many output as input channels.
    #[inline(always)]
    fn channels<S: Simd, const P: usize>(&self, simd: S, input_row: usize, dst: &mut [f32]) {
        let channels = self.of.conv.output.c;
        let whole = channels - channels % S::F32_LANES;
        for c in (0..whole).step_by(S::F32_LANES) {
            self.lanes::<S, P, true>(simd, input_row, dst, c, S::F32_LANES);
        }
        if whole < channels {
            self.lanes::<S, P, false>(simd, input_row, dst, whole, channels - whole);
        }
    }

    /// Channels `c..c + lanes` of `P` pixels: a whole vector, or the start of one.
    #[inline(always)]
    fn lanes<S: Simd, const P: usize, const WHOLE: bool>(
        &self,
        simd: S,
        input_row: usize,
        dst: &mut [f32],
        c: usize,
        lanes: usize,
    ) {
        let channels = self.of.conv.output.c;
        let step = self.of.conv.stride[1] * channels;
        let finish = self.of.finish();
        let bias = finish.map(|(bias, _)| load::<S, WHOLE>(simd, bias, c, lanes));
        let mut sums = [bias.unwrap_or(simd.splat_f32s(0.0)); P];
        for a in self.rows.clone() {
            for b in self.columns.clone() {
                let tap = (a * self.of.conv.kernel[1] + b) * channels + c;
                let weight = load::<S, WHOLE>(simd, &self.of.weights, tap, lanes);
                let start = self.start(input_row, a, b, 0) + c;
                for (pixel, sum) in sums.iter_mut().enumerate() {
                    let value = load::<S, WHOLE>(simd, self.src, start + pixel * step, lanes);
                    *sum = simd.mul_add_e_f32s(value, weight, *sum);
                }
            }
        }
        for (pixel, sum) in sums.into_iter().enumerate() {
            let start = pixel * channels + c;
            let dst = dst.get_mut(start..start + lanes).unwrap_or_default();
            let sum = bounded(simd, sum, finish.and_then(|(_, bounds)| bounds));
            if !WHOLE {
                simd.partial_store_f32s(dst, sum);
            } else if let Some(dst) = S::as_mut_simd_f32s(dst).0.first_mut() {
                *dst = sum;
            }
        }
    }

    /// Whether [`Window::triple`] serves it: rows of three neighbouring taps, whole vectors of
    /// channels.
    #[inline(always)]
    fn is_triple<S: Simd>(&self) -> bool {
        let Convolution { input, kernel, stride, dilation, .. } = self.of.conv;
        kernel[1] == 3 && dilation[1] == 1 && stride[1] <= 2 && input.c.is_multiple_of(S::F32_LANES)
    }

    /// `P` pixels, `STRIDE` apart, of a window three taps wide: the `COLUMNS` input pixels that
    /// they read between them are loaded once for all. All taps of a row are inside.
    #[inline(always)]
    fn triple<S: Simd, const P: usize, const STRIDE: usize, const COLUMNS: usize>(
        &self,
        simd: S,
        dst: &mut [f32],
    ) {
        let Convolution { input, stride, dilation, before, .. } = self.of.conv;
        let vectors = input.c / S::F32_LANES;
        let (src, weights) = (S::as_simd_f32s(self.src).0, S::as_simd_f32s(&self.of.weights).0);
        let dst = S::as_mut_simd_f32s(dst).0;
        let finish = self.of.finish();
        let bias = finish.map(|(bias, _)| S::as_simd_f32s(bias).0).unwrap_or_default();
        let bounds = finish.and_then(|(_, bounds)| bounds);
        let top = self.n * input.h + self.i * stride[0];
        let left = self.j * STRIDE - before[1];
        let reach = (COLUMNS - 1) * vectors + 1;
        for c in 0..vectors {
            let mut sums = [bias.get(c).copied().unwrap_or(simd.splat_f32s(0.0)); P];
            for a in self.rows.clone() {
                let first = ((top + a * dilation[0] - before[0]) * input.w + left) * vectors + c;
                let taps = weights.get(3 * a * vectors + c..).unwrap_or_default();
                // One check for each row; the indices below are constants times a stride within it.
                let (Some(row), Some(&[w0, ..]), Some(w1), Some(w2)) = (
                    src.get(first..first + reach),
                    taps.first_chunk::<1>(),
                    taps.get(vectors),
                    taps.get(2 * vectors),
                ) else {
                    return;
                };
                let mut x = [simd.splat_f32s(0.0); COLUMNS];
                for (column, x) in x.iter_mut().enumerate() {
                    *x = row[column * vectors];
                }
                for (p, sum) in sums.iter_mut().enumerate() {
                    *sum = simd.mul_add_e_f32s(x[p * STRIDE], w0, *sum);
                    *sum = simd.mul_add_e_f32s(x[p * STRIDE + 1], *w1, *sum);
                    *sum = simd.mul_add_e_f32s(x[p * STRIDE + 2], *w2, *sum);
                }
            }
            for (p, sum) in sums.into_iter().enumerate() {
                if let Some(dst) = dst.get_mut(p * vectors + c) {
                    *dst = bounded(simd, sum, bounds);
                }
            }
        }
    }

    /// One pixel with several output channels per input channel; `dst` holds zeros.
    #[inline(always)]
    fn multiplied(&self, input_row: usize, pixel: usize, dst: &mut [f32]) {
        let Convolution { input, output, kernel, .. } = self.of.conv;
        let multiplier = output.c / input.c;
        for a in self.rows.clone() {
            for b in self.columns.clone() {
                let start = self.start(input_row, a, b, pixel);
                let values = self.src.get(start..start + input.c).unwrap_or_default();
                let tap = (a * kernel[1] + b) * output.c;
                let weights = self.of.weights.get(tap..tap + output.c).unwrap_or_default();
                let outputs = dst.chunks_exact_mut(multiplier).zip(weights.chunks_exact(multiplier));
                for (value, (dst, weights)) in values.iter().zip(outputs) {
                    for (sum, weight) in dst.iter_mut().zip(weights) {
                        *sum += value * weight;
                    }
                }
            }
        }
    }
}

/// `lanes` values from `start` on, a `WHOLE` vector or the start of one; zeros beyond.
#[inline(always)]
fn load<S: Simd, const WHOLE: bool>(simd: S, slice: &[f32], start: usize, lanes: usize) -> S::f32s {
    let values = slice.get(start..start + lanes).unwrap_or_default();
    match S::as_simd_f32s(values).0.first() {
        Some(vector) if WHOLE => *vector,
        _ => simd.partial_load_f32s(values),
    }
}
