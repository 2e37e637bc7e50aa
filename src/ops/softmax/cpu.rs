//! The softmax on the CPU, in lanes: along the axis where its elements are neighbours, else column by column.

use super::{OP, SoftmaxOp};
use crate::cpu::blocks::{independent_rows, with_scratch};
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::vector::exp;
use pulp::Arch;
use rayon::prelude::*;

/// Maxima and sums that are kept apart, for vectors of the CPU.
const LANES: usize = 16;

/// What a power costs, in operations.
const POWER: usize = 16;

/// A softmax, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct SoftmaxKernel {
    op: SoftmaxOp,
    arch: Arch,
}

/// `f` of all of `values`, `begin` being one of which it makes nothing.
#[inline(always)]
fn fold(values: &[f32], begin: f32, f: impl Fn(f32, f32) -> f32) -> f32 {
    if values.len() < LANES {
        return values.iter().fold(begin, |a, &b| f(a, b));
    }
    let mut lanes = [begin; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, &x)| *lane = f(*lane, x));
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, &x)| *lane = f(*lane, x));
    lanes.iter().fold(begin, |a, &b| f(a, b))
}

#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

impl SoftmaxKernel {
    pub(super) fn new(op: &SoftmaxOp) -> Self {
        SoftmaxKernel { op: *op, arch: Arch::new() }
    }

    /// One line of neighbours.
    #[inline(always)]
    fn line(&self, src: &[f32], dst: &mut [f32]) {
        let (beta, largest) = (self.op.beta.0, fold(src, f32::NEG_INFINITY, larger));
        for (dst, x) in dst.iter_mut().zip(src) {
            *dst = exp(beta * (x - largest));
        }
        let sum = fold(dst, 0.0, |a, b| a + b);
        if self.op.log {
            let log = sum.ln();
            dst.iter_mut().zip(src).for_each(|(dst, x)| *dst = beta * (x - largest) - log);
        } else {
            let share = 1.0 / sum;
            dst.iter_mut().for_each(|dst| *dst *= share);
        }
    }

    /// Lines side by side, each a column of rows of `inner` values.
    #[inline(always)]
    fn columns(&self, src: &[f32], dst: &mut [f32], inner: usize, scratch: &mut [f32]) {
        let beta = self.op.beta.0;
        let (largest, sums) = scratch.split_at_mut(inner);
        largest.fill(f32::NEG_INFINITY);
        sums.fill(0.0);
        for row in src.chunks_exact(inner) {
            largest.iter_mut().zip(row).for_each(|(a, &b)| *a = larger(*a, b));
        }
        for (dst, row) in dst.chunks_exact_mut(inner).zip(src.chunks_exact(inner)) {
            let each = dst.iter_mut().zip(row).zip(largest.iter().zip(sums.iter_mut()));
            each.for_each(|((dst, x), (largest, sum))| {
                *dst = exp(beta * (x - largest));
                *sum += *dst;
            });
        }
        if self.op.log {
            sums.iter_mut().for_each(|sum| *sum = sum.ln());
            for (dst, row) in dst.chunks_exact_mut(inner).zip(src.chunks_exact(inner)) {
                let each = dst.iter_mut().zip(row).zip(largest.iter().zip(sums.iter()));
                each.for_each(|((dst, x), (largest, log))| *dst = beta * (x - largest) - log);
            }
        } else {
            sums.iter_mut().for_each(|sum| *sum = 1.0 / *sum);
            for dst in dst.chunks_exact_mut(inner) {
                dst.iter_mut().zip(sums.iter()).for_each(|(dst, share)| *dst *= share);
            }
        }
    }
}

impl CpuKernel for SoftmaxKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, dst) = (input(OP, inputs, Operand::Src)?, output(OP, outputs, Operand::Dst)?);
        check_len(OP, "src", src.len(), self.op.dims.elements())?;
        check_len(OP, "dst", dst.len(), self.op.dims.elements())?;
        let [outer, count, inner] = self.op.extents();
        let values = count * inner;
        let block = independent_rows(outer, POWER * values);
        let blocks = dst.par_chunks_mut(block * values).zip(src.par_chunks(block * values));
        blocks.for_each(|(dst, src)| {
            with_scratch(2 * inner, |scratch| {
                self.arch.dispatch(
                    #[inline(always)]
                    || {
                        for (dst, src) in dst.chunks_exact_mut(values).zip(src.chunks_exact(values)) {
                            if inner == 1 {
                                self.line(src, dst);
                            } else {
                                self.columns(src, dst, inner, scratch);
                            }
                        }
                    },
                );
            });
        });
        Ok(())
    }
}
