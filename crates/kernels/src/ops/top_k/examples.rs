//! Problems with both results.

use super::{OP, TopK, TopKOp};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(_precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let of = |n, k, indices| TopKOp::new(Dims::new(&[3, n])?, TopK { k, largest: true, indices });
    let least = |n, k| TopKOp::new(Dims::new(&[3, n])?, TopK { k, largest: false, indices: true });
    let mut examples: Vec<Box<dyn Op>> =
        vec![Box::new(of(17, 5, false)?), Box::new(of(17, 5, true)?), Box::new(of(5000, 300, false)?)];
    for word in [DType::I32, DType::U32] {
        for (n, k) in [(17, 5), (5000, 300)] {
            examples.push(Box::new(of(n, k, false)?.of(word)));
            examples.push(Box::new(of(n, k, true)?.of(word)));
            examples.push(Box::new(least(n, k)?.of(word)));
        }
    }
    examples.push(Box::new(least(17, 5)?));
    examples.push(Box::new(least(5000, 300)?));
    Ok(examples)
}

const NAMES: &str = "rows,n,k";

pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[1, 1917, 100], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, _precision: Precision) -> Result<Arc<dyn Op>> {
    let &[rows, n, k] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    Ok(Arc::new(TopKOp::new(Dims::new(&[rows, n])?, TopK { k, largest: true, indices: false })?))
}
