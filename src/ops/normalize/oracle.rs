//! Element by element in f64.
//!
//! With `v = 2u` (see `ops/tolerance.rs`) and `t` elements: the mean is off by at most
//! `e_m = gamma(t + 3) mean(abs(x))`, so each `d = x - m` by `e_d = e_m + v (abs(d) + e_m)`; the mean of the
//! squares by `e_v = mean(2 abs(d) e_d + e_d^2) + gamma(t + 4) (v + that)`. The root's reciprocal lies between
//! those of both ends, and rounds by 8 ULP: those of a sum, of a root (4.5 in WGSL) and of a quotient (2.5). Both
//! products and the sum round once each. A stored half moves `x`, and with it `d`, by its rounding.

use super::NormalizeOp;
use crate::dtype::DType;
use crate::emit::Operand;
use crate::ops::operands::{Operands, get};
use crate::ops::reduce::place;
use crate::ops::reference::Reference;
use crate::ops::tolerance::smallest_normal;

/// The result, in the order of the rows.
pub(super) fn oracle(op: &NormalizeOp, operands: &Operands<'_>) -> Reference {
    let src = get(operands, Operand::Src).unwrap_or_default();
    let merged = op.merged();
    let (count, channels) = (merged.count(), op.channels());
    let epsilon = f64::from(op.epsilon.0);
    let unit = 2.0 * DType::F32.unit_roundoff();
    let tiny = smallest_normal(DType::F32);
    let (store, stored_tiny) = match op.precision.storage() {
        DType::F16 => (2.0 * DType::F16.unit_roundoff(), smallest_normal(DType::F16)),
        DType::F32 => (0.0, 0.0),
    };
    let gamma = |k: f64| k * unit / (1.0 - k * unit);
    let constant = |operand, at: usize, other| {
        get(operands, operand).and_then(|values| values.get(at)).map_or(other, |&value| f64::from(value))
    };
    let (mut value, mut bound) = (vec![0.0; src.len()], vec![0.0; src.len()]);
    for out in 0..merged.outputs() {
        let first = place(&merged.kept, out);
        let places = (0..count).map(|index| first + place(&merged.reduced, index));
        let all: Vec<(usize, f64)> =
            places.map(|at| (at, src.get(at).copied().map_or(f64::NAN, f64::from))).collect();
        let over = |f: &dyn Fn(f64) -> f64| all.iter().map(|&(_, x)| f(x)).sum::<f64>() / count as f64;
        let mean = over(&|x| x);
        let variance = over(&|x| (x - mean) * (x - mean));
        let of_mean = (gamma(count as f64 + 3.0) + store) * over(&|x| x.abs());
        let of_difference = |x: f64| of_mean + store * x.abs() + unit * ((x - mean).abs() + of_mean);
        let squares = over(&|x| {
            let off = of_difference(x);
            2.0 * (x - mean).abs() * off + off * off
        });
        let of_variance = squares + gamma(count as f64 + 4.0) * (variance + squares);
        let root = |variance: f64| 1.0 / (variance + epsilon).sqrt();
        let factor = root(variance);
        let [most, least] = [root((variance - of_variance).max(0.0)), root(variance + of_variance)];
        let of_factor = (most - factor).max(factor - least) + 8.0 * unit * most;
        for &(at, x) in &all {
            let (scale, bias) =
                (constant(Operand::Weights, at % channels, 1.0), constant(Operand::Bias, at % channels, 0.0));
            let (difference, off) = (x - mean, of_difference(x));
            let product = difference * factor;
            let of_product = off * (factor + of_factor) + difference.abs() * of_factor;
            let scaled = (product.abs() + of_product) * scale.abs();
            let result = product * scale + bias;
            let error = of_product * scale.abs()
                + 4.0 * unit * (scaled + bias.abs())
                + 4.0 * tiny * (1.0 + scale.abs());
            if let (Some(value), Some(bound)) = (value.get_mut(at), bound.get_mut(at)) {
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
    use crate::ops::normalize::Normalize;
    use crate::ops::operands::of;

    #[test]
    fn results_are_those_worked_out_by_hand() {
        let dims = Dims::new(&[2, 2]).expect("small");
        let options = |axis| Normalize { axes: vec![axis], epsilon: Bits(3.0) };
        let op = |axis, extras| NormalizeOp::new(dims, &options(axis), extras, extras, Precision::F32);
        let src = [4.0, 6.0, 1.0, 1.0];
        // A mean of 5, a variance of 1, a root of 2.
        let plain = oracle(&op(-1, false).expect("a normalisation"), &of(&[(Operand::Src, &src)]));
        assert_eq!(plain.value(), [-0.5, 0.5, 0.0, 0.0]);
        let operands =
            [(Operand::Src, &src[..]), (Operand::Weights, &[2.0, 4.0]), (Operand::Bias, &[0.0, 1.0])];
        let scaled = oracle(&op(-1, true).expect("a normalisation"), &of(&operands));
        assert_eq!(scaled.value(), [-1.0, 3.0, 0.0, 1.0]);
        let columns = oracle(&op(0, false).expect("a normalisation"), &of(&[(Operand::Src, &src)]));
        let [a, b] = [1.5 / 5.25f64.sqrt(), 2.5 / 9.25f64.sqrt()];
        assert_eq!(columns.value(), [a, b, -a, -b]);
    }

    #[test]
    fn an_epsilon_of_zero_is_refused() {
        let dims = Dims::new(&[2, 2]).expect("small");
        for epsilon in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let options = Normalize { axes: vec![1], epsilon: Bits(epsilon) };
            let error = NormalizeOp::new(dims, &options, true, true, Precision::F32).expect_err("refused");
            assert!(error.to_string().contains("an epsilon of"), "{error}");
        }
    }
}
