//! `y[n,i,j,o] = f(sum_{a,b,k} x[n, (i+p-a)/s, (j+p-b)/s, k] * w[o,a,b,k] + bias[o]) + r[n,i,j,o]`, over the `a` and
//! `b` that leave no remainder
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `n h w c` | C4 on the device |
//! | `w` | `oc kh kw c` | NHWC with `n = oc`, as TensorFlow Lite stores it |
//! | `bias`, `slope` | `oc` | |
//! | `y`, `r` | `n oh ow oc` | C4 on the device |
//!
//! What lies outside the input is zero. Unless the output's extents are given they are those of TensorFlow:
//! `h * s` for SAME, `h * s + max(kh - s, 0)` for VALID, `(h - 1) * s + kh` without the given rows for an explicit
//! padding. As in TensorFlow Lite `p = max((h - 1) * s + kh - oh, 0) / 2`, cut off, for SAME and VALID.
//!
//! A NaN or an infinity of the input or of the weights reaches the pixels that have it in their sum, and no other.

mod cpu;
mod direct;
mod examples;
mod operator;
mod oracle;
mod plan;

pub(super) use examples::{NUMBERS, examples};

use crate::dtype::Precision;
use crate::emit::{Activation, Epilogue, Residual};
use crate::error::{Error, Result};
use crate::ops::convolution::{self, Convolution};
use crate::ops::windowed::Windowed;
use crate::shape::{Border, Padding, Shape};

const OP: &str = "transposed_conv2d";

/// Options of a transposed 2D convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TransposedConv2d {
    /// Output pixels from one input pixel to the next, along height and width.
    pub stride: [usize; 2],
    /// The border of the convolution that this one is the transpose of.
    pub padding: Padding,
    /// Height and width of the output, if they are not what the padding says.
    pub output: Option<[usize; 2]>,
    /// Applied to the biased sum.
    pub activation: Activation,
}

impl Default for TransposedConv2d {
    fn default() -> Self {
        TransposedConv2d {
            stride: [1, 1],
            padding: Padding::Valid,
            output: None,
            activation: Activation::None,
        }
    }
}

/// A transposed 2D convolution of concrete shapes: windows of the output, one for each input pixel.
pub type TransposedConv2dOp = Windowed<TransposedConv2d>;

/// Extent of the output along an axis, and how much of the first window lies before it.
fn window(options: &TransposedConv2d, axis: usize, input: usize, kernel: usize) -> Option<(usize, usize)> {
    let stride = options.stride[axis];
    let span = (input - 1).checked_mul(stride)?.checked_add(kernel)?;
    let given = options.output.map(|output| output[axis]);
    let explicit = match options.padding {
        Padding::Explicit { top, bottom, left, right } => Some([(top, bottom), (left, right)][axis]),
        _ => None,
    };
    if let Some((before, after)) = explicit {
        let output = given.or_else(|| span.checked_sub(before.checked_add(after)?))?;
        return Some((output, before));
    }
    let whole = input.checked_mul(stride)?;
    let output = given.unwrap_or(match options.padding {
        Padding::Valid => whole.checked_add(kernel.saturating_sub(stride))?,
        _ => whole,
    });
    Some((output, span.saturating_sub(output) / 2))
}

impl TransposedConv2dOp {
    /// Checks the shapes; `weights` is `oc kh kw c`.
    ///
    /// # Errors
    /// If the shapes do not fit each other, or nothing of the output is left.
    pub fn new(
        input: Shape,
        weights: Shape,
        options: &TransposedConv2d,
        bias: bool,
        residual: impl Into<Residual>,
        precision: Precision,
    ) -> Result<Self> {
        Shape { n: input.n.max(1), ..input }.check(OP)?;
        if weights.c != input.c {
            let found = format!("weights {weights} (oc kh kw c) for input {input}");
            return Err(Error::shape(OP, found, format!("weights of {} input channels", input.c)));
        }
        convolution::check_weights(OP, [weights.n, weights.h, weights.w, weights.c])?;
        let kernel = [weights.h, weights.w];
        let allowed = 1..=i16::MAX as usize;
        if options.stride.iter().chain(&kernel).any(|extent| !allowed.contains(extent)) {
            let found = format!("a kernel of {kernel:?} with strides of {:?}", options.stride);
            return Err(Error::shape(OP, found, format!("each from 1 to {}", i16::MAX)));
        }
        let axes = [window(options, 0, input.h, kernel[0]), window(options, 1, input.w, kernel[1])];
        let [Some(rows), Some(columns)] = axes else {
            let found = format!("{:?} for windows of {kernel:?} over {input}", options.padding);
            return Err(Error::shape(OP, found, "at least one pixel of output"));
        };
        let before = [rows.1, columns.1];
        if before.iter().any(|&before| before > i16::MAX as usize) {
            let found = format!("{before:?} pixels before the output");
            return Err(Error::shape(OP, found, format!("at most {}", i16::MAX)));
        }
        let output = Shape::nhwc(input.n, rows.0, columns.0, weights.n);
        Shape { n: output.n.max(1), ..output }.check(OP)?;
        Ok(TransposedConv2dOp::of(Convolution {
            border: Border::Zeros,
            input,
            output,
            kernel,
            stride: options.stride,
            dilation: [1, 1],
            before,
            groups: 1,
            epilogue: Epilogue::new(bias, options.activation, residual.into()),
            precision: precision.without_matrix_units(),
            rows: None,
        }))
    }

    /// The input coordinate whose tap `tap` is output `out` along axis 0 (height) or 1 (width), if there is one.
    fn source(&self, axis: usize, out: usize, tap: usize) -> Option<usize> {
        let extent = [self.0.input.h, self.0.input.w][axis];
        let moved = (out + self.0.before[axis]).checked_sub(tap)?;
        let stride = self.0.stride[axis];
        Some(moved / stride).filter(|&source| moved.is_multiple_of(stride) && source < extent)
    }
}
