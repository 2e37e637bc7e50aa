//! The sums, term by term in f64: each output element gathers the taps that reach it.

use super::{TransposedConv2d, TransposedConv2dOp};
use crate::emit::Operand;
use crate::ops::convolution::Inputs;
use crate::ops::operands::{OperandInfo, Operands, Role};
use crate::ops::reference::Sum;
use crate::ops::windowed::ConvolutionOptions;

/// The transposed convolution of `operands`, which were checked, in NHWC order.
pub(super) fn oracle(op: &TransposedConv2dOp, operands: &Operands<'_>) -> Sum {
    let (x, y, [kh, kw]) = (op.0.input, op.0.output, op.0.kernel);
    let Inputs { src, weights, bias, slope, residual } = Inputs::of(operands);
    let destination = OperandInfo::new(Operand::Dst, y, Role::Output);
    let mut sum = Sum::begin(TransposedConv2d::terms(&op.0), &op.0.epilogue, operands, &destination);
    let at = |values: Option<&[f32]>, index: usize| {
        values.and_then(|values| values.get(index)).map_or(0.0, |&value| f64::from(value))
    };
    for element in 0..y.elements() {
        let (pixel, o) = (element / y.c, element % y.c);
        let (n, i, j) = (pixel / (y.h * y.w), pixel / y.w % y.h, pixel % y.w);
        let (mut value, mut magnitude) = (at(bias, o), at(bias, o).abs());
        for (a, b) in (0..kh).flat_map(|a| (0..kw).map(move |b| (a, b))) {
            let (Some(h), Some(w)) = (op.source(0, i, a), op.source(1, j, b)) else { continue };
            for k in 0..x.c {
                let term = at(Some(src), ((n * x.h + h) * x.w + w) * x.c + k)
                    * at(Some(weights), ((o * kh + a) * kw + b) * x.c + k);
                value += term;
                magnitude += term.abs();
            }
        }
        sum.value.push(op.0.epilogue.reference(value, at(slope, o), at(residual, element)));
        sum.magnitude.push(magnitude);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::ops::operands::of;
    use crate::shape::{Padding, Shape};

    /// Of the row `1 2 4`, with windows of `1 10 100` two apart.
    fn row(padding: Padding, output: Option<[usize; 2]>) -> Vec<f64> {
        let options = TransposedConv2d { stride: [1, 2], padding, output, ..Default::default() };
        let (input, weights) = (Shape::nhwc(1, 1, 3, 1), Shape::nhwc(1, 1, 3, 1));
        let op = TransposedConv2dOp::new(input, weights, &options, false, false, Precision::F32);
        let operands = of(&[(Operand::Src, &[1.0, 2.0, 4.0]), (Operand::Weights, &[1.0, 10.0, 100.0])]);
        oracle(&op.expect("windows"), &operands).value
    }

    #[test]
    fn windows_add_up_where_they_overlap() {
        let all = [1.0, 10.0, 102.0, 20.0, 204.0, 40.0, 400.0];
        assert_eq!(row(Padding::Valid, None), all);
        // One element too many for SAME: half of it, cut off, lies before the first.
        assert_eq!(row(Padding::Same, None), all[..6]);
        assert_eq!(row(Padding::Same, Some([1, 5])), all[1..6]);
        assert_eq!(row(Padding::Explicit { top: 0, bottom: 0, left: 2, right: 1 }, None), all[2..6]);
        let longer = row(Padding::Valid, Some([1, 8]));
        assert_eq!((&longer[..7], longer[7]), (&all[..], 0.0));
    }

    #[test]
    fn a_stride_longer_than_the_window_leaves_gaps() {
        let options = TransposedConv2d { stride: [1, 3], padding: Padding::Same, ..Default::default() };
        let (input, weights) = (Shape::nhwc(1, 1, 2, 2), Shape::nhwc(2, 1, 1, 2));
        let op = TransposedConv2dOp::new(input, weights, &options, true, false, Precision::F32);
        let operands = of(&[
            (Operand::Src, &[1.0, 2.0, 3.0, 4.0]),
            (Operand::Weights, &[1.0, 0.0, 1.0, 10.0]),
            (Operand::Bias, &[0.5, -0.5]),
        ]);
        let found = oracle(&op.expect("windows"), &operands);
        assert_eq!(found.value, [1.5, 20.5, 0.5, -0.5, 0.5, -0.5, 3.5, 42.5, 0.5, -0.5, 0.5, -0.5]);
        assert_eq!(found.terms, 3);
    }

    #[test]
    fn what_leaves_no_output_is_refused() {
        let of = |options: TransposedConv2d, channels| {
            let (input, weights) = (Shape::nhwc(1, 2, 2, 3), Shape::nhwc(4, 3, 3, channels));
            TransposedConv2dOp::new(input, weights, &options, true, false, Precision::F32)
        };
        let plain = TransposedConv2d::default();
        let padding = Padding::Explicit { top: 4, bottom: 0, left: 0, right: 0 };
        assert!(of(TransposedConv2d { padding, ..plain }, 3).is_err());
        let padding = Padding::Explicit { top: usize::MAX, bottom: 2, left: 0, right: 0 };
        assert!(of(TransposedConv2d { padding, ..plain }, 3).is_err());
        assert!(of(TransposedConv2d { stride: [0, 1], ..plain }, 3).is_err());
        assert!(of(TransposedConv2d { output: Some([0, 4]), ..plain }, 3).is_err());
        assert!(of(plain, 5).expect_err("channels").to_string().contains("3 input channels"));
        assert!(of(plain, 3).is_ok());
    }
}
