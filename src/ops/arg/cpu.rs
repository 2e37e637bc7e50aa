//! Indices of the largest and smallest on the CPU, column by column where lines lie side by side.

use super::{ArgOp, OP};
use crate::cpu::blocks::{MOVED, independent_rows, with_scratch};
use crate::cpu::workers::each;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;

/// Indices, to compute on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct ArgKernel(ArgOp);

impl ArgKernel {
    pub(super) fn new(op: &ArgOp) -> Self {
        ArgKernel(*op)
    }

    /// The lines of `src`, `dst.len()` of them side by side.
    fn columns(&self, src: &[f32], dst: &mut [f32], better: impl Fn(f32, f32) -> bool) {
        let inner = dst.len();
        if let ([dst], Some(&first)) = (&mut *dst, src.first()) {
            let (mut best, mut place) = (first, 0);
            for (k, &x) in src.iter().enumerate() {
                let is_better = better(x, best);
                best = if is_better { x } else { best };
                place = if is_better { k } else { place };
            }
            *dst = place as f32;
            return;
        }
        with_scratch(inner, |best| {
            dst.fill(0.0);
            for (k, row) in src.chunks_exact(inner).enumerate() {
                if k == 0 {
                    best.copy_from_slice(row);
                }
                for ((best, dst), &x) in best.iter_mut().zip(dst.iter_mut()).zip(row) {
                    let is_better = better(x, *best);
                    *best = if is_better { x } else { *best };
                    *dst = if is_better { k as f32 } else { *dst };
                }
            }
        });
    }
}

impl CpuKernel for ArgKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, dst) = (input(OP, inputs, Operand::Src)?, output(OP, outputs, Operand::Dst)?);
        let [outer, count, inner] = self.0.extents();
        check_len(OP, "src", src.len(), self.0.input.elements())?;
        check_len(OP, "dst", dst.len(), outer * inner)?;
        let block = independent_rows(outer, MOVED * count * inner);
        let blocks = dst.chunks_mut(block * inner).zip(src.chunks(block * count * inner));
        each(blocks, |(dst, src)| {
            for (dst, src) in dst.chunks_exact_mut(inner).zip(src.chunks_exact(count * inner)) {
                if self.0.largest {
                    self.columns(src, dst, |x, best| x > best);
                } else {
                    self.columns(src, dst, |x, best| x < best);
                }
            }
        });
        Ok(())
    }
}
