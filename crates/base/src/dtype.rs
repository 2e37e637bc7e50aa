//! Element types and the precision a kernel computes in.

#[cfg(not(target_family = "wasm"))]
use half::f16;
use std::fmt;

/// The type of one stored element.
///
/// On a device an element takes a word of 32 bits, or half of one: integers of 32 bits are what they are, and those of
/// 64 bits are kept in 32 ([`DType::I64`]). Integers of at most 16 bits and booleans are whole numbers in f32, which
/// holds all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum DType {
    /// IEEE 754 binary32.
    #[default]
    F32,
    /// IEEE 754 binary16.
    F16,
    /// A signed integer of 64 bits: exact on the CPU. On a GPU it is one of 32 bits, and an input that does not fit is
    /// refused.
    I64,
    /// A signed integer of 32 bits.
    I32,
    /// A signed integer of 16 bits.
    I16,
    /// A signed integer of 8 bits.
    I8,
    /// An unsigned integer of 32 bits.
    U32,
    /// An unsigned integer of 16 bits.
    U16,
    /// An unsigned integer of 8 bits.
    U8,
    /// True or false: 1 or 0.
    Bool,
}

impl DType {
    /// Every type.
    pub const ALL: [DType; 10] = [
        DType::F32,
        DType::F16,
        DType::I64,
        DType::I32,
        DType::I16,
        DType::I8,
        DType::U32,
        DType::U16,
        DType::U8,
        DType::Bool,
    ];

    /// Size of one element in bytes.
    ///
    /// ```
    /// use diptych::DType;
    ///
    /// assert_eq!((DType::F32.bytes(), DType::F16.bytes(), DType::I64.bytes()), (4, 2, 8));
    /// ```
    pub const fn bytes(self) -> usize {
        match self {
            DType::I64 => 8,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F16 | DType::I16 | DType::U16 => 2,
            DType::I8 | DType::U8 | DType::Bool => 1,
        }
    }

    /// Whether it is a floating-point type.
    ///
    /// ```
    /// use diptych::DType;
    ///
    /// assert!(DType::F16.is_float() && !DType::Bool.is_float());
    /// ```
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F16)
    }

    /// The least and the largest number that an integer or a boolean of this type is; `None` for floats.
    ///
    /// ```
    /// use diptych::DType;
    ///
    /// assert_eq!(DType::U8.range(), Some([0, 255]));
    /// assert_eq!(DType::F32.range(), None);
    /// ```
    pub const fn range(self) -> Option<[i64; 2]> {
        Some(match self {
            DType::F32 | DType::F16 => return None,
            DType::I64 => [i64::MIN, i64::MAX],
            DType::I32 => [i32::MIN as i64, i32::MAX as i64],
            DType::I16 => [i16::MIN as i64, i16::MAX as i64],
            DType::I8 => [i8::MIN as i64, i8::MAX as i64],
            DType::U32 => [0, u32::MAX as i64],
            DType::U16 => [0, u16::MAX as i64],
            DType::U8 => [0, u8::MAX as i64],
            DType::Bool => [0, 1],
        })
    }

    /// The type of the words that elements of this type are kept in while a network runs on the CPU: f32, which holds
    /// every integer of at most 16 bits, or an integer.
    #[doc(hidden)]
    pub const fn word(self) -> DType {
        match self {
            DType::I64 | DType::I32 | DType::U32 => self,
            _ => DType::F32,
        }
    }

    /// The type in which a device keeps an element: [`DType::word`], but an integer of 64 bits is kept in 32.
    #[doc(hidden)]
    pub const fn device_word(self) -> DType {
        match self.word() {
            DType::I64 => DType::I32,
            word => word,
        }
    }

    /// Words of 32 bits that an element of a word's type takes: two if it has 64.
    #[doc(hidden)]
    pub const fn words(self) -> usize {
        self.bytes().div_ceil(4)
    }

    /// Unit roundoff `u`: a value rounded to nearest is off by at most `u` times itself.
    ///
    /// `2^-24` for binary32 and `2^-11` for binary16 (Higham, *Accuracy and Stability of
    /// Numerical Algorithms*, 2nd ed., table 2.1). Integers are not rounded.
    #[doc(hidden)]
    pub const fn unit_roundoff(self) -> f64 {
        match self {
            DType::F32 => 1.0 / (1u64 << 24) as f64,
            DType::F16 => 1.0 / (1u64 << 11) as f64,
            _ => 0.0,
        }
    }
}

#[cfg(not(target_family = "wasm"))]
impl DType {
    /// Words of 32 bits as they are stored: numbers rounded to nearest where this is f16, the words' own bits otherwise.
    #[doc(hidden)]
    pub fn encode(self, words: &[f32]) -> Vec<u8> {
        match self {
            DType::F16 => words.iter().flat_map(|&value| f16::from_f32(value).to_ne_bytes()).collect(),
            _ => bytemuck::cast_slice(words).to_vec(),
        }
    }

    /// What `bytes` hold: whole elements, in words of 32 bits.
    #[doc(hidden)]
    pub fn decode(self, bytes: &[u8]) -> Vec<f32> {
        match self {
            DType::F16 => {
                bytemuck::pod_collect_to_vec::<u8, f16>(bytes).into_iter().map(f16::to_f32).collect()
            }
            _ => bytemuck::pod_collect_to_vec(bytes),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::I64 => "i64",
            DType::I32 => "i32",
            DType::I16 => "i16",
            DType::I8 => "i8",
            DType::U32 => "u32",
            DType::U16 => "u16",
            DType::U8 => "u8",
            DType::Bool => "bool",
        })
    }
}

/// The types in which feature maps and weights are stored, multiplied and summed.
///
/// | precision | storage | products | sums | needs |
/// |---|---|---|---|---|
/// | `F32` | f32 | f32 | f32 | nothing |
/// | `Tf32` | f32 | of tf32, where there are matrix units, else f32 | f32 | nothing |
/// | `SplitF16` | f32 | three of f16, where there are matrix units, else f32 | f32 | nothing |
/// | `F16Storage` | f16 | f32 | f32 | nothing: halves are packed in pairs where the device has no f16 |
/// | `F16` | f16 | f16 | f16 | native half arithmetic |
///
/// `Tf32` and `SplitF16` are permissions: products of f32 matrices *may* be computed less precisely,
/// on units that multiply small matrices, and every kernel of `F32` is allowed as well. So they run
/// on any device and for any op, never less precisely than said and, where nothing is gained, as
/// precisely as `F32`. `F32` itself never uses such a unit. The label of a kernel says what it computes
/// in: `gemm_tiled_f32` may serve a product in `Tf32`, `gemm_matrix_ptx_tf32` never one in `F32`.
///
/// With `Tf32` each operand keeps its range and loses all but ten bits of its mantissa: it is off by less than
/// `2^-10` of itself, a product by less than `2^-9`. With `SplitF16` an operand `x` is the sum of the half
/// `h` nearest to it and the half nearest to the rest, `l = 2^-11 f16(2^11 (x - h))`, which is off by
/// at most `2^-23 abs(x)`, or `2^-24` if `abs(x) < 2^-14`; the product of two `l` is left out, so a
/// product is off by at most `2^-21` of itself, eight times as much as in f32 (Ootomo and Yokota,
/// *Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak
/// performance*, 2022). Matrix units cut sums off where f32 arithmetic rounds them, which the bound of
/// the crate's tests allows for. Halves end at 65504: an operand of 65520 or more makes each sum that it
/// is part of infinite or NaN where a matrix unit computes it. An activation that is bounded makes a finite
/// number of that, so operands of such a size want `F32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Precision {
    /// f32 storage and arithmetic.
    #[default]
    F32,
    /// For sessions: f16 storage for each node where a calibration allows it or the bound of its values does, on
    /// devices that have halves; f32 elsewhere. A single op computes in f32.
    Auto,
    /// f32 storage; matrix units may round the operands to ten bits of mantissa.
    Tf32,
    /// f32 storage; matrix units may multiply each operand as the sum of two halves.
    SplitF16,
    /// f16 storage, f32 arithmetic.
    F16Storage,
    /// f16 storage and arithmetic.
    F16,
}

/// What a precision permits a matrix unit to do to the operands of a product.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixRounding {
    /// Nothing: none computes the product.
    None,
    /// It multiplies halves that are stored as such.
    Stored,
    /// It rounds them to ten bits of mantissa.
    Tf32,
    /// It takes each as a sum of two halves.
    Split,
}

impl Precision {
    /// What a matrix unit may do to operands.
    #[doc(hidden)]
    pub const fn matrix_rounding(self) -> MatrixRounding {
        match self {
            Precision::F32 | Precision::Auto | Precision::F16 => MatrixRounding::None,
            Precision::F16Storage => MatrixRounding::Stored,
            Precision::Tf32 => MatrixRounding::Tf32,
            Precision::SplitF16 => MatrixRounding::Split,
        }
    }

    /// Every precision that a kernel is made for.
    pub const ALL: [Precision; 5] =
        [Precision::F32, Precision::Tf32, Precision::SplitF16, Precision::F16Storage, Precision::F16];

    /// What feature maps and packed weights are stored as.
    ///
    /// ```
    /// use diptych::{DType, Precision};
    ///
    /// assert_eq!(Precision::F16Storage.storage(), DType::F16);
    /// assert_eq!(Precision::Tf32.storage(), DType::F32);
    /// ```
    pub const fn storage(self) -> DType {
        match self {
            Precision::F32 | Precision::Auto | Precision::Tf32 | Precision::SplitF16 => DType::F32,
            Precision::F16Storage | Precision::F16 => DType::F16,
        }
    }

    /// What products are summed in.
    #[doc(hidden)]
    pub const fn accumulator(self) -> DType {
        match self {
            Precision::F16 => DType::F16,
            _ => DType::F32,
        }
    }

    /// What a kernel that uses no matrix unit computes in where this precision is asked for.
    #[must_use]
    #[doc(hidden)]
    pub const fn without_matrix_units(self) -> Self {
        match self {
            Precision::Auto | Precision::Tf32 | Precision::SplitF16 => Precision::F32,
            Precision::F32 | Precision::F16Storage | Precision::F16 => self,
        }
    }

    /// What an op that sums in f32 whatever it stores computes in where this precision is asked for: its sums
    /// may have so many terms, or so large ones, that halves would not hold them.
    #[must_use]
    #[doc(hidden)]
    pub const fn with_f32_sums(self) -> Self {
        match self {
            Precision::F16Storage | Precision::F16 => Precision::F16Storage,
            Precision::F32 | Precision::Auto | Precision::Tf32 | Precision::SplitF16 => Precision::F32,
        }
    }

    /// What matrix products in a graph compute in where this precision is asked for: they sum in f32.
    #[must_use]
    #[doc(hidden)]
    pub const fn of_products(self) -> Self {
        match self {
            Precision::F16Storage | Precision::F16 => Precision::F16Storage,
            Precision::F32 | Precision::Auto => Precision::F32,
            Precision::Tf32 | Precision::SplitF16 => self,
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Precision::F32 => "f32",
            Precision::Auto => "auto",
            Precision::Tf32 => "tf32",
            Precision::SplitF16 => "splitf16",
            Precision::F16Storage => "f16s",
            Precision::F16 => "f16",
        })
    }
}
