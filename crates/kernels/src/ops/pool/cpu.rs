//! The windows on the CPU: vectors of channels, one pixel after the other.

use super::{OP, PoolOp, Pooling};
use crate::cpu::arch::Arch;
use crate::cpu::blocks::independent_rows;
use crate::cpu::products::{load, store};
use crate::cpu::tail::Tail;
use crate::cpu::workers::each;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;
use pulp::{Simd, WithSimd};

/// What an element of a window costs, in multiply-adds.
const ELEMENT: usize = 4;

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
        let window = ELEMENT * problem.kernel[0] * problem.kernel[1];
        let block = independent_rows(shape.n * shape.h, window * row_values);
        each(dst.chunks_mut(block * row_values).enumerate(), |(index, dst)| {
            self.arch.dispatch(Rows { of: self, first: index * block, src, dst });
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
}

/// Output rows from row `first` of all images on, as many as `dst` holds.
struct Rows<'a> {
    of: &'a PoolKernel,
    first: usize,
    src: &'a [f32],
    dst: &'a mut [f32],
}

impl WithSimd for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Rows { of, first, src, dst } = self;
        let (x, y) = (of.op.windows.input, of.op.windows.output);
        let average = of.op.pooling == Pooling::Average;
        let begin = simd.splat_f32s(if average { 0.0 } else { f32::NEG_INFINITY });
        for (row, dst) in dst.chunks_exact_mut(y.w * y.c).enumerate() {
            let row = first + row;
            let rows = of.op.inside(0, row % y.h);
            let top = row / y.h * x.h;
            for (j, dst) in dst.chunks_exact_mut(y.c).enumerate() {
                let columns = of.op.inside(1, j);
                let count = simd.splat_f32s((rows.len() * columns.len()) as f32);
                for c in (0..y.c).step_by(S::F32_LANES) {
                    let mut result = begin;
                    for h in rows.clone() {
                        for w in columns.clone() {
                            let value = load(simd, src, ((top + h) * x.w + w) * x.c + c);
                            result = if average {
                                simd.add_f32s(result, value)
                            } else {
                                // A NaN is larger than anything, and stays.
                                let larger = simd.greater_than_f32s(value, result);
                                let larger = simd.select_f32s(larger, value, result);
                                simd.select_f32s(simd.equal_f32s(value, value), larger, value)
                            };
                        }
                    }
                    if average {
                        result = simd.div_f32s(result, count);
                    }
                    store(simd, dst, c, S::F32_LANES.min(y.c - c), result);
                }
            }
        }
    }
}
