//! `y[n,i,j,o] = f(sum_{a,b,k} x[n, i*s+a*d-p, j*s+b*d-p, g*I+k] * w[o,a,b,k] + bias[o]) + r[n,i,j,o]`
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `n h w c` | C4 on the device |
//! | `w` | `oc kh kw c/groups` | NHWC with `n = oc`, as TensorFlow Lite stores it |
//! | `bias`, `slope` | `oc` | |
//! | `y`, `r` | `n oh ow oc` | C4 on the device |
//!
//! Zeros lie outside the input, or what `border` says. `g = o / (oc / groups)`, `I = c / groups`. Groups do not touch: an
//! infinity or NaN in one is not seen in another.
//!
//! A NaN or an infinity of the input reaches the windows that read it; Winograd's kernels, which sum other terms, may
//! spread it over the pixels of a tile as NaN. A weight whose tap is outside of the input is left out or times 0, kernel
//! by kernel: an infinite or NaN weight may make the pixels at the border NaN that it does not reach.

mod arguments;
mod cpu;
mod direct;
mod examples;
mod grouped;
mod matrix;
mod operator;
mod oracle;
mod plan;
mod shallow;
mod sliding;
mod split;
mod tiled;
mod transforms;
pub(in crate::ops) mod windows;
mod winograd;
mod winograd_bound;

pub use shallow::MAX_UNROLLED;

pub(super) use examples::{NUMBERS, examples};

use crate::dtype::Precision;
use crate::emit::{Activation, Epilogue, Residual};
use crate::error::{Error, Result};
use crate::ops::convolution::{self, Convolution, WindowOptions};
use crate::ops::windowed::Windowed;
use crate::shape::{Border, Padding, Shape};

const OP: &str = "conv2d";

/// Options of a 2D convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Conv2d {
    /// Step of the window along height and width.
    pub stride: [usize; 2],
    /// Distance between taps along height and width.
    pub dilation: [usize; 2],
    /// How far the window goes beyond the input.
    pub padding: Padding,
    /// What lies beyond the input: zeros, unless set.
    pub border: Border,
    /// Groups of channels that do not mix.
    pub groups: usize,
    /// Applied to the biased sum.
    pub activation: Activation,
}

impl Default for Conv2d {
    fn default() -> Self {
        Conv2d {
            stride: [1, 1],
            dilation: [1, 1],
            padding: Padding::Valid,
            border: Border::Zeros,
            groups: 1,
            activation: Activation::None,
        }
    }
}

/// A 2D convolution of concrete shapes.
pub type Conv2dOp = Windowed<Conv2d>;

impl Conv2dOp {
    /// Checks the shapes; `weights` is `oc kh kw c/groups`.
    ///
    /// # Errors
    /// If the shapes do not fit each other.
    pub fn new(
        input: Shape,
        weights: Shape,
        options: &Conv2d,
        bias: bool,
        residual: impl Into<Residual>,
        precision: Precision,
    ) -> Result<Self> {
        if options.groups == 0 || weights.c * options.groups != input.c {
            return Err(Error::shape(
                OP,
                format!(
                    "weights {weights} (oc kh kw c/groups) in {} groups for input {input}",
                    options.groups
                ),
                format!("weights of {}/groups input channels", input.c),
            ));
        }
        convolution::check_weights(OP, [weights.n, weights.h, weights.w, weights.c])?;
        Convolution::new(
            OP,
            input,
            [weights.h, weights.w],
            weights.n,
            options.groups,
            WindowOptions {
                stride: options.stride,
                dilation: options.dilation,
                padding: options.padding,
                border: options.border,
            },
            Epilogue::new(bias, options.activation, residual.into()),
            precision,
        )
        .map(Conv2dOp::of)
    }
}
