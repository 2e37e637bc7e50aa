//! Problems that between them use every kernel, every epilogue and every edge.

use super::{ConvertOp, OP};
use crate::dtype::{DType, Precision};
use crate::error::Result;
use crate::layout::Layout;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use crate::shape::Shape;
use std::sync::Arc;

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
    examples.push(Box::new(ConvertOp::storage(shape, DType::F16, DType::F32)?));
    examples.push(Box::new(ConvertOp::storage(shape, DType::F32, DType::F16)?));
    for (from, to) in
        [(Layout::Nhwc, Layout::C4), (Layout::C4, Layout::Nhwc), (Layout::Image2d, Layout::Nhwc)]
    {
        examples.push(Box::new(ConvertOp::new(shape, from, to, precision)?.with_half_rows()));
    }
    for shape in [shape, Shape::nhwc(1, 1, 6, 10)] {
        examples.push(Box::new(ConvertOp::of_rows(shape, DType::F16, DType::F32)?));
        examples.push(Box::new(ConvertOp::of_rows(shape, DType::F32, DType::F16)?));
    }
    Ok(examples)
}

const NAMES: &str = "n,h,w,c";

/// From NHWC to C4, unless the kernel does something else.
pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[1, 257, 257, 3], op: of };

fn of(extents: &[usize], kernel: Option<&str>, precision: Precision) -> Result<Arc<dyn Op>> {
    let &[n, h, w, c] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let shape = Shape::nhwc(n, h, w, c);
    let (from, to) = match kernel {
        Some("repack") => return Ok(Arc::new(ConvertOp::storage(shape, DType::F16, DType::F32)?)),
        Some("cast") => return Ok(Arc::new(ConvertOp::of_rows(shape, DType::F32, DType::F16)?)),
        Some("unpack") => (Layout::C4, Layout::Nhwc),
        Some("pack_image2d") => (Layout::Nhwc, Layout::Image2d),
        Some("unpack_image2d") => (Layout::Image2d, Layout::Nhwc),
        Some("c4_to_image2d") => (Layout::C4, Layout::Image2d),
        Some("image2d_to_c4") => (Layout::Image2d, Layout::C4),
        _ => (Layout::Nhwc, Layout::C4),
    };
    Ok(Arc::new(ConvertOp::new(shape, from, to, precision)?))
}
