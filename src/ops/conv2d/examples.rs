//! Problems that between them use every kernel, every epilogue and every edge.

use super::{Conv2d, Conv2dOp};
use crate::dtype::Precision;
use crate::error::Result;
use crate::ops::plan::Op;
use crate::ops::registry::ACTIVATIONS;
use crate::shape::{Padding, Shape};

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let input = Shape::nhwc(1, 9, 11, 6);
    let stem = Conv2d { stride: [2, 2], padding: Padding::Same, ..Default::default() };
    let grouped = Conv2d { groups: 2, dilation: [2, 1], ..Default::default() };
    let mut examples: Vec<Box<dyn Op>> = vec![
        Box::new(Conv2dOp::new(input, Shape::nhwc(9, 3, 3, 6), &stem, false, false, precision)?),
        Box::new(Conv2dOp::new(input, Shape::nhwc(10, 3, 2, 3), &grouped, true, true, precision)?),
        Box::new(Conv2dOp::new(input, Shape::nhwc(9, 3, 3, 6), &Conv2d::default(), true, true, precision)?),
        Box::new(Conv2dOp::new(input, Shape::nhwc(16, 3, 2, 3), &grouped, true, false, precision)?),
        Box::new(Conv2dOp::new(
            Shape::nhwc(1, 9, 11, 8),
            Shape::nhwc(12, 2, 2, 4),
            &grouped,
            true,
            false,
            precision,
        )?),
        Box::new(Conv2dOp::new(
            Shape::nhwc(1, 9, 11, 8),
            Shape::nhwc(16, 2, 2, 4),
            &grouped,
            true,
            false,
            precision,
        )?),
        Box::new(Conv2dOp::new(
            Shape::nhwc(1, 9, 11, 3),
            Shape::nhwc(9, 3, 3, 3),
            &stem,
            true,
            false,
            precision,
        )?),
    ];
    for activation in ACTIVATIONS {
        let options = Conv2d { activation, ..Default::default() };
        examples.push(Box::new(Conv2dOp::new(
            input,
            Shape::nhwc(5, 1, 2, 6),
            &options,
            true,
            true,
            precision,
        )?));
    }
    Ok(examples)
}
