//! The windows on the CPU: rows of channels, one output row after the other.

use super::{OP, PoolOp, Pooling};
use crate::cpu::blocks::independent_rows;
use crate::cpu::tail::Tail;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;
use rayon::prelude::*;

/// A pooling, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct PoolKernel {
    op: PoolOp,
    tail: Tail,
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
            for (row, dst) in dst.chunks_exact_mut(row_values).enumerate() {
                self.row(index * block + row, src, dst);
                self.tail.apply(dst, shape.c, None);
            }
        });
        Ok(())
    }
}

impl PoolKernel {
    pub(super) fn new(op: &PoolOp) -> Result<Self> {
        let tail = Tail::new(OP, &op.windows.epilogue, op.windows.output.c, None, None)?;
        Ok(PoolKernel { op: *op, tail })
    }

    /// Output row `row` of all images.
    fn row(&self, row: usize, src: &[f32], dst: &mut [f32]) {
        let (x, y) = (self.op.windows.input, self.op.windows.output);
        let rows = self.op.inside(0, row % y.h);
        let first = row / y.h * x.h;
        let average = self.op.pooling == Pooling::Average;
        for (j, dst) in dst.chunks_exact_mut(y.c).enumerate() {
            let columns = self.op.inside(1, j);
            dst.fill(if average { 0.0 } else { f32::NEG_INFINITY });
            let pixels = rows.clone().flat_map(|h| columns.clone().map(move |w| (first + h) * x.w + w));
            for pixel in pixels {
                let values = src.get(pixel * x.c..(pixel + 1) * x.c).unwrap_or_default();
                let each = dst.iter_mut().zip(values);
                if average {
                    each.for_each(|(sum, value)| *sum += value);
                } else {
                    // A NaN is larger than anything, and stays.
                    each.for_each(|(best, value)| {
                        *best = if *value > *best || value.is_nan() { *value } else { *best };
                    });
                }
            }
            if average {
                let count = (rows.len() * columns.len()) as f32;
                dst.iter_mut().for_each(|sum| *sum /= count);
            }
        }
    }
}
