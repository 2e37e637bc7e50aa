//! The two oracles one after the other, in f64 throughout.

use super::SeparableOp;
use crate::ops::convolution::Inputs;
use crate::ops::depthwise::{self, DepthwiseOp};
use crate::ops::operands::{Operands, Renamed};
use crate::ops::reference::Sum;

/// The block of `operands`, which were checked, in f64 and in NHWC order.
///
/// What lies between the two convolutions is off by as much as the depthwise one may be, stored or
/// not; the reference carries that on as the sum of these errors times the weights' magnitudes.
pub(super) fn oracle(op: &SeparableOp, operands: &Operands<'_>) -> Sum {
    let between = depthwise::oracle(&DepthwiseOp(op.depthwise), &operands.renamed(super::FIRST));
    let Inputs { weights, bias, slope, residual, .. } = Inputs::of(operands);
    let off = |place| between.tolerance(place, op.pointwise.precision);
    let offs: Vec<f64> = (0..between.value.len()).map(off).collect();
    let (channels, outputs) = (op.pointwise.input.c, op.pointwise.output.c);
    let mut reference = op.pointwise.sum(operands);
    for (pixel, (x, offs)) in between.value.chunks(channels).zip(offs.chunks(channels)).enumerate() {
        for o in 0..outputs {
            let w = &weights[o * channels..][..channels];
            let weighted = |x: &[f64]| x.iter().zip(w).map(|(&x, &w)| x * f64::from(w)).collect::<Vec<_>>();
            let magnitude = |terms: Vec<f64>| terms.into_iter().map(f64::abs).sum::<f64>();
            let bias = bias.map_or(0.0, |bias| f64::from(bias[o]));
            let slope = slope.map_or(0.0, |slope| f64::from(slope[o]));
            let residual = residual.map_or(0.0, |residual| f64::from(residual[pixel * outputs + o]));
            let sum = weighted(x).into_iter().sum::<f64>() + bias;
            reference.value.push(op.pointwise.epilogue.reference(sum, slope, residual));
            reference.magnitude.push(magnitude(weighted(x)) + bias.abs());
            reference.carried.push(magnitude(weighted(offs)));
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
    use crate::ops::pointwise::{Pointwise, PointwiseOp};
    use crate::shape::{Padding, Shape};

    /// A row of three pixels of two channels, three taps, SAME, to one channel.
    fn op(precision: Precision) -> SeparableOp {
        let window = Depthwise { padding: Padding::Same, activation: Activation::Relu, ..Default::default() };
        let map = Shape::nhwc(1, 1, 3, 2);
        let first = DepthwiseOp::new(map, Shape::nhwc(1, 1, 3, 2), &window, true, false, precision);
        let options = Pointwise { activation: Activation::Relu6 };
        let second = PointwiseOp::new(map, Shape::nhwc(1, 1, 1, 2), &options, true, true, precision);
        SeparableOp::new(first.expect("a depthwise"), second.expect("a 1x1")).expect("a pair")
    }

    fn inputs() -> Operands<'static> {
        of(&[
            (Operand::Src, &[1.0, 2.0, 3.0, 4.0, -5.0, 6.0]),
            (Operand::Window, &[1.0, -1.0, 2.0, 0.0, 0.0, 1.0]),
            (Operand::WindowBias, &[1.0, -2.0]),
            (Operand::Weights, &[0.5, -3.0]),
            (Operand::Bias, &[2.0]),
            (Operand::Residual, &[0.0, 10.0, 20.0]),
        ])
    }

    #[test]
    fn three_pixels_worked_out_by_hand() {
        let reference = oracle(&op(Precision::F32), &inputs());
        // Between: channel 0 is 1 + [2, 1 + 6, 3 - 10], channel 1 is -2 + [4, -2 + 6, -4]; then max 0.
        assert_eq!(reference.value, [0.0, 10.0, 22.0]);
        assert_eq!(reference.magnitude, [1.5 + 6.0 + 2.0, 4.0 + 6.0 + 2.0, 2.0]);
        assert_eq!(reference.terms, 3);
    }

    #[test]
    fn errors_of_what_lies_between_are_carried_on() {
        let [fine, coarse] = [Precision::F32, Precision::F16Storage].map(|precision| {
            let reference = oracle(&op(precision), &inputs());
            (reference.carried[0], reference.tolerance(0, precision))
        });
        // The first pixel's channels are 3 of magnitude 3 and 2 of magnitude 6, in f32 about 6 units
        // each; weighted by 0.5 and 3.
        let unit = f64::from(f32::EPSILON);
        assert!((10.0 * unit..200.0 * unit).contains(&fine.0), "{}", fine.0);
        assert!(fine.1 > fine.0, "{fine:?}");
        assert!(coarse.0 > 1000.0 * fine.0, "{coarse:?} {fine:?}");
    }

    #[test]
    fn pairs_that_do_not_fit_are_refused_with_what_is_wrong() {
        let f32 = Precision::F32;
        let map = |c| Shape::nhwc(1, 4, 4, c);
        let first = |multiplier: usize, activation, residual| {
            let options = Depthwise { padding: Padding::Same, activation, ..Default::default() };
            DepthwiseOp::new(map(2), Shape::nhwc(1, 3, 3, 2 * multiplier), &options, true, residual, f32)
                .expect("a depthwise")
        };
        let second = |c| {
            PointwiseOp::new(map(c), Shape::nhwc(5, 1, 1, c), &Pointwise::default(), true, false, f32)
                .expect("a 1x1")
        };
        let none = Activation::None;
        for (first, second, words) in [
            (first(1, none, false), second(3), "1x4x4x3"),
            (first(2, none, false), second(4), "a channel multiplier of 2"),
            (first(1, none, true), second(2), "a residual between the two"),
            (first(1, Activation::PRelu, false), second(2), "slopes per channel between the two"),
        ] {
            let text = SeparableOp::new(first, second).expect_err(words).to_string();
            assert!(text.contains(words), "{text}");
        }
        assert!(SeparableOp::new(first(1, none, false), second(2)).is_ok());
    }
}
