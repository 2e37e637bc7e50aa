//! Problems that between them use every text.

use super::{CumSum, CumSumOp, OP};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(_precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for exclusive in [false, true] {
        for reverse in [false, true] {
            let options = CumSum { axis: 1, exclusive, reverse };
            examples.push(Box::new(CumSumOp::new(Dims::new(&[3, 5, 7])?, options)?));
        }
    }
    let options = CumSum { axis: 1, exclusive: false, reverse: false };
    for word in [DType::I32, DType::U32] {
        examples.push(Box::new(CumSumOp::new(Dims::new(&[3, 5, 7])?, options)?.of(word)));
    }
    Ok(examples)
}

const NAMES: &str = "rows,terms";

pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[1000, 1000], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, _precision: Precision) -> Result<Arc<dyn Op>> {
    let &[rows, terms] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let options = CumSum { axis: -1, exclusive: false, reverse: false };
    Ok(Arc::new(CumSumOp::new(Dims::new(&[rows, terms])?, options)?))
}
