//! Problems that between them use every kernel, axis and width.

use super::{ConcatOp, OP};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for (extents, axis) in [
        (&[[2, 3, 5, 6], [1, 3, 5, 6]][..], 0),
        (&[[2, 3, 5, 6], [2, 4, 5, 6]], 1),
        (&[[2, 3, 5, 8], [2, 3, 1, 8], [2, 3, 3, 8]], 2),
        (&[[2, 3, 5, 8], [2, 3, 5, 3]], 3),
        (&[[2, 3, 5, 3], [2, 3, 5, 6]], 3),
        (&[[1, 2, 3, 1]; 7], 3),
    ] {
        examples.push(Box::new(joined(extents, axis, precision)?));
    }
    for (channels, word) in [(8, DType::I32), (3, DType::U32)] {
        let extents = [[2, 3, 5, channels], [2, 3, 1, channels]];
        examples.push(Box::new(joined(&extents, 2, precision)?.of(word)));
    }
    Ok(examples)
}

fn joined(extents: &[[usize; 4]], axis: isize, precision: Precision) -> Result<ConcatOp> {
    let dims = extents.iter().map(|extents| Dims::new(extents)).collect::<Result<Vec<Dims>>>()?;
    ConcatOp::new(&dims, axis, precision)
}

const NAMES: &str = "n,h,w,c,o";

/// Maps of `c` and `o` channels.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[1, 56, 56, 64, 64], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, precision: Precision) -> Result<Arc<dyn Op>> {
    let &[n, h, w, c, o] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    Ok(Arc::new(joined(&[[n, h, w, c], [n, h, w, o]], 3, precision)?))
}
