//! A feature map and a few words.

use super::{OP, QuantizedLookupOp, TABLE};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(_precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let table = Dims::new(&[TABLE])?;
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for extents in [&[2, 3, 5, 8][..], &[7]] {
        examples.push(Box::new(QuantizedLookupOp::new(Dims::new(extents)?, table)?));
    }
    Ok(examples)
}

const NAMES: &str = "words";

/// A feature map.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[802816], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, _precision: Precision) -> Result<Arc<dyn Op>> {
    let &[words] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    Ok(Arc::new(QuantizedLookupOp::new(Dims::new(&[words])?, Dims::new(&[TABLE])?)?))
}
