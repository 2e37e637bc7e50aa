//! Functions of f32 without branches and calls, so that a loop over them is compiled to vectors. Each is off
//! by a few ULP, or by what is said.

use std::f32::consts::{FRAC_1_SQRT_2, LOG2_E};

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
    let mut q = 1.0 / 5040.0;
    for factor in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5] {
        q = q * r + factor;
    }
    ((shifted.to_bits() as i32).wrapping_sub(SHIFT.to_bits() as i32), q * r * r + r)
}

/// `2^n` as two factors, each within the range of f32.
#[inline(always)]
fn powers(n: i32) -> [f32; 2] {
    let half = n >> 1;
    [half, n.wrapping_sub(half)].map(|n| f32::from_bits((n.wrapping_add(127) as u32) << 23))
}

#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let (n, q) = parts(x.clamp(-104.0, 89.0));
    let [one, other] = powers(n);
    (1.0 + q) * one * other
}

/// `exp(x) - 1`, precise near 0.
#[inline(always)]
pub(super) fn exp_m1(x: f32) -> f32 {
    let (n, q) = parts(x.clamp(-104.0, 89.0));
    let [one, other] = powers(n);
    (one * other - 1.0) + q * one * other
}

#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// `(exp(2 x) - 1) / (exp(2 x) + 1)`; 1 in f32 from 9.02 on.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let e = exp_m1(2.0 * x.clamp(-9.1, 9.1));
    e / (e + 2.0)
}

/// With the error function of `shaders/shared/functions.wgsl`.
#[inline(always)]
pub(super) fn gelu(x: f32) -> f32 {
    let z = x.abs() * FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let mut p = 1.061_405_4;
    for factor in [-1.453_152_1, 1.421_413_8, -0.284_496_72, 0.254_829_6] {
        p = p * t + factor;
    }
    let above = p * t * exp(-z * z);
    0.5 * x * if x > 0.0 { 2.0 - above } else { above }
}

#[inline(always)]
pub(super) fn gelu_tanh(x: f32) -> f32 {
    const ROOT: f32 = 0.797_884_6;
    0.5 * x * (1.0 + tanh(ROOT * (x + 0.044_715 * x * x * x)))
}

/// `x (1 + erf(x / sqrt(2))) / 2`: for negative numbers without cancellation.
pub(super) fn gelu_in_f64(x: f64) -> f64 {
    let z = x.abs() * std::f64::consts::FRAC_1_SQRT_2;
    0.5 * x * if x > 0.0 { 2.0 - erfc(z) } else { erfc(z) }
}

/// The complement of the error function for `z >= 0`: below 3 of the series of positive terms
/// `erf(z) = 2 z exp(-z^2) / sqrt(pi) sum_k (2 z^2)^k / (1 3 5 .. (2k + 1))`, above of the continued fraction
/// `exp(-z^2) / sqrt(pi) / (z + (1/2) / (z + 1 / (z + (3/2) / (z + ..))))` (Abramowitz and Stegun, 7.1.6 and
/// 7.1.14).
fn erfc(z: f64) -> f64 {
    let root = std::f64::consts::PI.sqrt();
    if z.is_nan() {
        return z;
    }
    if z < 3.0 {
        let (mut term, mut sum) = (z, z);
        for k in 1..100 {
            term *= 2.0 * z * z / f64::from(2 * k + 1);
            sum += term;
        }
        return 1.0 - 2.0 / root * (-z * z).exp() * sum;
    }
    let fraction = (1..=100).rev().fold(z, |below, k| z + f64::from(k) / 2.0 / below);
    (-z * z).exp() / root / fraction
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
    const NEAR_ONE: fn(f64) -> f64 = |_| 1.2e-7;

    #[test]
    fn each_is_off_by_a_few_ulp() {
        let of = [
            ("exp", worst(exp, f64::exp, ULP), 2.5),
            ("exp_m1", worst(exp_m1, f64::exp_m1, ULP), 4.0),
            ("tanh", worst(tanh, f64::tanh, ULP), 5.0),
            ("sigmoid", worst(sigmoid, |x| 1.0 / (1.0 + (-x).exp()), ULP), 4.0),
            ("gelu", worst(gelu, gelu_in_f64, NEAR_ONE), 12.0),
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
        for function in [exp, exp_m1, tanh, sigmoid, gelu, gelu_tanh] {
            assert!(function(f32::NAN).is_nan());
        }
    }

    #[test]
    fn the_error_function_has_its_tabulated_values() {
        // Abramowitz and Stegun, table 7.1, and their asymptotic value at 4.
        for (z, wanted) in
            [(0.0, 1.0), (0.5, 0.479_500_122_2), (1.0, 0.157_299_207_1), (2.0, 0.004_677_735_0)]
        {
            assert!((erfc(z) - wanted).abs() < 1e-9, "{z}: {}", erfc(z));
        }
        assert!((erfc(4.0) / 1.541_725_79e-8 - 1.0).abs() < 1e-7, "{}", erfc(4.0));
        assert!((erfc(3.0 - 1e-12) / erfc(3.0) - 1.0).abs() < 1e-9, "the two meet");
    }
}
