//! Problems that between them use every kernel, every epilogue and every edge.

use super::{Conv2d, Conv2dOp, OP};
use crate::dtype::Precision;
use crate::emit::Activation;
use crate::error::Result;
use crate::ops::examples::{ACTIVATIONS, Numbers};
use crate::ops::followed::behind;
use crate::ops::op::Op;
use crate::shape::{Border, Padding, Shape};
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let input = Shape::nhwc(1, 9, 11, 6);
    let stem = Conv2d { stride: [2, 2], padding: Padding::Same, ..Default::default() };
    let grouped = Conv2d { groups: 2, dilation: [2, 1], ..Default::default() };
    let mut examples: Vec<Box<dyn Op>> = vec![
        Box::new(Conv2dOp::new(input, Shape::nhwc(9, 3, 3, 6), &stem, false, false, precision)?),
        Box::new(Conv2dOp::new(input, Shape::nhwc(10, 3, 2, 3), &grouped, true, true, precision)?),
        Box::new(Conv2dOp::new(input, Shape::nhwc(9, 3, 3, 6), &Conv2d::default(), true, true, precision)?),
        Box::new(Conv2dOp::new(input, Shape::nhwc(16, 3, 2, 3), &grouped, true, false, precision)?),
    ];
    for (c, weights, options) in [
        (8, Shape::nhwc(12, 2, 2, 4), grouped),
        (8, Shape::nhwc(16, 2, 2, 4), grouped),
        (3, Shape::nhwc(9, 3, 3, 3), stem),
    ] {
        let op = Conv2dOp::new(Shape::nhwc(1, 9, 11, c), weights, &options, true, false, precision)?;
        examples.push(Box::new(op));
    }
    let long = Conv2d { padding: Padding::Same, ..Default::default() };
    examples.push(Box::new(Conv2dOp::new(input, Shape::nhwc(3, 3, 5, 6), &long, true, true, precision)?));
    let mirrored = Conv2d { border: Border::Reflect, ..stem };
    for (c, groups) in [(3, 1), (6, 1), (6, 2), (8, 2)] {
        let (input, weights) = (Shape::nhwc(1, 9, 11, c), Shape::nhwc(8, 3, 3, c / groups));
        let options = Conv2d { groups, ..mirrored };
        examples.push(Box::new(Conv2dOp::new(input, weights, &options, true, false, precision)?));
    }
    for activation in ACTIVATIONS {
        let options = Conv2d { activation, ..Default::default() };
        examples.push(Box::new(Conv2dOp::new(
            input,
            Shape::nhwc(5, 1, 2, 6),
            &options,
            true,
            true,
            precision,
        )?));
    }
    let options = Conv2d { padding: Padding::Same, activation: Activation::Relu6, ..Default::default() };
    let (input, weights) = (Shape::nhwc(1, 7, 9, 12), Shape::nhwc(10, 3, 3, 12));
    let op = Conv2dOp::new(input, weights, &options, true, false, precision)?;
    examples.extend(behind(&(Arc::new(op) as Arc<dyn Op>))?);
    Ok(examples)
}

const NAMES: &str = "n,h,w,c,oc,kh,kw,stride";

/// The stem of PoseNet, or another convolution.
pub(crate) const NUMBERS: Numbers = Numbers {
    names: NAMES,
    usual: &[1, 257, 257, 3, 32, 3, 3, 2],
    op: |extents, _, precision| of(extents, precision),
};

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let &[n, h, w, c, oc, kh, kw, stride] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let (padding, activation) = (Padding::Same, Activation::Relu6);
    let options = Conv2d { stride: [stride; 2], padding, activation, ..Default::default() };
    let (input, weights) = (Shape::nhwc(n, h, w, c), Shape::nhwc(oc, kh, kw, c));
    Ok(Arc::new(Conv2dOp::new(input, weights, &options, true, false, precision)?))
}
