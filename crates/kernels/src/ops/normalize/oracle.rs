//! Element by element in f64.
//!
//! Kernels take the first element, `o`, from all that is normalised with it, so that a mean that is much larger than the
//! deviation takes no bits of it. With `v = 2u` (see `ops/tolerance.rs`) and `t` elements: `z = x - o` rounds once, and is
//! exact where both are near each other. The mean of `z` is off by at most `e_m = gamma(t + 4) mean(abs(z))`, so each
//! `d = z - m` by `e_d = e_m + v (abs(z) + abs(d) + e_m)`; the mean of the
//! squares by `e_v = mean(2 abs(d) e_d + e_d^2) + gamma(t + 4) (v + that)`. The root's reciprocal lies between
//! those of both ends, and rounds by 8 ULP: those of a sum, of a root (4.5 in WGSL) and of a quotient (2.5). Both
//! products and the sum round once each. A stored half moves `x`, and with it `d`, by its rounding and by the mean of all;
//! that of `o` goes out. One that is not centred has a mean and an `o` of 0 that are exact.

use super::NormalizeOp;
use crate::dtype::DType;
use crate::emit::{Epilogue, Operand};
use crate::ops::operands::{OperandInfo, Operands, Role, get};
use crate::ops::reduce::place;
use crate::ops::reference::{Reference, Sum};
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
        _ => (0.0, 0.0),
    };
    let gamma = |k: f64| k * unit / (1.0 - k * unit);
    let plane = op.dims.elements() / op.dims.shape().n;
    // Of the element at a place, with what storing it rounds by.
    let vector = |constant, given, at: usize, other| {
        let at_given = at / plane * channels + at % channels;
        let found = get(operands, constant).and_then(|values| values.get(at % channels)).map(|&x| (x, 0.0));
        let computed = || get(operands, given)?.get(at_given).map(|&x| (x, store));
        found.or_else(computed).map_or((other, 0.0), |(x, store)| (f64::from(x), store * f64::from(x).abs()))
    };
    let finished = op.epilogue != Epilogue::default();
    let (mut value, mut bound) = (vec![0.0; src.len()], vec![0.0; src.len()]);
    for out in 0..merged.outputs() {
        let first = place(&merged.kept, out);
        let places = (0..count).map(|index| first + place(&merged.reduced, index));
        let all: Vec<(usize, f64)> =
            places.map(|at| (at, src.get(at).copied().map_or(f64::NAN, f64::from))).collect();
        let over = |f: &dyn Fn(f64) -> f64| all.iter().map(|&(_, x)| f(x)).sum::<f64>() / count as f64;
        let origin = all.first().filter(|_| op.centred).map_or(0.0, |&(_, x)| x);
        let mean = if op.centred { origin + over(&|x| x - origin) } else { 0.0 };
        let variance = over(&|x| (x - mean) * (x - mean));
        let of_mean = if op.centred {
            gamma(count as f64 + 4.0) * over(&|x| (x - origin).abs()) + store * over(&|x| x.abs())
        } else {
            0.0
        };
        let of_difference = |x: f64| {
            let off = of_mean + store * x.abs();
            let first = if op.centred { (x - origin).abs() } else { 0.0 };
            off + unit * (first + (x - mean).abs() + off)
        };
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
            let (scale, of_scale) = vector(Operand::Weights, Operand::Arg(0), at, 1.0);
            let (bias, of_bias) = vector(Operand::Bias, Operand::Arg(1), at, 0.0);
            let (difference, off) = (x - mean, of_difference(x));
            let product = difference * factor;
            let of_product = off * (factor + of_factor) + difference.abs() * of_factor;
            let scaled = (product.abs() + of_product) * scale.abs();
            let result = product * scale + bias;
            let error = of_product * scale.abs()
                + (product.abs() + of_product) * of_scale
                + of_bias
                + 4.0 * unit * (scaled + bias.abs() + of_bias)
                + 4.0 * tiny * (1.0 + scale.abs());
            if let (Some(value), Some(bound)) = (value.get_mut(at), bound.get_mut(at)) {
                *value = result;
                *bound = if finished { error } else { error + store * (result.abs() + error) + stored_tiny };
            }
        }
    }
    if !finished {
        return Reference::Bounded { value, bound };
    }
    // As a sum of one term, which is off by `bound`.
    let destination = OperandInfo::new(Operand::Dst, op.dims.shape(), Role::Output);
    let mut sum = Sum::begin(1, &op.epilogue, operands, &destination);
    sum.magnitude = value.iter().map(|value| value.abs()).collect();
    sum.carried = bound;
    let residual = |at: usize| sum.residual.get(at).map_or(0.0, |&z| f64::from(z));
    let values = value.iter().enumerate();
    sum.value = values.map(|(at, &value)| op.epilogue.reference(value, 0.0, residual(at))).collect();
    Reference::Sum(sum)
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
        let options = |axis| Normalize { axes: vec![axis], epsilon: Bits(3.0), ..Normalize::default() };
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
    fn without_the_mean_results_are_those_worked_out_by_hand() {
        let dims = Dims::new(&[2, 2]).expect("small");
        let options = |axis| Normalize { axes: vec![axis], epsilon: Bits(11.0), centred: false };
        let op = |axis, scale| NormalizeOp::new(dims, &options(axis), scale, false, Precision::F32);
        let src = [3.0, 1.0, 3.0, -7.0];
        // Means of squares of 5 and 29; with 11, 16 and 40.
        let plain = oracle(&op(-1, false).expect("a normalisation"), &of(&[(Operand::Src, &src)]));
        let [a, b] = [3.0 / 40f64.sqrt(), -7.0 / 40f64.sqrt()];
        assert_eq!(&plain.value()[..2], [0.75, 0.25]);
        assert!(
            plain
                .value()
                .iter()
                .zip([0.75, 0.25, a, b])
                .all(|(found, wanted)| (found - wanted).abs() < 1e-15)
        );
        let operands = [(Operand::Src, &src[..]), (Operand::Weights, &[2.0, -4.0])];
        let scaled = oracle(&op(-1, true).expect("a normalisation"), &of(&operands));
        assert_eq!(&scaled.value()[..2], [1.5, -1.0]);
        // Along columns 9 and 25; with 11, 20 and 36.
        let columns = oracle(&op(0, false).expect("a normalisation"), &of(&[(Operand::Src, &src)]));
        assert!((columns.value()[1] - 1.0 / 6.0).abs() < 1e-15);
        assert!((columns.value()[2] - 3.0 / 20f64.sqrt()).abs() < 1e-15);
    }

    #[test]
    fn a_large_mean_summed_as_it_is_is_beyond_the_bound() {
        let src: Vec<f32> = (0..64).map(|at| 262_144.0 + (at * 37 % 64) as f32 / 32.0).collect();
        let dims = Dims::new(&[1, 64]).expect("small");
        let options = Normalize { epsilon: Bits(1e-5), ..Normalize::default() };
        let op = NormalizeOp::new(dims, &options, false, false, Precision::F32).expect("a normalisation");
        let wanted = oracle(&op, &of(&[(Operand::Src, &src)]));
        let normalised = |origin: f32| {
            let over = |f: &dyn Fn(f32) -> f32| src.iter().map(|&x| f(x - origin)).sum::<f32>() / 64.0;
            let mean = over(&|x| x);
            let root = (over(&|x| (x - mean) * (x - mean)) + 1e-5).sqrt();
            src.iter().map(|x| f64::from((x - origin - mean) / root)).collect::<Vec<f64>>()
        };
        let beyond = |origin: f32| {
            let found = normalised(origin).into_iter().zip(wanted.value()).enumerate();
            found.filter(|(at, (x, y))| (x - *y).abs() > wanted.tolerance(*at, Precision::F32)).count()
        };
        assert_eq!((beyond(src[0]), beyond(0.0)), (0, 64));
    }

    #[test]
    fn an_epsilon_of_zero_is_refused() {
        let dims = Dims::new(&[2, 2]).expect("small");
        for epsilon in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let options = Normalize { axes: vec![1], epsilon: Bits(epsilon), ..Normalize::default() };
            let error = NormalizeOp::new(dims, &options, true, true, Precision::F32).expect_err("refused");
            assert!(error.to_string().contains("an epsilon of"), "{error}");
        }
    }
}
