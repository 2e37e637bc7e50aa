//! How far a correct kernel may be from the oracle: the bound of a program follows from its parts.
//!
//! Each input, and each step, has an interval that contains what any correct kernel may have there. A step's
//! interval is what its function makes of its arguments' intervals, wider by what the function itself may
//! be off. So an error is carried exactly as far as the function carries it: by its slope, and over a jump
//! of `floor` or of a comparison where an argument's interval contains one. The bound is the distance from
//! the exact value to the farther end of the last interval.
//!
//! An input that is stored as f16 was rounded once unless it is one, and so is the result; a number of the program is rounded
//! where sums are f16. With `v = 2u` as in `ops/tolerance.rs`, a function's own error is:
//!
//! | function | own error | because |
//! |---|---|---|
//! | `maximum`, `clamp`, `abs`, `floor`, comparisons, ... | 0 | a choice of values that exist |
//! | `+ - *`, square | `v abs(f)` | one rounding |
//! | quotient | `2.5 v abs(f)` | 2.5 ULP in both languages |
//! | `sqrt` | `5 v abs(f)` | WGSL: `1 / inverseSqrt(x)`; OpenCL: 3 ULP |
//! | `exp` | `(3 + 2 abs(x)) v abs(f)` | WGSL's ULP in f32 |
//! | `log` | `2^-21 + 3 v abs(f)`; f16: `2^-7` | WGSL: absolute in [0.5, 2], else 3 ULP |
//! | `sin`, `cos` | `2^-11 max(1, abs(x) / pi)`; f16: `2^-7` | WGSL's, within [-pi, pi]; beyond, neither language promises anything that a reduction of the argument does not keep |
//! | `pow` | `(16 + 2 t) v abs(f)` and `abs(f)` times what `log2` is off by times `abs(y)`, `t = abs(y log2 x)` | WGSL: `exp2(y log2(x))`; OpenCL: 16 ULP |
//! | sigmoid, tanh, hard_swish, leaky | those of `ops/tolerance.rs` | the same texts |
//! | elu | `4.1 v` | below 0 the exponential's error is at most `3 v`, at 0 |
//! | softplus | `2^-21 + 8 v + v abs(f)` | the exponential of `-abs(x)`, then `log` of at most 2 |
//! | gelu | `abs(x) / 2 (1.5e-7 + 130 v) + 4 v abs(f)` | the approximation of `erf` is off by 1.5e-7 (Abramowitz and Stegun, *Handbook of Mathematical Functions*, 7.1.26), its polynomial, whose coefficients have magnitudes of 4.5 together and a slope of 17, by `120 v`, and the exponential by `3 v` |
//! | gelu_tanh | `abs(x) / 2 (1e-5 + 56 v) + 4 v abs(f)` | that of tanh, and of its argument `6 v z` with the slope `1 - tanh(z)^2 < 0.45 / z` |
//!
//! **Underflow.** What rounds also loses up to the smallest normal number. **Overflow.** Where an interval
//! reaches beyond the largest number of the type, the result may be infinite, and there is no bound.

use super::interval::Interval;
use super::unit::Unit;
use crate::dtype::{DType, Precision};

impl Unit {
    /// What an interval becomes where it is rounded once to this type.
    pub(in crate::ops) fn rounded(&self, interval: Interval) -> Interval {
        if interval.lo == 0.0 && interval.hi == 0.0 {
            return interval;
        }
        self.limited(interval.widened(self.v * interval.magnitude() + self.tiny))
    }

    /// The interval, infinite where it reaches beyond the largest number.
    pub(in crate::ops) fn limited(&self, Interval { lo, hi }: Interval) -> Interval {
        let lo = if lo < -self.largest { f64::NEG_INFINITY } else { lo };
        let hi = if hi > self.largest { f64::INFINITY } else { hi };
        Interval { lo, hi }
    }
}

/// The types whose roundings a program meets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Units {
    /// Arithmetic.
    pub(super) sums: Unit,
    /// What inputs and the result are stored as, where that rounds.
    pub(super) store: Option<Unit>,
    /// What numbers are rounded to, if they are.
    pub(super) numbers: Option<Unit>,
}

impl Units {
    pub(super) fn of(precision: Precision) -> Self {
        let half = |dtype: DType| (dtype == DType::F16).then(|| Unit::of(dtype));
        Units {
            sums: Unit::of(precision.accumulator()),
            store: half(precision.storage()),
            numbers: half(precision.accumulator()),
        }
    }
}
