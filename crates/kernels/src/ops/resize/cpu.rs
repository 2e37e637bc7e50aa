//! The resize on the CPU: each output row is the mean of two input rows, then of neighbours within it.

use super::{Neighbours, OP, ResizeMode, ResizeOp};
use crate::cpu::arch::Arch;
use crate::cpu::blocks::{MOVED, independent_rows, with_scratch};
use crate::cpu::panels::lanes_for;
use crate::cpu::workers::each;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;
use pulp::{Simd, WithSimd};

/// A resize, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct ResizeKernel {
    op: ResizeOp,
    rows: Vec<Neighbours>,
    columns: Vec<Neighbours>,
    arch: Arch,
}

/// Output rows from row `first` of all images on, as many as `dst` holds.
struct Rows<'a> {
    of: &'a ResizeKernel,
    first: usize,
    src: &'a [f32],
    dst: &'a mut [f32],
    /// A row of the input.
    mixed: &'a mut [f32],
}

impl WithSimd for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Rows { of, first, src, dst, mixed } = self;
        let row_values = of.op.output.w * of.op.output.c;
        for row in 0..dst.len() / row_values {
            let Some(dst) = dst.get_mut(row * row_values..(row + 1) * row_values) else { return };
            of.row(simd, first + row, src, dst, mixed);
        }
    }
}

impl ResizeKernel {
    pub(super) fn new(op: &ResizeOp) -> Self {
        let axis = |axis, extent| (0..extent).map(|out| op.source(axis, out)).collect();
        let (arch, _) = lanes_for(Some(op.input.c).filter(|&c| c > 1));
        ResizeKernel { op: *op, rows: axis(0, op.output.h), columns: axis(1, op.output.w), arch }
    }

    /// Output row `row` of all images.
    #[inline(always)]
    fn row<S: Simd>(&self, simd: S, row: usize, src: &[f32], dst: &mut [f32], mixed: &mut [f32]) {
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
            return self.mix_columns(simd, line(source.first), dst);
        }
        let (a, b) = (line(source.first), line(source.second));
        if a.len() == mixed.len() && b.len() == mixed.len() {
            for index in 0..mixed.len() {
                mixed[index] = a[index] * (1.0 - source.part) + b[index] * source.part;
            }
        }
        self.mix_columns(simd, mixed, dst);
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
    fn mix_columns<S: Simd>(&self, simd: S, line: &[f32], dst: &mut [f32]) {
        let c = self.op.input.c;
        if c == 1 {
            for (dst, source) in dst.iter_mut().zip(&self.columns) {
                if let (Some(a), Some(b)) = (line.get(source.first), line.get(source.second)) {
                    *dst = a * (1.0 - source.part) + b * source.part;
                }
            }
            return;
        }
        // Whole vectors, as long as there are values: what they store beyond a pixel is stored again with the
        // next one.
        let reach = c.next_multiple_of(S::F32_LANES);
        for (pixel, source) in self.columns.iter().enumerate() {
            let values = |at: usize, len: usize| line.get(at * c..at * c + len);
            let (part, rest) = (source.part, 1.0 - source.part);
            let whole = (values(source.first, reach), values(source.second, reach));
            if let (Some(a), Some(b)) = whole
                && let Some(dst) = dst.get_mut(pixel * c..pixel * c + reach)
            {
                let (a, b, dst) = (S::as_simd_f32s(a).0, S::as_simd_f32s(b).0, S::as_mut_simd_f32s(dst).0);
                let (part, rest) = (simd.splat_f32s(part), simd.splat_f32s(rest));
                for v in 0..a.len().min(b.len()).min(dst.len()) {
                    dst[v] = simd.mul_add_e_f32s(b[v], part, simd.mul_f32s(a[v], rest));
                }
            } else if let (Some(a), Some(b)) = (values(source.first, c), values(source.second, c))
                && let Some(dst) = dst.get_mut(pixel * c..(pixel + 1) * c)
            {
                for index in 0..c {
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
        let block = independent_rows(y.n * y.h, 2 * MOVED * row_values);
        each(dst.chunks_mut(block * row_values).enumerate(), |(index, dst)| {
            with_scratch(self.op.input.w * self.op.input.c, |mixed| {
                self.arch.dispatch(Rows { of: self, first: index * block, src, dst, mixed });
            });
        });
        Ok(())
    }
}
