//! Windows within the input and beyond it, dilated, with few channels and many.

use super::{OP, QuantizedDepthwise, QuantizedDepthwiseOp};
use crate::dtype::Precision;
use crate::error::Result;
use crate::ops::bytes::{ByteRange, LANES};
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use crate::shape::{Padding, Shape};
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(_precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let range = ByteRange { zero: 100, least: 20, most: 240 };
    let plain = QuantizedDepthwise::new(131, range);
    let same = QuantizedDepthwise { padding: Padding::Same, ..plain };
    let cases = [
        (Shape::nhwc(2, 5, 9, 3), [3, 3], same),
        (Shape::nhwc(1, 7, 6, 17), [5, 5], QuantizedDepthwise { stride: [2, 1], ..same }),
        (Shape::nhwc(1, 7, 9, 9), [3, 2], QuantizedDepthwise { dilation: [1, 3], ..same }),
        (Shape::nhwc(1, 3, 4, 1), [2, 2], plain),
    ];
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for (input, [kernel_h, kernel_w], options) in cases {
        let weights = Shape::nhwc(1, kernel_h, kernel_w, input.c);
        examples.push(Box::new(QuantizedDepthwiseOp::new(input, weights, &options)?));
    }
    Ok(examples)
}

const NAMES: &str = "height,width,channels,window";

/// A convolution of a feature map.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[56, 56, 128, 3], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, _precision: Precision) -> Result<Arc<dyn Op>> {
    let &[h, w, channels, window] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let words = channels.div_ceil(LANES);
    let range = ByteRange::all(128);
    let options = QuantizedDepthwise { padding: Padding::Same, ..QuantizedDepthwise::new(128, range) };
    let weights = Shape::nhwc(1, window, window, words);
    Ok(Arc::new(QuantizedDepthwiseOp::new(Shape::nhwc(1, h, w, words), weights, &options)?))
}
