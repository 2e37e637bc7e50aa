//! Problems that between them use every kernel, with and without a scale and a bias.

use super::{Normalize, NormalizeOp, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Bits;
use crate::error::Result;
use crate::ops::plan::Op;
use crate::ops::registry::Numbers;
use std::sync::Arc;

/// The examples in `precision`: over pixels, and over channels.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for (scale, bias) in [(false, false), (true, true), (true, false), (false, true)] {
        for axes in [vec![1, 2], vec![-1]] {
            let options = Normalize { axes, epsilon: Bits(1e-3) };
            let dims = Dims::new(&[2, 7, 9, 6])?;
            examples.push(Box::new(NormalizeOp::new(dims, &options, scale, bias, precision)?));
        }
    }
    Ok(examples)
}

const NAMES: &str = "n,h,w,c";

/// Over height and width, with scale and bias.
pub(crate) const NUMBERS: Numbers =
    Numbers { names: NAMES, usual: &[1, 96, 96, 128], op: |extents, _, precision| of(extents, precision) };

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let &[_, _, _, _] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let options = Normalize { axes: vec![1, 2], epsilon: Bits(1e-3) };
    Ok(Arc::new(NormalizeOp::new(Dims::new(extents)?, &options, true, true, precision)?))
}
