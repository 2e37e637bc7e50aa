//! Dense layers of few rows on the CPU, one after the other.

use super::{FIRST, LAST, MlpOp, OP};
use crate::cpu::shelf::Shelf;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::definition::Definition;
use crate::ops::operands::{Operands, Renamed};
use crate::ops::pointwise::PointwiseOp;
use crate::ops::pointwise::cpu::{self, RowProduct};

/// The layers with their constants, to run on the CPU as often as wanted.
#[derive(Debug)]
pub(super) struct MlpKernel {
    op: MlpOp,
    norm: Option<Box<dyn CpuKernel>>,
    first: Option<RowProduct>,
    last: RowProduct,
}

impl MlpKernel {
    pub(super) fn new(op: &MlpOp, constants: &Operands<'_>) -> Result<Self> {
        let norm = match op.normalize()? {
            Some(norm) => Some(norm.cpu(&Operands::default(), Shelf::default())?),
            None => None,
        };
        let layer =
            |layer, names| cpu::kernel(&PointwiseOp::of(layer), &constants.renamed(names), Shelf::default());
        let first = op.first.map(|first| layer(first, FIRST)).transpose()?;
        Ok(MlpKernel { op: *op, norm, first, last: layer(op.last, LAST)? })
    }
}

impl CpuKernel for MlpKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, dst) = (input(OP, inputs, Operand::Src)?, output(OP, outputs, Operand::Dst)?);
        check_len(OP, "src", src.len(), self.op.rows().elements())?;
        let mut rows = Vec::new();
        let rows = match &self.norm {
            Some(norm) => {
                rows.resize(src.len(), 0.0);
                norm.run(&[(Operand::Src, src)], &mut [(Operand::Dst, &mut rows)])?;
                &rows
            }
            None => src,
        };
        let Some(first) = &self.first else { return self.last.product(rows, None, dst) };
        let mut hidden = vec![0.0; self.op.last.input.elements()];
        first.product(rows, None, &mut hidden)?;
        self.last.product(&hidden, None, dst)
    }
}
