//! `y[n,i,j,c] = max_{a,b} x[n, i*s+a-p, j*s+b-p, c]`, or a mean instead of the maximum, of bytes
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `n h w ceil(c / 4)` | rows of words of four bytes (`ops/bytes.rs`) |
//! | `y` | `n oh ow ceil(c / 4)` | rows of words of four bytes |
//!
//! What lies outside the input does not take part. A mean of bytes as they are is rounded to the nearest byte, halves away from
//! `origin`: 128 for signed integers, 0 for unsigned ones, as TensorFlow Lite's. A mean with a change of scale is
//! `zero + round(f sum (x - zero_x))`, `f` in f32 having the scales' ratio over the number of elements, halves to even numbers.

mod examples;
mod operator;
mod rows;

pub(super) use examples::{NUMBERS, examples};

use super::bytes::ByteRange;
use crate::dtype::Precision;
use crate::emit::Bits;
use crate::error::{Error, Result};
use crate::ops::pool::{Pool, PoolOp, Pooling};
use crate::shape::{Padding, Shape};

const OP: &str = "quantized_pool";

/// What is computed of each window of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuantizedPooling {
    /// The largest byte.
    Max,
    /// The mean of the bytes, halves away from this one.
    Mean(u8),
    /// The sum of the distances from a byte times a factor. Each window must have all of its elements.
    Scaled {
        /// The byte that stands for 0.
        zero: u8,
        /// The scale of the input over that of the result, over the number of elements.
        factor: Bits,
    },
}

/// Options of a pooling of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuantizedPool {
    /// The maximum or a mean.
    pub pooling: QuantizedPooling,
    /// Extent of the window along height and width.
    pub window: [usize; 2],
    /// Step of the window along height and width.
    pub stride: [usize; 2],
    /// How far windows go beyond the input. Each must contain an element of it.
    pub padding: Padding,
    /// The bytes that results may be.
    pub range: ByteRange,
}

/// A pooling of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuantizedPoolOp {
    pooling: QuantizedPooling,
    windows: PoolOp,
    range: ByteRange,
}

impl QuantizedPoolOp {
    /// Of words of shape `input`.
    ///
    /// # Errors
    /// If the windows do not fit the input, one of them lies outside it, or the range is empty.
    pub fn new(input: Shape, options: &QuantizedPool) -> Result<Self> {
        let QuantizedPool { pooling, window, stride, padding, range } = *options;
        range.check(OP)?;
        let windows = Pool { stride, padding, ..Pool::new(Pooling::Max, window) };
        let windows = PoolOp::new(input, &windows, Precision::F32)?;
        if window.iter().product::<usize>() > MOST_TAPS {
            return Err(Error::unsupported(
                OP,
                "windows of more than 2^22 elements, whose sums are beyond 32 bits",
            ));
        }
        if matches!(pooling, QuantizedPooling::Scaled { .. }) && !windows.is_inside() {
            return Err(Error::unsupported(OP, "a change of scale in windows that go beyond the input"));
        }
        Ok(QuantizedPoolOp { pooling, windows, range })
    }
}

/// The most elements of a window: their sum has 32 bits.
const MOST_TAPS: usize = 1 << 22;
