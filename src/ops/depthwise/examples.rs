//! Problems that between them use every kernel, every epilogue and every edge.

use super::{Depthwise, DepthwiseOp};
use crate::dtype::Precision;
use crate::emit::Activation;
use crate::error::Result;
use crate::ops::plan::Op;
use crate::shape::{Padding, Shape};

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let input = Shape::nhwc(1, 9, 11, 6);
    let down = Depthwise {
        stride: [2, 2],
        padding: Padding::Same,
        activation: Activation::Relu6,
        ..Default::default()
    };
    let dilated = Depthwise { dilation: [2, 2], ..Default::default() };
    Ok(vec![
        Box::new(DepthwiseOp::new(input, Shape::nhwc(1, 3, 3, 6), &down, true, false, precision)?),
        Box::new(DepthwiseOp::new(input, Shape::nhwc(1, 3, 3, 6), &dilated, false, true, precision)?),
        Box::new(DepthwiseOp::new(input, Shape::nhwc(1, 3, 3, 18), &down, true, true, precision)?),
    ])
}
