//! Problems of one part and of several.

use super::{MomentsOp, OP};
use crate::dtype::Precision;
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use crate::shape::Shape;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let large = Shape::nhwc(1, 47, 61, 5);
    let maps = [(Shape::nhwc(2, 7, 9, 6), true), (large, true), (large, false)];
    let op = |(map, centred)| Ok(Box::new(MomentsOp::new(map, centred, precision)?) as Box<dyn Op>);
    maps.into_iter().map(op).collect()
}

const NAMES: &str = "n,h,w,c";

/// The op by its extents: the moments of a large map.
pub(crate) const NUMBERS: Numbers =
    Numbers { names: NAMES, usual: &[1, 384, 384, 32], op: |extents, _, precision| of(extents, precision) };

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let &[n, h, w, c] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    Ok(Arc::new(MomentsOp::new(Shape::nhwc(n, h, w, c), true, precision)?))
}
