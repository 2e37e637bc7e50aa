//! What arithmetic in a type is off by.

use crate::dtype::DType;
use crate::ops::tolerance::smallest_normal;

/// What arithmetic in a type is off by.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Unit {
    /// One operation, relative to its result.
    pub(in crate::ops) v: f64,
    /// One operation in f32, in which some functions are computed in every precision.
    pub(in crate::ops) v32: f64,
    /// The logarithm of a number near 1.
    pub(in crate::ops) log: f64,
    /// Sine and cosine.
    pub(in crate::ops) sine: f64,
    /// The smallest normal number.
    pub(in crate::ops) tiny: f64,
    /// The largest number.
    pub(in crate::ops) largest: f64,
}

impl Unit {
    /// What arithmetic in a type is off by.
    pub(in crate::ops) fn of(dtype: DType) -> Self {
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
