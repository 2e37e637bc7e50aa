//! Named constants of a kernel.

use super::Dialect;
use super::epilogue::Bits;

/// The value of a named constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Value {
    /// An unsigned integer.
    U32(u32),
    /// A signed integer.
    I32(i32),
    /// A float.
    F32(Bits),
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Value::U32(value)
    }
}

impl Value {
    /// One line that declares the constant.
    pub(crate) fn declare(self, name: &str, dialect: Dialect) -> String {
        match (dialect, self) {
            (Dialect::Wgsl, Value::U32(value)) => format!("const {name}: u32 = {value}u;"),
            (Dialect::Wgsl, Value::I32(value)) => format!("const {name}: i32 = {value}i;"),
            (Dialect::Wgsl, Value::F32(value)) => format!("const {name}: f32 = {:?}f;", value.0),
            (Dialect::OpenClC, Value::U32(value)) => format!("#define {name} {value}u"),
            (Dialect::OpenClC, Value::I32(value)) => format!("#define {name} ({value})"),
            (Dialect::OpenClC, Value::F32(value)) => format!("#define {name} ({:?}f)", value.0),
        }
    }
}
