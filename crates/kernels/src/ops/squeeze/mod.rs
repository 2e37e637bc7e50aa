//! `y[n,o] = f(sum_c w[o,c] m[n,c] + b[o])`, `m[n,c]` the mean of `x[n,i,j,c]` over `i` and `j`
//!
//! A global mean and the 1x1 convolution, or the dense layer, that alone reads it, in one kernel: the first half of the
//! squeeze-and-excitation block of Hu et al., *Squeeze-and-Excitation Networks*, 2018, of which the op `gate` is the
//! second, and the head of small classifiers.
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `n h w c` | C4 on the device |
//! | `w` | `oc 1 1 c` | NHWC with `n = oc` |
//! | `b` | `oc` | |
//! | `y` | `n 1 1 oc` | C4 on the device, or f32 rows |
//!
//! Means and sums are in f32 in every precision. A NaN or an infinity of an image makes all of its results so.

mod arguments;
mod cpu;
mod examples;
mod group;
mod last;
mod operator;
mod oracle;
mod plan;

pub(super) use examples::{NUMBERS, examples};
pub use operator::Squeeze;

use crate::emit::Activation;
use crate::error::{Error, Result};
use crate::ops::convolution::Convolution;
use crate::ops::pointwise::PointwiseOp;
use crate::shape::Shape;

const OP: &str = "squeeze";

/// A global mean and the product behind it, of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqueezeOp {
    /// The map.
    map: Shape,
    /// What is made of its mean.
    dense: Convolution,
    /// Whether the result is f32 rows.
    rows: bool,
}

impl SqueezeOp {
    /// Checks that `dense` reads the mean of `map`; `rows` says that the result is f32 rows, and not C4.
    ///
    /// # Errors
    /// If the shapes do not fit each other, or `dense` has a residual or slopes per channel.
    pub fn new(map: Shape, dense: PointwiseOp, rows: bool) -> Result<Self> {
        map.check(OP)?;
        let dense = dense.0.with_precision(dense.0.precision.with_f32_sums());
        let mean = Shape::nhwc(map.n, 1, 1, map.c);
        if dense.input != mean {
            let wanted = format!("one of {mean}, the mean of {map}");
            return Err(Error::shape(OP, format!("a product of {}", dense.input), wanted));
        }
        if dense.epilogue.residual.is_some() || dense.epilogue.activation == Activation::PRelu {
            return Err(Error::unsupported(OP, "a product with a residual or slopes per channel"));
        }
        Ok(SqueezeOp { map, dense, rows })
    }

    /// Pixels of an image.
    fn plane(&self) -> usize {
        self.map.h * self.map.w
    }
}
