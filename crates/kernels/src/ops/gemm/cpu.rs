//! The matrix product on the CPU, with transposition, leading dimensions, `alpha` and `beta`.

use super::{GemmOp, OP};
use crate::cpu::blocks::cut_product;
use crate::cpu::panels::Weights;
use crate::cpu::product::{Factors, Matrix, multiply};
use crate::cpu::shelf::Shelf;
use crate::cpu::tail::Tail;
use crate::cpu::tile::Cut;
use crate::cpu::workers::{try_each, workers};
use crate::cpu::{CpuKernel, Held, given, input, output};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::operands::Operands;
use crate::ops::pointwise::cpu::RowProduct;
use std::borrow::Cow;

/// A matrix product with its constants, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct GemmKernel {
    op: GemmOp,
    tail: Tail,
    /// The product with the one B of each run, where its rows lie as [`RowProduct`] wants them.
    held: Option<RowProduct>,
}

impl CpuKernel for GemmKernel {
    fn hold(&mut self, operand: Operand, values: &Held<'_>, shelf: Shelf<'_>) -> Result<bool> {
        if operand != Operand::B || !self.is_of_rows() || values.count() < self.op.elements_b() {
            return Ok(false);
        }
        self.held = self.with_held(values, shelf)?;
        Ok(self.held.is_some())
    }

    /// Writes the `m x n` elements of each matrix of `C`; what lies between its rows is left as it was.
    /// `C` is read only where `beta` is not 0. A slice may be longer than the op says.
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let a = input(OP, inputs, Operand::A)?;
        let b = if self.held.is_some() { &[] } else { input(OP, inputs, Operand::B)? };
        let residual = given(inputs, Operand::Residual);
        let c = output(OP, outputs, Operand::C)?;
        let op = &self.op;
        let of_b = if self.held.is_some() { 0 } else { op.elements_b() };
        let wanted = [op.elements_a(), of_b, op.elements_c()];
        let held = [("a", a.len(), wanted[0]), ("b", b.len(), wanted[1]), ("c", c.len(), wanted[2])];
        for (name, found, wanted) in
            held.into_iter().chain(residual.map(|r| ("residual", r.len(), wanted[2])))
        {
            if found < wanted {
                return Err(Error::input(
                    format!("gemm {name}"),
                    format!("{found} values"),
                    format!("at least {wanted}"),
                ));
            }
        }
        self.tail.check_residual(residual, residual.map_or(0, <[f32]>::len))?;
        if let Some(held) = &self.held {
            let residual = residual.map(|residual| &residual[..wanted[2]]);
            return held.product(&a[..wanted[0]], residual, &mut c[..wanted[2]]);
        }

        let mut batches = c.chunks_mut(op.batch_stride_c()).take(op.batch).enumerate();
        let batch = |(batch, c): (usize, &mut [f32])| self.batch(a, b, residual, c, batch);
        // A few matrices are cut each for itself.
        if op.batch < workers() { batches.try_for_each(batch) } else { try_each(batches, batch) }
    }
}

impl GemmKernel {
    /// Takes the constants of the epilogue.
    pub(super) fn new(op: &GemmOp, constants: &Operands<'_>) -> Result<Self> {
        Ok(GemmKernel { op: *op, tail: Tail::of(OP, &op.epilogue, op.n, constants)?, held: None })
    }

    /// Whether the product is of rows that lie one behind the other, with one matrix.
    fn is_of_rows(&self) -> bool {
        let op = &self.op;
        let rows = !op.transpose_a && op.lda == op.k && op.ldc == op.n;
        let one = op.batch == 1 || op.shared_b;
        rows && one && op.alpha.0 == 1.0 && op.beta.0 == 0.0
    }

    /// The product of rows with this B.
    fn with_held(&self, b: &Held<'_>, shelf: Shelf<'_>) -> Result<Option<RowProduct>> {
        let op = &self.op;
        let whole = match op.transpose_b {
            true => (op.n - 1) * op.ldb + op.k,
            false => op.k * op.n,
        };
        if b.count() < whole || !op.transpose_b && op.ldb != op.n {
            return Ok(None);
        }
        // The closure returns no error: it is kept here.
        let mut failed = None;
        let weights = || {
            let b = b.words().unwrap_or_else(|error| {
                failed = Some(error);
                Cow::default()
            });
            match op.transpose_b {
                false => Weights::Rows(b),
                true if op.ldb == op.k => Weights::Columns(b),
                true => {
                    let mut weights = vec![0.0; op.n * op.k];
                    for (row, own) in weights.chunks_exact_mut(op.k).zip(b.chunks(op.ldb)) {
                        row.iter_mut().zip(own).for_each(|(to, from)| *to = *from);
                    }
                    Weights::Columns(weights.into())
                }
            }
        };
        let name = format!("b {} {}", op.transpose_b, op.ldb);
        let shelf = (shelf, name.as_str());
        let rows = op.batch * op.m;
        let product = RowProduct::new(OP, rows, [op.k, op.n], weights, self.tail.clone(), shelf);
        failed.map_or(Ok(Some(product)), Err)
    }

    /// The matrix of one batch, of which `c` begins with the first element.
    fn batch(
        &self,
        a: &[f32],
        b: &[f32],
        residual: Option<&[f32]>,
        c: &mut [f32],
        batch: usize,
    ) -> Result<()> {
        let op = &self.op;
        let cut = cut_product(op.m, op.k, op.n);
        let a = a.get(op.index_a(batch, 0, 0)..).unwrap_or_default();
        let b = b.get(op.index_b(batch, 0, 0)..).unwrap_or_default();
        let residual = residual.and_then(|residual| residual.get(op.index_c(batch, 0, 0)..));
        if op.m == 1 {
            let row = c.get_mut(..op.n).unwrap_or_default();
            let parts = row.chunks_mut(cut.columns).enumerate();
            try_each(parts, |(index, c)| self.block(a, b, c, [0, index * cut.columns], cut))?;
            self.tail.apply(row, op.n, residual);
            return Ok(());
        }
        // A caller's slice may go on behind the last row.
        let used = c.len().min(op.m * op.ldc);
        let blocks = c.get_mut(..used).unwrap_or_default().chunks_mut(cut.rows * op.ldc).enumerate();
        try_each(blocks, |(index, c)| {
            let first = index * cut.rows;
            self.block(a, b, c, [first, 0], cut)?;
            self.tail.apply(c, op.ldc, residual.and_then(|residual| residual.get(first * op.ldc..)));
            Ok(())
        })
    }

    /// The block of a matrix whose first row and column are given.
    fn block(&self, a: &[f32], b: &[f32], c: &mut [f32], [row, column]: [usize; 2], cut: Cut) -> Result<()> {
        let op = &self.op;
        let (rows, columns) = (cut.rows.min(op.m - row), cut.columns.min(op.n - column));
        let strides_a = if op.transpose_a { [1, op.lda] } else { [op.lda, 1] };
        let strides_b = if op.transpose_b { [1, op.ldb] } else { [op.ldb, 1] };
        multiply(
            [rows, columns, op.k],
            c,
            op.ldc,
            Matrix { data: a.get(row * strides_a[0]..).unwrap_or_default(), strides: strides_a },
            Matrix { data: b.get(column * strides_b[1]..).unwrap_or_default(), strides: strides_b },
            Factors { alpha: op.alpha.0, beta: op.beta.0 },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::dtype::Precision;
    use crate::host::HostTensor;
    use crate::ops::gemm::Gemm;
    use half::f16;

    /// Small integers, so that sums are exact in any order.
    fn numbers(len: usize) -> Vec<f32> {
        (0..len).map(|index| (index * 7 % 11) as f32 - 5.0).collect()
    }

    #[test]
    fn a_held_operand_gives_the_same_products() {
        for (batch, m, transpose_b, ldb) in
            [(1, 1, false, None), (1, 13, true, None), (3, 5, false, None), (1, 4, true, Some(40))]
        {
            let (n, k) = (37, 29);
            let gemm = Gemm { transpose_b, ldb, ..Gemm::default() };
            let op = GemmOp::new(m, n, k, batch, &gemm, false, false, Precision::F32);
            let op = op.expect("a product").with_shared_b();
            let (a, b) = (numbers(op.elements_a()), numbers(op.elements_b()));
            let mut kernel = GemmKernel::new(&op, &Operands::new()).expect("a kernel");
            let product = |kernel: &GemmKernel| {
                let mut c = vec![f32::NAN; op.elements_c()];
                let inputs = [(Operand::A, &a[..]), (Operand::B, &b[..])];
                kernel.run(&inputs, &mut [(Operand::C, &mut c[..])]).expect("a run");
                c
            };
            let apart = product(&kernel);
            // Small integers are halves as they are.
            let dims = Dims::new(&[b.len()]).expect("small");
            let floats = HostTensor::new(dims, b.clone()).expect("as many");
            let halves: Vec<f16> = b.iter().map(|&value| f16::from_f32(value)).collect();
            let halves = HostTensor::of(dims, halves).expect("as many");
            for values in [floats, halves] {
                let held = kernel.hold(Operand::B, &Held::new(&values), Shelf::default());
                assert!(held.expect("memory") && kernel.held.is_some());
                assert_eq!(product(&kernel), apart, "{batch} of {m} rows, transposed: {transpose_b}");
                // Without B too.
                let mut c = vec![f32::NAN; op.elements_c()];
                kernel.run(&[(Operand::A, &a[..])], &mut [(Operand::C, &mut c[..])]).expect("a run");
                assert_eq!(c, apart);
            }
        }
    }
}
