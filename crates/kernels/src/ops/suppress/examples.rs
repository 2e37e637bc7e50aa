//! Problems with both rules, one set of boxes and several.

use super::{OP, Suppress, SuppressOp};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Bits;
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(_precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let options = |count, overlap, score, sigma, strict| Suppress {
        count,
        overlap: Bits(overlap),
        score: Bits(score),
        sigma: Bits(sigma),
        strict,
    };
    let of = |boxes: &[usize], scores: &[usize], options| {
        SuppressOp::new(Dims::new(boxes)?, Dims::new(scores)?, options)
    };
    Ok(vec![
        Box::new(of(&[1, 67, 4], &[3, 67], options(5, 0.25, -0.5, 0.0, false))?),
        Box::new(of(&[2, 131, 4], &[2, 131], options(7, 0.1, -0.25, 0.0, true))?),
        Box::new(of(&[1, 37, 4], &[1, 37], options(4, 0.75, 0.0, 0.5, true))?),
        Box::new(of(&[1, 5, 4], &[1, 5], options(9, 0.5, -2.0, 0.0, false))?),
    ])
}

const NAMES: &str = "rows,boxes,count";

pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[1, 1917, 10], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, _precision: Precision) -> Result<Arc<dyn Op>> {
    let &[rows, boxes, count] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let options = Suppress { count, overlap: Bits(0.5), score: Bits(0.0), sigma: Bits(0.0), strict: false };
    Ok(Arc::new(SuppressOp::new(Dims::new(&[1, boxes, 4])?, Dims::new(&[rows, boxes])?, options)?))
}
