//! Part by part in f64.
//!
//! With `v = 2u` (see `ops/tolerance.rs`) and `t` pixels: a mean is off by at most `e_m = gamma(t + 3) mean(abs(x))`,
//! so each `d = x - m` by `e_d = e_m + v (abs(d) + e_m)`; the sum of squares by
//! `sum(2 abs(d) e_d + e_d^2) + gamma(t + 2) (q + that)`. A stored half moves `x`, and with it `d`, by its rounding.

use super::MomentsOp;
use crate::dtype::DType;
use crate::emit::Operand;
use crate::ops::operands::{Operands, get};
use crate::ops::reference::Reference;
use crate::ops::tolerance::smallest_normal;

/// The result, in the order of the rows.
pub(super) fn oracle(op: &MomentsOp, operands: &Operands<'_>) -> Reference {
    let src = get(operands, Operand::Src).unwrap_or_default();
    let (map, moments) = (op.map, op.moments());
    let unit = 2.0 * DType::F32.unit_roundoff();
    let tiny = smallest_normal(DType::F32);
    let store = match op.precision.storage() {
        DType::F16 => 2.0 * DType::F16.unit_roundoff(),
        _ => 0.0,
    };
    let gamma = |k: f64| k * unit / (1.0 - k * unit);
    let elements = moments.shape().elements();
    let (mut value, mut bound) = (vec![0.0; elements], vec![0.0; elements]);
    for n in 0..map.n {
        for part in 0..moments.parts() {
            let (first, count) = (n * map.h * map.w + part * super::PART, moments.count(part));
            for c in 0..map.c {
                let at = |pixel: usize| src.get((first + pixel) * map.c + c).copied();
                let all = (0..count).map(|pixel| at(pixel).map_or(f64::NAN, f64::from));
                let (sum, absolute) =
                    all.clone().fold((0.0, 0.0), |(sum, absolute), x| (sum + x, absolute + x.abs()));
                let (t, mean) = (count as f64, sum / count as f64);
                let of_mean = (gamma(t + 3.0) + store) * absolute / t + tiny;
                let (mut squares, mut off) = (0.0, 0.0);
                for x in all {
                    let d = (x - mean).abs();
                    let of_difference = of_mean + store * x.abs() + unit * (d + of_mean);
                    squares += d * d;
                    off += 2.0 * d * of_difference + of_difference * of_difference;
                }
                let found = [(mean, of_mean), (squares, off + gamma(t + 2.0) * (squares + off) + t * tiny)];
                for (place, found) in moments.places(n, part, c).into_iter().zip(found) {
                    if let (Some(value), Some(bound)) = (value.get_mut(place), bound.get_mut(place)) {
                        (*value, *bound) = found;
                    }
                }
            }
        }
    }
    Reference::Bounded { value, bound }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::ops::moments::PART;
    use crate::ops::operands::of;
    use crate::shape::Shape;

    #[test]
    fn parts_are_those_worked_out_by_hand() {
        // A whole part of 1 and 3 in turns, and one of two pixels, 5 and 9; the other channel is their double.
        let op = MomentsOp::new(Shape::nhwc(1, 2, PART / 2 + 1, 2), Precision::F32).expect("a map");
        let pixels = (0..PART).map(|pixel| 1.0 + 2.0 * (pixel % 2) as f32).chain([5.0, 9.0]);
        let src: Vec<f32> = pixels.flat_map(|x| [x, 2.0 * x]).collect();
        let found = oracle(&op, &of(&[(Operand::Src, &src)]));
        let (whole, none) = (PART as f64, 0.0);
        let wanted = [2.0, 4.0, none, none, whole, 4.0 * whole, none, none];
        assert_eq!(found.value()[..8], wanted);
        assert_eq!(found.value()[8..], [7.0, 14.0, none, none, 8.0, 32.0, none, none]);
    }
}
