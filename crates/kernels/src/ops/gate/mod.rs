//! `y[n,i,j,c] = x[n,i,j,c] * f(sum_r w[c,r] g(sum_k v[r,k] p[n,k] + d[r]) + b[c]) + z[n,i,j,c]`
//!
//! A map whose channels are weighted by two 1x1 convolutions of a pixel, which is the mean of the map in most
//! networks: the second half of the squeeze-and-excitation block of Hu et al., *Squeeze-and-Excitation Networks*,
//! 2018. The factors never leave the work-group; each one computes those that it needs. Where the first convolution is
//! left out, its result is the pixel that is given (`n 1 1 r`): the op `squeeze` makes it of the map.
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `p` | `n 1 1 k` | C4 on the device |
//! | `v` | `r 1 1 k` | NHWC with `n = r` |
//! | `d` | `r` | |
//! | `w` | `c 1 1 r` | NHWC with `n = c` |
//! | `b` | `c` | |
//! | `x`, `y`, `z` | `n h w c` | C4 on the device |
//!
//! A NaN of `p` reaches every channel, one of `x` its own place.

mod cpu;
mod examples;
mod maps;
mod operator;
mod oracle;
mod plan;

pub(super) use examples::{NUMBERS, examples};
pub use operator::Gate;

use crate::emit::{Activation, Operand};
use crate::error::{Error, Result};
use crate::ops::convolution::Convolution;
use crate::ops::pointwise::PointwiseOp;
use crate::shape::Shape;

const OP: &str = "gate";

/// A map weighted by two 1x1 convolutions of a pixel, of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GateOp {
    /// The convolution of the pixel, if that is not its result.
    first: Option<Convolution>,
    /// The convolution of its result, which gives the factors.
    second: Convolution,
    /// The map.
    map: Shape,
    residual: bool,
}

/// The operands of the first convolution: the name in this op, the name in that.
const FIRST: &[(Operand, Operand)] = &[
    (Operand::Src, Operand::Src),
    (Operand::Window, Operand::Weights),
    (Operand::WindowBias, Operand::Bias),
];

/// The operands of the second, likewise; its input is the first one's output.
const SECOND: &[(Operand, Operand)] = &[(Operand::Weights, Operand::Weights), (Operand::Bias, Operand::Bias)];

impl GateOp {
    /// Checks that the second convolution reads the first one's result and gives a factor for each channel of
    /// `map`; `residual` says whether a map of its shape is added.
    ///
    /// # Errors
    /// If the shapes or precisions do not fit each other, the convolutions are of more than a pixel, or have
    /// residuals or slopes per channel.
    pub fn new(first: Option<PointwiseOp>, second: PointwiseOp, map: Shape, residual: bool) -> Result<Self> {
        let sums = |op: PointwiseOp| op.0.with_precision(op.0.precision.with_f32_sums());
        let (first, second) = (first.map(sums), sums(second));
        map.check(OP)?;
        let (pixel, factors) = (first.unwrap_or(second).input, second.output);
        if pixel.h * pixel.w != 1 {
            return Err(Error::shape(OP, format!("factors from {pixel}"), "from a pixel"));
        }
        if let Some(first) = first.filter(|first| first.output != second.input) {
            let wanted = format!("one of the first one's output, {}", first.output);
            return Err(Error::shape(OP, format!("a second convolution of {}", second.input), wanted));
        }
        if (factors.n, factors.c) != (map.n, map.c) {
            let wanted = format!("one for each channel of {map}");
            return Err(Error::shape(OP, format!("factors of {factors}"), wanted));
        }
        if let Some(first) = first.filter(|first| first.precision != second.precision) {
            let found = format!("precisions {} and {}", first.precision, second.precision);
            return Err(Error::input(OP, found, "one precision"));
        }
        for problem in first.iter().chain([&second]) {
            if problem.epilogue.residual.is_some() || problem.epilogue.activation == Activation::PRelu {
                return Err(Error::unsupported(OP, "factors with a residual or slopes per channel"));
            }
        }
        Ok(GateOp { first, second, map, residual })
    }

    /// Slices of what lies between the two convolutions.
    fn hidden(&self) -> usize {
        self.second.input.slices()
    }

    /// The pixel that is given.
    fn pixel(&self) -> Shape {
        self.first.unwrap_or(self.second).input
    }
}
