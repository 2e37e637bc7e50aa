//! A depthwise and a 1x1 convolution as one on the CPU: rows of the depthwise convolution, and their
//! matrix product while a core's cache holds them.

use super::{OP, SeparableOp};
use crate::cpu::blocks::{cut_panels, with_scratch};
use crate::cpu::tail::Tail;
use crate::cpu::tile::{Cut, for_each_tile};
use crate::cpu::{CpuKernel, check_len, given, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::depthwise::cpu::Channelwise;
use crate::ops::operands::{Operands, get, need};
use crate::ops::pointwise::cpu::RowProduct;

/// A depthwise and a 1x1 convolution with their constants, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct SeparableKernel {
    op: SeparableOp,
    window: Channelwise,
    product: RowProduct,
}

impl SeparableKernel {
    /// Lays out the weights.
    pub(super) fn new(op: &SeparableOp, constants: &Operands<'_>) -> Result<Self> {
        let (first, second) = (op.depthwise, op.pointwise);
        let window = need(OP, constants, Operand::Window)?;
        check_len(OP, "window", window.len(), first.kernel[0] * first.kernel[1] * first.output.c)?;
        let bias = get(constants, Operand::WindowBias);
        let tail = Tail::new(OP, &first.epilogue, first.output.c, bias, None)?;
        let window = Channelwise::new(OP, first, window, tail);
        let tail = Tail::of(OP, &second.epilogue, second.output.c, constants)?;
        let rows = second.output.n * second.output.h * second.output.w;
        let weights = need(OP, constants, Operand::Weights)?;
        let product = RowProduct::new(OP, rows, second.input.c, second.output.c, weights, tail)?;
        Ok(SeparableKernel { op: *op, window, product })
    }
}

impl CpuKernel for SeparableKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, residual) = (input(OP, inputs, Operand::Src)?, given(inputs, Operand::Residual));
        let dst = output(OP, outputs, Operand::Dst)?;
        let (between, output) = (self.op.pointwise.input, self.op.pointwise.output);
        self.window.check(src)?;
        self.product.check(residual, dst)?;
        let pixels = between.n * between.h * between.w;
        let columns = self.product.all_columns();
        // Tiles of whole rows of the output, so that each window is summed once.
        let cut = cut_panels(pixels, between.c, output.c, columns);
        let cut = Cut { rows: cut.rows.next_multiple_of(output.w), columns };
        for_each_tile(dst, output.c, cut, |[row, column], mut tile| {
            with_scratch(tile.rows() * between.c, |between| {
                self.window.rows(row / output.w, src, None, between);
                self.product.multiply(between, [row, column], columns, residual, &mut tile);
            });
        });
        Ok(())
    }
}
