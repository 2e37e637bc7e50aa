//! Element by element in f64.
//!
//! A sum of `t` elements passes at most `t - 1` additions, in any order, and a mean a quotient of 2.5 ULP more:
//! no more than a sum of `t` products. A maximum or minimum is a choice of values that exist, exact but for the
//! store, and so is a truth value. A product passes `t` roundings, each of `t` stored halves one more; a factor
//! that is flushed to zero is off by the smallest normal number, times what the other factors make of it.

use super::{ReduceOp, Reduction, place};
use crate::dtype::DType;
use crate::ops::reference::{Reference, Sum};
use crate::ops::tolerance::smallest_normal;

/// The reduction of `src`, in the order of the output's rows.
pub(super) fn oracle(op: &ReduceOp, src: &[f32]) -> Reference {
    let merged = op.merged();
    let count = merged.count();
    let elements = |out: usize| {
        let first = place(&merged.kept, out);
        let at = move |index: usize| first + place(&merged.reduced, index);
        (0..count).map(move |index| src.get(at(index)).copied().map_or(f64::NAN, f64::from))
    };
    let outputs = 0..merged.outputs();
    let halves = op.precision.storage() == DType::F16;
    match op.reduction {
        Reduction::Sum | Reduction::Mean => {
            let share = if op.reduction == Reduction::Mean { count as f64 } else { 1.0 };
            let of = |absolute: bool| {
                let sum =
                    |out| elements(out).map(|x| if absolute { x.abs() } else { x }).sum::<f64>() / share;
                outputs.clone().map(sum).collect()
            };
            Reference::Sum(Sum { value: of(false), magnitude: of(true), terms: count, ..Sum::default() })
        }
        Reduction::Max | Reduction::Min => {
            let sign = if op.reduction == Reduction::Max { 1.0 } else { -1.0 };
            let larger = |best: f64, x: f64| {
                if best.is_nan() || best >= x { best } else { x }
            };
            let largest =
                |out| sign * elements(out).fold(f64::NEG_INFINITY, |best, x| larger(best, sign * x));
            let value: Vec<f64> = outputs.map(largest).collect();
            if halves {
                let magnitude = value.iter().map(|value| value.abs()).collect();
                return Reference::Sum(Sum { value, magnitude, ..Sum::default() });
            }
            Reference::Bounded { bound: vec![0.0; value.len()], value }
        }
        Reduction::Any | Reduction::All => {
            let truth = |out| match op.reduction {
                Reduction::Any => elements(out).any(|x| x != 0.0),
                _ => elements(out).all(|x| x != 0.0),
            };
            Reference::exact(outputs.map(|out| f64::from(u8::from(truth(out)))))
        }
        Reduction::Product => {
            let unit = 2.0 * DType::F32.unit_roundoff();
            let (store, stored_tiny) = if halves {
                (2.0 * DType::F16.unit_roundoff(), smallest_normal(DType::F16))
            } else {
                (0.0, 0.0)
            };
            let relative = (count as f64 * (unit + store)).exp_m1();
            let flushed = |out| {
                let others: f64 = elements(out).map(|x| x.abs().max(1.0)).product();
                count as f64 * smallest_normal(DType::F32) * others
            };
            let value: Vec<f64> = outputs.clone().map(|out| elements(out).product()).collect();
            let errors = outputs.zip(&value).map(|(out, value)| value.abs() * relative + flushed(out));
            let bound =
                errors.zip(&value).map(|(error, value)| error + store * (value.abs() + error) + stored_tiny);
            Reference::Bounded { bound: bound.collect(), value }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::dtype::Precision;
    use crate::ops::reduce::Reduce;

    /// Of `1 -2 3; 4 5 0`.
    fn of(reduction: Reduction, axes: &[isize]) -> Vec<f64> {
        let options = Reduce { reduction, axes: axes.to_vec(), keep_dims: true };
        let dims = Dims::new(&[2, 3]).expect("small");
        let op = ReduceOp::new(dims, &options, Precision::F32).expect("a reduction");
        oracle(&op, &[1.0, -2.0, 3.0, 4.0, 5.0, 0.0]).value().to_vec()
    }

    #[test]
    fn reductions_are_those_worked_out_by_hand() {
        assert_eq!(of(Reduction::Sum, &[0]), [5.0, 3.0, 3.0]);
        assert_eq!(of(Reduction::Sum, &[-1]), [2.0, 9.0]);
        assert_eq!(of(Reduction::Mean, &[1]), [2.0 / 3.0, 3.0]);
        assert_eq!(of(Reduction::Max, &[1]), [3.0, 5.0]);
        assert_eq!(of(Reduction::Min, &[0, -2]), [1.0, -2.0, 0.0]);
        assert_eq!(of(Reduction::Product, &[0]), [4.0, -10.0, 0.0]);
        assert_eq!(of(Reduction::Product, &[0, 1]), [0.0]);
        assert_eq!(of(Reduction::All, &[0]), [1.0, 1.0, 0.0]);
        assert_eq!(of(Reduction::Any, &[0, 1]), [1.0]);
        assert_eq!(of(Reduction::Sum, &[]), [1.0, -2.0, 3.0, 4.0, 5.0, 0.0]);
    }

    #[test]
    fn a_nan_stays() {
        let options = Reduce { reduction: Reduction::Min, axes: vec![1], keep_dims: false };
        let op = ReduceOp::new(Dims::new(&[3, 2]).expect("small"), &options, Precision::F32).expect("minima");
        let reference = oracle(&op, &[f32::NAN, 1.0, 1.0, f32::NAN, 2.0, 1.0]);
        let value = reference.value();
        assert!(value[0].is_nan() && value[1].is_nan() && value[2] == 1.0, "{value:?}");
    }
}
