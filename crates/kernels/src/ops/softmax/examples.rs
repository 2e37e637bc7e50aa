//! Problems that between them use every kernel, with and without a logarithm.

use super::{OP, Softmax, SoftmaxOp};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Bits;
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for log in [false, true] {
        for (axis, beta) in [(-1, 1.0), (1, 0.5)] {
            let options = Softmax { axis, beta: Bits(beta), log };
            examples.push(Box::new(SoftmaxOp::new(Dims::new(&[2, 5, 3, 70])?, &options, precision)?));
        }
    }
    // Of one element each.
    examples.push(Box::new(SoftmaxOp::new(Dims::new(&[3, 1])?, &Softmax::default(), precision)?));
    Ok(examples)
}

const NAMES: &str = "outer,count,inner";

/// Along the middle one of three axes.
pub(crate) const NUMBERS: Numbers =
    Numbers { names: NAMES, usual: &[4, 1001, 1], op: |extents, _, precision| of(extents, precision) };

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let &[outer, count, inner] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let last = [outer, count];
    let dims = if inner == 1 { Dims::new(&last)? } else { Dims::new(&[outer, count, inner])? };
    let options = Softmax { axis: 1, ..Softmax::default() };
    Ok(Arc::new(SoftmaxOp::new(dims, &options, precision)?))
}
