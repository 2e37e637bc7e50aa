//! A weighted map on the CPU: the factors of all images, then the map row by row.

use super::{FIRST, GateOp, OP, SECOND};
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::shelf::Shelf;
use crate::cpu::workers::each;
use crate::cpu::{CpuKernel, check_len, given, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::operands::{Operands, Renamed};
use crate::ops::pointwise::PointwiseOp;
use crate::ops::pointwise::cpu::{self, RowProduct};

/// Both convolutions with their constants, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct GateKernel {
    op: GateOp,
    first: Option<RowProduct>,
    second: RowProduct,
}

impl GateKernel {
    pub(super) fn new(op: &GateOp, constants: &Operands<'_>) -> Result<Self> {
        let first = match op.first {
            Some(first) => {
                Some(cpu::kernel(&PointwiseOp::of(first), &constants.renamed(FIRST), Shelf::default())?)
            }
            None => None,
        };
        let second = cpu::kernel(&PointwiseOp::of(op.second), &constants.renamed(SECOND), Shelf::default())?;
        Ok(GateKernel { op: *op, first, second })
    }
}

impl CpuKernel for GateKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (pixel, x) = (input(OP, inputs, Operand::Src)?, input(OP, inputs, Operand::Arg(0))?);
        let (residual, dst) = (given(inputs, Operand::Residual), output(OP, outputs, Operand::Dst)?);
        let map = self.op.map;
        check_len(OP, "arg0", x.len(), map.elements())?;
        check_len(OP, "dst", dst.len(), map.elements())?;
        if let Some(residual) = residual {
            check_len(OP, "residual", residual.len(), map.elements())?;
        }
        let mut factors = vec![0.0; self.op.second.output.elements()];
        match &self.first {
            Some(first) => {
                let mut hidden = vec![0.0; self.op.second.input.elements()];
                first.product(pixel, None, &mut hidden)?;
                self.second.product(&hidden, None, &mut factors)?;
            }
            None => self.second.product(pixel, None, &mut factors)?,
        }
        let plane = map.h * map.w;
        let rows = independent_rows(plane * map.n, MOVED * map.c);
        each(dst.chunks_mut(rows * map.c).enumerate(), |(block, dst)| {
            for (row, dst) in dst.chunks_exact_mut(map.c).enumerate() {
                let pixel = block * rows + row;
                let (image, at) = (pixel / plane, pixel * map.c);
                let (x, factors) = (&x[at..][..map.c], &factors[image * map.c..][..map.c]);
                for ((dst, x), factor) in dst.iter_mut().zip(x).zip(factors) {
                    *dst = x * factor;
                }
                if let Some(residual) = residual {
                    dst.iter_mut().zip(&residual[at..][..map.c]).for_each(|(dst, z)| *dst += z);
                }
            }
        });
        Ok(())
    }
}
