//! Windows within the input and beyond it, dilated, of 1x1 and of a whole row, with channels that fill words and do not.

use super::{OP, QuantizedConv2d, QuantizedConv2dOp};
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
    let plain = QuantizedConv2d::new(131, range);
    let cases = [
        (Shape::nhwc(2, 5, 9, 3), [17, 1, 1], plain),
        (
            Shape::nhwc(1, 7, 6, 2),
            [33, 3, 3],
            QuantizedConv2d { stride: [2, 1], padding: Padding::Same, ..plain },
        ),
        (
            Shape::nhwc(1, 7, 9, 1),
            [6, 3, 2],
            QuantizedConv2d { dilation: [1, 3], padding: Padding::Same, ..plain },
        ),
        (Shape::nhwc(1, 1, 1, 9), [70, 1, 1], plain),
    ];
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for (input, [channels, kernel_h, kernel_w], options) in cases {
        let weights = Shape::nhwc(channels, kernel_h, kernel_w, input.c);
        examples.push(Box::new(QuantizedConv2dOp::new(input, weights, &options)?));
    }
    Ok(examples)
}

const NAMES: &str = "height,width,channels,outputs,window";

/// A convolution of a feature map.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[28, 28, 128, 128, 3], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, _precision: Precision) -> Result<Arc<dyn Op>> {
    let &[h, w, channels, outputs, window] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let words = channels.div_ceil(LANES);
    let options =
        QuantizedConv2d { padding: Padding::Same, ..QuantizedConv2d::new(128, ByteRange::all(128)) };
    let weights = Shape::nhwc(outputs, window, window, words);
    Ok(Arc::new(QuantizedConv2dOp::new(Shape::nhwc(1, h, w, words), weights, &options)?))
}
