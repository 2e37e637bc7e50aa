//! Problems of few long rows and of many short ones.

use super::{DynamicRange, DynamicRangeOp, OP, RangeRule};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(_precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for (extents, rule) in
        [(&[2, 3, 37][..], RangeRule::Nearer), (&[2, 1500], RangeRule::Low), (&[1, 9000], RangeRule::Nearer)]
    {
        examples.push(Box::new(DynamicRangeOp::new(Dims::new(extents)?, DynamicRange { rule })?));
    }
    Ok(examples)
}

const NAMES: &str = "rows,elements";

/// A feature map.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[1, 200_704], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, _precision: Precision) -> Result<Arc<dyn Op>> {
    let &[rows, elements] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let options = DynamicRange { rule: RangeRule::Nearer };
    Ok(Arc::new(DynamicRangeOp::new(Dims::new(&[rows, elements])?, options)?))
}
