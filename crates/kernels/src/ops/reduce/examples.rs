//! Problems that between them use every kernel and every reduction.

use super::{OP, Reduce, ReduceOp, Reduction};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The examples in `precision`: over pixels, and over channels and more.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for reduction in Reduction::ALL {
        for (extents, axes) in [(&[2, 7, 9, 6][..], &[1, 2][..]), (&[3, 5, 2, 4, 3], &[0, 2, -1])] {
            let options = Reduce { reduction, axes: axes.to_vec(), keep_dims: true };
            let op = ReduceOp::new(Dims::new(extents)?, &options, precision)?;
            examples.push(Box::new(op));
            if reduction.is_of_integers() {
                let word = if axes.len() == 2 { DType::I32 } else { DType::U32 };
                examples.push(Box::new(op.of(word)));
            }
        }
    }
    let one = Reduce { reduction: Reduction::Max, axes: vec![1], keep_dims: false };
    examples.push(Box::new(ReduceOp::new(Dims::new(&[3, 1])?, &one, precision)?));
    let of_map = |reduction, extents: [usize; 4]| {
        let options = Reduce { reduction, axes: vec![1, 2], keep_dims: true };
        ReduceOp::new(Dims::new(&extents)?, &options, precision)
    };
    examples.push(Box::new(of_map(Reduction::Mean, [2, 70, 67, 6])?));
    examples.push(Box::new(of_map(Reduction::Min, [2, 70, 67, 6])?));
    // Whole slices, and a map of one pixel.
    examples.push(Box::new(of_map(Reduction::Mean, [2, 7, 9, 8])?));
    examples.push(Box::new(of_map(Reduction::Max, [2, 1, 1, 6])?));
    Ok(examples)
}

const NAMES: &str = "n,h,w,c";

/// The mean over height and width.
pub(crate) const NUMBERS: Numbers =
    Numbers { names: NAMES, usual: &[1, 56, 56, 128], op: |extents, _, precision| of(extents, precision) };

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let &[_, _, _, _] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let options = Reduce { reduction: Reduction::Mean, axes: vec![1, 2], keep_dims: true };
    Ok(Arc::new(ReduceOp::new(Dims::new(extents)?, &options, precision)?))
}
