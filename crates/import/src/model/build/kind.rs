//! Element types.

use crate::dtype::DType;
use crate::model::narrow_integers::Narrow;
use crate::model::reason::Reason;

/// The type of a tensor's elements in the file. On a device all are f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    F32,
    F16,
    Bf16,
    F64,
    I4,
    U4,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Bool,
    /// No tensor but a list of them: the number of one of the import's sequences.
    Sequence,
    /// No tensor: an optional one that is not there.
    Nothing,
}

/// Names of the codes of the format, by code.
const NAMES: [&str; 24] = [
    "UNDEFINED",
    "FLOAT",
    "UINT8",
    "INT8",
    "UINT16",
    "INT16",
    "INT32",
    "INT64",
    "STRING",
    "BOOL",
    "FLOAT16",
    "DOUBLE",
    "UINT32",
    "UINT64",
    "COMPLEX64",
    "COMPLEX128",
    "BFLOAT16",
    "FLOAT8E4M3FN",
    "FLOAT8E4M3FNUZ",
    "FLOAT8E5M2",
    "FLOAT8E5M2FNUZ",
    "UINT4",
    "INT4",
    "FLOAT4E2M1",
];

impl Kind {
    /// The type of a code of the format.
    pub(crate) fn of(code: i64) -> Result<Self, Reason> {
        Ok(match code {
            1 => Kind::F32,
            2 => Kind::U8,
            3 => Kind::I8,
            4 => Kind::U16,
            5 => Kind::I16,
            6 => Kind::I32,
            7 => Kind::I64,
            9 => Kind::Bool,
            10 => Kind::F16,
            11 => Kind::F64,
            12 => Kind::U32,
            13 => Kind::U64,
            16 => Kind::Bf16,
            21 => Kind::U4,
            22 => Kind::I4,
            other => {
                let name = usize::try_from(other).ok().and_then(|code| NAMES.get(code).copied());
                let name = name.map_or_else(|| format!("type {other}"), str::to_owned);
                return refused!("found elements of {name}, wanted floats, integers or booleans");
            }
        })
    }

    /// The type of values of the graph that stand for such elements.
    pub(crate) const fn dtype(self) -> DType {
        match self {
            Kind::F32 | Kind::Bf16 | Kind::F64 | Kind::Sequence | Kind::Nothing => DType::F32,
            Kind::F16 => DType::F16,
            Kind::I4 | Kind::I8 => DType::I8,
            Kind::U4 | Kind::U8 => DType::U8,
            Kind::I16 => DType::I16,
            Kind::U16 => DType::U16,
            Kind::I32 => DType::I32,
            Kind::U32 => DType::U32,
            Kind::I64 | Kind::U64 => DType::I64,
            Kind::Bool => DType::Bool,
        }
    }

    /// Whether elements are integers that values of the graph keep as such: those of 32 and 64 bits.
    pub(crate) const fn is_wide(self) -> bool {
        matches!(self, Kind::I32 | Kind::U32 | Kind::I64 | Kind::U64)
    }

    pub(crate) const fn is_float(self) -> bool {
        matches!(self, Kind::F32 | Kind::F16 | Kind::Bf16 | Kind::F64)
    }

    /// Whether this is no tensor.
    pub(crate) const fn is_handle(self) -> bool {
        matches!(self, Kind::Sequence | Kind::Nothing)
    }

    /// The least and the largest integer.
    pub(crate) const fn range(self) -> Option<[i64; 2]> {
        Some(match self {
            Kind::I4 => [-8, 7],
            Kind::U4 => [0, 15],
            Kind::I8 => [-128, 127],
            Kind::I16 => [-32_768, 32_767],
            Kind::I32 => [i32::MIN as i64, i32::MAX as i64],
            Kind::U8 => [0, 255],
            Kind::U16 => [0, 65_535],
            Kind::U32 => [0, u32::MAX as i64],
            Kind::I64 | Kind::U64 => [i64::MIN, i64::MAX],
            Kind::Bool => [0, 1],
            Kind::F32 | Kind::F16 | Kind::Bf16 | Kind::F64 | Kind::Sequence | Kind::Nothing => return None,
        })
    }

    /// The integers of at most 16 bits, which wrap.
    pub(crate) const fn narrow(self) -> Option<Narrow> {
        let (bits, signed) = match self {
            Kind::I4 => (4, true),
            Kind::U4 => (4, false),
            Kind::I8 => (8, true),
            Kind::U8 => (8, false),
            Kind::I16 => (16, true),
            Kind::U16 => (16, false),
            _ => return None,
        };
        Some(Narrow { bits, signed })
    }

    /// Whether every integer of this type is one of `other`.
    pub(crate) fn fits(self, other: Kind) -> bool {
        match (self.range(), other.range()) {
            (Some([low, high]), Some([least, most])) => least <= low && high <= most,
            _ => false,
        }
    }

    /// An integer as this type holds it: what is beyond wraps.
    pub(crate) const fn wrapped(self, value: i64) -> i64 {
        match (self.narrow(), self) {
            (Some(narrow), _) => narrow.of(value),
            (_, Kind::I32) => value as i32 as i64,
            (_, Kind::U32) => value as u32 as i64,
            (_, Kind::Bool) => (value != 0) as i64,
            _ => value,
        }
    }
}
