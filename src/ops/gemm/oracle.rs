//! The matrix product's sums in f64.

use super::GemmOp;
use crate::ops::plan::Reference;

/// The products of a batch in f64, packed `m x n` per matrix. `a`, `b`, `c` and `residual` are
/// read with the op's leading dimensions; `c` is not read where `beta` is 0.
///
/// # Panics
/// If a slice is shorter than the op says, or `beta` is not 0 and `c` is `None`. This is a test's
/// yardstick, not a backend.
#[expect(clippy::expect_used, reason = "a test without C is wrong, as `# Panics` says")]
pub fn oracle(
    op: &GemmOp,
    a: &[f32],
    b: &[f32],
    c: Option<&[f32]>,
    bias: Option<&[f32]>,
    slope: Option<&[f32]>,
    residual: Option<&[f32]>,
) -> Reference {
    let alpha = f64::from(op.alpha.0);
    let beta = f64::from(op.beta.0);
    let reads_c = op.beta.0 != 0.0;
    let stored_a = |row: usize, term: usize| {
        if op.transpose_a { term * op.lda + row } else { row * op.lda + term }
    };
    let stored_b = |term: usize, column: usize| {
        if op.transpose_b { column * op.ldb + term } else { term * op.ldb + column }
    };
    let matrix_a = if op.transpose_a { op.k } else { op.m } * op.lda;
    let matrix_b = if op.transpose_b { op.n } else { op.k } * op.ldb;

    let mut reference = Reference::default();
    for batch in 0..op.batch {
        let a = &a[batch * matrix_a..];
        let b = if op.shared_b { b } else { &b[batch * matrix_b..] };
        for row in 0..op.m {
            for column in 0..op.n {
                let at = (batch * op.m + row) * op.ldc + column;
                let (mut sum, mut magnitude) = (0.0, 0.0);
                for term in 0..op.k {
                    let product = f64::from(a[stored_a(row, term)]) * f64::from(b[stored_b(term, column)]);
                    sum += alpha * product;
                    magnitude += (alpha * product).abs();
                }
                if reads_c {
                    let held = beta * f64::from(c.expect("beta is not 0: C is read")[at]);
                    sum += held;
                    magnitude += held.abs();
                }
                let bias = bias.map_or(0.0, |bias| f64::from(bias[column]));
                let slope = slope.map_or(0.0, |slope| f64::from(slope[column]));
                let residual = residual.map_or(0.0, |residual| f64::from(residual[at]));
                reference.value.push(op.epilogue.activation.reference(sum + bias, slope) + residual);
                reference.magnitude.push(magnitude + bias.abs());
            }
        }
    }
    reference.terms = op.k + usize::from(bias.is_some()) + usize::from(reads_c);
    reference
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::emit::Bits;
    use crate::ops::gemm::Gemm;

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
                let a = if transpose_a { &a_transposed } else { &a };
                let b = if transpose_b { &b_transposed } else { &b };
                let reference = oracle(&op(&options, 1), a, b, None, None, None, None);
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
        let reference = oracle(&op(&options, 1), &a, &b, Some(&c), None, None, None);
        assert_eq!(reference.value, [7.0, 8.0, 16.0, 17.0]);
        let options = Gemm { alpha: Bits(2.0), beta: Bits(-1.0), ..options };
        let c = [1.0, 2.0, n, n, n, 3.0, 4.0];
        let reference = oracle(&op(&options, 1), &a, &b, Some(&c), Some(&[0.5, 0.25]), None, None);
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
        let reference = oracle(&op, &a, &b, None, None, None, None);
        assert_eq!(reference.value, [7.0, 8.0, 16.0, 17.0, 1.0, 0.0, 0.0, 1.0]);
    }
}
