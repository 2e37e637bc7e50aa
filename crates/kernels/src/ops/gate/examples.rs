//! Problems with and without biases and a residual, of one image and of several.

use super::{GateOp, OP};
use crate::dtype::Precision;
use crate::emit::Activation;
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use crate::ops::pointwise::{Pointwise, PointwiseOp};
use crate::shape::Shape;
use std::sync::Arc;

/// A map of `c` channels, weighted by what two convolutions make of `k` channels by way of `r`.
fn gate(
    [n, h, w, c, k, r]: [usize; 6],
    [first, second]: [Activation; 2],
    [bias, residual]: [bool; 2],
    precision: Precision,
) -> Result<GateOp> {
    let [first, second] = [first, second].map(|activation| Pointwise { activation });
    let pixel = Shape::nhwc(n, 1, 1, k);
    let first = PointwiseOp::new(pixel, Shape::nhwc(r, 1, 1, k), &first, bias, false, precision)?;
    let weights = Shape::nhwc(c, 1, 1, r);
    let second = PointwiseOp::new(first.0.output, weights, &second, bias, false, precision)?;
    GateOp::new(Some(first), second, Shape::nhwc(n, h, w, c), residual)
}

/// A map of `c` channels, weighted by what one convolution makes of `r` channels.
fn second([n, h, w, c, r]: [usize; 5], precision: Precision) -> Result<GateOp> {
    let options = Pointwise { activation: Activation::HardSigmoid };
    let (hidden, weights) = (Shape::nhwc(n, 1, 1, r), Shape::nhwc(c, 1, 1, r));
    let second = PointwiseOp::new(hidden, weights, &options, true, false, precision)?;
    GateOp::new(None, second, Shape::nhwc(n, h, w, c), false)
}

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let (relu, sigmoid, none) = (Activation::Relu, Activation::Sigmoid, Activation::None);
    Ok(vec![
        Box::new(gate([1, 9, 11, 6, 6, 3], [relu, sigmoid], [true, false], precision)?),
        Box::new(gate([2, 5, 7, 9, 13, 5], [none, none], [false, true], precision)?),
        Box::new(second([2, 5, 7, 9, 6], precision)?),
        Box::new(second([1, 5, 7, 10, 150], precision)?),
    ])
}

const NAMES: &str = "n,h,w,c,k,r";

/// A block of MobileNetV3: ReLU, then sigmoid. Without channels `k`, what lies between is given.
pub(crate) const NUMBERS: Numbers = Numbers {
    names: NAMES,
    usual: &[1, 16, 16, 96, 96, 24],
    op: |extents, _, precision| of(extents, precision),
};

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let &[n, h, w, c, k, r] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    if k == 0 {
        return Ok(Arc::new(second([n, h, w, c, r], precision)?));
    }
    let activations = [Activation::Relu, Activation::Sigmoid];
    Ok(Arc::new(gate([n, h, w, c, k, r], activations, [true, false], precision)?))
}
