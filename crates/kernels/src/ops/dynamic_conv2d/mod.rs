//! `y[n,i,j,o] = f(s_p m[o] t[n,i,j,o] + bias[o]) + residual[n,i,j,o]`, or `t` itself, with the integers
//! `t[n,i,j,o] = sum_{a,b,k} (x[n, i*s+a*d-p, j*s+b*d-p, k] - z_p) w[o,a,b,k]` and the range `(s_p, z_p)` of the pixel
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `n h w ceil(c / 4)` | rows of words of four bytes (`ops/bytes.rs`) |
//! | `ranges` (`arg0`) | `r 3`, as `dynamic_range` has them | rows of f32 |
//! | `w` (`weights`) | `o kh kw ceil(c / 4)` | rows of words of four signed bytes, zeros beyond the channels |
//! | `m` (`scale`) | `o`; none if the result is `t` | f32 |
//! | `bias`, `slope` | `o` | |
//! | `y`, `residual` | `n oh ow o` | rows of f32, or of i32 if the result is `t` |
//!
//! A range is that of as many neighbouring pixels of the result as there are for each: of an image, or of a pixel where windows are
//! one pixel each, which makes this a matrix product. Outside the input each byte is `z_p`. Sums are exact, modulo `2^32`; a sum
//! is rounded to f32, and so are its products with `s_p` and with `m[o]`.

mod arguments;
mod cpu;
mod direct;
mod examples;
mod operator;
mod oracle;
mod plan;

pub(super) use examples::{NUMBERS, examples};

use super::bytes;
use super::dynamic_quantize::range_count;
use super::dynamic_range::NUMBERS_OF_RANGE;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::emit::{Activation, Epilogue};
use crate::error::{Error, Result};
use crate::ops::convolution::{Convolution, WindowOptions};
use crate::shape::{Border, Padding, Shape};

const OP: &str = "dynamic_conv2d";

/// Options of a convolution of bytes whose ranges were found at the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DynamicConv2d {
    /// Step of the window along height and width.
    pub stride: [usize; 2],
    /// Distance between taps along height and width.
    pub dilation: [usize; 2],
    /// How far the window goes beyond the input.
    pub padding: Padding,
    /// Whether the result is the sums of integers, and not the numbers that they stand for.
    pub sums: bool,
    /// The function of the numbers.
    pub activation: Activation,
}

impl DynamicConv2d {
    /// Numbers, of a window that moves by one element and stays within the input.
    ///
    /// ```
    /// use diptych::nn::DynamicConv2d;
    ///
    /// assert_eq!(DynamicConv2d::new().stride, [1, 1]);
    /// ```
    pub const fn new() -> Self {
        let (padding, activation) = (Padding::Valid, Activation::None);
        DynamicConv2d { stride: [1, 1], dilation: [1, 1], padding, sums: false, activation }
    }
}

impl Default for DynamicConv2d {
    fn default() -> Self {
        Self::new()
    }
}

/// What a node has beside its input and weights.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EpilogueOperands {
    bias: bool,
    residual: bool,
}

/// A convolution of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DynamicConv2dOp {
    /// Its windows. Channels are counted in words.
    windows: Convolution,
    /// Output channels.
    channels: usize,
    /// The extents of the ranges.
    ranges: Dims,
    sums: bool,
    epilogue: Epilogue,
}

impl DynamicConv2dOp {
    /// Of words of shape `input` with ranges of extents `ranges`; `weights` is `o kh kw` by the input's words.
    ///
    /// # Errors
    /// If the shapes do not fit each other, or pixels of one window have several ranges.
    pub fn new(input: Shape, weights: Shape, ranges: Dims, options: &DynamicConv2d) -> Result<Self> {
        Self::with(input, weights, ranges, options, EpilogueOperands::default())
    }

    fn with(
        input: Shape,
        weights: Shape,
        ranges: Dims,
        options: &DynamicConv2d,
        given: EpilogueOperands,
    ) -> Result<Self> {
        let DynamicConv2d { stride, dilation, padding, sums, activation } = *options;
        if weights.c != input.c {
            let found = format!("weights {weights} (o kh kw, words) for input {input}");
            return Err(Error::shape(OP, found, format!("{} words", input.c)));
        }
        let epilogue = Epilogue::new(given.bias, activation, given.residual.into());
        if sums && epilogue != Epilogue::default() {
            let found = "sums of integers with a bias, a function or a residual";
            return Err(Error::shape(OP, found, "sums alone"));
        }
        let options = WindowOptions { stride, dilation, padding, border: Border::Zeros };
        let windows = bytes::windows(OP, [input, weights], [weights.n, 1], options)?;
        let output = windows.output;
        let count = range_count(OP, ranges, output.n * output.h * output.w)?;
        let pixels = [input, output].map(|map| [map.n, map.h, map.w]);
        let alone = [windows.kernel, stride] == [[1, 1]; 2] && pixels[0] == pixels[1];
        if !alone && !input.n.is_multiple_of(count) {
            let found = format!("{count} ranges for {} images and windows of several pixels", input.n);
            return Err(Error::shape(OP, found, "a range for each image or for some"));
        }
        Ok(DynamicConv2dOp { windows, channels: weights.n, ranges, sums, epilogue })
    }

    /// The extents of the weights.
    fn weights(&self) -> Shape {
        let [h, w] = self.windows.kernel;
        Shape::nhwc(self.channels, h, w, self.windows.input.c)
    }

    /// The extents of the result.
    fn output(&self) -> Shape {
        let Shape { n, h, w, .. } = self.windows.output;
        Shape::nhwc(n, h, w, self.channels)
    }

    /// Pixels of the result.
    fn pixels(&self) -> usize {
        let Shape { n, h, w, .. } = self.windows.output;
        n * h * w
    }

    /// How many ranges there are.
    fn count(&self) -> usize {
        self.ranges.elements() / NUMBERS_OF_RANGE
    }

    /// Neighbouring pixels of the result that have one range.
    fn span(&self) -> usize {
        self.pixels() / self.count()
    }

    /// The range of an image, of which there is one.
    fn range_of(&self, image: usize) -> usize {
        let Shape { h, w, .. } = self.windows.output;
        image * h * w / self.span().max(1)
    }

    /// The type of the result.
    fn dtype(&self) -> DType {
        if self.sums { DType::I32 } else { DType::F32 }
    }
}
