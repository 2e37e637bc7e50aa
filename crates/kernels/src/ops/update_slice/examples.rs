//! Problems that between them use every width and type, one place and several, in place and not.

use super::{OP, UpdateSlice, UpdateSliceOp};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use crate::ops::prologue::before;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for (whole, part, places, axis) in [
        (&[2, 3, 7, 8][..], &[2, 3, 2, 8][..], &[2][..], 2),
        (&[2, 3, 7, 5], &[2, 3, 1, 5], &[1], 2),
        (&[9, 4], &[3, 4], &[1], 0),
    ] {
        let op = UpdateSliceOp::new(
            Dims::new(whole)?,
            Dims::new(part)?,
            Dims::new(places)?,
            UpdateSlice { axis },
        )?
        .in_precision(precision);
        for word in [DType::F32, DType::I32, DType::U32] {
            examples.push(Box::new(op.of(word)));
            examples.push(Box::new(op.of(word).updating()));
        }
        if part.last() == Some(&8) {
            for op in [op, op.updating()] {
                examples.extend(before(&(Arc::new(op) as Arc<dyn Op>), Operand::Arg(0))?);
            }
        }
    }
    Ok(examples)
}

const NAMES: &str = "heads,places,features";

/// One place of a cache of keys.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[32, 2048, 128], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, precision: Precision) -> Result<Arc<dyn Op>> {
    let &[heads, places, features] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let (whole, part) = ([1, heads, places, features], [1, heads, 1, features]);
    let at = Dims::new(&[1])?;
    let op = UpdateSliceOp::new(Dims::new(&whole)?, Dims::new(&part)?, at, UpdateSlice { axis: 2 })?;
    Ok(Arc::new(op.in_precision(precision).updating()))
}
