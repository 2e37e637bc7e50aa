//! What becomes of sums before they are stored.

use pulp::Simd;

/// What is done to a sum before it leaves its register. A NaN stays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum After {
    /// Nothing.
    Nothing,
    /// No less than the first, no more than the second.
    Bounds([f32; 2]),
    /// `x` if `x >= 0`, else `slope * x`.
    Slope(f32),
    /// `x` if `x >= 0`, else `slope * x` with the column's own slope.
    Slopes,
    /// `x * min(max(x + 3, 0), 6) / 6`.
    HardSwish,
}

impl After {
    /// `slope` has the columns' slopes, where there are any.
    #[inline(always)]
    pub(crate) fn apply<S: Simd>(self, simd: S, sum: S::f32s, slope: S::f32s) -> S::f32s {
        match self {
            After::Nothing => sum,
            After::Bounds(bounds) => within(simd, sum, bounds),
            After::Slope(slope) => sloped(simd, sum, simd.splat_f32s(slope)),
            After::Slopes => sloped(simd, sum, slope),
            After::HardSwish => {
                let gate = within(simd, simd.add_f32s(sum, simd.splat_f32s(3.0)), [0.0, 6.0]);
                simd.mul_f32s(sum, simd.mul_f32s(gate, simd.splat_f32s(1.0 / 6.0)))
            }
        }
    }
}

#[inline(always)]
pub(super) fn within<S: Simd>(simd: S, x: S::f32s, [low, high]: [f32; 2]) -> S::f32s {
    bounded(simd, x, simd.splat_f32s(low), simd.splat_f32s(high))
}

/// Whether the maximum and the minimum of vectors are their second operand where one is NaN, as they are on x86.
const SECOND_OF_NAN: bool = cfg!(any(target_arch = "x86", target_arch = "x86_64"));

/// `min(max(x, low), high)`, and NaN of NaN.
#[inline(always)]
pub(crate) fn bounded<S: Simd>(simd: S, x: S::f32s, low: S::f32s, high: S::f32s) -> S::f32s {
    if SECOND_OF_NAN && S::F32_LANES > 1 {
        return simd.min_f32s(high, simd.max_f32s(low, x));
    }
    #[cfg(all(target_family = "wasm", target_feature = "simd128"))]
    if S::F32_LANES == 4 {
        use core::arch::wasm32::{f32x4_pmax, f32x4_pmin, v128};
        let [x, low, high]: [v128; 3] = [x, low, high].map(bytemuck::cast);
        // Of `a` and `b`, `b` only if it is more than `a`, or less.
        return bytemuck::cast(f32x4_pmin(f32x4_pmax(x, low), high));
    }
    let x = simd.select_f32s(simd.less_than_f32s(x, low), low, x);
    simd.select_f32s(simd.greater_than_f32s(x, high), high, x)
}

#[inline(always)]
pub(super) fn sloped<S: Simd>(simd: S, x: S::f32s, slope: S::f32s) -> S::f32s {
    let negative = simd.less_than_f32s(x, simd.splat_f32s(0.0));
    simd.select_f32s(negative, simd.mul_f32s(slope, x), x)
}

/// What becomes of sums before they are stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finish<'a> {
    pub(crate) after: After,
    /// Added last, or first of all; laid out as the whole rows of the destination, `stride` apart, from the
    /// tile's first row on.
    pub(crate) residual: Option<&'a [f32]>,
    /// Whether the residual is added before the activation.
    pub(crate) first: bool,
    pub(crate) stride: usize,
}
