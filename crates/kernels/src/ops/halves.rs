//! Where results can lie: whether halves, which end at 65504, hold what an op computes.

use super::convolution::Convolution;
use super::operands::{self, Operands};
use crate::emit::{Activation, Epilogue, Operand, Residual};

/// The largest half.
pub const LARGEST_HALF: f64 = 65504.0;

/// The smallest normal half: devices may store a smaller number as 0.
const SMALLEST_HALF: f64 = 1.0 / 16384.0;

/// By how much more, in proportion, a result may be that is computed of halves: what is read, two layers of weights and
/// the result are rounded by 2^-11 each.
const ROUNDED: f64 = 1.0 / 512.0;

/// Where numbers lie: from `lo` to `hi`, which are infinite where nothing bounds them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reach {
    /// No number is smaller.
    pub lo: f64,
    /// No number is larger.
    pub hi: f64,
}

/// Where an op's inputs lie.
pub type Reaches<'a> = dyn Fn(Operand) -> Reach + 'a;

impl Reach {
    /// Where anything lies.
    pub const ALL: Reach = Reach { lo: f64::NEG_INFINITY, hi: f64::INFINITY };

    /// Anywhere, if an end is NaN.
    pub fn new(lo: f64, hi: f64) -> Self {
        if lo.is_nan() || hi.is_nan() { Reach::ALL } else { Reach { lo, hi } }
    }

    /// What is at most so large.
    pub fn around(magnitude: f64) -> Self {
        Reach::new(-magnitude, magnitude)
    }

    /// Where `values` lie; anywhere, if one is NaN.
    pub fn of(values: &[f32]) -> Self {
        if values.iter().any(|value| value.is_nan()) {
            return Reach::ALL;
        }
        let ends = values.iter().fold(None, |ends: Option<Reach>, &value| {
            let value = Reach { lo: value.into(), hi: value.into() };
            Some(ends.map_or(value, |ends| ends.hull(value)))
        });
        ends.unwrap_or(Reach { lo: 0.0, hi: 0.0 })
    }

    /// The smallest one around both.
    pub fn hull(self, other: Self) -> Self {
        Reach { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// Where sums lie.
    pub(super) fn plus(self, other: Self) -> Self {
        Reach::new(self.lo + other.lo, self.hi + other.hi)
    }

    /// The largest magnitude.
    pub fn magnitude(self) -> f64 {
        self.lo.abs().max(self.hi.abs())
    }

    /// Whether `value` is between the ends.
    pub fn contains(self, value: f64) -> bool {
        self.lo <= value && value <= self.hi
    }

    /// Whether halves hold all of it.
    pub fn fits_halves(self) -> bool {
        self.magnitude() <= LARGEST_HALF
    }

    /// Where numbers lie that were computed of halves and stored as halves, of results that lie here.
    pub fn in_halves(self) -> Self {
        let down = |lo: f64| lo - ROUNDED * lo.abs();
        let up = |hi: f64| hi + ROUNDED * hi.abs();
        let (lo, hi) = (down(self.lo), up(self.hi));
        // What is close to zero may become zero.
        Reach {
            lo: if (0.0..SMALLEST_HALF).contains(&lo) { 0.0 } else { lo },
            hi: if (0.0..SMALLEST_HALF).contains(&-hi) { 0.0 } else { hi },
        }
    }

    /// What `activation` makes of it; `slopes` are those of a PReLU.
    fn activated(self, activation: Activation, slopes: Option<Reach>) -> Self {
        let times = |slope: f64| Reach::around(self.magnitude() * slope.max(1.0));
        // At most as large as what it is of, and for negative numbers at least -0.375.
        let gated = || Reach { lo: self.lo.clamp(-0.375, 0.0), hi: self.hi.max(0.0) };
        match activation {
            Activation::None => self,
            Activation::Relu => Reach { lo: self.lo.max(0.0), hi: self.hi.max(0.0) },
            Activation::Relu6 => Reach { lo: self.lo.clamp(0.0, 6.0), hi: self.hi.clamp(0.0, 6.0) },
            Activation::Sigmoid | Activation::HardSigmoid => Reach { lo: 0.0, hi: 1.0 },
            Activation::Tanh => Reach::around(1.0),
            Activation::LeakyRelu(slope) => times(slope.0.abs().into()),
            Activation::PRelu => times(slopes.map_or(f64::INFINITY, Reach::magnitude)),
            Activation::HardSwish | Activation::Silu | Activation::Gelu | Activation::GeluTanh => gated(),
        }
    }
}

/// Where sums that lie in `sum` lie once `epilogue` has finished them.
pub(super) fn finished(
    epilogue: &Epilogue,
    sum: Reach,
    inputs: &Reaches<'_>,
    constants: &Operands<'_>,
) -> Reach {
    let of = |operand: Operand| operands::get(constants, operand).map(Reach::of);
    let biased = of(Operand::Bias).map_or(sum, |bias| sum.plus(bias));
    let activated = |sum: Reach| sum.activated(epilogue.activation, of(Operand::Slope));
    match epilogue.residual {
        Residual::None => activated(biased),
        Residual::AfterActivation => activated(biased).plus(inputs(Operand::Residual)),
        Residual::BeforeActivation => activated(biased.plus(inputs(Operand::Residual))),
    }
}

/// Where a convolution's results lie; the weights of each output channel follow each other, or (`across`) those of all
/// channels at each tap.
pub(super) fn convolved(
    problem: &Convolution,
    across: bool,
    inputs: &Reaches<'_>,
    constants: &Operands<'_>,
) -> Reach {
    let Some(weights) = operands::get(constants, Operand::Weights) else { return Reach::ALL };
    let (channels, terms) = (problem.output.c.max(1), problem.terms().max(1));
    let magnitude = |weight: &f32| f64::from(weight.abs());
    // A NaN counts.
    let larger = |most: f64, sum: f64| if sum.is_nan() || sum > most { sum } else { most };
    let most = if across {
        let of = |channel: usize| weights.iter().skip(channel).step_by(channels).map(magnitude).sum::<f64>();
        (0..channels).map(of).fold(0.0, larger)
    } else {
        weights.chunks(terms).map(|row| row.iter().map(magnitude).sum::<f64>()).fold(0.0, larger)
    };
    finished(&problem.epilogue, Reach::around(inputs(Operand::Src).magnitude() * most), inputs, constants)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::ops::op::Op;
    use crate::ops::pointwise::{Pointwise, PointwiseOp};
    use crate::shape::Shape;

    #[test]
    fn halves_round_away_from_zero_and_to_it() {
        let halves = |lo, hi| Reach { lo, hi }.in_halves();
        assert_eq!(halves(0.0, 1.0), Reach { lo: 0.0, hi: 1.0 + ROUNDED });
        assert_eq!(halves(1e-12, 2.0).lo, 0.0);
        assert_eq!(halves(-2.0, -1e-12).hi, 0.0);
        assert!(halves(1e-3, 2.0).lo > 9e-4);
        assert_eq!(halves(f64::NEG_INFINITY, f64::INFINITY), Reach::ALL);
        assert!(Reach::around(65000.0).in_halves().fits_halves());
        assert!(!Reach::around(65500.0).in_halves().fits_halves());
    }

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
        let reach = |activation| Op::reach(&of(activation), &|_| Reach::around(10.0), &constants);
        assert_eq!(reach(Activation::None), Reach { lo: -34.0, hi: 33.0 });
        assert_eq!(reach(Activation::Relu6), Reach { lo: 0.0, hi: 6.0 });
        assert_eq!(Op::reach(&of(Activation::None), &|_| Reach::ALL, &constants), Reach::ALL);
        // A NaN that a comparison would leave out, and 0 times what nothing bounds.
        for weights in [vec![0.0; 4], vec![1.0, f32::NAN, 1.0, 1.0]] {
            constants.insert(Operand::Weights, weights.into());
            assert_eq!(Op::reach(&of(Activation::None), &|_| Reach::ALL, &constants), Reach::ALL);
        }
    }
}
