//! Moves a feature map from one layout to another, on the device.
//!
//! The lanes of the last slice beyond the channels are written as zero in C4 and Image2d. The
//! host side (NHWC, NCHW) is f32; the device side (C4, Image2d) has the precision's storage type.

mod oracle;
mod plan;

pub use oracle::oracle;

use crate::dtype::Precision;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::shape::Shape;

/// A change of layout of concrete shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConvertOp {
    /// The feature map's shape.
    pub shape: Shape,
    /// The layout that is read.
    pub from: Layout,
    /// The layout that is written.
    pub to: Layout,
    /// Storage of the device side.
    pub precision: Precision,
}

impl ConvertOp {
    /// Checks the shape and that one side is a host layout and the other a device layout, or
    /// that both are device layouts that differ.
    ///
    /// # Errors
    /// If there is nothing to convert, or the shape is empty or too large.
    pub fn new(shape: Shape, from: Layout, to: Layout, precision: Precision) -> Result<Self> {
        shape.check("convert")?;
        let host = |layout| matches!(layout, Layout::Nhwc | Layout::Nchw);
        if from == to || (host(from) && host(to)) {
            return Err(Error::shape(
                "convert",
                format!("{from} to {to}"),
                "two layouts that differ, at least one of them c4 or image2d",
            ));
        }
        Ok(ConvertOp { shape, from, to, precision })
    }
}
