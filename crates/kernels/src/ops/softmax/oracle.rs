//! Element by element in f64.
//!
//! With `v = 2u` (see `ops/tolerance.rs`) and `a_k = beta (x_k - m)`: the difference and the product round, which
//! moves `exp(a_k)` by `2 v abs(a_k)` of itself, and `exp` is off by `(3 + 2 abs(a_k)) v`, so each power by
//! `e_k = (3 + 4 abs(a_k)) v` of itself. The sum of `t` of them is off by their mean weighted by the results,
//! and by `gamma(t)`; a quotient adds 2.5 ULP, or a reciprocal and a product 3.5. The logarithm is off by the
//! sum's error, by `2 v abs(a_k)`, by a difference of `v`, and by 3 ULP or `2^-21` of its own. A power that is
//! flushed to zero loses the smallest normal number, and so does a result. A stored half moves `a_k` by
//! `beta (abs(x_k) + abs(m))` times its rounding.

use super::SoftmaxOp;
use crate::dtype::DType;
use crate::ops::reference::Reference;
use crate::ops::tolerance::smallest_normal;

/// The result, in the order of the rows.
pub(super) fn oracle(op: &SoftmaxOp, src: &[f32]) -> Reference {
    let [outer, count, inner] = op.extents();
    let beta = f64::from(op.beta.0);
    let unit = 2.0 * DType::F32.unit_roundoff();
    let tiny = smallest_normal(DType::F32);
    let (store, stored_tiny) = match op.precision.storage() {
        DType::F16 => (2.0 * DType::F16.unit_roundoff(), smallest_normal(DType::F16)),
        _ => (0.0, 0.0),
    };
    let (mut value, mut bound) = (vec![0.0; src.len()], vec![0.0; src.len()]);
    for line in 0..outer * inner {
        let place = |k: usize| (line / inner * count + k) * inner + line % inner;
        let x: Vec<f64> =
            (0..count).map(|k| src.get(place(k)).copied().map_or(f64::NAN, f64::from)).collect();
        let nan = x.iter().any(|x| x.is_nan());
        let largest = if nan { f64::NAN } else { x.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b)) };
        let exponent = |x: f64| beta * (x - largest);
        let powers: Vec<f64> = x.iter().map(|&x| exponent(x).exp()).collect();
        let sum: f64 = powers.iter().sum();
        let of_exponent = |x: f64| 2.0 * unit * exponent(x).abs() + store * beta * (x.abs() + largest.abs());
        let of_power = |x: f64| of_exponent(x) + (3.0 + 2.0 * exponent(x).abs()) * unit;
        // Of a negative infinity it is exactly nothing.
        let some = x.iter().zip(&powers).filter(|(_, power)| **power != 0.0);
        let weighted: f64 = some.map(|(&x, power)| of_power(x) * power).sum();
        // Second order and all: the powers' errors are far below 1.
        let of_sum = 1.01 * (weighted / sum + (count as f64 + 1.0) * unit) + count as f64 * tiny / sum;
        for (k, &x) in x.iter().enumerate() {
            let (result, error) = if op.log {
                let log = sum.ln();
                let own = (3.0 * unit * log.abs()).max(f64::powi(2.0, -21));
                let result = exponent(x) - log;
                (result, of_exponent(x) + of_sum + own + unit * (result.abs() + 1e-3))
            } else {
                let result = (exponent(x)).exp() / sum;
                let relative = if result == 0.0 { 0.0 } else { of_power(x) + of_sum + 3.5 * unit };
                (result, result * 1.01 * relative + tiny * (1.0 + 1.0 / sum))
            };
            if let (Some(value), Some(bound)) = (value.get_mut(place(k)), bound.get_mut(place(k))) {
                *value = result;
                *bound = error + store * (result.abs() + error) + stored_tiny;
            }
        }
    }
    Reference::Bounded { value, bound }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::dtype::Precision;
    use crate::emit::Bits;
    use crate::ops::softmax::Softmax;

    fn of(extents: &[usize], options: Softmax, src: &[f32]) -> Vec<f64> {
        let dims = Dims::new(extents).expect("small");
        let op = SoftmaxOp::new(dims, &options, Precision::F32).expect("a softmax");
        oracle(&op, src).value().to_vec()
    }

    #[test]
    fn results_are_those_worked_out_by_hand() {
        let ln3 = 3f32.ln();
        let close = |found: Vec<f64>, wanted: &[f64]| {
            assert_eq!(found.len(), wanted.len());
            for (found, wanted) in found.iter().zip(wanted) {
                assert!((found - wanted).abs() < 1e-6, "{found} {wanted}");
            }
        };
        close(of(&[2, 2], Softmax::default(), &[0.0, ln3, 1000.0, 1000.0]), &[0.25, 0.75, 0.5, 0.5]);
        let columns = Softmax { axis: 0, ..Softmax::default() };
        close(of(&[2, 2], columns, &[0.0, 5.0, ln3, 5.0]), &[0.25, 0.5, 0.75, 0.5]);
        let twice = Softmax { beta: Bits(2.0), ..Softmax::default() };
        close(of(&[2], twice, &[0.0, ln3]), &[0.1, 0.9]);
        let log = Softmax { log: true, ..Softmax::default() };
        close(of(&[2], log, &[-1e4, -1e4]), &[-std::f64::consts::LN_2; 2]);
        assert!(of(&[2], log, &[f32::NAN, 0.0])[1].is_nan());
    }

    #[test]
    fn factors_below_zero_and_axes_beyond_the_rank_are_refused() {
        let dims = Dims::new(&[2, 3]).expect("small");
        let of = |options: Softmax| SoftmaxOp::new(dims, &options, Precision::F32);
        for beta in [-1.0, f32::NAN, f32::INFINITY] {
            let error = of(Softmax { beta: Bits(beta), ..Softmax::default() }).expect_err("refused");
            assert!(error.to_string().contains("a factor of"), "{error}");
        }
        assert!(of(Softmax { axis: 2, ..Softmax::default() }).is_err());
    }
}
