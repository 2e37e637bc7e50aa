//! Sums, differences and products, and every way in which extents fit.

use super::{OP, QuantizedBinary, QuantizedBinaryOp, QuantizedFunction};
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
    let functions = [
        QuantizedFunction::Add([Bits(0.7), Bits(0.4)]),
        QuantizedFunction::Add([Bits(0.01), Bits(-1.9)]),
        QuantizedFunction::Mul(Bits(0.013)),
    ];
    let ranges = [ByteRange::all(120), ByteRange { zero: 10, least: 10, most: 200 }];
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for (at, function) in functions.into_iter().enumerate() {
        let options = QuantizedBinary { function, zeros: [100, 130], range: ranges[at % 2] };
        for other in [&[2, 3, 5, 4][..], &[2, 1, 1, 4], &[4]] {
            examples.push(Box::new(QuantizedBinaryOp::new(
                Dims::new(&[2, 3, 5, 4])?,
                Dims::new(other)?,
                options,
            )?));
        }
    }
    Ok(examples)
}

const NAMES: &str = "words";

/// A sum of two feature maps.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[802816], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, _precision: Precision) -> Result<Arc<dyn Op>> {
    let &[words] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let function = QuantizedFunction::Add([Bits(0.7), Bits(0.4)]);
    let options = QuantizedBinary { function, zeros: [128, 128], range: ByteRange::all(128) };
    let dims = Dims::new(&[words])?;
    Ok(Arc::new(QuantizedBinaryOp::new(dims, dims, options)?))
}
