//! Problems that between them use every kernel, every epilogue and every edge.

use super::{OP, SeparableOp};
use crate::dtype::Precision;
use crate::emit::Activation;
use crate::error::Result;
use crate::ops::depthwise::{Depthwise, DepthwiseOp};
use crate::ops::plan::Op;
use crate::ops::pointwise::{Pointwise, PointwiseOp};
use crate::ops::registry::Numbers;
use crate::shape::{Padding, Shape};
use std::sync::Arc;

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

const NAMES: &str = "n,h,w,c,oc,kh,kw,stride";

/// A block of MobileNetV1, or another one.
pub(crate) const NUMBERS: Numbers = Numbers {
    names: NAMES,
    usual: &[1, 17, 17, 512, 512, 3, 3, 1],
    op: |extents, _, precision| of(extents, precision),
};

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let &[n, h, w, c, oc, kh, kw, stride] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let (padding, activation) = (Padding::Same, Activation::Relu6);
    let options = Depthwise { stride: [stride; 2], padding, activation, ..Default::default() };
    let (input, window) = (Shape::nhwc(n, h, w, c), Shape::nhwc(1, kh, kw, c));
    let first = DepthwiseOp::new(input, window, &options, true, false, precision)?;
    let (options, weights) = (Pointwise { activation }, Shape::nhwc(oc, 1, 1, c));
    let second = PointwiseOp::new(first.0.output, weights, &options, true, false, precision)?;
    Ok(Arc::new(SeparableOp::new(first, second)?))
}
