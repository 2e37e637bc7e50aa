//! The exponential function, in straight lines that a compiler turns into vectors.

/// What is added to round to an integer, which is then in the last bits.
const ROUND: f32 = 12_582_912.0;

/// Below, the result is 0: it would be less than the smallest normal number, or nearly.
const LEAST: f32 = -87.3;

/// `e^x` for `x` of at most 0, within 2 ULP: `2^n e^r` with `n` the integer next to `x / ln 2`, and `e^r` a
/// polynomial for `abs(r) <= ln 2 / 2` (S. Moshier, *Cephes*, `expf`). NaN stays.
#[inline(always)]
pub(crate) fn exp_of_negative(x: f32) -> f32 {
    let bounded = if x < LEAST { LEAST } else { x };
    let shifted = bounded * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    // ln 2 in two parts, the first of few bits.
    let r = bounded - n * 0.693_359_4 - n * -2.121_944_4e-4;
    let mut y = 1.987_569_1e-4;
    y = y * r + 1.398_199_9e-3;
    y = y * r + 8.333_452e-3;
    y = y * r + 4.166_579_6e-2;
    y = y * r + 0.166_666_65;
    y = y * r + 0.5;
    y = y * (r * r) + r + 1.0;
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    if x < LEAST { 0.0 } else { y * power }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_within_two_units() {
        let mut worst = 0.0f64;
        for step in 0..=870_000 {
            let x = -1e-4 * step as f32;
            let wanted = f64::from(x).exp();
            worst = worst.max((f64::from(exp_of_negative(x)) - wanted).abs() / wanted);
        }
        assert!(worst < 2.0 * f64::from(f32::EPSILON), "{worst:e}");
        assert_eq!((exp_of_negative(0.0), exp_of_negative(-0.0)), (1.0, 1.0));
        assert_eq!((exp_of_negative(-88.0), exp_of_negative(f32::NEG_INFINITY)), (0.0, 0.0));
        assert!(exp_of_negative(f32::NAN).is_nan());
    }
}
