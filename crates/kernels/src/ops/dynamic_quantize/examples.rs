//! Problems with a range for each row, for some, and for all.

use super::{DynamicQuantize, DynamicQuantizeOp, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(_precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for (extents, ranges, divides) in
        [(&[2, 3, 5, 8][..], &[2, 3][..], false), (&[7, 5], &[7, 3], false), (&[9], &[3], true)]
    {
        let op =
            DynamicQuantizeOp::new(Dims::new(extents)?, Dims::new(ranges)?, DynamicQuantize { divides })?;
        examples.push(Box::new(op));
    }
    Ok(examples)
}

const NAMES: &str = "rows,channels,ranges";

/// A feature map.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[3136, 64, 1], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, _precision: Precision) -> Result<Arc<dyn Op>> {
    let &[rows, channels, ranges] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let [source, ranges] = [Dims::new(&[rows, channels])?, Dims::new(&[ranges, 3])?];
    Ok(Arc::new(DynamicQuantizeOp::new(source, ranges, DynamicQuantize { divides: false })?))
}
