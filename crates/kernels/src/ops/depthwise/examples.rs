//! Problems that between them use every kernel, every epilogue and every edge.

use super::{Depthwise, DepthwiseOp, OP};
use crate::dtype::Precision;
use crate::emit::Activation;
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::followed::behind;
use crate::ops::op::Op;
use crate::ops::row_place::RowPlace;
use crate::shape::{Padding, Shape};
use std::sync::Arc;

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
    // Eight channels of rows of 24.
    let wide = Shape::nhwc(2, 9, 11, 8);
    let place = RowPlace { elements: 2 * 99 * 24, first: 8, image: 99 * 24, pixel: 24 };
    let in_rows = |options: &Depthwise, residual: bool| {
        DepthwiseOp::new(wide, Shape::nhwc(1, 3, 3, 8), options, true, residual, precision)?.in_rows(place)
    };
    let same = Depthwise { padding: Padding::Same, ..Default::default() };
    let mut examples: Vec<Box<dyn Op>> = vec![
        Box::new(in_rows(&same, true)?),
        Box::new(in_rows(&down, false)?),
        Box::new(in_rows(&dilated, false)?),
        Box::new(DepthwiseOp::new(input, Shape::nhwc(1, 3, 3, 6), &down, true, false, precision)?),
        Box::new(DepthwiseOp::new(input, Shape::nhwc(1, 3, 3, 6), &dilated, false, true, precision)?),
        Box::new(DepthwiseOp::new(input, Shape::nhwc(1, 3, 3, 18), &down, true, true, precision)?),
    ];
    let plain = DepthwiseOp::new(input, Shape::nhwc(1, 3, 3, 6), &same, true, false, precision)?;
    for op in [plain, in_rows(&same, false)?] {
        examples.extend(behind(&(Arc::new(op) as Arc<dyn Op>))?);
    }
    Ok(examples)
}

const NAMES: &str = "n,h,w,c,oc,kh,kw,stride";

/// A depthwise convolution; `oc` is a multiple of `c`.
pub(crate) const NUMBERS: Numbers = Numbers {
    names: NAMES,
    usual: &[1, 129, 129, 32, 32, 3, 3, 1],
    op: |extents, _, precision| of(extents, precision),
};

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let &[n, h, w, c, oc, kh, kw, stride] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let (padding, activation) = (Padding::Same, Activation::Relu6);
    let options = Depthwise { stride: [stride; 2], padding, activation, ..Default::default() };
    let (input, weights) = (Shape::nhwc(n, h, w, c), Shape::nhwc(1, kh, kw, oc));
    Ok(Arc::new(DepthwiseOp::new(input, weights, &options, true, false, precision)?))
}
