//! Problems that between them use every kernel.

use super::{ArgOp, ArgReduce, OP};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(_precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for largest in [true, false] {
        for axis in [-1, 1] {
            let options = ArgReduce { largest, axis, keep_dims: axis == 1 };
            let op = ArgOp::new(Dims::new(&[2, 5, 3, 72])?, &options)?;
            examples.push(Box::new(op));
            examples.push(Box::new(op.of(if largest { DType::I32 } else { DType::U32 })));
        }
    }
    // An axis of one place.
    let one = ArgOp::new(Dims::new(&[6, 1])?, &ArgReduce { largest: true, axis: 1, keep_dims: true })?;
    examples.push(Box::new(one));
    examples.push(Box::new(one.of(DType::I32)));
    Ok(examples)
}

const NAMES: &str = "outer,count,inner";

/// The largest along the middle one of three axes.
pub(crate) const NUMBERS: Numbers =
    Numbers { names: NAMES, usual: &[1, 1001, 1], op: |extents, _, _| of(extents) };

fn of(extents: &[usize]) -> Result<Arc<dyn Op>> {
    let &[_, _, _] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let options = ArgReduce { largest: true, axis: 1, keep_dims: false };
    Ok(Arc::new(ArgOp::new(Dims::new(extents)?, &options)?))
}
