//! The depthwise convolution on the CPU: vectors of channels, several pixels at a time.
//!
//! Where the window moves by one pixel, neighbouring outputs read neighbouring inputs whatever the number of
//! channels is: a row is then one run of values, of which a vector may hold channels of several pixels, and the
//! weights are repeated until their pattern ends where a vector does. Pixels whose windows hang over are summed
//! one by one.

use super::{DepthwiseOp, OP};
use crate::cpu::aligned::Aligned;
use crate::cpu::arch::{Arch, apart};
use crate::cpu::blocks::independent_rows;
use crate::cpu::finish::{After, bounded};
use crate::cpu::panels::lanes_for;
use crate::cpu::products::{Products, Store, load, store};
use crate::cpu::shelf::Shelf;
use crate::cpu::tail::Tail;
use crate::cpu::workers::each;
use crate::cpu::{CpuKernel, check_len, given, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::conv2d::windows::Windows;
use crate::ops::convolution::Convolution;
use crate::ops::operands::{Operands, need};
use crate::ops::pointwise::cpu::transpose;
use pulp::{NullaryFnOnce, Simd, WithSimd};
use std::ops::Range;

/// Takes the weights (`1 kh kw c*M`).
pub(super) fn kernel(
    op: &DepthwiseOp,
    constants: &Operands<'_>,
    shelf: Shelf<'_>,
) -> Result<Box<dyn CpuKernel>> {
    let (conv, weights) = (op.0, need(OP, constants, Operand::Weights)?);
    check_len(OP, "weights", weights.len(), conv.kernel[0] * conv.kernel[1] * conv.output.c)?;
    let tail = Tail::of(OP, &conv.epilogue, conv.output.c, constants)?;
    if conv.groups == 1 {
        let mut transposed = vec![0.0; weights.len()];
        transpose(weights, conv.output.c, &mut transposed);
        return Ok(Box::new(Windows::new(OP, conv, &transposed, tail, shelf)));
    }
    Ok(Box::new(Channelwise::new(OP, conv, weights, tail)))
}

/// A convolution of one input channel per group.
#[derive(Debug, Clone)]
pub(crate) struct Channelwise {
    op: &'static str,
    conv: Convolution,
    /// Tap after tap `period` values.
    weights: Aligned,
    /// What sums begin with, `period` values: the bias where they are finished in registers.
    begin: Vec<f32>,
    slopes: Vec<f32>,
    /// Values after which weights come again, a multiple of a vector's lanes, and their pixels. With one pixel the
    /// last vector may have fewer channels than lanes.
    period: usize,
    pixels: usize,
    /// The taps inside the input, for each output row and column.
    rows: Vec<Range<usize>>,
    columns: Vec<Range<usize>>,
    /// Output columns all of whose taps are inside.
    inner: Range<usize>,
    tail: Tail,
    arch: Arch,
}

impl CpuKernel for Channelwise {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, residual) = (input(self.op, inputs, Operand::Src)?, given(inputs, Operand::Residual));
        self.convolve(src, residual, output(self.op, outputs, Operand::Dst)?)
    }
}

/// The taps of axis 0 or 1 that lie inside the input for output `out`: they are consecutive.
fn inside(conv: &Convolution, axis: usize, out: usize) -> Range<usize> {
    let taps = 0..conv.kernel[axis];
    let first = taps.clone().find(|&tap| conv.source(axis, out, tap).is_some());
    let last = taps.rev().find(|&tap| conv.source(axis, out, tap).is_some());
    match (first, last) {
        (Some(first), Some(last)) => first..last + 1,
        _ => 0..0,
    }
}

/// The values and pixels after which weights of `c` channels come again in a run of `run` values.
fn period(c: usize, lanes: usize, stride: usize, run: usize) -> (usize, usize) {
    let pixels = (1..=lanes).find(|pixels| (pixels * c).is_multiple_of(lanes)).unwrap_or(1);
    if stride == 1 && pixels * c <= run { (pixels * c, pixels) } else { (c.next_multiple_of(lanes), 1) }
}

impl Channelwise {
    /// `weights` is `kh kw oc`, its length checked.
    pub(crate) fn new(op: &'static str, conv: Convolution, weights: &[f32], tail: Tail) -> Self {
        let c = conv.output.c;
        let rows = (0..conv.output.h).map(|out| inside(&conv, 0, out)).collect();
        let columns: Vec<Range<usize>> = (0..conv.output.w).map(|out| inside(&conv, 1, out)).collect();
        let whole = |taps: &Range<usize>| taps.len() == conv.kernel[1];
        let first = columns.iter().position(whole).unwrap_or(0);
        let inner = first..first + columns.iter().skip(first).take_while(|taps| whole(taps)).count();
        let (arch, lanes) = lanes_for((conv.stride[1] > 1).then_some(c));
        let (period, pixels) =
            if conv.input.c == c { period(c, lanes, conv.stride[1], inner.len() * c) } else { (c, 1) };
        // What each channel has, `pixels` times, then zeros.
        let repeated = |values: &[f32]| {
            let mut all = values.repeat(pixels);
            all.resize(period, 0.0);
            all
        };
        let begin = repeated(tail.in_registers().map(|(bias, _)| bias).unwrap_or_default());
        let slopes = repeated(tail.slopes());
        let weights: Vec<f32> = weights.chunks_exact(c).flat_map(repeated).collect();
        let weights = Aligned::from(&weights[..]);
        Channelwise { op, conv, weights, begin, slopes, period, pixels, rows, columns, inner, tail, arch }
    }

    fn convolve(&self, src: &[f32], residual: Option<&[f32]>, dst: &mut [f32]) -> Result<()> {
        let Convolution { output, kernel, .. } = self.conv;
        self.check(src)?;
        check_len(self.op, "dst", dst.len(), output.elements())?;
        self.tail.check_residual(residual, output.elements())?;

        let row_values = output.w * output.c;
        let block = independent_rows(output.n * output.h, row_values * kernel[0] * kernel[1]);
        each(dst.chunks_mut(block * row_values).enumerate(), |(index, dst)| {
            let residual = residual.and_then(|all| all.get(index * block * row_values..));
            self.rows(index * block, src, residual, dst);
        });
        Ok(())
    }

    /// Refuses an input of another length than the shapes say.
    pub(crate) fn check(&self, src: &[f32]) -> Result<()> {
        check_len(self.op, "src", src.len(), self.conv.input.elements())
    }

    /// Output rows from row `first` of all images on, as many as `dst` holds; `residual` begins with the first.
    pub(crate) fn rows(&self, first: usize, src: &[f32], residual: Option<&[f32]>, dst: &mut [f32]) {
        self.arch.dispatch(Block { of: self, first, src, residual, dst });
    }
}

/// Some output rows.
struct Block<'a> {
    of: &'a Channelwise,
    /// The first of them, of all images.
    first: usize,
    src: &'a [f32],
    residual: Option<&'a [f32]>,
    dst: &'a mut [f32],
}

impl WithSimd for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Block { of, first, src, residual, dst } = self;
        let Convolution { input, output, stride, dilation, before, .. } = of.conv;
        let row_values = output.w * output.c;
        let in_registers = of.tail.in_registers().filter(|_| output.c == input.c);
        let count = dst.len() / row_values;
        let mut done = 0;
        while done < count {
            let (n, i) = ((first + done) / output.h, (first + done) % output.h);
            let Some(taps) = of.rows.get(i) else { return };
            // Rows with the same taps inside go together.
            let same = of.rows[i..].iter().take(count - done).take_while(|other| *other == taps);
            let rows = same.count();
            let values = done * row_values..(done + rows) * row_values;
            let residual = residual.and_then(|all| all.get(values.clone()));
            let Some(dst) = dst.get_mut(values) else { return };
            let lines = Lines {
                of,
                src,
                top: (n * input.h + i * stride[0] + taps.start * dilation[0]).saturating_sub(before[0]),
                rows,
                taps: taps.clone(),
                residual: in_registers.and(residual),
                after: in_registers.map_or(After::Nothing, |(_, after)| after),
            };
            if output.c == input.c {
                lines.sums(simd, dst);
            } else {
                lines.multiplied(dst);
            }
            if in_registers.is_none() {
                of.tail.apply(dst, output.c, residual);
            }
            done += rows;
        }
    }
}

/// Output rows with the same taps inside.
struct Lines<'a> {
    of: &'a Channelwise,
    src: &'a [f32],
    /// The input row, of all images, that the first tap inside reads for the first of them.
    top: usize,
    rows: usize,
    /// The rows of taps inside.
    taps: Range<usize>,
    residual: Option<&'a [f32]>,
    after: After,
}

/// Groups of pixels with the same taps inside: in each row `count` groups of `pixels` pixels, from pixel `j` on.
/// Of a single group it is the rows that lie side by side.
struct Part {
    j: usize,
    count: usize,
    pixels: usize,
    columns: Range<usize>,
}

impl Lines<'_> {
    /// Sums of as many output as input channels.
    #[inline(always)]
    fn sums<S: Simd>(&self, simd: S, dst: &mut [f32]) {
        let Channelwise { conv, ref inner, ref columns, pixels, .. } = *self.of;
        for (j, taps) in columns.iter().enumerate() {
            if !inner.contains(&j) {
                self.part(simd, &Part { j, count: 1, pixels: 1, columns: taps.clone() }, dst);
            }
        }
        let (count, rest) = (inner.len() / pixels, inner.len() % pixels);
        let columns = 0..conv.kernel[1];
        let last = Part { j: inner.end - rest, count: 1, pixels: rest, columns: columns.clone() };
        for part in [Part { j: inner.start, count, pixels, columns }, last] {
            if part.count * part.pixels > 0 {
                self.part(simd, &part, dst);
            }
        }
    }

    /// Whole vectors, the last of which ends with the last value, even if its first values are computed twice; of
    /// fewer values than lanes a part of a vector.
    #[inline(always)]
    fn part<S: Simd>(&self, simd: S, part: &Part, dst: &mut [f32]) {
        let of = self.of;
        let Convolution { input, output, kernel, stride, dilation, before, .. } = of.conv;
        let (c, input_row) = (input.c, input.w * input.c);
        let column = (part.j * stride[1] + part.columns.start * dilation[1]).saturating_sub(before[1]);
        let row = [stride[0] * input_row, output.w * c];
        let group = [part.pixels * stride[1] * c, part.pixels * c];
        let one = part.count == 1;
        let [outer, inner] = if one { [[0, 0], row] } else { [row, group] };
        let values = part.pixels * c;
        let whole = values - values % S::F32_LANES;
        let last = match values % S::F32_LANES {
            0 => (0, 0, 0),
            rest if whole == 0 => (0, 1, rest),
            _ => (values - S::F32_LANES, 1, S::F32_LANES),
        };
        for (place, vectors, lanes) in [(0, whole / S::F32_LANES, S::F32_LANES), last] {
            if vectors * lanes == 0 {
                continue;
            }
            let products = Products {
                src: self.src,
                weights: &of.weights,
                rows: if one { 1 } else { self.rows },
                count: if one { self.rows } else { part.count },
                vectors,
                first: self.top * input_row + column * c + place,
                row: outer[0],
                step: inner[0],
                place: (self.taps.start * kernel[1] + part.columns.start) * of.period + place,
                lines: self.taps.len(),
                line: [dilation[0] * input_row, kernel[1] * of.period],
                columns: part.columns.len(),
                column: [dilation[1] * c, of.period],
            };
            let (first, steps) = (part.j * c + place, [outer[1], inner[1]]);
            let bounds = match (self.residual, self.after) {
                (None, After::Nothing) => Some(None),
                (None, After::Bounds(bounds)) => Some(Some(bounds)),
                _ => None,
            };
            match bounds {
                Some(bounds) if lanes == S::F32_LANES => {
                    let begin = of.begin.get(place..).unwrap_or_default();
                    let [low, high] = bounds.unwrap_or_default();
                    let bounds = [simd.splat_f32s(low), simd.splat_f32s(high)];
                    let bounded = matches!(self.after, After::Bounds(_));
                    let store = Bounded { begin, dst, first, steps, bounds, bounded };
                    apart(simd, Each { products, simd, store });
                }
                _ => {
                    let store = Finished { lines: self, dst, first, steps, place, lanes };
                    apart(simd, Each { products, simd, store });
                }
            }
        }
    }

    /// Sums of several output channels per input channel.
    #[inline(always)]
    fn multiplied(&self, dst: &mut [f32]) {
        let Channelwise { conv, ref columns, ref weights, .. } = *self.of;
        let Convolution { input, output, stride, dilation, before, kernel, .. } = conv;
        let multiplier = output.c / input.c;
        dst.fill(0.0);
        for (row, dst) in dst.chunks_exact_mut(output.w * output.c).enumerate() {
            for ((j, taps), dst) in columns.iter().enumerate().zip(dst.chunks_exact_mut(output.c)) {
                for a in self.taps.clone() {
                    for b in taps.clone() {
                        let row = self.top + row * stride[0] + (a - self.taps.start) * dilation[0];
                        let column = (j * stride[1] + b * dilation[1]).saturating_sub(before[1]);
                        let start = (row * input.w + column) * input.c;
                        let values = self.src.get(start..start + input.c).unwrap_or_default();
                        let tap = (a * kernel[1] + b) * output.c;
                        let weights = weights.get(tap..tap + output.c).unwrap_or_default();
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
    }
}

/// The sums of a part, in a function of their own: unoptimised, a function has room for each of its variables, and one of
/// all sums and both ways to store them needs more than a thread's 2 MiB of stack.
struct Each<'a, S, T> {
    products: Products<'a>,
    simd: S,
    store: T,
}

impl<S: Simd, T: Store<S>> NullaryFnOnce for Each<'_, S, T> {
    type Output = ();

    #[inline(always)]
    fn call(mut self) {
        self.products.each(self.simd, &mut self.store);
    }
}

/// Where sums are stored as whole vectors, perhaps within bounds.
struct Bounded<'a, S: Simd> {
    begin: &'a [f32],
    dst: &'a mut [f32],
    first: usize,
    steps: [usize; 2],
    bounds: [S::f32s; 2],
    bounded: bool,
}

impl<S: Simd> Store<S> for Bounded<'_, S> {
    #[inline(always)]
    fn begin(&self, simd: S, v: usize) -> S::f32s {
        match S::as_simd_f32s(self.begin).0.get(v) {
            Some(begin) => *begin,
            None => simd.splat_f32s(0.0),
        }
    }

    #[inline(always)]
    fn store(&mut self, simd: S, row: usize, p: usize, v: usize, sum: S::f32s) {
        let start = self.first + row * self.steps[0] + p * self.steps[1] + v * S::F32_LANES;
        let Some(dst) = self.dst.get_mut(start..start + S::F32_LANES) else { return };
        let Some(dst) = S::as_mut_simd_f32s(dst).0.first_mut() else { return };
        let [low, high] = self.bounds;
        *dst = if self.bounded { bounded(simd, sum, low, high) } else { sum };
    }
}

/// Where sums are finished and stored.
struct Finished<'a, 'b> {
    lines: &'a Lines<'b>,
    dst: &'a mut [f32],
    /// The first value of the first sum, and the distances between rows and groups.
    first: usize,
    steps: [usize; 2],
    /// The place of the first value in a period.
    place: usize,
    /// Values of a vector.
    lanes: usize,
}

impl<S: Simd> Store<S> for Finished<'_, '_> {
    #[inline(always)]
    fn begin(&self, simd: S, v: usize) -> S::f32s {
        load(simd, &self.lines.of.begin, self.place + v * S::F32_LANES)
    }

    #[inline(always)]
    fn store(&mut self, simd: S, row: usize, p: usize, v: usize, sum: S::f32s) {
        let Lines { of, after, residual, .. } = *self.lines;
        let start = self.first + row * self.steps[0] + p * self.steps[1] + v * S::F32_LANES;
        let slope = match after {
            After::Slopes => load(simd, &of.slopes, self.place + v * S::F32_LANES),
            _ => simd.splat_f32s(0.0),
        };
        let sum = match residual {
            None => after.apply(simd, sum, slope),
            Some(residual) => {
                let residual = load(simd, residual, start);
                if of.tail.adds_first() {
                    after.apply(simd, simd.add_f32s(sum, residual), slope)
                } else {
                    simd.add_f32s(after.apply(simd, sum, slope), residual)
                }
            }
        };
        store(simd, self.dst, start, self.lanes, sum);
    }
}
