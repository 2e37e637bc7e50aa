//! The convolution's sum, term by term in f64.

use super::Conv2dOp;
use crate::ops::convolution::Inputs;
use crate::ops::operands::Operands;
use crate::ops::reference::Sum;

/// The convolution of `operands`, which were checked, in NHWC order: `x` is `n h w c`, `w` is
/// `oc kh kw c/groups`.
pub(super) fn oracle(op: &Conv2dOp, operands: &Operands<'_>) -> Sum {
    let (conv, inputs) = (&op.0, Inputs::of(operands));
    let (x, y) = (conv.input, conv.output);
    let (kernel_h, kernel_w) = (conv.kernel[0], conv.kernel[1]);
    let group_in = x.c / conv.groups;
    let group_out = y.c / conv.groups;

    let mut reference = conv.sum(operands);
    for n in 0..y.n {
        for i in 0..y.h {
            for j in 0..y.w {
                for o in 0..y.c {
                    let group = o / group_out;
                    let mut sum = 0.0;
                    let mut magnitude = 0.0;
                    for a in 0..kernel_h {
                        let Some(row) = conv.source(0, i, a) else { continue };
                        for b in 0..kernel_w {
                            let Some(column) = conv.source(1, j, b) else { continue };
                            let pixel = (n * x.h + row) * x.w + column;
                            for k in 0..group_in {
                                let value = inputs.src[pixel * x.c + group * group_in + k];
                                let weight =
                                    inputs.weights[((o * kernel_h + a) * kernel_w + b) * group_in + k];
                                let product = f64::from(value) * f64::from(weight);
                                sum += product;
                                magnitude += product.abs();
                            }
                        }
                    }
                    let bias = inputs.bias.map_or(0.0, |bias| f64::from(bias[o]));
                    let slope = inputs.slope.map_or(0.0, |slope| f64::from(slope[o]));
                    let at = reference.value.len();
                    let residual = inputs.residual.map_or(0.0, |residual| f64::from(residual[at]));
                    reference.value.push(conv.epilogue.reference(sum + bias, slope, residual));
                    reference.magnitude.push(magnitude + bias.abs());
                }
            }
        }
    }
    reference
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::emit::{Activation, Operand};
    use crate::ops::conv2d::Conv2d;
    use crate::ops::operands::of;
    use crate::shape::{Border, Padding, Shape};

    #[test]
    fn a_window_worked_out_by_hand() {
        // x = [1 2 3; 4 5 6; 7 8 9], w = [1 10; 100 1000], one zero on the left and above.
        let options = Conv2d {
            stride: [2, 2],
            padding: Padding::Explicit { top: 1, bottom: 0, left: 1, right: 0 },
            activation: Activation::Relu,
            ..Default::default()
        };
        let op = Conv2dOp::new(
            Shape::nhwc(1, 3, 3, 1),
            Shape::nhwc(1, 2, 2, 1),
            &options,
            true,
            true,
            Precision::F32,
        )
        .expect("a valid convolution");
        let src: Vec<f32> = (1..=9).map(|value| value as f32).collect();
        let operands = of(&[
            (Operand::Src, &src),
            (Operand::Weights, &[1.0, 10.0, 100.0, 1000.0]),
            (Operand::Bias, &[-2000.0]),
            (Operand::Residual, &[0.5, 0.25, 0.0, 0.0]),
        ]);
        let reference = oracle(&op, &operands);
        // 1000 and 3200 biased; 4*10 + 7*1000 and 5 + 60 + 800 + 9000 biased.
        assert_eq!(reference.value, [0.5, 1200.25, 5040.0, 7865.0]);
        assert_eq!(reference.magnitude, [3000.0, 5200.0, 9040.0, 11865.0]);
        assert_eq!(reference.terms, 5);
    }

    #[test]
    fn mirror_images_worked_out_by_hand() {
        // x = [1 2 3], w = [1 10 100]: with the image on both sides of each, 2 1 2 3 2, 1 1 2 3 3.
        let op = |border, channels, padding| {
            let options = Conv2d { padding, border, ..Default::default() };
            let (input, weights) = (Shape::nhwc(1, 1, channels, 1), Shape::nhwc(1, 1, 3, 1));
            Conv2dOp::new(input, weights, &options, false, false, Precision::F32)
        };
        let operands = of(&[(Operand::Src, &[1.0, 2.0, 3.0]), (Operand::Weights, &[1.0, 10.0, 100.0])]);
        let results =
            |border| oracle(&op(border, 3, Padding::Same).expect("a valid convolution"), &operands).value;
        assert_eq!(results(Border::Reflect), [212.0, 321.0, 232.0]);
        assert_eq!(results(Border::Symmetric), [211.0, 321.0, 332.0]);
        assert_eq!(results(Border::Edge), [211.0, 321.0, 332.0]);
        // No image is larger than the map, or without the edge as large.
        let wide = Padding::Explicit { top: 0, bottom: 0, left: 0, right: 3 };
        let error = op(Border::Reflect, 3, wide).expect_err("too large").to_string();
        assert!(error.contains("0 elements before and 3 after 3 along width"), "{error}");
        assert!(op(Border::Symmetric, 3, wide).is_ok());
        assert!(op(Border::Reflect, 1, Padding::Same).is_err());
    }

    #[test]
    fn groups_do_not_mix() {
        let options = Conv2d { groups: 2, ..Default::default() };
        let op = Conv2dOp::new(
            Shape::nhwc(1, 1, 1, 4),
            Shape::nhwc(4, 1, 1, 2),
            &options,
            false,
            false,
            Precision::F32,
        )
        .expect("a valid convolution");
        let operands = of(&[
            (Operand::Src, &[1.0, 2.0, 3.0, 4.0]),
            (Operand::Weights, &[1.0, 0.0, 0.0, 1.0, 10.0, 0.0, 0.0, -10.0]),
        ]);
        assert_eq!(oracle(&op, &operands).value, [1.0, 2.0, 30.0, -40.0]);
    }
}
