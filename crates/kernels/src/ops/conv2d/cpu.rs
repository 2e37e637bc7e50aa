//! The 2D convolution on the CPU: with one input channel per group it is a depthwise convolution, and where windows
//! are pixels a product.

use super::windows::Windows;
use super::{Conv2dOp, OP};
use crate::cpu::shelf::Shelf;
use crate::cpu::tail::Tail;
use crate::cpu::{CpuKernel, check_len};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::depthwise::cpu::Channelwise;
use crate::ops::operands::{Operands, need};
use crate::ops::pointwise::cpu::{RowProduct, transpose};
use crate::shape::Border;

/// Lays out the weights (`oc kh kw c/groups`).
pub(super) fn kernel(
    op: &Conv2dOp,
    constants: &Operands<'_>,
    shelf: Shelf<'_>,
) -> Result<Box<dyn CpuKernel>> {
    let conv = op.0;
    let (output, weights) = (conv.output, need(OP, constants, Operand::Weights)?);
    let depth = conv.terms();
    check_len(OP, "weights", weights.len(), depth * output.c)?;
    let tail = Tail::of(OP, &conv.epilogue, output.c, constants)?;
    let same_pixels = conv.before == [0, 0]
        && conv.stride == [1, 1]
        && (output.h, output.w) == (conv.input.h, conv.input.w);
    if conv.kernel == [1, 1] && conv.groups == 1 && same_pixels {
        let rows = output.n * output.h * output.w;
        let shelf = (shelf, "rows");
        let weights = || weights;
        return Ok(Box::new(RowProduct::new(OP, rows, [conv.input.c, output.c], weights, tail, shelf)));
    }
    if conv.group_inputs() == 1 && conv.groups > 1 && conv.border == Border::Zeros {
        // `oc kh kw` to `kh kw oc`.
        let mut transposed = vec![0.0; weights.len()];
        transpose(weights, depth, &mut transposed);
        return Ok(Box::new(Channelwise::new(OP, conv, &transposed, tail)));
    }
    Ok(Box::new(Windows::new(OP, conv, weights, tail, shelf)))
}
