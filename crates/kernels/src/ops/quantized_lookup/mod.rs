//! `y[i] = table[x[i]]`, of bytes
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | any | rows of words of four bytes (`ops/bytes.rs`) |
//! | `table` (`arg0`) | 64 words, which hold 256 bytes | rows |
//! | `y` | as `x` | rows of words of four bytes |
//!
//! It is every function of one quantized value: an activation, or a change of scale and zero point.

mod examples;
mod operator;
mod rows;

pub(super) use examples::{NUMBERS, examples};

use super::bytes::LANES;
use crate::dims::Dims;
use crate::error::{Error, Result};

const OP: &str = "quantized_lookup";

/// Words of a table.
const TABLE: usize = 256 / LANES;

/// Looks bytes up in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct QuantizedLookup;

/// A look-up of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuantizedLookupOp {
    dims: Dims,
}

impl QuantizedLookupOp {
    /// Of words of extents `dims` in a table of extents `table`.
    ///
    /// # Errors
    /// If the table has other than 64 words.
    pub fn new(dims: Dims, table: Dims) -> Result<Self> {
        if table.elements() != TABLE {
            return Err(Error::shape(OP, format!("a table of {table} words"), "64 words: 256 bytes"));
        }
        Ok(QuantizedLookupOp { dims })
    }
}
