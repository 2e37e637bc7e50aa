//! Functions of f32 without branches and calls, closures and iterators included, so that a loop over them is
//! compiled to vectors. Each is off by a few ULP.

use std::f32::consts::LOG2_E;

/// `n` and `2^n - 1` of Taylor's polynomial: `exp(x) = 2^n (1 + q)` with `n` the whole number nearest to
/// `x / ln 2`, where `x` must lie in -104 to 89.
#[inline(always)]
fn parts(x: f32) -> (i32, f32) {
    /// Added to a number, it leaves the nearest whole number in the low bits.
    const SHIFT: f32 = 12_582_912.0;
    /// Of `ln 2` the first bits, of which a multiple is exact, and the rest.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    let shifted = x * LOG2_E + SHIFT;
    let n = shifted - SHIFT;
    let r = (x - n * LN_2[0]) - n * LN_2[1];
    let q = (1.0 / 5040.0) * r + 1.0 / 720.0;
    let q = q * r + 1.0 / 120.0;
    let q = q * r + 1.0 / 24.0;
    let q = q * r + 1.0 / 6.0;
    let q = q * r + 0.5;
    ((shifted.to_bits() as i32).wrapping_sub(SHIFT.to_bits() as i32), q * r * r + r)
}

/// `2^n` as two factors, each within the range of f32.
#[inline(always)]
fn powers(n: i32) -> [f32; 2] {
    let half = n >> 1;
    [power(half), power(n.wrapping_sub(half))]
}

#[inline(always)]
fn power(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let (n, q) = parts(x.clamp(-104.0, 89.0));
    let [one, other] = powers(n);
    (1.0 + q) * one * other
}

/// `exp(x) - 1`, precise near 0.
#[inline(always)]
pub(crate) fn exp_m1(x: f32) -> f32 {
    let (n, q) = parts(x.clamp(-104.0, 89.0));
    let [one, other] = powers(n);
    (one * other - 1.0) + q * one * other
}

#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// `(exp(2 x) - 1) / (exp(2 x) + 1)`; 1 in f32 from 9.02 on.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let e = exp_m1(2.0 * x.clamp(-9.1, 9.1));
    e / (e + 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest distance of `found` from `wanted` over -12 to 12, in units of `unit(wanted)`.
    fn worst(found: fn(f32) -> f32, wanted: fn(f64) -> f64, unit: fn(f64) -> f64) -> f64 {
        let points = (-120_000..=120_000).map(|step| step as f32 / 10_000.0);
        let off = points.map(|x| {
            let wanted = wanted(f64::from(x));
            (f64::from(found(x)) - wanted).abs() / unit(wanted)
        });
        off.fold(0.0, f64::max)
    }

    const ULP: fn(f64) -> f64 = |wanted| wanted.abs().max(f64::from(f32::MIN_POSITIVE)) * 1.2e-7;

    #[test]
    fn each_is_off_by_a_few_ulp() {
        let of = [
            ("exp", worst(exp, f64::exp, ULP), 2.5),
            ("exp_m1", worst(exp_m1, f64::exp_m1, ULP), 4.0),
            ("tanh", worst(tanh, f64::tanh, ULP), 5.0),
            ("sigmoid", worst(sigmoid, |x| 1.0 / (1.0 + (-x).exp()), ULP), 4.0),
        ];
        for (name, found, most) in of {
            println!("{name}: {found:.2}");
            assert!(found <= most, "{name} is off by {found} ULP");
        }
    }

    #[test]
    fn what_overflows_vanishes_or_is_none_stays_so() {
        assert_eq!((exp(89.0), exp(f32::INFINITY)), (f32::INFINITY, f32::INFINITY));
        assert_eq!((exp(f32::NEG_INFINITY), exp(-200.0)), (0.0, 0.0));
        assert_eq!((exp(0.0), exp_m1(0.0), exp_m1(-200.0), tanh(0.0)), (1.0, 0.0, -1.0, 0.0));
        assert!((exp(88.7) / 3.326_02e38 - 1.0).abs() < 1e-3, "{}", exp(88.7));
        for function in [exp, exp_m1, tanh, sigmoid] {
            assert!(function(f32::NAN).is_nan());
        }
    }
}
