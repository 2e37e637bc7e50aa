//! Problems that between them use every kernel, every epilogue and every edge.

use super::SeparableOp;
use crate::dtype::Precision;
use crate::emit::Activation;
use crate::error::Result;
use crate::ops::depthwise::{Depthwise, DepthwiseOp};
use crate::ops::plan::Op;
use crate::ops::pointwise::{Pointwise, PointwiseOp};
use crate::shape::{Padding, Shape};

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let (input, relu6) = (Shape::nhwc(1, 9, 11, 6), Activation::Relu6);
    let same = Depthwise { padding: Padding::Same, activation: relu6, ..Default::default() };
    let odd = Depthwise { stride: [2, 1], dilation: [1, 2], ..Default::default() };
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for (window, activation, extras) in [(same, relu6, false), (odd, Activation::PRelu, true)] {
        let first = DepthwiseOp::new(input, Shape::nhwc(1, 3, 3, 6), &window, !extras, false, precision)?;
        let (options, weights) = (Pointwise { activation }, Shape::nhwc(9, 1, 1, 6));
        let second = PointwiseOp::new(first.0.output, weights, &options, true, extras, precision)?;
        examples.push(Box::new(SeparableOp::new(first, second)?));
    }
    Ok(examples)
}
