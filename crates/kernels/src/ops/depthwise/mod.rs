//! `y[n,i,j,c*M+m] = f(sum_{a,b} x[n, i*s+a*d-p, j*s+b*d-p, c] * w[a,b,c*M+m] + bias[c*M+m]) + r`
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `n h w c` | C4 on the device |
//! | `w` | `1 kh kw c*M` | NHWC, as TensorFlow Lite stores it |
//! | `bias`, `slope` | `c*M` | |
//! | `y`, `r` | `n oh ow c*M` | C4 on the device |
//!
//! `M` is the channel multiplier. Zeros lie outside the input.
//!
//! A NaN or an infinity reaches the windows that read it. A weight whose tap is outside of the input is left out or
//! times 0, kernel by kernel: an infinite or NaN weight may make the pixels at the border NaN that it does not reach.

mod arguments;
pub(super) mod cpu;
mod direct;
mod examples;
mod local;
mod micro;
mod multiplier;
mod operator;
mod oracle;
mod plan;
mod rows;

pub use crate::ops::row_place::RowPlace;
pub(super) use examples::{NUMBERS, examples};
pub use operator::DepthwiseInRows;

pub(super) use oracle::oracle;

use crate::dtype::Precision;
use crate::emit::{Activation, Epilogue, Residual};
use crate::error::{Error, Result};
use crate::ops::convolution::{self, Convolution, WindowOptions};
use crate::ops::windowed::Windowed;
use crate::shape::{Border, Padding, Shape};

const OP: &str = "depthwise";

/// Options of a depthwise 2D convolution. The channel multiplier is the ratio of the weights'
/// channels to the input's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Depthwise {
    /// Step of the window along height and width.
    pub stride: [usize; 2],
    /// Distance between taps along height and width.
    pub dilation: [usize; 2],
    /// How far the window goes beyond the input.
    pub padding: Padding,
    /// Applied to the biased sum.
    pub activation: Activation,
}

impl Default for Depthwise {
    fn default() -> Self {
        Depthwise { stride: [1, 1], dilation: [1, 1], padding: Padding::Valid, activation: Activation::None }
    }
}

/// A depthwise convolution of concrete shapes: a [`Convolution`] with as many groups as input
/// channels.
pub type DepthwiseOp = Windowed<Depthwise>;

impl DepthwiseOp {
    /// Checks the shapes; `weights` is `1 kh kw c*M`.
    ///
    /// # Errors
    /// If the shapes do not fit each other.
    pub fn new(
        input: Shape,
        weights: Shape,
        options: &Depthwise,
        bias: bool,
        residual: impl Into<Residual>,
        precision: Precision,
    ) -> Result<Self> {
        if weights.n != 1 || input.c == 0 || weights.c == 0 || !weights.c.is_multiple_of(input.c) {
            return Err(Error::shape(
                OP,
                format!("weights {weights} (1 kh kw c*multiplier) for input {input}"),
                format!("1 kh kw and a multiple of {} channels", input.c),
            ));
        }
        convolution::check_weights(OP, [weights.c, weights.h, weights.w, 1])?;
        Convolution::new(
            OP,
            input,
            [weights.h, weights.w],
            weights.c,
            input.c,
            WindowOptions {
                stride: options.stride,
                dilation: options.dilation,
                padding: options.padding,
                border: Border::Zeros,
            },
            Epilogue::new(bias, options.activation, residual.into()),
            precision,
        )
        .map(DepthwiseOp::of)
    }

    /// The convolution of a map that lies within a value of rows: its result lies in rows as well, and so does a residual.
    ///
    /// # Errors
    /// If it does not lie there in whole vec4s, or an input channel has several output channels.
    pub fn in_rows(self, place: RowPlace) -> Result<Self> {
        if self.multiplier() != 1 {
            let found = format!("{} output channels of each input channel in rows", self.multiplier());
            return Err(Error::unsupported(OP, found));
        }
        place.check(OP, self.0.input)?;
        Ok(DepthwiseOp::of(Convolution { rows: Some(place), ..self.0 }))
    }

    /// Output channels per input channel.
    pub const fn multiplier(&self) -> usize {
        self.0.group_outputs()
    }
}
