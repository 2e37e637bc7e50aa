//! The windows, element by element in f64.
//!
//! The mean of `t` elements passes at most `t - 1` additions and a quotient of 2.5 ULP, no more than a sum
//! of `t` products: its bound is that of a sum whose magnitudes are divided by `t` as well. A maximum is a
//! choice of values that exist: it is exact in f32 unless the activation computes something, and off by the
//! roundings of its element and of the store where halves are stored. A NaN is larger than anything.

use super::{PoolOp, Pooling};
use crate::dtype::DType;
use crate::emit::{Activation, Operand};
use crate::ops::operands::{Operands, get};
use crate::ops::reference::{Reference, Sum};

/// The pooling of `operands`, which were checked, in NHWC order.
pub(super) fn oracle(op: &PoolOp, operands: &Operands<'_>) -> Reference {
    let problem = &op.windows;
    let (x, y) = (problem.input, problem.output);
    let src = get(operands, Operand::Src).unwrap_or_default();
    let average = op.pooling == Pooling::Average;
    let taps = problem.kernel[0] * problem.kernel[1];
    let activation = problem.epilogue.activation;
    let mut sum = Sum { terms: if average { taps } else { 0 }, activation, ..Sum::default() };
    for pixel in 0..y.n * y.h * y.w {
        let (n, i, j) = (pixel / (y.h * y.w), pixel / y.w % y.h, pixel % y.w);
        for c in 0..y.c {
            let rows = op.inside(0, i).map(|h| (n * x.h + h) * x.w);
            let places = rows.flat_map(|row| op.inside(1, j).map(move |w| (row + w) * x.c + c));
            let values: Vec<f64> = places.filter_map(|at| src.get(at)).map(|&v| f64::from(v)).collect();
            let pooled =
                if average {
                    values.iter().sum::<f64>() / values.len() as f64
                } else {
                    let larger =
                        |best: f64, &value: &f64| if value > best || value.is_nan() { value } else { best };
                    values.iter().fold(f64::NEG_INFINITY, |best, value| {
                        if best.is_nan() { best } else { larger(best, value) }
                    })
                };
            let magnitude = values.iter().map(|value| value.abs()).sum::<f64>() / values.len() as f64;
            sum.value.push(activation.reference(pooled, 0.0));
            sum.magnitude.push(if average { magnitude } else { pooled.abs() });
        }
    }
    let chooses = matches!(activation, Activation::None | Activation::Relu | Activation::Relu6);
    if !average && chooses && problem.precision.storage() == DType::F32 {
        return Reference::Bounded { bound: vec![0.0; sum.value.len()], value: sum.value };
    }
    Reference::Sum(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::ops::operands::of;
    use crate::ops::pool::Pool;
    use crate::shape::{Padding, Shape};

    /// Of `1 2 3; 4 5 6; 7 8 9`, windows of 2x2 two apart with one row and column before.
    fn pooled(pooling: Pooling, src: [f32; 9]) -> Vec<f64> {
        let padding = Padding::Explicit { top: 1, bottom: 0, left: 1, right: 0 };
        let options = Pool { padding, ..Pool::new(pooling, [2, 2]) };
        let op = PoolOp::new(Shape::nhwc(1, 3, 3, 1), &options, Precision::F32).expect("windows");
        oracle(&op, &of(&[(Operand::Src, &src)])).value().to_vec()
    }

    #[test]
    fn a_nan_stays_in_an_activation() {
        for activation in [Activation::None, Activation::Relu6] {
            let options = Pool { activation, ..Pool::new(Pooling::Max, [2, 1]) };
            let op = PoolOp::new(Shape::nhwc(1, 2, 1, 1), &options, Precision::F32).expect("windows");
            let reference = oracle(&op, &of(&[(Operand::Src, &[f32::NAN, 1.0])]));
            let Reference::Bounded { value, bound } = reference else { panic!("bounds") };
            assert!(value[0].is_nan() && bound == [0.0], "{value:?} {bound:?}");
        }
    }

    #[test]
    fn what_lies_outside_does_not_take_part() {
        let negative = [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0, -9.0];
        assert_eq!(pooled(Pooling::Max, negative), [-1.0, -2.0, -4.0, -5.0]);
        assert_eq!(pooled(Pooling::Average, negative), [-1.0, -2.5, -5.5, -7.0]);
    }

    #[test]
    fn a_nan_stays_in_its_windows() {
        let nan = f32::NAN;
        for src in
            [[1.0, nan, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], [1.0, 2.0, nan, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]]
        {
            for pooling in [Pooling::Max, Pooling::Average] {
                let found = pooled(pooling, src);
                assert!(found[1].is_nan() && [0, 2, 3].iter().all(|&at| found[at].is_finite()), "{found:?}");
            }
        }
    }
}
