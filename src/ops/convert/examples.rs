//! Problems that between them use every kernel, every epilogue and every edge.

use super::ConvertOp;
use crate::dtype::Precision;
use crate::error::Result;
use crate::layout::Layout;
use crate::ops::plan::Op;
use crate::shape::Shape;

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let shape = Shape::nhwc(2, 3, 5, 7);
    let directions = [
        (Layout::Nhwc, Layout::C4),
        (Layout::Nchw, Layout::C4),
        (Layout::C4, Layout::Nhwc),
        (Layout::C4, Layout::Nchw),
        (Layout::Nhwc, Layout::Image2d),
        (Layout::Image2d, Layout::Nhwc),
        (Layout::C4, Layout::Image2d),
        (Layout::Image2d, Layout::C4),
    ];
    let mut examples: Vec<Box<dyn Op>> = Vec::with_capacity(directions.len() + 1);
    for (from, to) in directions {
        examples.push(Box::new(ConvertOp::new(shape, from, to, precision)?));
    }
    examples.push(Box::new(ConvertOp::parts(shape, &[1, 4, 2], precision)?));
    Ok(examples)
}
