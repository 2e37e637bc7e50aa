//! How large results can be: whether halves, which end at 65504, hold what an op computes.

use super::convolution::Convolution;
use super::operands::{self, Operands};
use crate::emit::{Activation, Epilogue, Operand};

/// The largest half.
pub(crate) const LARGEST_HALF: f64 = 65504.0;

/// The largest magnitudes that an op's inputs can have.
pub type Magnitudes<'a> = dyn Fn(Operand) -> f64 + 'a;

/// The largest magnitude among `values`.
fn largest<'v>(values: impl IntoIterator<Item = &'v f32>) -> f64 {
    values.into_iter().fold(0.0, |most, value| f64::from(value.abs()).max(most))
}

/// The largest magnitude of sums of magnitude `sum` that `epilogue` finishes.
pub(super) fn finished(
    epilogue: &Epilogue,
    sum: f64,
    inputs: &Magnitudes<'_>,
    constants: &Operands<'_>,
) -> f64 {
    let of = |operand: Operand| operands::get(constants, operand).map(largest);
    let biased = sum + of(Operand::Bias).unwrap_or(0.0);
    let added = if epilogue.residual.is_some() { inputs(Operand::Residual) } else { 0.0 };
    // Not less than either order of activation and residual gives.
    match epilogue.activation {
        Activation::Relu6 => 6.0 + added,
        Activation::Sigmoid | Activation::HardSigmoid | Activation::Tanh => 1.0 + added,
        Activation::LeakyRelu(slope) => (biased + added) * f64::from(slope.0.abs()).max(1.0),
        Activation::PRelu => (biased + added) * of(Operand::Slope).unwrap_or(f64::INFINITY).max(1.0),
        Activation::None
        | Activation::Relu
        | Activation::HardSwish
        | Activation::Silu
        | Activation::Gelu
        | Activation::GeluTanh => biased + added,
    }
}

/// The largest magnitude of a convolution's results; the weights of each output channel follow each other, or
/// (`across`) those of all channels at each tap.
pub(super) fn convolved(
    problem: &Convolution,
    across: bool,
    inputs: &Magnitudes<'_>,
    constants: &Operands<'_>,
) -> f64 {
    let Some(weights) = operands::get(constants, Operand::Weights) else { return f64::INFINITY };
    let (channels, terms) = (problem.output.c.max(1), problem.terms().max(1));
    let magnitude = |weight: &f32| f64::from(weight.abs());
    let most = if across {
        let of = |channel: usize| weights.iter().skip(channel).step_by(channels).map(magnitude).sum::<f64>();
        (0..channels).map(of).fold(0.0, f64::max)
    } else {
        weights.chunks(terms).map(|row| row.iter().map(magnitude).sum::<f64>()).fold(0.0, f64::max)
    };
    finished(&problem.epilogue, inputs(Operand::Src) * most, inputs, constants)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::ops::op::Op;
    use crate::ops::pointwise::{Pointwise, PointwiseOp};
    use crate::shape::Shape;

    #[test]
    fn sums_reach_as_far_as_the_largest_row_of_weights() {
        let of = |activation| {
            let (input, weights) = (Shape::nhwc(1, 1, 1, 2), Shape::nhwc(2, 1, 1, 2));
            let options = Pointwise { activation };
            PointwiseOp::new(input, weights, &options, true, false, Precision::F32).expect("an op")
        };
        let mut constants = Operands::new();
        constants.insert(Operand::Weights, vec![1.0, -2.0, 0.5, 0.25].into());
        constants.insert(Operand::Bias, vec![-4.0, 3.0].into());
        let reach = |activation| Op::reach(&of(activation), &|_| 10.0, &constants);
        assert_eq!(reach(Activation::None), 34.0);
        assert_eq!(reach(Activation::Relu6), 6.0);
        assert_eq!(Op::reach(&of(Activation::None), &|_| f64::INFINITY, &constants), f64::INFINITY);
    }
}
