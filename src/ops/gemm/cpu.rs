//! The matrix product on the CPU, with transposition, leading dimensions, `alpha` and `beta`.

use super::{GemmOp, OP};
use crate::cpu::blocks::{Cut, cut_product};
use crate::cpu::product::{Factors, Matrix, multiply};
use crate::cpu::tail::Tail;
use crate::cpu::{CpuKernel, given, input, output};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::operands::Operands;
use rayon::prelude::*;

/// A matrix product with its constants, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct GemmKernel {
    op: GemmOp,
    tail: Tail,
}

impl CpuKernel for GemmKernel {
    /// Writes the `m x n` elements of each matrix of `C`; what lies between its rows is left as it was.
    /// `C` is read only where `beta` is not 0. A slice may be longer than the op says.
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (a, b) = (input(OP, inputs, Operand::A)?, input(OP, inputs, Operand::B)?);
        let residual = given(inputs, Operand::Residual);
        let c = output(OP, outputs, Operand::C)?;
        let op = &self.op;
        let held = [("a", a.len(), op.elements_a()), ("b", b.len(), op.elements_b())];
        let held = held.into_iter().chain([("c", c.len(), op.elements_c())]);
        for (name, found, wanted) in held.chain(residual.map(|r| ("residual", r.len(), op.elements_c()))) {
            if found < wanted {
                return Err(Error::input(
                    format!("gemm {name}"),
                    format!("{found} values"),
                    format!("at least {wanted}"),
                ));
            }
        }
        self.tail.check_residual(residual, residual.map_or(0, <[f32]>::len))?;

        // Whole blocks of rows, the last of a batch's last matrix perhaps short.
        let cut = cut_product(op.batch, op.m, op.n + op.k);
        c.par_chunks_mut(op.batch_stride_c()).take(op.batch).enumerate().try_for_each(|(batch, c)| {
            c.par_chunks_mut(cut.rows * op.ldc)
                .enumerate()
                .try_for_each(|(index, c)| self.rows(a, b, residual, c, batch, index, cut))
        })
    }
}

impl GemmKernel {
    /// Takes the constants of the epilogue.
    pub(super) fn new(op: &GemmOp, constants: &Operands<'_>) -> Result<Self> {
        Ok(GemmKernel { op: *op, tail: Tail::of(OP, &op.epilogue, op.n, constants)? })
    }

    /// Block `index` of matrix `batch`.
    #[expect(clippy::too_many_arguments, reason = "operands, destination and the block's place")]
    fn rows(
        &self,
        a: &[f32],
        b: &[f32],
        residual: Option<&[f32]>,
        c: &mut [f32],
        batch: usize,
        index: usize,
        cut: Cut,
    ) -> Result<()> {
        let op = &self.op;
        let first = index * cut.rows;
        let rows = cut.rows.min(op.m.saturating_sub(first));
        let strides_a = if op.transpose_a { [1, op.lda] } else { [op.lda, 1] };
        let strides_b = if op.transpose_b { [1, op.ldb] } else { [op.ldb, 1] };
        let a = a.get(op.index_a(batch, first, 0)..).unwrap_or_default();
        let b = b.get(op.index_b(batch, 0, 0)..).unwrap_or_default();
        multiply(
            [rows, op.n, op.k],
            c,
            op.ldc,
            Matrix { data: a, strides: strides_a },
            Matrix { data: b, strides: strides_b },
            Factors { alpha: op.alpha.0, beta: op.beta.0 },
            cut.parallelism,
        )?;
        // A caller's slice may go on behind the last row.
        let used = c.len().min(rows * op.ldc);
        let residual = residual.and_then(|residual| residual.get(op.index_c(batch, first, 0)..));
        self.tail.apply(c.get_mut(..used).unwrap_or_default(), op.ldc, residual);
        Ok(())
    }
}
