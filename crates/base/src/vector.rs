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
pub fn exp(x: f32) -> f32 {
    let (n, q) = parts(x.clamp(-104.0, 89.0));
    let [one, other] = powers(n);
    (1.0 + q) * one * other
}

/// `exp(x) - 1`, precise near 0.
#[inline(always)]
pub fn exp_m1(x: f32) -> f32 {
    let (n, q) = parts(x.clamp(-104.0, 89.0));
    let [one, other] = powers(n);
    (one * other - 1.0) + q * one * other
}

/// `max(x, low)`, and NaN of NaN, which Rust's maximum drops.
#[inline(always)]
pub fn at_least(x: f32, low: f32) -> f32 {
    if x < low { low } else { x }
}

/// `min(x, high)`, and NaN of NaN, which Rust's minimum drops.
#[inline(always)]
pub fn at_most(x: f32, high: f32) -> f32 {
    if x > high { high } else { x }
}

#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// `(exp(2 x) - 1) / (exp(2 x) + 1)`; 1 in f32 from 9.02 on.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let e = exp_m1(2.0 * x.clamp(-9.1, 9.1));
    e / (e + 2.0)
}

/// `log(1 + y)` of `y >= 0`, below 1 by the series of the inverse hyperbolic tangent of `y / (2 + y)`.
#[inline(always)]
fn log_1p(y: f32) -> f32 {
    let s = y / (2.0 + y);
    let q = s * s;
    let mut sum = 1.0 / 15.0;
    let factors = [1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 0.2, 1.0 / 3.0, 1.0];
    let mut at = 0;
    while at < factors.len() {
        sum = sum * q + factors[at];
        at += 1;
    }
    if y < 1.0 { 2.0 * s * sum } else { (1.0 + y).ln() }
}

/// `log(1 + exp(x))`.
#[inline(always)]
pub fn softplus(x: f32) -> f32 {
    at_least(x, 0.0) + log_1p(exp(-x.abs()))
}

/// The root of `exp(z) / 2`, which overflows where its square does.
#[inline(always)]
fn root_of_half(z: f32) -> f32 {
    exp(0.5 * z - 0.346_573_6)
}

#[inline(always)]
pub fn sinh(x: f32) -> f32 {
    let z = x.abs();
    let e = exp_m1(z);
    let root = root_of_half(z);
    let size = if z > 20.0 { root * root } else { 0.5 * (e + e / (e + 1.0)) };
    if x < 0.0 { -size } else { size }
}

#[inline(always)]
pub fn cosh(x: f32) -> f32 {
    let root = root_of_half(x.abs());
    let half = root * root;
    half + 0.25 / half
}

#[inline(always)]
pub fn asinh(x: f32) -> f32 {
    let z = x.abs();
    let size = if z > 4096.0 {
        z.ln() + std::f32::consts::LN_2
    } else {
        log_1p(z + z * z / (1.0 + (z * z + 1.0).sqrt()))
    };
    if x < 0.0 { -size } else { size }
}

#[inline(always)]
pub fn acosh(x: f32) -> f32 {
    let t = x - 1.0;
    if x > 4096.0 {
        x.ln() + std::f32::consts::LN_2
    } else if x >= 1.0 {
        log_1p(t + (t * (t + 2.0)).sqrt())
    } else {
        f32::NAN
    }
}

#[inline(always)]
pub fn atanh(x: f32) -> f32 {
    let z = x.abs();
    let size = 0.5 * log_1p(2.0 * z / (1.0 - z));
    if z <= 1.0 { if x < 0.0 { -size } else { size } } else { f32::NAN }
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
            ("softplus", worst(softplus, |x| x.max(0.0) + (-x.abs()).exp().ln_1p(), ULP), 6.0),
            ("sinh", worst(sinh, f64::sinh, ULP), 6.0),
            ("cosh", worst(cosh, f64::cosh, ULP), 12.0),
            ("asinh", worst(asinh, f64::asinh, ULP), 6.0),
            (
                "acosh",
                worst(|x| acosh(1.0 + x.abs()), |x| f64::acosh(f64::from(1.0 + x.abs() as f32)), ULP),
                6.0,
            ),
            ("atanh", worst(|x| atanh(x / 12.1), |x| f64::atanh(f64::from(x as f32 / 12.1)), ULP), 6.0),
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
        for function in [exp, exp_m1, tanh, sigmoid, softplus, sinh, cosh, asinh, acosh, atanh] {
            assert!(function(f32::NAN).is_nan());
        }
        assert!(at_least(f32::NAN, 0.0).is_nan() && at_most(f32::NAN, 6.0).is_nan());
        assert_eq!(
            (at_least(-1.0, 0.0), at_most(7.0, 6.0), at_least(f32::INFINITY, 0.0)),
            (0.0, 6.0, f32::INFINITY)
        );
    }

    #[test]
    fn the_ends_of_hyperbolic_functions_are_right() {
        let inf = f32::INFINITY;
        assert_eq!((sinh(inf), sinh(-inf), cosh(-inf), asinh(-inf), acosh(inf)), (inf, -inf, inf, -inf, inf));
        assert_eq!((atanh(1.0), atanh(-1.0), softplus(inf), softplus(-inf)), (inf, -inf, inf, 0.0));
        assert!(acosh(0.5).is_nan() && atanh(1.5).is_nan() && acosh(-inf).is_nan());
        let near = |found: f32, wanted: f64| (f64::from(found) / wanted - 1.0).abs() < 2e-6;
        for x in [1e-30f32, 1e-7, 3e-4, 0.9, 19.0, 21.0, 89.0, 4e3, 5e3, 1e20, 3e38] {
            let wide = f64::from(x);
            assert!(near(asinh(x), wide.asinh()), "asinh({x}) = {}", asinh(x));
            assert!(x < 1.0 || near(acosh(x), wide.acosh()), "acosh({x}) = {}", acosh(x));
            assert!(x >= 1.0 || near(atanh(x), wide.atanh()), "atanh({x}) = {}", atanh(x));
            assert!(x > 89.0 || near(sinh(x) / 16.0, wide.sinh() / 16.0), "sinh({x}) = {}", sinh(x));
        }
    }
}
