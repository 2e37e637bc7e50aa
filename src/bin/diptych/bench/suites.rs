//! What is measured, as data: the shapes that `README.md` quotes, and those that a network has.
//!
//! `benches/` times the same cases through criterion.

use anyhow::Result;
use diptych::emit::Operand;
use diptych::ops::conv2d::Conv2dOp;
use diptych::ops::depthwise::DepthwiseOp;
use diptych::ops::gemm::GemmOp;
use diptych::ops::pointwise::PointwiseOp;
use diptych::ops::{Op, OperandInfo};
use diptych::{Activation, Conv2d, DType, Depthwise, Gemm, Padding, Pointwise, Precision, Shape};
use std::sync::Arc;

/// `(m, n, k, batch)`: squares, a matrix by a few vectors, and many small products.
pub const PRODUCTS: [(usize, usize, usize, usize); 8] = [
    (256, 256, 256, 1),
    (512, 512, 512, 1),
    (1024, 1024, 1024, 1),
    (2048, 2048, 2048, 1),
    (4096, 4096, 4096, 1),
    (1, 4096, 4096, 1),
    (8, 4096, 4096, 1),
    (64, 64, 64, 64),
];

/// The precisions of the products and ops.
pub const PRECISIONS: [Precision; 2] = [Precision::F32, Precision::F16Storage];

/// A convolution of PoseNet or of its kind, with bias and ReLU6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// `(height and width, channels, output channels)`.
    Pointwise(usize, usize, usize),
    /// `(height and width, channels, output channels, taps along each axis, stride)`.
    Conv2d(usize, usize, usize, usize, usize),
    /// `(height and width, channels, taps along each axis, stride)`.
    Depthwise(usize, usize, usize, usize),
}

/// The layers.
pub const LAYERS: [Layer; 7] = [
    // Node 27 of the article that began this project.
    Layer::Pointwise(9, 1024, 1024),
    Layer::Pointwise(17, 512, 512),
    Layer::Pointwise(33, 256, 256),
    Layer::Conv2d(56, 64, 64, 3, 1),
    // The stem of PoseNet.
    Layer::Conv2d(257, 3, 32, 3, 2),
    Layer::Depthwise(17, 512, 3, 1),
    Layer::Depthwise(129, 64, 3, 2),
];

/// A square product of side `n`, or any other.
///
/// # Errors
/// If an extent is 0 or too large for 32-bit indices.
pub fn product(extents: (usize, usize, usize, usize), precision: Precision) -> Result<Arc<dyn Op>> {
    let (m, n, k, batch) = extents;
    Ok(Arc::new(GemmOp::new(m, n, k, batch, &Gemm::default(), false, false, precision)?))
}

/// A layer of one image.
///
/// # Errors
/// If an extent is 0 or too large for 32-bit indices.
pub fn layer(layer: Layer, precision: Precision) -> Result<Arc<dyn Op>> {
    let (activation, padding) = (Activation::Relu6, Padding::Same);
    Ok(match layer {
        Layer::Pointwise(side, c, oc) => Arc::new(PointwiseOp::new(
            Shape::nhwc(1, side, side, c),
            Shape::nhwc(oc, 1, 1, c),
            &Pointwise { activation },
            true,
            false,
            precision,
        )?),
        Layer::Conv2d(side, c, oc, taps, stride) => Arc::new(Conv2dOp::new(
            Shape::nhwc(1, side, side, c),
            Shape::nhwc(oc, taps, taps, c),
            &Conv2d { stride: [stride; 2], padding, activation, ..Default::default() },
            true,
            false,
            precision,
        )?),
        Layer::Depthwise(side, c, taps, stride) => Arc::new(DepthwiseOp::new(
            Shape::nhwc(1, side, side, c),
            Shape::nhwc(1, taps, taps, c),
            &Depthwise { stride: [stride; 2], padding, activation, ..Default::default() },
            true,
            false,
            precision,
        )?),
    })
}

/// Every product, in every precision.
///
/// # Errors
/// Those of [`product`].
pub fn products() -> Result<Vec<Arc<dyn Op>>> {
    let each = PRECISIONS.into_iter().flat_map(|precision| PRODUCTS.map(|extents| (extents, precision)));
    each.map(|(extents, precision)| product(extents, precision)).collect()
}

/// Every layer, in every precision.
///
/// # Errors
/// Those of [`layer`].
pub fn layers() -> Result<Vec<Arc<dyn Op>>> {
    let each = PRECISIONS.into_iter().flat_map(|precision| LAYERS.map(|shape| (shape, precision)));
    each.map(|(shape, precision)| layer(shape, precision)).collect()
}

/// The name of a case: op, precision, and the problem as the tuner's record words it.
pub fn name(op: &dyn Op) -> String {
    format!("{}_{} {}", op.name(), op.precision(), op.problem_key())
}

/// Bytes that a run must at least move: every operand once, in its stored type.
pub fn bytes(op: &dyn Op) -> u64 {
    let bytes = |info: OperandInfo| {
        let dtype = match info.operand {
            // One value for each channel, in every precision.
            Operand::Bias | Operand::Slope | Operand::WindowBias => DType::F32,
            _ => op.precision().storage(),
        };
        (info.elements() * dtype.bytes()) as u64
    };
    op.operands().into_iter().map(bytes).sum()
}
