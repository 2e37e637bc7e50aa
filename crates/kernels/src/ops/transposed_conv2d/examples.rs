//! Problems that between them use the kernel, every epilogue and every edge.

use super::{OP, TransposedConv2d, TransposedConv2dOp};
use crate::dtype::Precision;
use crate::error::Result;
use crate::ops::examples::{ACTIVATIONS, Numbers};
use crate::ops::followed::behind;
use crate::ops::op::Op;
use crate::shape::{Padding, Shape};
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let (input, weights) = (Shape::nhwc(2, 5, 7, 6), Shape::nhwc(9, 3, 2, 6));
    let stride = [2, 3];
    let plain = TransposedConv2d { stride, ..Default::default() };
    let mut examples: Vec<Box<dyn Op>> =
        vec![Box::new(TransposedConv2dOp::new(input, weights, &plain, false, false, precision)?)];
    for activation in ACTIVATIONS {
        let options = TransposedConv2d { stride, padding: Padding::Same, output: None, activation };
        examples.push(Box::new(TransposedConv2dOp::new(input, weights, &options, true, true, precision)?));
    }
    let options = TransposedConv2d { padding: Padding::Same, ..Default::default() };
    let op = TransposedConv2dOp::new(
        Shape::nhwc(1, 5, 4, 8),
        Shape::nhwc(6, 3, 3, 8),
        &options,
        true,
        false,
        precision,
    )?;
    examples.extend(behind(&(Arc::new(op) as Arc<dyn Op>))?);
    Ok(examples)
}

const NAMES: &str = "n,h,w,c,oc,k,stride";

/// A map of twice the height and width.
pub(crate) const NUMBERS: Numbers = Numbers {
    names: NAMES,
    usual: &[1, 32, 32, 64, 32, 4, 2],
    op: |extents, _, precision| of(extents, precision),
};

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let &[n, h, w, c, oc, k, stride] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let options = TransposedConv2d { stride: [stride; 2], padding: Padding::Same, ..Default::default() };
    let (input, weights) = (Shape::nhwc(n, h, w, c), Shape::nhwc(oc, k, k, c));
    Ok(Arc::new(TransposedConv2dOp::new(input, weights, &options, true, false, precision)?))
}
