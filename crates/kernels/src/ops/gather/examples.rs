//! Problems that between them use every width and one, two and three indices.

use super::{Gather, GatherOp, OP};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let source = Dims::new(&[2, 3, 5, 8])?;
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for (axis, batch_dims, indices) in [(2, 0, &[7][..]), (3, 0, &[3]), (2, 1, &[2, 4])] {
        let op = GatherOp::new(source, Dims::new(indices)?, Gather { axis, batch_dims })?;
        examples.push(Box::new(op.in_precision(precision)));
    }
    // Rows of integers, and indices of either type of integer.
    for (word, index) in [(DType::F32, DType::I32), (DType::I32, DType::I32), (DType::U32, DType::U32)] {
        let options = Gather { axis: 2, batch_dims: 0 };
        examples.push(Box::new(GatherOp::new(source, Dims::new(&[7])?, options)?.of([word, index])));
    }
    for axes in [2, 3] {
        examples.push(Box::new(GatherOp::nd(source, Dims::new(&[7, axes])?)?));
    }
    Ok(examples)
}

const NAMES: &str = "rows,columns,indices";

/// Rows of a matrix.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[32000, 512, 128], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, _precision: Precision) -> Result<Arc<dyn Op>> {
    let &[rows, columns, indices] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let options = Gather { axis: 0, batch_dims: 0 };
    Ok(Arc::new(GatherOp::new(Dims::new(&[rows, columns])?, Dims::new(&[indices])?, options)?))
}
