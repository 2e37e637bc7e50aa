//! Problems whose channels fill their words and do not.

use super::{OP, Quantize, QuantizeOp};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Bits;
use crate::error::Result;
use crate::ops::bytes::ByteRange;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(_precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    let ranges = [ByteRange::all(128), ByteRange { zero: 3, least: 3, most: 200 }];
    for (extents, range) in [(&[2, 3, 5, 8][..], ranges[0]), (&[7, 5], ranges[1]), (&[1], ranges[0])] {
        let options = Quantize { scale: Bits(0.03), range };
        examples.push(Box::new(QuantizeOp::new(Dims::new(extents)?, options)?));
    }
    Ok(examples)
}

const NAMES: &str = "rows,channels";

/// A feature map.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[50176, 64], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, _precision: Precision) -> Result<Arc<dyn Op>> {
    let &[rows, channels] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let options = Quantize { scale: Bits(0.03), range: ByteRange::all(128) };
    Ok(Arc::new(QuantizeOp::new(Dims::new(&[rows, channels])?, options)?))
}
