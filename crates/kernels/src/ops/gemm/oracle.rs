//! The matrix product's sums in f64.

use super::GemmOp;
use crate::emit::Operand;
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Sum;

/// The rows `rows` of the products of a batch, counted through all matrices, without gaps between them.
/// `operands`, which were checked, are read with the op's leading dimensions; `C` is not read where
/// `beta` is 0.
pub(super) fn oracle(op: &GemmOp, operands: &Operands<'_>, rows: &[usize]) -> Sum {
    let values = |operand| get(operands, operand);
    let a = values(Operand::A).unwrap_or_default();
    let b = values(Operand::B).unwrap_or_default();
    let (c, bias) = (values(Operand::C), values(Operand::Bias));
    let (slope, residual) = (values(Operand::Slope), values(Operand::Residual));
    let alpha = f64::from(op.alpha.0);
    let beta = f64::from(op.beta.0);
    let held = c.filter(|_| op.reads_c());
    let stored_a = |row: usize, term: usize| {
        if op.transpose_a { term * op.lda + row } else { row * op.lda + term }
    };
    let stored_b = |term: usize, column: usize| {
        if op.transpose_b { column * op.ldb + term } else { term * op.ldb + column }
    };
    let matrix_a = if op.transpose_a { op.k } else { op.m } * op.lda;
    let matrix_b = if op.transpose_b { op.n } else { op.k } * op.ldb;

    let destination = op.destination();
    let mut reference = Sum::begin(op.k + usize::from(op.reads_c()), &op.epilogue, operands, &destination);
    reference.residual.clear();
    for &row in rows {
        let (batch, row) = (row / op.m, row % op.m);
        let a = &a[batch * matrix_a..];
        let b = if op.shared_b { b } else { &b[batch * matrix_b..] };
        for column in 0..op.n {
            let at = (batch * op.m + row) * op.ldc + column;
            let (mut sum, mut magnitude) = (0.0, 0.0);
            for term in 0..op.k {
                let product = f64::from(a[stored_a(row, term)]) * f64::from(b[stored_b(term, column)]);
                sum += alpha * product;
                magnitude += (alpha * product).abs();
            }
            if let Some(c) = held {
                let held = beta * f64::from(c[at]);
                sum += held;
                magnitude += held.abs();
            }
            let bias = bias.map_or(0.0, |bias| f64::from(bias[column]));
            let slope = slope.map_or(0.0, |slope| f64::from(slope[column]));
            reference.residual.extend(residual.map(|residual| residual[at]));
            let residual = residual.map_or(0.0, |residual| f64::from(residual[at]));
            reference.value.push(op.epilogue.activation.reference(sum + bias, slope) + residual);
            reference.magnitude.push(magnitude + bias.abs());
        }
    }
    reference
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::emit::Bits;
    use crate::ops::gemm::Gemm;
    use crate::ops::operands::of;

    fn rows(op: &GemmOp, operands: &[(Operand, &[f32])]) -> Sum {
        let rows: Vec<usize> = (0..op.batch * op.m).collect();
        oracle(op, &of(operands), &rows)
    }

    fn op(options: &Gemm, batch: usize) -> GemmOp {
        GemmOp::new(2, 2, 3, batch, options, false, false, Precision::F32).expect("a valid product")
    }

    #[test]
    fn every_transposition_gives_the_same_product() {
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let a_transposed = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
        let b = [1.0, 0.0, 0.0, 1.0, 2.0, 2.0];
        let b_transposed = [1.0, 0.0, 2.0, 0.0, 1.0, 2.0];
        for transpose_a in [false, true] {
            for transpose_b in [false, true] {
                let options = Gemm { transpose_a, transpose_b, ..Default::default() };
                let a: &[f32] = if transpose_a { &a_transposed } else { &a };
                let b: &[f32] = if transpose_b { &b_transposed } else { &b };
                let reference = rows(&op(&options, 1), &[(Operand::A, a), (Operand::B, b)]);
                assert_eq!(reference.value, [7.0, 8.0, 16.0, 17.0], "{options:?}");
            }
        }
    }

    #[test]
    fn beta_zero_does_not_read_c_and_leading_dimensions_skip() {
        let n = f32::NAN;
        let options = Gemm { lda: Some(4), ldb: Some(3), ldc: Some(5), ..Default::default() };
        let a = [1.0, 2.0, 3.0, n, 4.0, 5.0, 6.0];
        let b = [1.0, 0.0, n, 0.0, 1.0, n, 2.0, 2.0];
        let c = [n; 7];
        let reference = rows(&op(&options, 1), &[(Operand::A, &a), (Operand::B, &b), (Operand::C, &c)]);
        assert_eq!(reference.value, [7.0, 8.0, 16.0, 17.0]);
        let options = Gemm { alpha: Bits(2.0), beta: Bits(-1.0), ..options };
        let c = [1.0, 2.0, n, n, n, 3.0, 4.0];
        let op = GemmOp::new(2, 2, 3, 1, &options, true, false, Precision::F32).expect("a valid product");
        let bias = (Operand::Bias, &[0.5, 0.25][..]);
        let reference = rows(&op, &[(Operand::A, &a), (Operand::B, &b), (Operand::C, &c), bias]);
        assert_eq!(reference.value, [13.5, 14.25, 29.5, 30.25]);
        assert_eq!(reference.magnitude, [15.5, 18.25, 35.5, 38.25]);
        assert_eq!(reference.terms, 5);
    }

    #[test]
    fn one_right_matrix_may_serve_the_batch() {
        let mut op = op(&Gemm::default(), 2);
        op.shared_b = true;
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        let b = [1.0, 0.0, 0.0, 1.0, 2.0, 2.0];
        let reference = rows(&op, &[(Operand::A, &a), (Operand::B, &b)]);
        assert_eq!(reference.value, [7.0, 8.0, 16.0, 17.0, 1.0, 0.0, 0.0, 1.0]);
        let last = oracle(&op, &of(&[(Operand::A, &a), (Operand::B, &b)]), &[3]);
        assert_eq!(last.value, [0.0, 1.0]);
    }
}
