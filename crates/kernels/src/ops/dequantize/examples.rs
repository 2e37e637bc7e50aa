//! Problems whose channels fill their words and do not.

use super::{Dequantize, DequantizeOp, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Bits;
use crate::error::Result;
use crate::ops::bytes::LANES;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(_precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for (extents, channels) in [(&[2, 3, 5, 2][..], 8), (&[7, 2], 5), (&[1], 1)] {
        let options = Dequantize { scale: Bits(0.03), zero: 100, channels };
        examples.push(Box::new(DequantizeOp::new(Dims::new(extents)?, options)?));
    }
    Ok(examples)
}

const NAMES: &str = "rows,channels";

/// A feature map.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[50176, 64], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, _precision: Precision) -> Result<Arc<dyn Op>> {
    let &[rows, channels] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let options = Dequantize { scale: Bits(0.03), zero: 128, channels };
    Ok(Arc::new(DequantizeOp::new(Dims::new(&[rows, channels.div_ceil(LANES)])?, options)?))
}
