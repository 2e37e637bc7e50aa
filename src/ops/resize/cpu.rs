//! The resize on the CPU: each output row is the mean of two input rows, then of neighbours within it.

#![expect(
    clippy::needless_range_loop,
    reason = "whether iterators are inlined into code for an instruction set depends on the profile"
)]

use super::{OP, ResizeMode, ResizeOp, Source};
use crate::cpu::blocks::{independent_rows, with_scratch};
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;
use pulp::Arch;
use rayon::prelude::*;

/// A resize, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct ResizeKernel {
    op: ResizeOp,
    rows: Vec<Source>,
    columns: Vec<Source>,
    arch: Arch,
}

impl ResizeKernel {
    pub(super) fn new(op: &ResizeOp) -> Self {
        let axis = |axis, extent| (0..extent).map(|out| op.source(axis, out)).collect();
        ResizeKernel { op: *op, rows: axis(0, op.output.h), columns: axis(1, op.output.w), arch: Arch::new() }
    }

    /// Output row `row` of all images.
    #[inline(always)]
    fn row(&self, row: usize, src: &[f32], dst: &mut [f32], mixed: &mut [f32]) {
        let (x, y) = (self.op.input, self.op.output);
        let values = x.w * x.c;
        let Some(&source) = self.rows.get(row % y.h) else { return };
        let line = |i: usize| {
            let first = (row / y.h * x.h + i) * values;
            src.get(first..first + values).unwrap_or_default()
        };
        if self.op.options.mode == ResizeMode::Nearest {
            return self.take(line(source.first), dst);
        }
        if source.part == 0.0 {
            return self.mix_columns(line(source.first), dst);
        }
        let (a, b) = (line(source.first), line(source.second));
        if a.len() == mixed.len() && b.len() == mixed.len() {
            for index in 0..mixed.len() {
                mixed[index] = a[index] * (1.0 - source.part) + b[index] * source.part;
            }
        }
        self.mix_columns(mixed, dst);
    }

    /// The nearest pixels of one row.
    fn take(&self, line: &[f32], dst: &mut [f32]) {
        let c = self.op.input.c;
        for (dst, source) in dst.chunks_exact_mut(c).zip(&self.columns) {
            if let Some(pixel) = line.get(source.first * c..(source.first + 1) * c) {
                dst.copy_from_slice(pixel);
            }
        }
    }

    /// Means of neighbours in one row.
    #[inline(always)]
    fn mix_columns(&self, line: &[f32], dst: &mut [f32]) {
        let c = self.op.input.c;
        if c == 1 {
            for (dst, source) in dst.iter_mut().zip(&self.columns) {
                if let (Some(a), Some(b)) = (line.get(source.first), line.get(source.second)) {
                    *dst = a * (1.0 - source.part) + b * source.part;
                }
            }
            return;
        }
        for (dst, source) in dst.chunks_exact_mut(c).zip(&self.columns) {
            let pixel = |at: usize| line.get(at * c..(at + 1) * c).unwrap_or_default();
            let (part, rest) = (source.part, 1.0 - source.part);
            let (a, b) = (pixel(source.first), pixel(source.second));
            if a.len() == dst.len() && b.len() == dst.len() {
                for index in 0..dst.len() {
                    dst[index] = a[index] * rest + b[index] * part;
                }
            }
        }
    }
}

impl CpuKernel for ResizeKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, dst) = (input(OP, inputs, Operand::Src)?, output(OP, outputs, Operand::Dst)?);
        let y = self.op.output;
        check_len(OP, "src", src.len(), self.op.input.elements())?;
        check_len(OP, "dst", dst.len(), y.elements())?;
        let row_values = y.w * y.c;
        let block = independent_rows(y.n * y.h, 4 * row_values);
        dst.par_chunks_mut(block * row_values).enumerate().for_each(|(index, dst)| {
            with_scratch(self.op.input.w * self.op.input.c, |mixed| {
                self.arch.dispatch(
                    #[inline(always)]
                    || {
                        for (row, dst) in dst.chunks_exact_mut(row_values).enumerate() {
                            self.row(index * block + row, src, dst, mixed);
                        }
                    },
                );
            });
        });
        Ok(())
    }
}
