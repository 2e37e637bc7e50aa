//! The error function, and what is made of it: a factor by which `x` passes as it is likely that a normal
//! variable is smaller (Hendrycks and Gimpel, *Gaussian Error Linear Units*, 2016).

use crate::vector::{exp, tanh};
use std::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// `x (1 + erf(x / sqrt(2))) / 2`, with the error function of `shaders/shared/functions.wgsl`.
#[inline(always)]
pub fn gelu_f32(x: f32) -> f32 {
    let z = x.abs() * FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let p = 1.061_405_4 * t - 1.453_152_1;
    let p = p * t + 1.421_413_8;
    let p = p * t - 0.284_496_72;
    let p = p * t + 0.254_829_6;
    let above = p * t * exp(-z * z);
    0.5 * x * if x > 0.0 { 2.0 - above } else { above }
}

/// The error function as `shaders/shared/functions.wgsl` computes it.
#[inline(always)]
pub fn erf_f32(x: f32) -> f32 {
    let z = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let mut p = 1.061_405_4;
    for factor in [-1.453_152_1, 1.421_413_8, -0.284_496_72, 0.254_829_6] {
        p = p * t + factor;
    }
    let size = 1.0 - p * t * exp(-z * z);
    let q = z * z;
    let mut near = -8.548_327e-4;
    for factor in [5.223_977_6e-3, -0.026_866_17, 0.112_837_92, -0.376_126_4, FRAC_2_SQRT_PI] {
        near = near * q + factor;
    }
    let far = if x < 0.0 { -size } else { size };
    if z < 0.5 { near * x } else { far }
}

/// The error function in f64.
pub fn erf(x: f64) -> f64 {
    let z = x.abs();
    let size = if z < 3.0 { series(z) } else { 1.0 - erfc(z) };
    if x < 0.0 { -size } else { size }
}

#[inline(always)]
pub fn gelu_tanh_f32(x: f32) -> f32 {
    const ROOT: f32 = 0.797_884_6;
    0.5 * x * (1.0 + tanh(ROOT * (x + 0.044_715 * x * x * x)))
}

/// `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2` in f64.
pub fn gelu_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
}

/// `x (1 + erf(x / sqrt(2))) / 2`: for negative numbers without cancellation.
pub fn gelu(x: f64) -> f64 {
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
        return 1.0 - series(z);
    }
    let fraction = (1..=100).rev().fold(z, |below, k| z + f64::from(k) / 2.0 / below);
    (-z * z).exp() / root / fraction
}

/// The error function of `z` from 0 to 3.
fn series(z: f64) -> f64 {
    let (mut term, mut sum) = (z, z);
    for k in 1..100 {
        term *= 2.0 * z * z / f64::from(2 * k + 1);
        sum += term;
    }
    2.0 / std::f64::consts::PI.sqrt() * (-z * z).exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_f32_it_is_off_by_what_the_approximation_is() {
        for step in -120_000..=120_000 {
            let x = step as f32 / 10_000.0;
            let off = (f64::from(gelu_f32(x)) - gelu(f64::from(x))).abs();
            assert!(off <= f64::from(x.abs()) / 2.0 * 6e-7 + 1e-9, "{x} is off by {off}");
        }
        assert!(gelu_f32(f32::NAN).is_nan() && gelu_tanh_f32(f32::NAN).is_nan());
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
