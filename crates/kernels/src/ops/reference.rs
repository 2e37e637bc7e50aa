//! What an oracle gives: the right result, and how far from it a correct kernel may be.

use super::operands::{self, OperandInfo, Operands};
use crate::dtype::{DType, Precision};
use crate::emit::{Activation, Epilogue, Operand, Residual};

/// A result in f64, in the order of the destination's elements without gaps between rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Reference {
    /// A sum of terms and what the epilogue makes of it: the bound is derived (`ops/tolerance.rs`).
    Sum(Sum),
    /// Anything else, with the op's own bound.
    Bounded {
        /// The result.
        value: Vec<f64>,
        /// The largest distance from each value that a correct kernel's result may have.
        bound: Vec<f64>,
    },
}

/// The smallest normal half.
const SMALLEST_HALF: f64 = 1.0 / (1 << 14) as f64;

impl Reference {
    /// Elements as they are, in an op of `precision` that computes nothing: exact in f32, and rounded once
    /// where halves are stored, of which the largest stands for all beyond.
    pub(super) fn moved(value: Vec<f64>, precision: Precision) -> Self {
        let rounding = |value: &f64| match precision.storage() {
            DType::F16 => {
                let rounded = DType::F16.unit_roundoff() * value.abs().max(SMALLEST_HALF);
                rounded.max(value.abs() - f64::from(half::f16::MAX))
            }
            _ => 0.0,
        };
        Reference::Bounded { bound: value.iter().map(rounding).collect(), value }
    }

    /// A result that every correct kernel gives to the bit.
    pub(super) fn exact(value: impl Iterator<Item = f64>) -> Self {
        let value: Vec<f64> = value.collect();
        Reference::Bounded { bound: vec![0.0; value.len()], value }
    }

    /// The result.
    pub fn value(&self) -> &[f64] {
        match self {
            Reference::Sum(sum) => &sum.value,
            Reference::Bounded { value, .. } => value,
        }
    }

    /// The result of `rows` alone, each of `columns` elements.
    #[must_use]
    pub fn rows(&self, rows: &[usize], columns: usize) -> Self {
        fn pick<T: Copy>(values: &[T], rows: &[usize], columns: usize) -> Vec<T> {
            let row = |row: &usize| values.get(row * columns..(row + 1) * columns);
            rows.iter().filter_map(row).flatten().copied().collect()
        }
        match self {
            Reference::Sum(sum) => Reference::Sum(Sum {
                value: pick(&sum.value, rows, columns),
                magnitude: pick(&sum.magnitude, rows, columns),
                carried: pick(&sum.carried, rows, columns),
                residual: pick(&sum.residual, rows, columns),
                ..*sum
            }),
            Reference::Bounded { value, bound } => {
                Reference::Bounded { value: pick(value, rows, columns), bound: pick(bound, rows, columns) }
            }
        }
    }

    /// The largest distance from element `index` that the result of a correct kernel in `precision`
    /// may have; infinite where rounding may destroy a sum. A bound of the op's own is for the op's
    /// precision.
    pub fn tolerance(&self, index: usize, precision: Precision) -> f64 {
        match self {
            Reference::Sum(sum) => sum.tolerance(index, precision),
            Reference::Bounded { bound, .. } => bound.get(index).copied().unwrap_or_default(),
        }
    }

    /// A finite [`Reference::tolerance`]: where rounding may destroy a sum in the worst case, the
    /// usual error is taken.
    ///
    /// Beyond a thousand f16 terms no order of summation is safe in the worst case; the usual error
    /// grows with the root of the terms (Higham and Mary, *A New Approach to Probabilistic Rounding
    /// Error Analysis*, 2019, with lambda 6).
    pub fn usual_tolerance(&self, index: usize, precision: Precision) -> f64 {
        let tolerance = self.tolerance(index, precision);
        let Reference::Sum(sum) = self else { return tolerance };
        if tolerance.is_finite() {
            return tolerance;
        }
        let at = |values: &[f64]| values.get(index).copied().unwrap_or_default();
        let unit = 2.0 * precision.accumulator().unit_roundoff();
        let usual = 6.0 * (sum.terms as f64).sqrt() * unit * at(&sum.magnitude) + at(&sum.carried);
        sum.activation.lipschitz(sum.slope) * usual + self.tolerance(index, Precision::F16Storage)
    }
}

/// `f(sum of terms) + residual` for each element of a destination.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sum {
    /// The result.
    pub value: Vec<f64>,
    /// For each result a bound on the size of what was summed: the sum of the absolute values of
    /// all terms, bias included, before the activation.
    pub magnitude: Vec<f64>,
    /// For each result a bound on the error that its terms bring along, where they were computed
    /// themselves; empty where they were given.
    pub carried: Vec<f64>,
    /// The number of terms summed.
    pub terms: usize,
    /// What the sum goes through.
    pub activation: Activation,
    /// The largest PReLU slope in magnitude.
    pub slope: f64,
    /// What was added after the activation, or before; empty if nothing was.
    pub residual: Vec<f32>,
    /// Whether it was added before.
    pub residual_first: bool,
}

impl Sum {
    /// One without results yet: `epilogue` and what of it `operands` holds. `destination` is what is
    /// written, `terms` the number of terms without the bias.
    pub(super) fn begin(
        terms: usize,
        epilogue: &Epilogue,
        operands: &Operands<'_>,
        destination: &OperandInfo,
    ) -> Self {
        let slopes = operands::get(operands, Operand::Slope).unwrap_or_default();
        let residual = operands::get(operands, Operand::Residual).unwrap_or_default();
        let residual = (0..destination.shape.elements())
            .filter_map(|index| residual.get(destination.place(index)).copied())
            .collect();
        Sum {
            terms: terms + usize::from(epilogue.bias),
            activation: epilogue.activation,
            slope: slopes.iter().fold(0.0, |largest, slope| f64::max(largest, f64::from(slope.abs()))),
            residual,
            residual_first: epilogue.residual == Residual::BeforeActivation,
            ..Sum::default()
        }
    }
}
