//! How far a correct kernel may be from the oracle: an error bound, derived and not chosen.
//!
//! A result is `y = f(s) + r`, with the biased sum `s` of `n` terms. Four things round.
//!
//! **Rounding unit.** OpenCL C rounds to nearest; WGSL lets a "correctly rounded" operation return
//! either neighbour (WGSL, *Floating Point Accuracy*), which doubles the unit roundoff. So one
//! operation is off by at most `v = 2u` times its result, `u` being [`DType::unit_roundoff`] of the
//! accumulator. One ULP of `z` is at most `v |z|`.
//!
//! **The sum.** A term passes one product and at most `n - 1` additions in any order of summation,
//! fused or not (OpenCL's `mad` is one or the other in the full profile of 3.0; 1.2 promised
//! nothing), and one factor more where a matrix product has `alpha`. With
//! `gamma(k, v) = k v / (1 - k v)` (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd
//! ed., lemma 3.1 and section 4.2), `|computed s - s| <= gamma(n + 2, v) * magnitude`, where
//! `magnitude` is the sum of the terms' absolute values. With f16 storage both factors of a product
//! were rounded before, which adds `gamma(2, v16) * magnitude`. The activation passes this error on
//! times its Lipschitz constant. Terms that were themselves computed (`gate`) bring an error
//! along: a bound of it is added to the sum's, and to the magnitude that its own rounding is of.
//!
//! Matrix instructions, which multiply stored f16 and sum in f32, add the running sum and a block of
//! products at once: they align them to the largest and cut off what lies below (Fasi, Higham,
//! Mikaitis and Pranesh, *Numerical behavior of NVIDIA tensor cores*, 2021). Each addend loses at most
//! one ULP of the largest, so with blocks of eight or more the running sum counts as `n / 8` terms; with
//! tf32 operands, in blocks of four or more, as `n / 4`.
//!
//! **Rounded operands.** Those of [`Precision::Tf32`], rounded or cut to ten bits, are off by less than
//! `2^-10` each: `gamma(2, 2^-10) * magnitude`. Of [`Precision::SplitF16`], `x = h + l + e`: the rest
//! `x - h` is exact and at most `v16 abs(x)`, and `e` is its rounding, at most `v16^2 abs(x)`. The product
//! of two `l`, at most `v16^2` of the whole, is left out. Together, to the second order, a product is off
//! by `gamma(3, v16^2)` of itself. The `2 n` products of an `h` and an `l` are summed by themselves, with
//! `gamma(2 n + 2 n / 8 + 2, v)` of at most `2 v16` times the magnitude, and join the sum in one more
//! operation. Operands are taken to be zero or no less than `2^-14`.
//!
//! **The activation itself**, with the larger of the two specifications' allowances (WGSL,
//! *Floating Point Accuracy*; OpenCL C 3.0, *Relative Error as ULPs*, full profile):
//!
//! | function | WGSL f32 | WGSL f16 | OpenCL f32 | OpenCL f16 |
//! |---|---|---|---|---|
//! | `exp(x)` | `3 + 2 abs(x)` ULP | `1 + 2 abs(x)` ULP | 3 ULP | 2 ULP |
//! | `x / y` | 2.5 ULP | 2.5 ULP | 2.5 ULP | 1 ULP |
//! | `tanh(x)` | the worse of 1e-5 and `sinh / cosh` from `exp` | the same | 5 ULP | 2 ULP |
//!
//! | activation | its own error |
//! |---|---|
//! | none, relu, relu6 | 0: a choice of values that exist |
//! | leaky, prelu | one product, and the slope's storage: `gamma(2, v) abs(f)` |
//! | hardswish | `x + 3`, two products, the constant 1/6: `gamma(4, v) abs(f)` |
//! | sigmoid | `exp` moves it by `f (1 - f) (3 + 2 abs(x)) v <= v` (the largest value, at `abs(x)` near 0.9, is 0.99), the sum by `v`, the quotient by `2.5 v`: `5 v` with the second order |
//! | tanh | `sinh` and `cosh` are off by `(4 + 2 abs(x)) v cosh(x)` each, the quotient by `2.5 v`, the cut at 10 by 4.2e-9: `(12 + 4 min(abs(x), 10)) v`, or 1e-5 |
//!
//! **The residual and the store.** The addition rounds once, an f16 residual was rounded once, and
//! an f16 result is rounded once. A residual that is added before the activation is one more term of the sum.
//!
//! **Underflow.** Both languages may flush subnormal values, so each operation also loses up to the
//! smallest normal number. Stored f16 operands are taken to be zero or normal.
//!
//! **Winograd's kernels** form other sums: `A^T [sum_k U_k * V_k] A` with `U = G w G^T` and `V = B^T x B`
//! (`ops/conv2d/winograd_bound.rs`). `V` passes `b` roundings along each axis, `b` being the
//! most non-zero factors in a row of `B^T`; a term of the sum over `c` channels one for the rounded `U`
//! (two, with f16 storage) and `c` as above; the output `a` along each axis, for the rows of `A^T`. So
//! `|computed s - s| <= gamma(c + 2 a + 2 b + 2, v) * M` with
//! `M = |A^T| [sum_k |U_k| * (|B^T| |x_k| |B|)] |A|`: what cancels in exact arithmetic stays in the bound,
//! at every position of the patch. With `|x| <= 1` and `|w| <= 1`, `M` is at most `c` times what the
//! matrices allow, against the direct sum's `9 c`:
//!
//! | | `2 a + 2 b` | `M / c`, at most |
//! |---|---|---|
//! | direct | 0 | 9 |
//! | F(2x2, 3x3) | 10 | 64 |
//! | F(4x4, 3x3) | 18 | 2304 |
//!
//! Usual inputs are far from the worst. Of inputs and weights spread evenly over [-1, 1), with 64 and
//! with 512 channels, `M` is 3.1 and 32 times the direct sum's magnitude on average; simulated in f32
//! with sums in the order of channels, the root mean square of the error is 0.6 times that of the
//! direct sum for F(2x2, 3x3), whose sums are shorter, and 4 times it for F(4x4, 3x3). So F(2x2, 3x3)
//! keeps what `F32` says in all but the worst case; F(4x4, 3x3) loses two bits, runs only where it was
//! measured to be the fastest or was asked for, and never with sums in f16.

use super::reference::Sum;
use crate::dtype::{DType, MatrixRounding, Precision};
use crate::emit::Activation;

impl Sum {
    /// The largest distance from `value[index]` that the result of a correct kernel in `precision` may
    /// have. The bound is infinite where rounding may destroy the sum: f16 sums of a thousand terms. A
    /// test must then use another precision or fewer terms.
    pub fn tolerance(&self, index: usize, precision: Precision) -> f64 {
        let at = |values: &[f64]| values.get(index).copied().unwrap_or_default();
        let (value, magnitude, carried) = (at(&self.value), at(&self.magnitude), at(&self.carried));
        let (activation, slope) = (self.activation, self.slope);
        let mut residual = self.residual.get(index).map(|value| f64::from(value.abs()));
        // Before the activation it is one more term.
        let first = if self.residual_first { residual.take() } else { None };
        let (magnitude, terms) =
            (magnitude + first.unwrap_or(0.0), self.terms + usize::from(first.is_some()));
        let unit = 2.0 * precision.accumulator().unit_roundoff();
        let tiny = smallest_normal(precision.accumulator());
        let (store, store_tiny) = match precision.storage() {
            DType::F16 => (2.0 * DType::F16.unit_roundoff(), smallest_normal(DType::F16)),
            _ => (0.0, 0.0),
        };

        let half = 2.0 * DType::F16.unit_roundoff();
        // What the rounding of operands does to a product, and how often a matrix unit cuts a sum off.
        let (rounded, blocks) = match precision.matrix_rounding() {
            MatrixRounding::None => (gamma(2, store), 0),
            MatrixRounding::Stored => (gamma(2, store), terms.div_ceil(8)),
            MatrixRounding::Tf32 => (gamma(2, half), terms.div_ceil(4)),
            MatrixRounding::Split => {
                let small = 2 * terms + terms.div_ceil(4);
                (gamma(3, half * half) + 2.0 * half * gamma(small + 2, unit), terms.div_ceil(8) + 1)
            }
        };
        let relative = rounded + (1.0 + rounded) * gamma(terms + blocks + 2, unit);
        let rounding = (magnitude + carried) * relative + (2 * terms + 8) as f64 * tiny;
        let sum_error = rounding + carried;
        let passed_on = activation.lipschitz(slope) * sum_error;

        let largest = (value.abs() + residual.unwrap_or(0.0)) + passed_on;
        let own = match activation {
            Activation::None | Activation::Relu | Activation::Relu6 => 0.0,
            Activation::LeakyRelu(_) | Activation::PRelu => gamma(2, unit.max(store)) * largest,
            Activation::HardSwish => gamma(4, unit) * largest,
            Activation::Sigmoid => 5.0 * unit,
            // A factor that is rounded, a product and a sum of no more than 1 where it is not cut off.
            Activation::HardSigmoid => gamma(4, unit),
            Activation::Silu => 5.0 * unit * (magnitude + sum_error) + unit * largest,
            // Computed in f32 from approximations, as `ops/elementwise` has them.
            Activation::Gelu | Activation::GeluTanh => {
                let single = 2.0 * DType::F32.unit_roundoff();
                let approximation = match activation {
                    Activation::Gelu => 1.5e-7 + 130.0 * single,
                    _ => 1e-5 + 56.0 * single,
                };
                let rounded = if unit > single { 2.0 * unit } else { 4.0 * single };
                (magnitude + sum_error) / 2.0 * approximation + rounded * largest
            }
            Activation::Tanh => {
                let argument = (magnitude + sum_error).min(10.0);
                ((12.0 + 4.0 * argument) * unit).max(1e-5)
            }
        };

        let mut error = passed_on + own;
        if let Some(residual) = residual {
            error += store * residual;
            error += unit * (value.abs() + error) + tiny;
        }
        error + store * (value.abs() + error) + store_tiny
    }
}

/// Higham's `gamma(k) = k v / (1 - k v)`; infinite where `k v >= 1`.
fn gamma(k: usize, unit: f64) -> f64 {
    let product = k as f64 * unit;
    if product < 1.0 { product / (1.0 - product) } else { f64::INFINITY }
}

/// The smallest positive normal number.
pub(super) fn smallest_normal(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => f64::from(half::f16::MIN_POSITIVE.to_f32()),
        _ => f64::from(f32::MIN_POSITIVE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::Bits;

    /// Values in [-1, 1) from a linear congruential generator.
    fn noise(seed: u64, len: usize) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2).wrapping_add(1);
        (0..len)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
            })
            .collect()
    }

    fn pairwise(terms: &[f32]) -> f32 {
        match terms {
            [] => 0.0,
            [term] => *term,
            _ => {
                let (left, right) = terms.split_at(terms.len() / 2);
                pairwise(left) + pairwise(right)
            }
        }
    }

    /// One sum in several orders, in f32.
    fn sums(x: &[f32], w: &[f32], bias: f32) -> Vec<(&'static str, f32)> {
        let products: Vec<f32> = x.iter().zip(w).map(|(x, w)| x * w).collect();
        let mut ascending = products.clone();
        ascending.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let lanes: [f32; 4] = std::array::from_fn(|lane| products.iter().skip(lane).step_by(4).sum());
        vec![
            ("forwards", products.iter().sum::<f32>() + bias),
            ("backwards", products.iter().rev().sum::<f32>() + bias),
            ("smallest first", ascending.iter().sum::<f32>() + bias),
            ("largest first", ascending.iter().rev().sum::<f32>() + bias),
            ("pairwise", pairwise(&products) + bias),
            ("four lanes", (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + bias),
            ("fused from the bias", x.iter().zip(w).fold(bias, |sum, (x, w)| x.mul_add(*w, sum))),
        ]
    }

    fn exact(x: &[f32], w: &[f32], bias: f32, activation: Activation, slope: f32, residual: f32) -> Sum {
        let products = || x.iter().zip(w).map(|(&x, &w)| f64::from(x) * f64::from(w));
        let sum = products().sum::<f64>() + f64::from(bias);
        Sum {
            value: vec![activation.reference(sum, f64::from(slope)) + f64::from(residual)],
            magnitude: vec![products().map(f64::abs).sum::<f64>() + f64::from(bias.abs())],
            terms: x.len() + 1,
            activation,
            slope: f64::from(slope.abs()),
            residual: if residual == 0.0 { Vec::new() } else { vec![residual] },
            ..Default::default()
        }
    }

    const ACTIVATIONS: [Activation; 12] = [
        Activation::None,
        Activation::Relu,
        Activation::Relu6,
        Activation::LeakyRelu(Bits(0.2)),
        Activation::PRelu,
        Activation::Sigmoid,
        Activation::Tanh,
        Activation::HardSwish,
        Activation::HardSigmoid,
        Activation::Silu,
        Activation::Gelu,
        Activation::GeluTanh,
    ];

    #[test]
    fn every_order_of_summation_stays_within() {
        let mut failures = Vec::new();
        for len in [1, 2, 9, 27, 288, 1030, 9216] {
            for seed in 0..20 {
                let (x, w) = (noise(seed, len), noise(seed + 1000, len));
                let (bias, slope, residual) = (0.37, -1.7, 0.81);
                for activation in ACTIVATIONS {
                    let reference = exact(&x, &w, bias, activation, slope, residual);
                    let tolerance = reference.tolerance(0, Precision::F32);
                    for (order, sum) in sums(&x, &w, bias) {
                        let result = activation.apply(sum, slope) + residual;
                        let error = (f64::from(result) - reference.value[0]).abs();
                        if error > tolerance {
                            failures
                                .push(format!("{len} terms {activation:?} {order}: {error} > {tolerance}"));
                        }
                    }
                }
            }
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }

    #[test]
    fn a_sum_that_cancels_stays_within() {
        let x = [1e6, 1.0, -1e6];
        let reference = exact(&x, &[1.0; 3], 1e-3, Activation::None, 0.0, 0.0);
        let tolerance = reference.tolerance(0, Precision::F32);
        for (order, sum) in sums(&x, &[1.0; 3], 1e-3) {
            assert!((f64::from(sum) - reference.value[0]).abs() <= tolerance, "{order}: {sum}");
        }
    }

    #[test]
    fn a_planted_error_of_one_tap_does_not() {
        let mut caught = 0;
        for seed in 0..100 {
            // A 3x3 window over 32 channels that reads its last tap one column to the right.
            let (mut x, w) = (noise(seed, 9 * 32 + 32), noise(seed + 500, 9 * 32));
            let reference = exact(&x[..288], &w, 0.1, Activation::None, 0.0, 0.0);
            x.copy_within(288..320, 256);
            let wrong = sums(&x[..288], &w, 0.1)[0].1;
            let tolerance = reference.tolerance(0, Precision::F32);
            caught += usize::from((f64::from(wrong) - reference.value[0]).abs() > tolerance);
        }
        assert_eq!(caught, 100, "wrong taps that the tolerance lets through");
    }

    #[test]
    fn halves_stay_within_their_wider_bound_and_not_within_that_of_f32() {
        use half::f16;
        let (x, w) = (noise(3, 64), noise(4, 64));
        let reference = exact(&x, &w, 0.37, Activation::Relu6, 0.0, 0.0);
        let half = |value: f32| f16::from_f32(value).to_f32();
        let stored = |values: &[f32]| values.iter().map(|&value| half(value)).collect::<Vec<_>>();
        let (x, w) = (stored(&x), stored(&w));
        let f32_sum = sums(&x, &w, half(0.37))[0].1;
        let f16_sum = half(x.iter().zip(&w).fold(0.0, |sum, (x, w)| half(sum + half(x * w))) + half(0.37));
        let error = |sum: f32| (f64::from(half(sum.clamp(0.0, 6.0))) - reference.value[0]).abs();
        let tolerance = |precision| reference.tolerance(0, precision);
        assert!(error(f32_sum) <= tolerance(Precision::F16Storage));
        assert!(error(f16_sum) <= tolerance(Precision::F16));
        assert!(tolerance(Precision::F32) < tolerance(Precision::SplitF16));
        assert!(tolerance(Precision::SplitF16) < tolerance(Precision::Tf32));
        assert!(tolerance(Precision::Tf32) < tolerance(Precision::F16Storage));
        assert!(tolerance(Precision::F16Storage) < tolerance(Precision::F16));
        assert!(error(f32_sum) > tolerance(Precision::F32));
    }

    /// Cut to ten bits of mantissa.
    fn tf32(value: f32) -> f32 {
        f32::from_bits(value.to_bits() & !0x1fff)
    }

    /// `value` as a half and 2048 times the rest of it as a half.
    fn split(value: f32) -> [f32; 2] {
        let half = |value: f32| half::f16::from_f32(value).to_f32();
        [half(value), half(2048.0 * (value - half(value)))]
    }

    /// `value` as two halves, the first rounded by its bits, halves away from zero, as in WGSL.
    fn split_by_bits(value: f32) -> [f32; 2] {
        let half = |value: f32| half::f16::from_f32(value).to_f32();
        let high = f32::from_bits(value.to_bits().wrapping_add(0x1000) & 0xffff_e000);
        [half(high), half(2048.0 * (value - high))]
    }

    fn dot(x: &[f32], w: &[f32]) -> f32 {
        x.iter().zip(w).map(|(x, w)| x * w).sum()
    }

    /// The sum of three products of halves.
    fn split_dot(x: &[f32], w: &[f32]) -> f32 {
        let parts = |values: &[f32], part: usize| values.iter().map(|&v| split(v)[part]).collect::<Vec<_>>();
        let [(x_high, x_low), (w_high, w_low)] = [x, w].map(|values| (parts(values, 0), parts(values, 1)));
        dot(&x_high, &w_high) + (dot(&x_high, &w_low) + dot(&x_low, &w_high)) / 2048.0
    }

    #[test]
    fn operands_for_matrix_units_stay_within_their_bounds_and_need_them() {
        for (len, scale) in [(1, 1.0), (7, 1e3), (64, 1e-3), (1000, 1.0)] {
            let mut beyond = [0, 0];
            for seed in 0..50 {
                let x: Vec<f32> = noise(seed, len).iter().map(|x| scale * (x + 0.1 * x.signum())).collect();
                let w: Vec<f32> = noise(seed + 900, len).iter().map(|w| w + 0.1 * w.signum()).collect();
                let reference = exact(&x, &w, 0.0, Activation::None, 0.0, 0.0);
                let tolerance = |precision| reference.tolerance(0, precision);
                let error = |sum: f32| (f64::from(sum) - reference.value[0]).abs();
                let cut = |values: &[f32]| values.iter().map(|&value| tf32(value)).collect::<Vec<_>>();
                let [rough, fine] = [dot(&cut(&x), &cut(&w)), split_dot(&x, &w)];
                assert!(error(rough) <= tolerance(Precision::Tf32), "tf32, {len} terms, seed {seed}");
                assert!(error(fine) <= tolerance(Precision::SplitF16), "split, {len} terms, seed {seed}");
                // What is left out matters: a half alone, or a rounded one, is caught.
                let halves = |values: &[f32]| values.iter().map(|&v| split(v)[0]).collect::<Vec<_>>();
                beyond[0] += usize::from(error(rough) > tolerance(Precision::SplitF16));
                beyond[1] +=
                    usize::from(error(dot(&halves(&x), &halves(&w))) > tolerance(Precision::SplitF16));
            }
            assert!(len > 64 || beyond.iter().all(|&count| count > 30), "{len} terms: {beyond:?}");
        }
    }

    #[test]
    fn a_split_value_is_off_by_a_share_of_2_to_the_minus_23_or_by_2_to_the_minus_24() {
        for (index, noise) in noise(11, 20_000).into_iter().enumerate() {
            let value = noise * f32::powi(2.0, 16 - (index % 40) as i32) * (1.0 - f32::EPSILON);
            for [high, low] in [split(value), split_by_bits(value)] {
                let error = (f64::from(high) + f64::from(low) / 2048.0 - f64::from(value)).abs();
                let bound = (f64::from(value.abs()) / f64::from(1 << 23)).max(f64::powi(2.0, -24));
                assert!(value.abs() >= 65520.0 || error <= bound, "{value}: {error} > {bound}");
            }
        }
        for value in [65520.0, -7e4, 1e30, f32::MAX, f32::INFINITY, f32::NAN, f32::from_bits(0x7fff_ffff)] {
            for [high, low] in [split(value), split_by_bits(value)] {
                assert!(!(high + low / 2048.0).is_finite(), "{value}: {high} and {low}");
            }
        }
    }

    #[test]
    fn a_thousand_half_terms_have_no_bound() {
        let reference = Sum { value: vec![1.0], magnitude: vec![1.0], terms: 1030, ..Default::default() };
        assert!(reference.tolerance(0, Precision::F16).is_infinite());
        assert!(reference.tolerance(0, Precision::F16Storage).is_finite());
    }
}
