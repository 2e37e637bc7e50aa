//! The windows on the CPU: rows of channels, one output row after the other.

use super::{OP, PoolOp, Pooling};
use crate::cpu::blocks::independent_rows;
use crate::cpu::tail::Tail;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;
use pulp::Arch;
use rayon::prelude::*;

/// A pooling, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct PoolKernel {
    op: PoolOp,
    tail: Tail,
    arch: Arch,
}

impl CpuKernel for PoolKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, dst) = (input(OP, inputs, Operand::Src)?, output(OP, outputs, Operand::Dst)?);
        let problem = &self.op.windows;
        let shape = problem.output;
        check_len(OP, "src", src.len(), problem.input.elements())?;
        check_len(OP, "dst", dst.len(), shape.elements())?;
        let row_values = shape.w * shape.c;
        let block = independent_rows(shape.n * shape.h, row_values * problem.kernel[0] * problem.kernel[1]);
        dst.par_chunks_mut(block * row_values).enumerate().for_each(|(index, dst)| {
            self.arch.dispatch(
                #[inline(always)]
                || {
                    for (row, dst) in dst.chunks_exact_mut(row_values).enumerate() {
                        self.row(index * block + row, src, dst);
                    }
                },
            );
            self.tail.apply(dst, shape.c, None);
        });
        Ok(())
    }
}

impl PoolKernel {
    pub(super) fn new(op: &PoolOp) -> Result<Self> {
        let tail = Tail::new(OP, &op.windows.epilogue, op.windows.output.c, None, None)?;
        Ok(PoolKernel { op: *op, tail, arch: Arch::new() })
    }

    /// Output row `row` of all images.
    #[inline(always)]
    fn row(&self, row: usize, src: &[f32], dst: &mut [f32]) {
        let (x, y) = (self.op.windows.input, self.op.windows.output);
        let rows = self.op.inside(0, row % y.h);
        let first = row / y.h * x.h;
        let average = self.op.pooling == Pooling::Average;
        for (j, dst) in dst.chunks_exact_mut(y.c).enumerate() {
            let columns = self.op.inside(1, j);
            if average {
                dst.fill(0.0);
            } else {
                dst.fill(f32::NEG_INFINITY);
            }
            for h in rows.clone() {
                for w in columns.clone() {
                    let pixel = ((first + h) * x.w + w) * x.c;
                    let Some(values) = src.get(pixel..pixel + dst.len()) else { return };
                    if average {
                        for index in 0..dst.len() {
                            dst[index] += values[index];
                        }
                    } else {
                        // A NaN is larger than anything, and stays.
                        for index in 0..dst.len() {
                            let (best, value) = (dst[index], values[index]);
                            dst[index] = if value > best || value.is_nan() { value } else { best };
                        }
                    }
                }
            }
            if average {
                let count = (rows.len() * columns.len()) as f32;
                for index in 0..dst.len() {
                    dst[index] /= count;
                }
            }
        }
    }
}
