//! Problems that between them use the kernel, every activation that it has and every edge.

use super::{OP, Pool, PoolOp, Pooling};
use crate::dtype::Precision;
use crate::emit::Activation;
use crate::error::Result;
use crate::ops::examples::{ACTIVATIONS, Numbers};
use crate::ops::followed::behind;
use crate::ops::op::Op;
use crate::shape::{Padding, Shape};
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let input = Shape::nhwc(2, 9, 11, 6);
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for pooling in [Pooling::Max, Pooling::Average] {
        for activation in ACTIVATIONS.into_iter().filter(|activation| *activation != Activation::PRelu) {
            let options =
                Pool { stride: [2, 1], padding: Padding::Same, activation, ..Pool::new(pooling, [3, 2]) };
            examples.push(Box::new(PoolOp::new(input, &options, precision)?));
        }
    }
    for mode in [Pooling::Max, Pooling::Average] {
        let op = PoolOp::new(input, &Pool::new(mode, [3, 2]), precision)?;
        examples.extend(behind(&(Arc::new(op) as Arc<dyn Op>))?);
    }
    Ok(examples)
}

const NAMES: &str = "n,h,w,c,kh,kw,stride";

/// The maximum of SAME windows.
pub(crate) const NUMBERS: Numbers = Numbers {
    names: NAMES,
    usual: &[1, 112, 112, 64, 3, 3, 2],
    op: |extents, _, precision| of(extents, precision),
};

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let &[n, h, w, c, kh, kw, stride] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let options = Pool { stride: [stride; 2], padding: Padding::Same, ..Pool::new(Pooling::Max, [kh, kw]) };
    Ok(Arc::new(PoolOp::new(Shape::nhwc(n, h, w, c), &options, precision)?))
}
