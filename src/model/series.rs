//! Sums of powers that functions are computed with where no op computes them.

/// The arc tangent of `z` from 0 to 1 is `z` times a sum of powers of `z^2`: their factors, the highest power first.
///
/// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 4.4.49, off by at most 2e-8.
pub(in crate::model) const ARC_TANGENT: [f32; 9] = [
    0.002_866_225_7,
    -0.016_165_737,
    0.042_909_614,
    -0.075_289_64,
    0.106_562_64,
    -0.142_089,
    0.199_935_51,
    -0.333_331_45,
    1.0,
];
