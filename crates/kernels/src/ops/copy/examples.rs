//! Problems that between them use every edge.

use super::{CopyOp, OP};
use crate::dtype::{DType, Precision};
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use crate::shape::Shape;
use std::sync::Arc;

/// The examples in `precision`: within a line of invocations, and beyond.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let small = CopyOp::new(Shape::nhwc(1, 5, 7, 3), 11, Shape::nhwc(1, 1, 1, 37))?;
    let large = CopyOp::new(Shape::nhwc(1, 2, 66000, 1), 3, Shape::nhwc(1, 1, 65997, 2))?;
    let stored = small.of(precision.storage());
    Ok(vec![Box::new(stored), Box::new(small.of(DType::I32)), Box::new(large)])
}

const NAMES: &str = "source,first,elements";

pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[65536, 3, 4096], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, _precision: Precision) -> Result<Arc<dyn Op>> {
    let &[source, first, elements] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let row = |elements| Shape::nhwc(1, 1, 1, elements);
    Ok(Arc::new(CopyOp::new(row(source), first, row(elements))?))
}
