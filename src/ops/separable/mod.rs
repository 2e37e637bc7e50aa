//! `y = f(sum_k g(sum_{a,b} x[n, i*s+a*d-p, j*s+b*d-p, k] * v[a,b,k] + c[k]) * w[o,k] + bias[o]) + r`
//!
//! A depthwise convolution (window `v`, bias `c`, activation `g`) and the 1x1 convolution that alone
//! reads it (weights `w`, bias, activation `f`, residual `r`): the separable block of Howard et al.,
//! *MobileNets*, 2017. What lies between the two never leaves the work-group.
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `n h w c` | C4 on the device |
//! | `v` | `1 kh kw c` | NHWC, as TensorFlow Lite stores it |
//! | `c` | `c` | |
//! | `w` | `oc 1 1 c` | NHWC with `n = oc` |
//! | `bias`, `slope` | `oc` | |
//! | `y`, `r` | `n oh ow oc` | C4 on the device |
//!
//! Zeros lie outside the input. The window has one output channel for each input channel, and its
//! activation no slopes per channel: with those the operands would be more than the eight buffers
//! that WebGPU promises a kernel.

mod cpu;
mod examples;
mod oracle;
mod plan;
mod staged;

pub(super) use examples::{NUMBERS, examples};

use crate::emit::{Activation, Epilogue, Operand};
use crate::error::{Error, Result};
use crate::ops::convolution::Convolution;
use crate::ops::depthwise::DepthwiseOp;
use crate::ops::plan::Op;
use crate::ops::pointwise::PointwiseOp;
use crate::ops::registry::Fused;
use std::sync::Arc;

const OP: &str = "separable";

/// A depthwise convolution and the 1x1 convolution of its output, as one op.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeparableOp {
    /// The depthwise convolution.
    depthwise: Convolution,
    /// The 1x1 convolution, whose input is the other's output.
    pointwise: Convolution,
}

/// The operands of the depthwise convolution: the name in this op, the name in that.
const FIRST: &[(Operand, Operand)] = &[
    (Operand::Src, Operand::Src),
    (Operand::Window, Operand::Weights),
    (Operand::WindowBias, Operand::Bias),
];

/// The operands of the 1x1 convolution, likewise; its input is the depthwise convolution's output.
const SECOND: &[(Operand, Operand)] = &[
    (Operand::Weights, Operand::Weights),
    (Operand::Bias, Operand::Bias),
    (Operand::Slope, Operand::Slope),
    (Operand::Residual, Operand::Residual),
    (Operand::Dst, Operand::Dst),
];

/// A depthwise convolution and the 1x1 convolution of its output as one, if the pair is one that runs
/// as a single kernel: see [`super::OpEntry::fuse`].
pub(super) fn fuse(first: &dyn Op, second: &dyn Op) -> Option<Fused> {
    let first = first.as_any().downcast_ref::<DepthwiseOp>()?;
    let second = second.as_any().downcast_ref::<PointwiseOp>()?;
    let op = SeparableOp::new(*first, *second).ok()?;
    Some(Fused { op: Arc::new(op), first: FIRST, second: SECOND })
}

impl SeparableOp {
    /// Checks that the second op reads the first one's output, and that the pair is one that runs as
    /// a single kernel.
    ///
    /// # Errors
    /// If the shapes or precisions do not fit each other, or the depthwise convolution has a channel
    /// multiplier, a residual or slopes per channel.
    pub fn new(first: DepthwiseOp, second: PointwiseOp) -> Result<Self> {
        let (DepthwiseOp(depthwise), PointwiseOp(pointwise)) = (first, second);
        if depthwise.output != pointwise.input {
            return Err(Error::shape(
                OP,
                format!("a 1x1 convolution of {}", pointwise.input),
                format!("one of the depthwise output, {}", depthwise.output),
            ));
        }
        if depthwise.precision != pointwise.precision {
            let found = format!("precisions {} and {}", depthwise.precision, pointwise.precision);
            return Err(Error::input(OP, found, "one precision"));
        }
        let Epilogue { activation, residual, .. } = depthwise.epilogue;
        let obstacle = if first.multiplier() != 1 {
            format!("a channel multiplier of {}", first.multiplier())
        } else if residual.is_some() {
            "a residual between the two".to_owned()
        } else if activation == Activation::PRelu {
            "slopes per channel between the two".to_owned()
        } else {
            return Ok(SeparableOp { depthwise, pointwise });
        };
        Err(Error::unsupported(OP, obstacle))
    }

    /// The depthwise convolution: its input is the op's.
    pub const fn depthwise(&self) -> &Convolution {
        &self.depthwise
    }

    /// The 1x1 convolution: its output, epilogue and precision are the op's.
    pub const fn pointwise(&self) -> &Convolution {
        &self.pointwise
    }
}
