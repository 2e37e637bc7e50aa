//! `y[n,i,j,o] = clamp(round(m[o] (b[o] + sum_{a,b,k} (x[n, i*s+a*d-p, j*s+b*d-p, k] - 128) w[o,a,b,k])) + zero, least, most)`, of
//! bytes
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `n h w ceil(c / 4)` | rows of words of four bytes (`ops/bytes.rs`) |
//! | `w` (`weights`) | `o kh kw ceil(c / 4)` | rows of words of four signed bytes, zeros beyond the channels |
//! | `b` (`bias`) | `o` | integers of 32 bits |
//! | `m` (`scale`) | `o` | f32 |
//! | `y` | `n oh ow ceil(o / 4)` | rows of words of four bytes |
//!
//! Sums are exact, modulo `2^32`. The product with `m` is in f32, and halves are rounded to even numbers, as XNNPACK and
//! ONNX Runtime do. Outside the input each byte is `outside`. A convolution of numbers `s_x (x - z_x)` with numbers `s_w w` and
//! the bias `s_x s_w b'` to numbers `s_y (y - zero)` has `m = s_x s_w / s_y`, `outside = z_x` and
//! `b = b' + (128 - z_x) sum w`.

mod cpu;
mod direct;
mod examples;
mod matrix;
mod operator;
mod oracle;
mod plan;
pub(in crate::ops) mod windows;

pub(super) use examples::{NUMBERS, examples};

use super::byte_windows::ByteWindows;
use super::bytes::ByteRange;
use crate::error::{Error, Result};
use crate::ops::convolution::WindowOptions;
use crate::shape::{Border, Padding, Shape};

const OP: &str = "quantized_conv2d";

/// Options of a convolution of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuantizedConv2d {
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

impl QuantizedConv2d {
    /// A window that moves by one element and stays within the input.
    ///
    /// ```
    /// use diptych::nn::{ByteRange, QuantizedConv2d};
    ///
    /// let options = QuantizedConv2d::new(128, ByteRange::all(128));
    /// assert_eq!(options.stride, [1, 1]);
    /// ```
    pub const fn new(outside: u8, range: ByteRange) -> Self {
        QuantizedConv2d { stride: [1, 1], dilation: [1, 1], padding: Padding::Valid, outside, range }
    }
}

/// A convolution of bytes of concrete shapes.
pub type QuantizedConv2dOp = ByteWindows<QuantizedConv2d>;

impl QuantizedConv2dOp {
    /// Of words of shape `input`; `weights` is `o kh kw` by the input's words.
    ///
    /// # Errors
    /// If the shapes do not fit each other, or the range is empty.
    pub fn new(input: Shape, weights: Shape, options: &QuantizedConv2d) -> Result<Self> {
        let QuantizedConv2d { stride, dilation, padding, outside, range } = *options;
        range.check(OP)?;
        if weights.c != input.c {
            let found = format!("weights {weights} (o kh kw, words) for input {input}");
            return Err(Error::shape(OP, found, format!("{} words", input.c)));
        }
        let options = WindowOptions { stride, dilation, padding, border: Border::Zeros };
        ByteWindows::of(OP, [input, weights], [weights.n, 1], options, (outside, range))
    }
}
