//! Problems of small and of large maps, of C4 and rows.

use super::{OP, SqueezeOp};
use crate::dtype::Precision;
use crate::emit::Activation;
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use crate::ops::pointwise::{Pointwise, PointwiseOp};
use crate::shape::Shape;
use std::sync::Arc;

/// A map and `oc` sums of its means.
fn squeeze(
    [n, h, w, c, oc]: [usize; 5],
    activation: Activation,
    [bias, rows]: [bool; 2],
    precision: Precision,
) -> Result<SqueezeOp> {
    let (mean, weights) = (Shape::nhwc(n, 1, 1, c), Shape::nhwc(oc, 1, 1, c));
    let dense = PointwiseOp::new(mean, weights, &Pointwise { activation }, bias, false, precision)?;
    SqueezeOp::new(Shape::nhwc(n, h, w, c), dense, rows)
}

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let (relu, sigmoid, none) = (Activation::Relu, Activation::Sigmoid, Activation::None);
    Ok(vec![
        Box::new(squeeze([1, 9, 11, 6, 3], sigmoid, [true, false], precision)?),
        Box::new(squeeze([2, 37, 41, 9, 10], none, [false, true], precision)?),
        Box::new(squeeze([1, 33, 65, 30, 17], relu, [true, false], precision)?),
    ])
}

const NAMES: &str = "n,h,w,c,oc";

/// A block of EfficientNet-B0.
pub(crate) const NUMBERS: Numbers = Numbers {
    names: NAMES,
    usual: &[1, 14, 14, 672, 28],
    op: |extents, _, precision| of(extents, precision),
};

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let &[n, h, w, c, oc] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    Ok(Arc::new(squeeze([n, h, w, c, oc], Activation::Silu, [true, false], precision)?))
}
