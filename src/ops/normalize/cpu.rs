//! Normalisations on the CPU: line by line where what is normalised lies side by side, column by column where
//! columns do, else element by element.

use super::{NormalizeOp, OP, Vector};
use crate::cpu::blocks::independent_rows;
use crate::cpu::tail::Tail;
use crate::cpu::{CpuKernel, check_len, given, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::moments::Moments;
use crate::ops::operands::{Operands, need};
use crate::ops::reduce::{Merged, place};
use pulp::Arch;
use rayon::prelude::*;

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
    /// One for each channel: 1 and 0 where they are computed at each run.
    scale: Vec<f32>,
    bias: Vec<f32>,
    /// Whether it is a finished normalisation of a map.
    finished: bool,
    /// The moments that are given.
    moments: Option<Moments>,
    tail: Tail,
    arch: Arch,
}

/// What an image of a finished normalisation is given.
#[derive(Debug, Clone, Copy, Default)]
struct Given<'a> {
    scale: Option<&'a [f32]>,
    bias: Option<&'a [f32]>,
    /// The number of the image, and the moments of all.
    moments: Option<(usize, Moments, &'a [f32])>,
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
        lanes.iter_mut().zip(chunk).for_each(|(lane, &x)| *lane += f(x));
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, &x)| *lane += f(x));
    lanes.iter().sum()
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
            scale: constant(Operand::Weights, op.scale, 1.0)?,
            bias: constant(Operand::Bias, op.bias, 0.0)?,
            finished: op.is_finished(),
            moments: op.parts.then(|| op.moments()),
            tail: Tail::new(OP, &op.epilogue, channels, None, None)?,
            arch: Arch::new(),
        })
    }

    /// A line, which begins with the first channel.
    #[inline(always)]
    fn line(&self, src: &[f32], dst: &mut [f32]) {
        let count = src.len() as f32;
        let mean = sum(src, |x| x) / count;
        let variance = sum(src, |x| (x - mean) * (x - mean)) / count;
        let factor = 1.0 / (variance + self.epsilon).sqrt();
        let channels = self.scale.len();
        for (dst, src) in dst.chunks_mut(channels).zip(src.chunks(channels)) {
            let constants = self.scale.iter().zip(&self.bias);
            for ((dst, x), (scale, bias)) in dst.iter_mut().zip(src).zip(constants) {
                *dst = (x - mean) * factor * scale + bias;
            }
        }
    }

    /// For each column of rows of `columns` values, the sum of what `f` makes of its values, `at` saying which
    /// column it is.
    fn sums(&self, src: &[f32], columns: usize, f: impl Fn(f32, usize) -> f32 + Sync) -> Vec<f32> {
        let block = (BLOCK / columns).max(1) * columns;
        let part = |src: &[f32]| {
            let mut sums = vec![0.0; columns];
            self.arch.dispatch(
                #[inline(always)]
                || {
                    for row in src.chunks_exact(columns) {
                        sums.iter_mut().zip(row).enumerate().for_each(|(at, (sum, &x))| *sum += f(x, at));
                    }
                },
            );
            sums
        };
        let add = |mut a: Vec<f32>, b: Vec<f32>| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            a
        };
        src.par_chunks(block).map(part).reduce(|| vec![0.0; columns], add)
    }

    /// The mean of each column of rows of `columns` values, and the sum of the squares of the differences from it.
    fn means_and_squares(&self, src: &[f32], columns: usize) -> [Vec<f32>; 2] {
        let count = (src.len() / columns) as f32;
        let mut means = self.sums(src, columns, |x, _| x);
        means.iter_mut().for_each(|mean| *mean /= count);
        let squares = self.sums(src, columns, |x, at| (x - means[at]) * (x - means[at]));
        [means, squares]
    }

    /// Columns of whole rows of channels, one mean for each column.
    fn columns(&self, src: &[f32], dst: &mut [f32], columns: usize, given: Given<'_>) {
        let count = (src.len() / columns) as f32;
        let [means, squares] = match given.moments {
            Some((image, moments, all)) => added(image, moments, all, columns),
            None => self.means_and_squares(src, columns),
        };
        let (scale, bias) = (given.scale.unwrap_or(&self.scale), given.bias.unwrap_or(&self.bias));
        let channel = (0..columns).map(|column| column % self.scale.len());
        let factors: Vec<f32> = squares
            .iter()
            .zip(channel.clone())
            .map(|(square, channel)| scale[channel] / (square / count + self.epsilon).sqrt())
            .collect();
        let biases: Vec<f32> = channel.map(|channel| bias[channel]).collect();
        let block = (BLOCK / columns).max(1) * columns;
        dst.par_chunks_mut(block).zip(src.par_chunks(block)).enumerate().for_each(|(index, (dst, src))| {
            self.arch.dispatch(
                #[inline(always)]
                || {
                    for (dst, src) in dst.chunks_exact_mut(columns).zip(src.chunks_exact(columns)) {
                        let constants = means.iter().zip(&factors).zip(&biases);
                        for ((dst, x), ((mean, factor), bias)) in dst.iter_mut().zip(src).zip(constants) {
                            *dst = (x - mean) * factor + bias;
                        }
                    }
                },
            );
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
        let moments = match self.moments {
            Some(moments) => {
                let all = input(OP, inputs, Operand::Arg(2))?;
                check_len(OP, "moments", all.len(), moments.shape().elements())?;
                Some((moments, all))
            }
            None => None,
        };
        for (n, (dst, src)) in dst.chunks_exact_mut(image).zip(src.chunks_exact(image)).enumerate() {
            let own = |all: &'_ [f32]| n * channels..all.len().min((n + 1) * channels);
            let given = Given {
                scale: scale.and_then(|all| all.get(own(all))),
                bias: bias.and_then(|all| all.get(own(all))),
                moments: moments.map(|(moments, all)| (n, moments, all)),
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
            let mean = sum(&values, |x| x) / count as f32;
            let variance = sum(&values, |x| (x - mean) * (x - mean)) / count as f32;
            let factor = 1.0 / (variance + self.epsilon).sqrt();
            for (at, x) in places().zip(values) {
                let channel = at % self.scale.len();
                if let Some(dst) = dst.get_mut(at) {
                    *dst = (x - mean) * factor * self.scale[channel] + self.bias[channel];
                }
            }
        }
    }
}

/// The mean of each channel of an image, and the sum of the squares of the differences from it: those of all its
/// parts.
fn added(image: usize, moments: Moments, all: &[f32], channels: usize) -> [Vec<f32>; 2] {
    let parts = || 0..moments.parts();
    let total: f32 = parts().map(|part| moments.count(part) as f32).sum();
    let of_channel = |c: usize| {
        let part = |part: usize| {
            let at = |place: usize| all.get(place).copied().unwrap_or(f32::NAN);
            let [mean, squares] = moments.places(image, part, c).map(at);
            (moments.count(part) as f32, mean, squares)
        };
        let mean = parts().map(part).map(|(count, mean, _)| count * mean).sum::<f32>() / total;
        let squares = parts().map(part);
        let squares = squares.map(|(count, own, squares)| squares + count * (own - mean) * (own - mean));
        (mean, squares.sum::<f32>())
    };
    let (means, squares) = (0..channels).map(of_channel).unzip();
    [means, squares]
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
            let blocks = dst.par_chunks_mut(block * count).zip(src.par_chunks(block * count));
            blocks.for_each(|(dst, src)| {
                self.arch.dispatch(
                    #[inline(always)]
                    || {
                        for (dst, src) in dst.chunks_exact_mut(count).zip(src.chunks_exact(count)) {
                            self.line(src, dst);
                        }
                    },
                );
            });
        } else if kept[2].step == 1 && one_run && (one_block || kept[0].extent == 1) {
            let columns = kept[2].extent;
            for (dst, src) in dst.chunks_exact_mut(count * columns).zip(src.chunks_exact(count * columns)) {
                self.columns(src, dst, columns, Given::default());
            }
        } else {
            self.one_by_one(src, dst);
        }
        Ok(())
    }
}
