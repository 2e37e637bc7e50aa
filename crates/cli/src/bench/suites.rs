//! What is measured, as data: the shapes that `README.md` quotes, and those that a network has.
//!
//! `benches/` times the same cases through criterion.

use anyhow::{Context as _, Result};
use diptych::{DType, Precision};
use diptych_emit::emit::Operand;
use diptych_kernels::ops::{self, Op, OperandInfo};
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

/// A layer of PoseNet or of its kind: an op, and its extents as [`diptych_kernels::ops::Numbers`] has them.
pub type Layer<'a> = (&'a str, &'a [usize]);

/// The layers.
pub const LAYERS: [Layer<'_>; 33] = [
    NODE_27,
    ("pointwise", &[1, 17, 17, 512, 512]),
    ("pointwise", &[1, 33, 33, 256, 256]),
    ("conv2d", &[1, 56, 56, 64, 64, 3, 3, 1]),
    // The stem of PoseNet.
    ("conv2d", &[1, 257, 257, 3, 32, 3, 3, 2]),
    ("depthwise", &[1, 17, 17, 512, 512, 3, 3, 1]),
    ("depthwise", &[1, 129, 129, 64, 64, 3, 3, 2]),
    ("pool", &[1, 112, 112, 64, 3, 3, 2]),
    // Of segmentation, style transfer and classifiers.
    ("transposed_conv2d", &[1, 32, 32, 64, 32, 4, 2]),
    ("elementwise", &[1, 56, 56, 64]),
    ("remap", &[1, 112, 112, 64]),
    ("resize", &[1, 33, 33, 64, 257, 257]),
    ("reduce", &[1, 56, 56, 128]),
    ("reduce", &[1, 256, 256, 16]),
    // Of squeeze-and-excitation blocks: both halves. Without `k` the gate is given what the first half makes.
    ("squeeze", &[1, 112, 112, 32, 8]),
    ("squeeze", &[1, 14, 14, 672, 28]),
    ("squeeze", &[1, 7, 7, 1152, 48]),
    // A token's normalisation with the product behind it, and two small layers.
    ("mlp", &[1, 384, 0, 1152]),
    ("mlp", &[1, 128, 64, 10]),
    ("gate", &[1, 14, 14, 672, 0, 28]),
    ("normalize", &[1, 96, 96, 128]),
    ("softmax", &[1000, 1001, 1]),
    ("softmax", &[1, 65536, 1]),
    // Of a vision transformer, a speech encoder, and a decoder's next token.
    ("attention", &[12, 197, 197, 64]),
    ("attention", &[6, 1500, 1500, 64]),
    ("attention", &[12, 1, 512, 64]),
    // Of a gated layer of a transformer: a token, and many.
    ("glu", &[1, 11008]),
    ("glu", &[128, 11008]),
    // Of a decoder with packed weights: the next token, of 4 and 8 bits, and a beginning of 128.
    ("quantized_gemm", &[1, 2048, 2048, 4, 32]),
    ("quantized_gemm", &[1, 8192, 2048, 4, 32]),
    ("quantized_gemm", &[1, 2048, 2048, 8, 32]),
    ("quantized_gemm", &[1, 8192, 2048, 8, 32]),
    ("quantized_gemm", &[128, 2048, 2048, 4, 32]),
];

/// Node 27 of the article that began this project.
pub const NODE_27: Layer<'_> = ("pointwise", &[1, 9, 9, 1024, 1024]);

/// A square product of side `n`, or any other.
///
/// # Errors
/// If an extent is 0 or too large for 32-bit indices.
pub fn product((m, n, k, batch): (usize, usize, usize, usize), precision: Precision) -> Result<Arc<dyn Op>> {
    layer(("gemm", &[m, n, k, batch]), precision)
}

/// An op of these extents.
///
/// # Errors
/// If there is no such op, or an extent is 0 or too large for 32-bit indices.
pub fn layer((op, extents): Layer<'_>, precision: Precision) -> Result<Arc<dyn Op>> {
    let entry = ops::all().iter().find(|entry| entry.name == op);
    let entry = entry.with_context(|| format!("there is no op {op}"))?;
    Ok((entry.numbers.op)(extents, None, precision)?)
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
            Operand::Bias | Operand::Slope | Operand::WindowBias | Operand::Scales | Operand::Zeros => {
                DType::F32
            }
            _ if !info.dtype.is_float() => info.dtype,
            _ => op.precision().storage(),
        };
        (info.elements() * dtype.bytes()) as u64
    };
    op.operands().into_iter().map(bytes).sum()
}
