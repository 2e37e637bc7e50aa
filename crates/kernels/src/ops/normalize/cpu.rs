//! Normalisations on the CPU: line by line where what is normalised lies side by side, column by column where
//! columns do, else element by element. Values are taken from the first of them, so that a mean that is much larger than
//! the deviation takes no bits of it.

use super::{NormalizeOp, OP, Vector};
use crate::cpu::arch::Arch;
use crate::cpu::blocks::independent_rows;
use crate::cpu::tail::Tail;
use crate::cpu::workers::each;
use crate::cpu::{CpuKernel, check_len, given, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::operands::{Operands, need};
use crate::ops::reduce::{Merged, place};
use pulp::{Simd, WithSimd};
use std::borrow::Cow;

/// Sums that are kept apart, for vectors of the CPU and for their error.
const LANES: usize = 32;

/// Values of a block of columns, which are added up before their sums are added to others, for their error.
const BLOCK: usize = 32 * 1024;

/// A normalisation, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct NormalizeKernel {
    merged: Merged,
    elements: usize,
    epsilon: f32,
    /// Whether means are subtracted; else they are taken for zeros.
    centred: bool,
    /// One for each channel: 1 and 0 where they are computed at each run.
    scale: Vec<f32>,
    bias: Vec<f32>,
    /// Whether it is a finished normalisation of a map.
    finished: bool,
    tail: Tail,
    arch: Arch,
}

/// What an image of a finished normalisation is given.
#[derive(Debug, Clone, Copy, Default)]
struct ImageOperands<'a> {
    scale: Option<&'a [f32]>,
    bias: Option<&'a [f32]>,
    residual: Option<&'a [f32]>,
}

/// The sum of what `f` makes of `values`.
#[inline(always)]
fn sum(values: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    if values.len() < LANES {
        return values.iter().map(|&x| f(x)).sum();
    }
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] += f(chunk[lane]);
        }
    }
    for lane in 0..rest.len() {
        lanes[lane] += f(rest[lane]);
    }
    let mut sum = 0.0;
    for lane in lanes {
        sum += lane;
    }
    sum
}

impl NormalizeKernel {
    pub(super) fn new(op: &NormalizeOp, constants: &Operands<'_>) -> Result<Self> {
        let channels = op.channels();
        let constant = |operand: Operand, vector: Vector, other: f32| {
            if vector != Vector::Constant {
                return Ok(vec![other; channels]);
            }
            let values = need(OP, constants, operand)?;
            check_len(OP, operand.name(), values.len(), channels)?;
            Ok(values.to_vec())
        };
        Ok(NormalizeKernel {
            merged: op.merged(),
            elements: op.dims.elements(),
            epsilon: op.epsilon.0,
            centred: op.centred,
            scale: constant(Operand::Weights, op.scale, 1.0)?,
            bias: constant(Operand::Bias, op.bias, 0.0)?,
            finished: op.is_finished(),
            tail: Tail::new(OP, &op.epilogue, channels, None, None)?,
            arch: Arch::new(),
        })
    }

    /// What is subtracted from values: the first of them, and the mean of what is left.
    #[inline(always)]
    fn origin_and_mean(&self, values: &[f32]) -> [f32; 2] {
        match values.first() {
            Some(&origin) if self.centred => [origin, sum(values, |x| x - origin) / values.len() as f32],
            _ => [0.0; 2],
        }
    }

    /// What is subtracted from each column before its mean: its first value.
    fn origins<'a>(&self, src: &'a [f32], columns: usize) -> Cow<'a, [f32]> {
        match src.get(..columns) {
            Some(first) if self.centred => Cow::Borrowed(first),
            _ => Cow::Owned(vec![0.0; columns]),
        }
    }

    /// A line, which begins with the first channel.
    #[inline(always)]
    fn line(&self, src: &[f32], dst: &mut [f32]) {
        let count = src.len() as f32;
        let [origin, mean] = self.origin_and_mean(src);
        let apart = |x: f32| x - origin - mean;
        let variance = sum(src, |x| apart(x) * apart(x)) / count;
        let factor = 1.0 / (variance + self.epsilon).sqrt();
        let moved = mean * factor;
        let channels = self.scale.len();
        // All as long as the others, and none of them reached through `self`, which `dst` might be a part of.
        let (Some(scale), Some(bias)) = (self.scale.get(..channels), self.bias.get(..channels)) else {
            return;
        };
        for (dst, src) in dst.chunks_exact_mut(channels).zip(src.chunks_exact(channels)) {
            let (Some(dst), Some(src)) = (dst.get_mut(..channels), src.get(..channels)) else { return };
            for channel in 0..channels {
                dst[channel] = ((src[channel] - origin) * factor - moved) * scale[channel] + bias[channel];
            }
        }
    }

    /// For each column of rows of values, the sum of their distances from the column's origin; with `means` that of the
    /// squares of what these are from the column's mean.
    fn sums(&self, src: &[f32], origins: &[f32], means: Option<&[f32]>) -> Vec<f32> {
        let columns = origins.len();
        let block = (BLOCK / columns).max(1) * columns;
        let mut parts = vec![Vec::new(); src.len().div_ceil(block)];
        each(parts.iter_mut().zip(src.chunks(block)), |(sums, src)| {
            *sums = vec![0.0; columns];
            self.arch.dispatch(Sums { origins, means, src, sums });
        });
        parts.into_iter().fold(vec![0.0; columns], |mut all, part| {
            all.iter_mut().zip(part).for_each(|(all, part)| *all += part);
            all
        })
    }

    /// The mean that is subtracted from each column of rows behind its origin, and the sum of the squares of the
    /// differences from it.
    fn means_and_squares(&self, src: &[f32], origins: &[f32]) -> [Vec<f32>; 2] {
        let columns = origins.len();
        let count = (src.len() / columns) as f32;
        let mut means = if self.centred { self.sums(src, origins, None) } else { vec![0.0; columns] };
        means.iter_mut().for_each(|mean| *mean /= count);
        let squares = self.sums(src, origins, Some(&means));
        [means, squares]
    }

    /// Columns of whole rows of channels, one mean for each column.
    fn columns(&self, src: &[f32], dst: &mut [f32], columns: usize, given: ImageOperands<'_>) {
        let count = (src.len() / columns) as f32;
        let origins = self.origins(src, columns);
        let [means, squares] = self.means_and_squares(src, &origins);
        let (scale, bias) = (given.scale.unwrap_or(&self.scale), given.bias.unwrap_or(&self.bias));
        let channel = (0..columns).map(|column| column % self.scale.len());
        let factors: Vec<f32> = squares
            .iter()
            .zip(channel.clone())
            .map(|(square, channel)| scale[channel] / (square / count + self.epsilon).sqrt())
            .collect();
        let biases: Vec<f32> = channel.map(|channel| bias[channel]).collect();
        let block = (BLOCK / columns).max(1) * columns;
        each(dst.chunks_mut(block).zip(src.chunks(block)).enumerate(), |(index, (dst, src))| {
            self.arch.dispatch(Scaled {
                origins: &origins,
                means: &means,
                factors: &factors,
                biases: &biases,
                src,
                dst,
            });
            if self.finished {
                let residual = given.residual.and_then(|residual| residual.get(index * block..));
                self.tail.apply(dst, columns, residual);
            }
        });
    }

    /// A finished normalisation, image by image.
    fn images(&self, inputs: &[(Operand, &[f32])], src: &[f32], dst: &mut [f32]) -> Result<()> {
        let (channels, image) = (self.scale.len(), self.merged.count() * self.scale.len());
        let images = self.elements / image;
        let [scale, bias] = [0, 1].map(|place| given(inputs, Operand::Arg(place)));
        let residual = given(inputs, Operand::Residual);
        self.tail.check_residual(residual, self.elements)?;
        for vector in [scale, bias].into_iter().flatten() {
            check_len(OP, "a computed scale or bias", vector.len(), images * channels)?;
        }
        for (n, (dst, src)) in dst.chunks_exact_mut(image).zip(src.chunks_exact(image)).enumerate() {
            let own = |all: &'_ [f32]| n * channels..all.len().min((n + 1) * channels);
            let given = ImageOperands {
                scale: scale.and_then(|all| all.get(own(all))),
                bias: bias.and_then(|all| all.get(own(all))),
                residual: residual.and_then(|all| all.get(n * image..)),
            };
            self.columns(src, dst, channels, given);
        }
        Ok(())
    }

    /// What is neither lines nor columns.
    fn one_by_one(&self, src: &[f32], dst: &mut [f32]) {
        let count = self.merged.count();
        for out in 0..self.merged.outputs() {
            let first = place(&self.merged.kept, out);
            let places = || (0..count).map(|index| first + place(&self.merged.reduced, index));
            let values: Vec<f32> = places().filter_map(|at| src.get(at).copied()).collect();
            let [origin, mean] = self.origin_and_mean(&values);
            let apart = |x: f32| x - origin - mean;
            let variance = sum(&values, |x| apart(x) * apart(x)) / count as f32;
            let factor = 1.0 / (variance + self.epsilon).sqrt();
            for (at, x) in places().zip(values) {
                let channel = at % self.scale.len();
                if let Some(dst) = dst.get_mut(at) {
                    *dst = apart(x) * factor * self.scale[channel] + self.bias[channel];
                }
            }
        }
    }
}

/// Lines of `count` values.
struct Lines<'a> {
    of: &'a NormalizeKernel,
    count: usize,
    src: &'a [f32],
    dst: &'a mut [f32],
}

impl WithSimd for Lines<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (dst, src) in self.dst.chunks_exact_mut(self.count).zip(self.src.chunks_exact(self.count)) {
            self.of.line(src, dst);
        }
    }
}

/// The sums of the columns of some rows, added to `sums`.
struct Sums<'a> {
    origins: &'a [f32],
    means: Option<&'a [f32]>,
    src: &'a [f32],
    sums: &'a mut [f32],
}

impl WithSimd for Sums<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Sums { origins, means, src, sums } = self;
        let columns = sums.len();
        let Some(origins) = origins.get(..columns) else { return };
        for row in src.chunks_exact(columns) {
            match means.and_then(|means| means.get(..columns)) {
                Some(means) => {
                    for column in 0..columns {
                        let apart = row[column] - origins[column] - means[column];
                        sums[column] += apart * apart;
                    }
                }
                None => {
                    for column in 0..columns {
                        sums[column] += row[column] - origins[column];
                    }
                }
            }
        }
    }
}

/// Rows of normalised columns.
struct Scaled<'a> {
    origins: &'a [f32],
    means: &'a [f32],
    factors: &'a [f32],
    biases: &'a [f32],
    src: &'a [f32],
    dst: &'a mut [f32],
}

impl WithSimd for Scaled<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Scaled { origins, means, factors, biases, src, dst } = self;
        let columns = origins.len();
        let (Some(factors), Some(biases)) = (factors.get(..columns), biases.get(..columns)) else { return };
        let Some(means) = means.get(..columns) else { return };
        for (dst, src) in dst.chunks_exact_mut(columns).zip(src.chunks_exact(columns)) {
            for column in 0..columns {
                let apart = src[column] - origins[column] - means[column];
                dst[column] = apart * factors[column] + biases[column];
            }
        }
    }
}

impl CpuKernel for NormalizeKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, dst) = (input(OP, inputs, Operand::Src)?, output(OP, outputs, Operand::Dst)?);
        check_len(OP, "src", src.len(), self.elements)?;
        check_len(OP, "dst", dst.len(), self.elements)?;
        if self.finished {
            return self.images(inputs, src, dst);
        }
        let Merged { kept, reduced } = self.merged;
        let (count, channels) = (self.merged.count(), self.scale.len());
        let [one_run, one_block] = [reduced, kept].map(|axes| axes[0].extent * axes[1].extent == 1);
        if reduced[2].step == 1 && one_run && count.is_multiple_of(channels) {
            let block = independent_rows(self.elements / count, 4 * count);
            let blocks = dst.chunks_mut(block * count).zip(src.chunks(block * count));
            each(blocks, |(dst, src)| {
                self.arch.dispatch(Lines { of: self, count, src, dst });
            });
        } else if kept[2].step == 1 && one_run && (one_block || kept[0].extent == 1) {
            let columns = kept[2].extent;
            for (dst, src) in dst.chunks_exact_mut(count * columns).zip(src.chunks_exact(count * columns)) {
                self.columns(src, dst, columns, ImageOperands::default());
            }
        } else {
            self.one_by_one(src, dst);
        }
        Ok(())
    }
}
