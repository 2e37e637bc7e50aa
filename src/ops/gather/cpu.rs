//! What each index selects, copied in one piece.

use super::{GatherOp, OP, Sizes};
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::workers::each;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;

/// A selection, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct GatherKernel {
    op: GatherOp,
    sizes: Sizes,
}

impl GatherKernel {
    pub(super) fn new(op: &GatherOp) -> Self {
        GatherKernel { op: op.clone(), sizes: op.sizes() }
    }
}

impl CpuKernel for GatherKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, indices) = (input(OP, inputs, Operand::Src)?, input(OP, inputs, Operand::Arg(0))?);
        let dst = output(OP, outputs, Operand::Dst)?;
        check_len(OP, "src", src.len(), self.op.source.elements())?;
        check_len(OP, "arg0", indices.len(), self.op.indices.elements())?;
        check_len(OP, "dst", dst.len(), self.op.target.elements())?;
        let Sizes { outer, count, inner, .. } = self.sizes;
        let (axes, indexed) = (self.op.axes, self.sizes.indexed());
        let block = independent_rows(dst.len() / inner, MOVED * inner);
        each(dst.chunks_mut(block * inner).enumerate(), |(index, dst)| {
            for (row, dst) in dst.chunks_exact_mut(inner).enumerate() {
                let row = index * block + row;
                let entry = row % count + count * (row / count / outer);
                match self.sizes.place(&indices[axes * entry..axes * (entry + 1)]) {
                    Some(place) => {
                        let first = (row / count * indexed + place) * inner;
                        dst.copy_from_slice(&src[first..first + inner]);
                    }
                    None => dst.fill(0.0),
                }
            }
        });
        Ok(())
    }
}
