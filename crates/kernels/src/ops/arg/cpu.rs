//! Indices of the largest and smallest on the CPU, column by column where lines lie side by side.

use super::ArgOp;
use crate::cpu::blocks::{MOVED, independent_rows, with_scratch};
use crate::cpu::workers::each;
use crate::dtype::DType;
use crate::ops::reduce::Reduction;
use crate::word;

/// The lines of `src`, `dst.len()` of them side by side.
fn columns(src: &[f32], dst: &mut [f32], better: impl Fn(f32, f32) -> bool) {
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

/// The indices in `src`, of the right lengths.
pub(super) fn compute(op: &ArgOp, src: &[f32], dst: &mut [f32]) {
    let [outer, count, inner] = op.extents();
    if op.dtype != DType::F32 {
        let terms = word::integers(op.dtype, src);
        for (line, index) in dst.iter_mut().enumerate() {
            let at = |k: usize| terms[(line / inner * count + k) * inner + line % inner];
            let better = |best: usize, k: usize| if op.reduction.takes(at(k), at(best)) { k } else { best };
            *index = (1..count).fold(0, better) as f32;
        }
        return;
    }
    let block = independent_rows(outer, MOVED * count * inner);
    let blocks = dst.chunks_mut(block * inner).zip(src.chunks(block * count * inner));
    each(blocks, |(dst, src)| {
        for (dst, src) in dst.chunks_exact_mut(inner).zip(src.chunks_exact(count * inner)) {
            if op.reduction == Reduction::Max {
                columns(src, dst, |x, best| (x > best) | (x.is_nan() & !best.is_nan()));
            } else {
                columns(src, dst, |x, best| (x < best) | (x.is_nan() & !best.is_nan()));
            }
        }
    });
}
