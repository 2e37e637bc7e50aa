//! `y[.., c] = scale * (x[.., c] - zero)`, of bytes
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `.. ceil(c / 4)` | rows of words of four bytes (`ops/bytes.rs`) |
//! | `y` | `.. c` | rows of f32 |

mod examples;
mod nest;
mod operator;
mod rows;

pub(super) use examples::{NUMBERS, examples};

use super::bytes::LANES;
use super::quantize::check_scale;
use crate::dims::Dims;
use crate::emit::Bits;
use crate::error::{Error, Result};

const OP: &str = "dequantize";

/// Options of a conversion of bytes to the numbers that they stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dequantize {
    /// What a step from one byte to the next stands for.
    pub scale: Bits,
    /// The byte that stands for 0.
    pub zero: u8,
    /// The bytes along the last axis: the last word may have fewer than four.
    pub channels: usize,
}

/// A conversion of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DequantizeOp {
    source: Dims,
    target: Dims,
    options: Dequantize,
}

impl DequantizeOp {
    /// Of words of extents `source`.
    ///
    /// # Errors
    /// If the words are not as many as the channels need, or the scale is not positive and finite.
    pub fn new(source: Dims, options: Dequantize) -> Result<Self> {
        check_scale(OP, options.scale)?;
        let channels = options.channels;
        let Some((words, outer)) = source.extents().split_last() else {
            return Err(Error::shape(OP, "a value without axes", "words of four bytes along the last axis"));
        };
        if *words != channels.div_ceil(LANES) {
            let wanted = format!("{} words", channels.div_ceil(LANES));
            return Err(Error::shape(OP, format!("{words} words for {channels} bytes"), wanted));
        }
        let target = Dims::new(&[outer, &[channels]].concat())?;
        Ok(DequantizeOp { source, target, options })
    }
}
