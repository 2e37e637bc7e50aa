//! The 1x1 convolution's dot products in f64.

use super::PointwiseOp;
use crate::emit::Operand;
use crate::ops::convolution::{Convolution, Inputs};
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Sum;

/// The 1x1 convolution of `operands`, which were checked, in NHWC order: `x` is `n h w c`, `w` is
/// `oc 1 1 c`.
pub(in crate::ops) fn oracle(op: &PointwiseOp, operands: &Operands<'_>) -> Sum {
    let inputs = Inputs::of(operands);
    let (channels, outputs) = (op.0.input.c, op.0.output.c);
    let pixels = op.0.output.n * op.0.output.h * op.0.output.w;
    let mut reference = op.0.sum(operands);
    for pixel in 0..pixels {
        let x = &inputs.src[pixel * channels..][..channels];
        for o in 0..outputs {
            let w = &inputs.weights[o * channels..][..channels];
            let products = x.iter().zip(w).map(|(&x, &w)| f64::from(x) * f64::from(w));
            let bias = inputs.bias.map_or(0.0, |bias| f64::from(bias[o]));
            let slope = inputs.slope.map_or(0.0, |slope| f64::from(slope[o]));
            let residual = inputs.residual.map_or(0.0, |residual| f64::from(residual[pixel * outputs + o]));
            let sum = products.clone().sum::<f64>() + bias;
            reference.value.push(op.0.epilogue.reference(sum, slope, residual));
            reference.magnitude.push(products.map(f64::abs).sum::<f64>() + bias.abs());
        }
    }
    reference
}

/// The 1x1 convolution of `values` that are computed, each off by at most what `offs` has: pixels of `op`'s input.
pub(in crate::ops) fn sums(op: &Convolution, operands: &Operands<'_>, values: &[f64], offs: &[f64]) -> Sum {
    let weights = get(operands, Operand::Weights).unwrap_or_default();
    let bias = get(operands, Operand::Bias);
    let inputs = op.input.c;
    let mut sums = op.sum(operands);
    for (values, offs) in values.chunks(inputs).zip(offs.chunks(inputs)) {
        for (o, row) in weights.chunks(inputs).enumerate() {
            let terms = values.iter().zip(row).map(|(&value, &w)| value * f64::from(w));
            let carried = offs.iter().zip(row).map(|(&off, &w)| off * f64::from(w).abs());
            let bias = bias.and_then(|bias| bias.get(o)).map_or(0.0, |&bias| f64::from(bias));
            let sum = terms.clone().sum::<f64>() + bias;
            sums.value.push(op.epilogue.reference(sum, 0.0, 0.0));
            sums.magnitude.push(terms.map(f64::abs).sum::<f64>() + bias.abs());
            sums.carried.push(carried.sum());
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::emit::Activation;
    use crate::ops::operands::of;
    use crate::ops::pointwise::Pointwise;
    use crate::shape::Shape;

    #[test]
    fn two_pixels_worked_out_by_hand() {
        let op = PointwiseOp::new(
            Shape::nhwc(1, 1, 2, 3),
            Shape::nhwc(2, 1, 1, 3),
            &Pointwise { activation: Activation::Relu6 },
            true,
            true,
            Precision::F32,
        )
        .expect("a valid convolution");
        let operands = of(&[
            (Operand::Src, &[1.0, 2.0, 3.0, -1.0, 0.0, 1.0]),
            (Operand::Weights, &[1.0, 1.0, 1.0, 1.0, -1.0, 1.0]),
            (Operand::Bias, &[1.0, -0.5]),
            (Operand::Residual, &[0.0, 10.0, 20.0, 30.0]),
        ]);
        let reference = oracle(&op, &operands);
        assert_eq!(reference.value, [6.0, 11.5, 21.0, 30.0]);
        assert_eq!(reference.magnitude, [7.0, 6.5, 3.0, 2.5]);
        assert_eq!(reference.terms, 4);
    }
}
