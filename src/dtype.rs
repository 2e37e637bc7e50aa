//! Element types and the precision a kernel computes in.

use half::f16;
use std::fmt;

/// The type of one stored element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DType {
    /// IEEE 754 binary32.
    #[default]
    F32,
    /// IEEE 754 binary16.
    F16,
}

impl DType {
    /// Size of one element in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            DType::F32 => 4,
            DType::F16 => 2,
        }
    }

    /// Unit roundoff `u`: a value rounded to nearest is off by at most `u` times itself.
    ///
    /// `2^-24` for binary32 and `2^-11` for binary16 (Higham, *Accuracy and Stability of
    /// Numerical Algorithms*, 2nd ed., table 2.1).
    pub const fn unit_roundoff(self) -> f64 {
        match self {
            DType::F32 => 1.0 / (1u64 << 24) as f64,
            DType::F16 => 1.0 / (1u64 << 11) as f64,
        }
    }
}

impl DType {
    /// `values` as they are stored, rounded to nearest.
    pub(crate) fn encode(self, values: &[f32]) -> Vec<u8> {
        match self {
            DType::F32 => bytemuck::cast_slice(values).to_vec(),
            DType::F16 => values.iter().flat_map(|&value| f16::from_f32(value).to_ne_bytes()).collect(),
        }
    }

    /// What `bytes` hold: whole elements.
    pub(crate) fn decode(self, bytes: &[u8]) -> Vec<f32> {
        match self {
            DType::F32 => bytemuck::pod_collect_to_vec(bytes),
            DType::F16 => {
                bytemuck::pod_collect_to_vec::<u8, f16>(bytes).into_iter().map(f16::to_f32).collect()
            }
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::F32 => "f32",
            DType::F16 => "f16",
        })
    }
}

/// What feature maps and weights are stored as, and what products are summed in.
///
/// | precision | storage | products and sums | needs |
/// |---|---|---|---|
/// | `F32` | f32 | f32 | nothing |
/// | `F16Storage` | f16 | f32 | nothing: halves are packed in pairs where the device has no f16 |
/// | `F16` | f16 | f16 | native half arithmetic |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// f32 storage and arithmetic.
    #[default]
    F32,
    /// f16 storage, f32 arithmetic.
    F16Storage,
    /// f16 storage and arithmetic.
    F16,
}

impl Precision {
    /// What feature maps and packed weights are stored as.
    pub const fn storage(self) -> DType {
        match self {
            Precision::F32 => DType::F32,
            Precision::F16Storage | Precision::F16 => DType::F16,
        }
    }

    /// What products are summed in.
    pub const fn accumulator(self) -> DType {
        match self {
            Precision::F32 | Precision::F16Storage => DType::F32,
            Precision::F16 => DType::F16,
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Precision::F32 => "f32",
            Precision::F16Storage => "f16s",
            Precision::F16 => "f16",
        })
    }
}
