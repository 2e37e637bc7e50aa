//! `y[n,i,j,c] = clamp(round(m[c] (b[c] + sum_{a,b} (x[n, i*s+a*d-p, j*s+b*d-p, c] - 128) w[a,b,c])) + zero, least, most)`, of
//! bytes
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `n h w ceil(c / 4)` | rows of words of four bytes (`ops/bytes.rs`) |
//! | `w` (`weights`) | `1 kh kw ceil(c / 4)` | rows of words of four signed bytes |
//! | `b` (`bias`) | `4 ceil(c / 4)` | integers of 32 bits |
//! | `m` (`scale`) | `4 ceil(c / 4)` | f32 |
//! | `y` | `n oh ow ceil(c / 4)` | rows of words of four bytes |
//!
//! Sums, rounding, `outside` and what the numbers stand for are as in [`super::quantized_conv2d`].

mod cpu;
mod direct;
mod examples;
mod operator;
mod oracle;
mod plan;

pub(super) use examples::{NUMBERS, examples};

use super::byte_windows::ByteWindows;
use super::bytes::{ByteRange, LANES};
use crate::error::{Error, Result};
use crate::ops::convolution::WindowOptions;
use crate::shape::{Border, Padding, Shape};

const OP: &str = "quantized_depthwise";

/// Options of a depthwise convolution of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuantizedDepthwise {
    /// Step of the window along height and width.
    pub stride: [usize; 2],
    /// Distance between taps along height and width.
    pub dilation: [usize; 2],
    /// How far the window goes beyond the input.
    pub padding: Padding,
    /// The byte that lies outside the input: the one that stands for 0.
    pub outside: u8,
    /// The bytes that results may be.
    pub range: ByteRange,
}

impl QuantizedDepthwise {
    /// A window that moves by one element and stays within the input.
    ///
    /// ```
    /// use diptych::nn::{ByteRange, QuantizedDepthwise};
    ///
    /// let options = QuantizedDepthwise::new(128, ByteRange::all(128));
    /// assert_eq!(options.stride, [1, 1]);
    /// ```
    pub const fn new(outside: u8, range: ByteRange) -> Self {
        QuantizedDepthwise { stride: [1, 1], dilation: [1, 1], padding: Padding::Valid, outside, range }
    }
}

/// A depthwise convolution of bytes of concrete shapes.
pub type QuantizedDepthwiseOp = ByteWindows<QuantizedDepthwise>;

impl QuantizedDepthwiseOp {
    /// Of words of shape `input`; `weights` is `1 kh kw` by the input's words.
    ///
    /// # Errors
    /// If the shapes do not fit each other, or the range is empty.
    pub fn new(input: Shape, weights: Shape, options: &QuantizedDepthwise) -> Result<Self> {
        let QuantizedDepthwise { stride, dilation, padding, outside, range } = *options;
        range.check(OP)?;
        if [weights.n, weights.c] != [1, input.c] {
            let found = format!("weights {weights} (1 kh kw, words) for input {input}");
            return Err(Error::shape(OP, found, format!("1 kh kw and {} words", input.c)));
        }
        let options = WindowOptions { stride, dilation, padding, border: Border::Zeros };
        ByteWindows::of(OP, [input, weights], [LANES * input.c, input.c], options, (outside, range))
    }
}
