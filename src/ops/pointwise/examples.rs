//! Problems that between them use every kernel, every epilogue and every edge.

use super::{Pointwise, PointwiseOp};
use crate::dtype::Precision;
use crate::emit::Activation;
use crate::error::Result;
use crate::ops::plan::Op;
use crate::shape::Shape;

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let input = Shape::nhwc(1, 9, 9, 30);
    let relu6 = Pointwise { activation: Activation::Relu6 };
    let weights = Shape::nhwc(17, 1, 1, 30);
    Ok(vec![
        Box::new(PointwiseOp::new(input, weights, &relu6, true, false, precision)?),
        Box::new(PointwiseOp::new(input, weights, &Pointwise::default(), false, true, precision)?),
    ])
}
