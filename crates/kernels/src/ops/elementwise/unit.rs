//! What arithmetic in a type is off by.

use crate::dtype::DType;
use crate::ops::tolerance::smallest_normal;

/// What arithmetic in a type is off by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    /// One operation, relative to its result.
    pub(super) v: f64,
    /// One operation in f32, in which some functions are computed in every precision.
    pub(super) v32: f64,
    /// The logarithm of a number near 1.
    pub(super) log: f64,
    /// Sine and cosine.
    pub(super) sine: f64,
    /// The smallest normal number.
    pub(super) tiny: f64,
    /// The largest number.
    pub(super) largest: f64,
}

impl Unit {
    /// What arithmetic in a type is off by.
    pub(super) fn of(dtype: DType) -> Self {
        let v32 = 2.0 * DType::F32.unit_roundoff();
        let (v, tiny) = (2.0 * dtype.unit_roundoff(), smallest_normal(dtype));
        match dtype {
            DType::F16 => {
                let coarse = f64::powi(2.0, -7);
                Unit { v, v32, log: coarse, sine: coarse, tiny, largest: 65504.0 }
            }
            _ => Unit {
                v,
                v32,
                log: f64::powi(2.0, -21),
                sine: f64::powi(2.0, -11),
                tiny,
                largest: f64::from(f32::MAX),
            },
        }
    }
}
