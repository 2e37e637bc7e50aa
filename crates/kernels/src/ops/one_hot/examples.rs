//! Problems with the new axis last and within.

use super::{OP, OneHot, OneHotOp};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Bits;
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(_precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let options = |axis, on, off| OneHot { depth: 4, on: Bits(on), off: Bits(off), axis };
    let indices = Dims::new(&[3, 5])?;
    let last: Box<dyn Op> = Box::new(OneHotOp::new(indices, options(-1, 1.5, -0.5))?);
    Ok(vec![last, Box::new(OneHotOp::new(indices, options(1, 1.0, 0.0))?)])
}

const NAMES: &str = "indices,depth";

pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[128, 1000], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, _precision: Precision) -> Result<Arc<dyn Op>> {
    let &[indices, depth] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let options = OneHot { depth, on: Bits(1.0), off: Bits(0.0), axis: -1 };
    Ok(Arc::new(OneHotOp::new(Dims::new(&[indices])?, options)?))
}
