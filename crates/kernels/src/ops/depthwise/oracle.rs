//! The depthwise convolution's sum, tap by tap in f64.

use super::DepthwiseOp;
use crate::ops::convolution::Inputs;
use crate::ops::operands::Operands;
use crate::ops::reference::Sum;

/// The depthwise convolution of `operands`, which were checked, in NHWC order: `x` is `n h w c`, `w` is
/// `1 kh kw c*M`.
pub(crate) fn oracle(op: &DepthwiseOp, operands: &Operands<'_>) -> Sum {
    let inputs = Inputs::of(operands);
    let (x, y) = (op.0.input, op.0.output);
    let multiplier = y.c / x.c;
    let [taps_h, taps_w] = op.0.kernel;
    // Sum and magnitude over the taps that lie inside.
    let gather = |n: usize, i: usize, j: usize, c: usize, m: usize| -> (f64, f64) {
        let mut sum = (0.0, 0.0);
        for tap in 0..taps_h * taps_w {
            let (a, b) = (tap / taps_w, tap % taps_w);
            let h = (i * op.0.stride[0] + a * op.0.dilation[0]).checked_sub(op.0.before[0]);
            let w = (j * op.0.stride[1] + b * op.0.dilation[1]).checked_sub(op.0.before[1]);
            if let (Some(h), Some(w)) = (h, w)
                && h < x.h
                && w < x.w
            {
                let value = f64::from(inputs.src[c + x.c * (w + x.w * (h + x.h * n))]);
                let weight = f64::from(inputs.weights[tap * y.c + c * multiplier + m]);
                sum.0 += value * weight;
                sum.1 += (value * weight).abs();
            }
        }
        sum
    };
    let mut reference = op.0.sum(operands);
    for n in 0..y.n {
        for i in 0..y.h {
            for j in 0..y.w {
                for c in 0..x.c {
                    for m in 0..multiplier {
                        let (sum, magnitude) = gather(n, i, j, c, m);
                        let o = c * multiplier + m;
                        let bias = inputs.bias.map_or(0.0, |bias| f64::from(bias[o]));
                        let slope = inputs.slope.map_or(0.0, |slope| f64::from(slope[o]));
                        let at = reference.value.len();
                        let residual = inputs.residual.map_or(0.0, |residual| f64::from(residual[at]));
                        reference.value.push(op.0.epilogue.reference(sum + bias, slope, residual));
                        reference.magnitude.push(magnitude + bias.abs());
                    }
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
    use crate::ops::depthwise::Depthwise;
    use crate::ops::operands::of;
    use crate::shape::{Padding, Shape};

    #[test]
    fn a_multiplier_worked_out_by_hand() {
        // Two channels, two outputs each; a row of two pixels, three taps, SAME: one zero each side.
        let options =
            Depthwise { padding: Padding::Same, activation: Activation::PRelu, ..Default::default() };
        let op = DepthwiseOp::new(
            Shape::nhwc(1, 1, 2, 2),
            Shape::nhwc(1, 1, 3, 4),
            &options,
            false,
            false,
            Precision::F32,
        )
        .expect("a valid convolution");
        let weights = [1.0, 2.0, 3.0, -4.0, 10.0, 20.0, 30.0, -40.0, 100.0, 200.0, 300.0, -400.0];
        let operands = of(&[
            (Operand::Src, &[1.0, 5.0, 2.0, 7.0]),
            (Operand::Weights, &weights),
            (Operand::Slope, &[0.5; 4]),
        ]);
        let reference = oracle(&op, &operands);
        let expected = [210.0, 420.0, 2250.0, -1500.0, 21.0, 42.0, 225.0, -150.0];
        assert_eq!(reference.value, expected);
        assert_eq!(reference.magnitude, [210.0, 420.0, 2250.0, 3000.0, 21.0, 42.0, 225.0, 300.0]);
    }
}
