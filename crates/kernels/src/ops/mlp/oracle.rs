//! The normalisation and the layers in f64.
//!
//! What a layer reads is off by as much as what is before it may be, stored or not: the sum carries
//! `sum_k abs(w) e[k]`.

use super::{FIRST, LAST, MlpOp};
use crate::emit::Operand;
use crate::ops::definition::Definition;
use crate::ops::operands::{Operands, Renamed, get};
use crate::ops::pointwise::sums;
use crate::ops::reference::Sum;

/// The result, in the order of the rows.
pub(super) fn oracle(op: &MlpOp, operands: &Operands<'_>) -> Sum {
    let precision = op.last.precision;
    let src = get(operands, Operand::Src).unwrap_or_default();
    let (mut values, mut offs): (Vec<f64>, Vec<f64>) = match op.normalize() {
        Ok(Some(norm)) => {
            let rows = norm.oracle(&operands.renamed(&[(Operand::Src, Operand::Src)]));
            let off = |at| rows.tolerance(at, precision);
            (rows.value().to_vec(), (0..src.len()).map(off).collect())
        }
        // The rounding of what is stored is that of the product's operands.
        _ => src.iter().map(|&x| (f64::from(x), 0.0)).unzip(),
    };
    if let Some(first) = &op.first {
        let hidden = sums(first, &operands.renamed(FIRST), &values, &offs);
        offs = (0..hidden.value.len()).map(|at| hidden.tolerance(at, precision)).collect();
        values = hidden.value;
    }
    sums(&op.last, &operands.renamed(LAST), &values, &offs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::emit::{Activation, Bits};
    use crate::ops::mlp::RowNorm;
    use crate::ops::operands::of;
    use crate::ops::pointwise::{Pointwise, PointwiseOp};
    use crate::shape::Shape;

    fn layer([n, k, o]: [usize; 3], activation: Activation) -> PointwiseOp {
        let (rows, weights) = (Shape::nhwc(n, 1, 1, k), Shape::nhwc(o, 1, 1, k));
        PointwiseOp::new(rows, weights, &Pointwise { activation }, true, false, Precision::F32)
            .expect("a layer")
    }

    #[test]
    fn two_layers_worked_out_by_hand() {
        let first = layer([2, 2, 1], Activation::Relu);
        let op = MlpOp::new(None, Some(first), layer([2, 1, 2], Activation::None)).expect("they fit");
        let operands = of(&[
            (Operand::Src, &[1.0, 2.0, -1.0, 4.0]),
            (Operand::Window, &[3.0, -1.0]),
            (Operand::WindowBias, &[1.0]),
            (Operand::Weights, &[2.0, -1.0]),
            (Operand::Bias, &[0.5, 4.0]),
        ]);
        // Between: 3 - 2 + 1 = 2, and -3 - 4 + 1 < 0.
        assert_eq!(oracle(&op, &operands).value, [4.5, 2.0, 0.5, 4.0]);
    }

    #[test]
    fn a_normalised_row_worked_out_by_hand() {
        let norm = |centred| Some(RowNorm { epsilon: Bits(3.0), centred });
        let operands =
            of(&[(Operand::Src, &[4.0, 6.0]), (Operand::Weights, &[1.0, 3.0]), (Operand::Bias, &[0.5])]);
        let op = |centred| MlpOp::new(norm(centred), None, layer([1, 2, 1], Activation::None));
        // A mean of 5, a variance of 1, a root of 2; the mean of the squares is 26.
        assert_eq!(oracle(&op(true).expect("they fit"), &operands).value, [1.5]);
        let found = oracle(&op(false).expect("they fit"), &operands).value;
        assert!((found[0] - (22.0 / 29f64.sqrt() + 0.5)).abs() < 1e-12);
    }

    #[test]
    fn layers_that_do_not_fit_are_refused_with_what_is_wrong() {
        let none = Activation::None;
        for (found, words) in [
            (MlpOp::new(None, None, layer([1, 2, 1], none)), "which is a product"),
            (MlpOp::new(None, Some(layer([1, 2, 3], none)), layer([1, 2, 1], none)), "a second layer of"),
            (
                MlpOp::new(Some(RowNorm { epsilon: Bits(0.0), centred: true }), None, layer([1, 2, 1], none)),
                "an epsilon of 0",
            ),
        ] {
            let text = found.expect_err(words).to_string();
            assert!(text.contains(words), "{text}");
        }
    }
}
