//! Problems that between them use every kernel, every epilogue and every edge.

use super::{OP, Pointwise, PointwiseOp};
use crate::dtype::Precision;
use crate::emit::Activation;
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::followed::behind;
use crate::ops::op::Op;
use crate::shape::Shape;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let input = Shape::nhwc(1, 9, 9, 30);
    let relu6 = Pointwise { activation: Activation::Relu6 };
    let weights = Shape::nhwc(17, 1, 1, 30);
    let mut examples: Vec<Box<dyn Op>> = vec![
        Box::new(PointwiseOp::new(input, weights, &relu6, true, false, precision)?),
        Box::new(PointwiseOp::new(input, weights, &Pointwise::default(), false, true, precision)?),
    ];
    for (channels, residual) in [(17, false), (32, true)] {
        let weights = Shape::nhwc(channels, 1, 1, 30);
        let op = PointwiseOp::new(input, weights, &Pointwise::default(), true, residual, precision)?;
        examples.extend(behind(&(Arc::new(op) as Arc<dyn Op>))?);
    }
    Ok(examples)
}

const NAMES: &str = "n,h,w,c,oc";

/// Node 27 of the article that began this project, or another 1x1 convolution.
pub(crate) const NUMBERS: Numbers = Numbers {
    names: NAMES,
    usual: &[1, 9, 9, 1024, 1024],
    op: |extents, _, precision| of(extents, precision),
};

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let &[n, h, w, c, oc] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let options = Pointwise { activation: Activation::Relu6 };
    let (input, weights) = (Shape::nhwc(n, h, w, c), Shape::nhwc(oc, 1, 1, c));
    Ok(Arc::new(PointwiseOp::new(input, weights, &options, true, false, precision)?))
}
