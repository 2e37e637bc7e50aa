//! `y[n,o] = f(sum_r w[o,r] g(sum_k v[r,k] p[n,k] + d[r]) + b[o])`, `p` the rows `x` or a normalisation of each
//!
//! A multilayer perceptron of one or two dense layers on few rows, in one kernel: a normalisation and the dense layer that
//! alone reads it, or two dense layers of which the second has few weights. With one layer `y[n,o]` is
//! `f(sum_k w[o,k] p[n,k] + b[o])`. A normalised row is `(x - m) / sqrt(v + epsilon)`, `m` and `v` the mean and the variance of
//! the row, or `x / sqrt(q + epsilon)`, `q` the mean of `x^2`; its scale and bias are in the weights and the bias behind it.
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `n k` | rows |
//! | `v` | `r 1 1 k` | NHWC with `n = r` |
//! | `d` | `r` | |
//! | `w` | `oc 1 1 r`, of one layer `oc 1 1 k` | NHWC with `n = oc` |
//! | `b` | `oc` | |
//! | `y` | `n oc` | rows |
//!
//! What lies between is in f32 in every precision, and a mean is that of distances from the row's first value. A NaN or an infinity of a row makes that row NaN where it is normalised.

mod arguments;
mod cpu;
mod examples;
mod group;
mod last;
mod operator;
mod oracle;
mod plan;
mod rows;

pub use arguments::{MOST_WORDS, words_of};
pub(super) use examples::{NUMBERS, examples};
pub use operator::Mlp;

use crate::dims::Dims;
use crate::emit::{Activation, Bits, Operand};
use crate::error::{Error, Result};
use crate::ops::convolution::Convolution;
use crate::ops::normalize::{Normalize, NormalizeOp};
use crate::ops::pointwise::PointwiseOp;

const OP: &str = "mlp";

/// How each row is normalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowNorm {
    /// What is added to the variance, or to the mean square.
    pub epsilon: Bits,
    /// Whether the mean is subtracted.
    pub centred: bool,
}

/// One or two dense layers of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MlpOp {
    norm: Option<RowNorm>,
    first: Option<Convolution>,
    last: Convolution,
}

/// The operands of the first of two layers: the name in this op, the name in a 1x1 convolution.
const FIRST: &[(Operand, Operand)] =
    &[(Operand::Window, Operand::Weights), (Operand::WindowBias, Operand::Bias)];

/// The operands of the last one, likewise.
const LAST: &[(Operand, Operand)] = &[(Operand::Weights, Operand::Weights), (Operand::Bias, Operand::Bias)];

impl MlpOp {
    /// Checks that `last` reads what `first` gives; rows are pixels of `n 1 1 k`.
    ///
    /// # Errors
    /// If the shapes or precisions do not fit each other, a layer has a residual or slopes per channel, or there is one layer
    /// and no normalisation, which is a plain product.
    pub fn new(norm: Option<RowNorm>, first: Option<PointwiseOp>, last: PointwiseOp) -> Result<Self> {
        let sums = |op: PointwiseOp| op.0.with_precision(op.0.precision.with_f32_sums());
        let (first, last) = (first.map(sums), sums(last));
        if norm.is_none() && first.is_none() {
            return Err(Error::unsupported(OP, "one layer without a normalisation, which is a product"));
        }
        if let Some(first) = first.filter(|first| first.output != last.input) {
            let wanted = format!("one of the first one's output, {}", first.output);
            return Err(Error::shape(OP, format!("a second layer of {}", last.input), wanted));
        }
        if let Some(first) = first.filter(|first| first.precision != last.precision) {
            let found = format!("precisions {} and {}", first.precision, last.precision);
            return Err(Error::input(OP, found, "one precision"));
        }
        let rows = first.unwrap_or(last).input;
        if rows.h * rows.w != 1 {
            return Err(Error::shape(OP, format!("rows of {rows}"), "pixels: n 1 1 k"));
        }
        for layer in first.iter().chain([&last]) {
            if layer.epilogue.residual.is_some() || layer.epilogue.activation == Activation::PRelu {
                return Err(Error::unsupported(OP, "a layer with a residual or slopes per channel"));
            }
        }
        let op = MlpOp { norm, first, last };
        op.normalize()?;
        Ok(op)
    }

    /// The rows that are read: `n 1 1 k`.
    fn rows(&self) -> crate::shape::Shape {
        self.first.unwrap_or(self.last).input
    }

    /// The normalisation of the rows, as an op of its own.
    fn normalize(&self) -> Result<Option<NormalizeOp>> {
        let Some(RowNorm { epsilon, centred }) = self.norm else { return Ok(None) };
        let rows = self.rows();
        let options = Normalize { axes: vec![-1], epsilon, centred };
        let dims = Dims::new(&[rows.n, rows.c])?;
        Ok(Some(NormalizeOp::new(dims, &options, false, false, self.last.precision)?))
    }
}
