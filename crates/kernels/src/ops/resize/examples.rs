//! Problems that between them use every mode, larger and smaller.

use super::{OP, Resize, ResizeMode, ResizeOp};
use crate::dtype::Precision;
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::followed::behind;
use crate::ops::op::Op;
use crate::shape::Shape;
use std::sync::Arc;

/// The examples in `precision`.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let input = Shape::nhwc(2, 5, 7, 6);
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for mode in [ResizeMode::Bilinear, ResizeMode::Nearest] {
        for (align_corners, half_pixel_centers) in [(false, false), (true, false), (false, true)] {
            let options = Resize { align_corners, half_pixel_centers, ..Resize::new(mode, [9, 4]) };
            examples.push(Box::new(ResizeOp::new(input, &options, precision)?));
        }
    }
    for mode in [ResizeMode::Bilinear, ResizeMode::Nearest] {
        let op = ResizeOp::new(input, &Resize::new(mode, [9, 4]), precision)?;
        examples.extend(behind(&(Arc::new(op) as Arc<dyn Op>))?);
    }
    Ok(examples)
}

const NAMES: &str = "n,h,w,c,oh,ow";

/// Bilinear, with half-pixel centers.
pub(crate) const NUMBERS: Numbers = Numbers {
    names: NAMES,
    usual: &[1, 33, 33, 64, 257, 257],
    op: |extents, _, precision| of(extents, precision),
};

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let &[n, h, w, c, oh, ow] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let options = Resize { half_pixel_centers: true, ..Resize::new(ResizeMode::Bilinear, [oh, ow]) };
    Ok(Arc::new(ResizeOp::new(Shape::nhwc(n, h, w, c), &options, precision)?))
}
