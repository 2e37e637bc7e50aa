//! `y[n,i,j,o] = f(sum_k x[n,i,j,k] * w[o,k] + bias[o]) + r[n,i,j,o]`
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `n h w c` | C4 on the device |
//! | `w` | `oc 1 1 c` | NHWC with `n = oc`, as TensorFlow Lite stores it |
//! | `bias`, `slope` | `oc` | |
//! | `y`, `r` | `n h w oc` | C4 on the device |
//!
//! A NaN or an infinity reaches its pixel alone; one of the weights, the pixels of its channel.

pub(super) mod cpu;
mod direct;
mod examples;
mod matrix;
mod micro;
mod operator;
mod oracle;
mod plan;
mod split;
mod tiled;

pub(super) use examples::{NUMBERS, examples};
pub(super) use oracle::{oracle, sums};

use crate::dtype::Precision;
use crate::emit::{Activation, Epilogue, Residual};
use crate::error::{Error, Result};
use crate::ops::convolution::{self, Convolution, WindowOptions};
use crate::ops::windowed::Windowed;
use crate::shape::{Border, Padding, Shape};

const OP: &str = "pointwise";

/// Options of a 1x1 convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Pointwise {
    /// Applied to the biased sum.
    pub activation: Activation,
}

/// A 1x1 convolution of concrete shapes: a [`Convolution`] of one tap, stride 1 and no padding.
pub type PointwiseOp = Windowed<Pointwise>;

impl PointwiseOp {
    /// Checks the shapes; `weights` is `oc 1 1 c`.
    ///
    /// # Errors
    /// If the shapes do not fit each other.
    pub fn new(
        input: Shape,
        weights: Shape,
        options: &Pointwise,
        bias: bool,
        residual: impl Into<Residual>,
        precision: Precision,
    ) -> Result<Self> {
        if weights.h != 1 || weights.w != 1 || weights.c != input.c {
            return Err(Error::shape(
                OP,
                format!("weights {weights} (oc 1 1 c) for input {input}"),
                format!("oc 1 1 {}", input.c),
            ));
        }
        convolution::check_weights(OP, [weights.n, 1, 1, weights.c])?;
        Convolution::new(
            OP,
            input,
            [1, 1],
            weights.n,
            1,
            WindowOptions {
                stride: [1, 1],
                dilation: [1, 1],
                padding: Padding::Valid,
                border: Border::Zeros,
            },
            Epilogue::new(bias, options.activation, residual.into()),
            precision,
        )
        .map(PointwiseOp::of)
    }
}
