//! The softmax on the CPU, in lanes: along the axis where its elements are neighbours, else column by column.

#![expect(
    clippy::needless_range_loop,
    reason = "whether iterators are inlined into code for an instruction set depends on the profile"
)]

use super::{OP, SoftmaxOp};
use crate::cpu::arch::Arch;
use crate::cpu::blocks::{independent_rows, with_scratch};
use crate::cpu::workers::each;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::vector::exp;
use pulp::{Simd, WithSimd};

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

/// The largest of `values`.
#[inline(always)]
pub(in crate::ops) fn largest_of(values: &[f32]) -> f32 {
    let mut largest = f32::NEG_INFINITY;
    if values.len() < LANES {
        for &value in values {
            largest = larger(largest, value);
        }
        return largest;
    }
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = larger(lanes[lane], chunk[lane]);
        }
    }
    for lane in 0..rest.len() {
        lanes[lane] = larger(lanes[lane], rest[lane]);
    }
    for lane in lanes {
        largest = larger(largest, lane);
    }
    largest
}

/// The sum of `values`.
#[inline(always)]
pub(in crate::ops) fn sum_of(values: &[f32]) -> f32 {
    let mut sum = 0.0;
    if values.len() < LANES {
        for &value in values {
            sum += value;
        }
        return sum;
    }
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] += chunk[lane];
        }
    }
    for lane in 0..rest.len() {
        lanes[lane] += rest[lane];
    }
    for lane in lanes {
        sum += lane;
    }
    sum
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
        let Some(src) = src.get(..dst.len()) else { return };
        let (beta, largest) = (self.op.beta.0, largest_of(src));
        for index in 0..dst.len() {
            dst[index] = exp(beta * (src[index] - largest));
        }
        let sum = sum_of(dst);
        if self.op.log {
            let log = sum.ln();
            for index in 0..dst.len() {
                dst[index] = beta * (src[index] - largest) - log;
            }
        } else {
            let share = 1.0 / sum;
            for index in 0..dst.len() {
                dst[index] *= share;
            }
        }
    }

    /// Lines side by side, each a column of rows of `inner` values.
    #[inline(always)]
    fn columns(&self, src: &[f32], dst: &mut [f32], inner: usize, scratch: &mut [f32]) {
        let beta = self.op.beta.0;
        let Some((largest, sums)) = scratch.split_at_mut_checked(inner) else { return };
        let Some(sums) = sums.get_mut(..inner) else { return };
        largest.fill(f32::NEG_INFINITY);
        sums.fill(0.0);
        for row in src.chunks_exact(inner) {
            for index in 0..inner {
                largest[index] = larger(largest[index], row[index]);
            }
        }
        for (dst, row) in dst.chunks_exact_mut(inner).zip(src.chunks_exact(inner)) {
            for index in 0..inner {
                dst[index] = exp(beta * (row[index] - largest[index]));
                sums[index] += dst[index];
            }
        }
        if self.op.log {
            for index in 0..inner {
                sums[index] = sums[index].ln();
            }
            for (dst, row) in dst.chunks_exact_mut(inner).zip(src.chunks_exact(inner)) {
                for index in 0..inner {
                    dst[index] = beta * (row[index] - largest[index]) - sums[index];
                }
            }
        } else {
            for index in 0..inner {
                sums[index] = 1.0 / sums[index];
            }
            for dst in dst.chunks_exact_mut(inner) {
                for index in 0..inner {
                    dst[index] *= sums[index];
                }
            }
        }
    }
}

/// Some of the lines, or of the blocks of `values` values that are columns of `inner` lines.
struct Lines<'a> {
    of: &'a SoftmaxKernel,
    values: usize,
    inner: usize,
    src: &'a [f32],
    dst: &'a mut [f32],
    scratch: &'a mut [f32],
}

impl WithSimd for Lines<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Lines { of, values, inner, src, dst, scratch } = self;
        for (dst, src) in dst.chunks_exact_mut(values).zip(src.chunks_exact(values)) {
            if inner == 1 {
                of.line(src, dst);
            } else {
                of.columns(src, dst, inner, scratch);
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
        let blocks = dst.chunks_mut(block * values).zip(src.chunks(block * values));
        each(blocks, |(dst, src)| {
            with_scratch(2 * inner, |scratch| {
                self.arch.dispatch(Lines { of: self, values, inner, src, dst, scratch });
            });
        });
        Ok(())
    }
}
