//! The inputs' rows, copied in turn.

use super::{ConcatOp, OP, operand};
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::workers::each;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;

/// A concatenation, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct ConcatKernel {
    rows: usize,
    /// Words of a row of each input.
    lengths: Vec<usize>,
}

impl ConcatKernel {
    pub(super) fn new(op: &ConcatOp) -> Self {
        let (rows, _) = op.rows();
        let words = op.dtype.words();
        let lengths = op.inputs.iter().map(|input| input.elements() / rows * words).collect();
        ConcatKernel { rows, lengths }
    }
}

impl CpuKernel for ConcatKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let whole: usize = self.lengths.iter().sum();
        let mut sources = Vec::with_capacity(self.lengths.len());
        for (index, length) in self.lengths.iter().enumerate() {
            let source = input(OP, inputs, operand(index))?;
            check_len(OP, operand(index).name(), source.len(), self.rows * length)?;
            sources.push((source, *length));
        }
        let dst = output(OP, outputs, Operand::Dst)?;
        check_len(OP, "dst", dst.len(), self.rows * whole)?;
        let block = independent_rows(self.rows, MOVED * whole);
        each(dst.chunks_mut(block * whole).enumerate(), |(index, dst)| {
            for (row, dst) in dst.chunks_exact_mut(whole).enumerate() {
                let (row, mut rest) = (index * block + row, dst);
                for &(source, length) in &sources {
                    let (own, behind) = rest.split_at_mut(length);
                    own.copy_from_slice(&source[row * length..(row + 1) * length]);
                    rest = behind;
                }
            }
        });
        Ok(())
    }
}
