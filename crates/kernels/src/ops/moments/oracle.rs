//! Part by part in f64.
//!
//! With `v = 2u` (see `ops/tolerance.rs`) and `t` pixels: `z = x - o` rounds once, and is exact where `x` and `o` are
//! near each other. A mean is off by at most `e_m = gamma(t + 4) mean(abs(z))`, so each `d = z - m` by
//! `e_d = e_m + v (abs(z) + abs(d) + e_m)`; the sum of squares by `sum(2 abs(d) e_d + e_d^2) + gamma(t + 2) (q + that)`.
//! Stored halves move `x` and `o`, and with them `z` and `m`, by their rounding; it moves `d` by that of `x` and their mean.

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
                let at = |pixel: usize| src.get(pixel * map.c + c).copied().map_or(f64::NAN, f64::from);
                let origin = if op.centred { at(n * map.h * map.w) } else { 0.0 };
                let all = (0..count).map(|pixel| at(first + pixel));
                let (t, over) = (count as f64, |f: &dyn Fn(f64) -> f64| all.clone().map(f).sum::<f64>());
                let mean = over(&|x| x - origin) / t;
                let stored = store * over(&|x| x.abs()) / t;
                let rounded = gamma(t + 4.0) * over(&|x| (x - origin).abs()) / t + tiny;
                let of_difference = |x: f64| {
                    let (z, d) = (x - origin, x - origin - mean);
                    let of_stored = store * x.abs() + stored;
                    rounded + of_stored + unit * (z.abs() + d.abs() + rounded + 2.0 * of_stored)
                };
                let squares = over(&|x| (x - origin - mean).powi(2));
                let off = over(&|x| {
                    let off = of_difference(x);
                    2.0 * (x - origin - mean).abs() * off + off * off
                });
                let of_mean = rounded + stored + store * origin.abs();
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
        // A whole part of 1 and 3 in turns, and one of two pixels, 5 and 9; the other channel is their double. Means are
        // counted from the first pixel, 1 and 2.
        let map = Shape::nhwc(1, 2, PART / 2 + 1, 2);
        let [op, uncentred] =
            [true, false].map(|centred| MomentsOp::new(map, centred, Precision::F32).expect("a map"));
        let pixels = (0..PART).map(|pixel| 1.0 + 2.0 * (pixel % 2) as f32).chain([5.0, 9.0]);
        let src: Vec<f32> = pixels.flat_map(|x| [x, 2.0 * x]).collect();
        let found = oracle(&op, &of(&[(Operand::Src, &src)]));
        let (whole, none) = (PART as f64, 0.0);
        let wanted = [1.0, 2.0, none, none, whole, 4.0 * whole, none, none];
        assert_eq!(found.value()[..8], wanted);
        assert_eq!(found.value()[8..], [6.0, 12.0, none, none, 8.0, 32.0, none, none]);
        let found = oracle(&uncentred, &of(&[(Operand::Src, &src)]));
        assert_eq!(found.value()[..8], [2.0, 4.0, none, none, whole, 4.0 * whole, none, none]);
        assert_eq!(found.value()[8..], [7.0, 14.0, none, none, 8.0, 32.0, none, none]);
    }
}
