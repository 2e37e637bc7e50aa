//! Windows within the input and beyond it, products of rows, sums and numbers.

use super::{DynamicConv2d, DynamicConv2dOp, EpilogueOperands, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Activation;
use crate::error::Result;
use crate::ops::bytes::LANES;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use crate::shape::{Padding, Shape};
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(_precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let plain = DynamicConv2d::new();
    let same = DynamicConv2d { padding: Padding::Same, ..plain };
    let [none, all] = [false, true].map(|has| EpilogueOperands { bias: has, residual: has });
    let of = |activation| DynamicConv2d { activation, ..same };
    let cases = [
        (Shape::nhwc(2, 7, 9, 3), [20, 3, 3], 2, of(Activation::Relu6), all),
        (
            Shape::nhwc(1, 7, 6, 2),
            [13, 3, 2],
            1,
            DynamicConv2d { stride: [2, 1], ..of(Activation::PRelu) },
            all,
        ),
        (Shape::nhwc(1, 1, 6, 5), [17, 1, 1], 6, plain, none),
        (Shape::nhwc(2, 5, 7, 4), [8, 2, 2], 1, DynamicConv2d { sums: true, dilation: [1, 3], ..same }, none),
        (Shape::nhwc(3, 1, 1, 9), [131, 1, 1], 3, DynamicConv2d { sums: true, ..plain }, none),
    ];
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for (input, [channels, kernel_h, kernel_w], ranges, options, given) in cases {
        let weights = Shape::nhwc(channels, kernel_h, kernel_w, input.c);
        let ranges = Dims::new(&[ranges, 3])?;
        examples.push(Box::new(DynamicConv2dOp::with(input, weights, ranges, &options, given)?));
    }
    Ok(examples)
}

const NAMES: &str = "height,width,inputs,outputs,window,ranges";

/// A convolution of a feature map.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[28, 28, 128, 128, 1, 1], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, _precision: Precision) -> Result<Arc<dyn Op>> {
    let &[h, w, inputs, outputs, window, ranges] = extents else {
        return Numbers::refuse(OP, NAMES, extents);
    };
    let words = inputs.div_ceil(LANES);
    let options = DynamicConv2d { padding: Padding::Same, ..DynamicConv2d::new() };
    let weights = Shape::nhwc(outputs, window, window, words);
    let ranges = Dims::new(&[ranges, 3])?;
    Ok(Arc::new(DynamicConv2dOp::new(Shape::nhwc(1, h, w, words), weights, ranges, &options)?))
}
