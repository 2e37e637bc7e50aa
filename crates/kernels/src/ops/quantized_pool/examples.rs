//! Maxima and means, with and without windows that go beyond the input.

use super::{OP, QuantizedPool, QuantizedPoolOp, QuantizedPooling};
use crate::dtype::Precision;
use crate::emit::Bits;
use crate::error::Result;
use crate::ops::bytes::ByteRange;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use crate::shape::{Padding, Shape};
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(_precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let range = ByteRange { zero: 100, least: 20, most: 240 };
    let scaled = QuantizedPooling::Scaled { zero: 90, factor: Bits(0.043) };
    let (same, valid) = (Padding::Same, Padding::Valid);
    let cases = [
        (QuantizedPooling::Max, [3, 2], [2, 1], same),
        (QuantizedPooling::Mean(128), [3, 3], [1, 2], same),
        (QuantizedPooling::Mean(0), [2, 2], [2, 2], valid),
        (scaled, [5, 7], [5, 7], valid),
    ];
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for (pooling, window, stride, padding) in cases {
        let options = QuantizedPool { pooling, window, stride, padding, range };
        examples.push(Box::new(QuantizedPoolOp::new(Shape::nhwc(2, 5, 7, 3), &options)?));
    }
    Ok(examples)
}

const NAMES: &str = "height,width,words";

/// The largest of windows of a feature map.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[112, 112, 16], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, _precision: Precision) -> Result<Arc<dyn Op>> {
    let &[height, width, words] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let (window, stride) = ([3, 3], [2, 2]);
    let (pooling, padding, range) = (QuantizedPooling::Max, Padding::Same, ByteRange::all(128));
    let options = QuantizedPool { pooling, window, stride, padding, range };
    Ok(Arc::new(QuantizedPoolOp::new(Shape::nhwc(1, height, width, words), &options)?))
}
