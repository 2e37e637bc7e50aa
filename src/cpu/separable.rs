//! A depthwise and a 1x1 convolution as one: what lies between them stays in a core's cache.

use super::blocks::{cut_panels, with_scratch};
use super::check_len;
use super::depthwise::Channelwise;
use super::pointwise::RowProduct;
use super::tail::Tail;
use super::tile::{Cut, for_each_tile};
use crate::error::Result;
use crate::ops::separable::SeparableOp;

/// The constants of a [`SeparableKernel`].
#[derive(Debug, Clone, Copy)]
pub struct SeparableConstants<'a> {
    /// The depthwise weights, `1 kh kw c`.
    pub window: &'a [f32],
    /// One value per input channel.
    pub window_bias: Option<&'a [f32]>,
    /// The weights of the 1x1 convolution, `oc 1 1 c`.
    pub weights: &'a [f32],
    /// One value per output channel.
    pub bias: Option<&'a [f32]>,
    /// One PReLU slope per output channel.
    pub slope: Option<&'a [f32]>,
}

/// A depthwise and a 1x1 convolution with their constants, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub struct SeparableKernel {
    op: SeparableOp,
    window: Channelwise,
    product: RowProduct,
}

impl SeparableKernel {
    /// Lays out the weights.
    ///
    /// # Errors
    /// If a constant is missing, not wanted, or of another length than the op says.
    pub fn new(op: &SeparableOp, constants: SeparableConstants<'_>) -> Result<Self> {
        const OP: &str = "separable";
        let SeparableConstants { window, window_bias, weights, bias, slope } = constants;
        let (first, second) = (*op.depthwise(), *op.pointwise());
        check_len(OP, "window", window.len(), first.kernel[0] * first.kernel[1] * first.output.c)?;
        let tail = Tail::new(OP, &first.epilogue, first.output.c, window_bias, None)?;
        let window = Channelwise::new(OP, first, window.to_vec(), tail);
        let tail = Tail::new(OP, &second.epilogue, second.output.c, bias, slope)?;
        let rows = second.output.n * second.output.h * second.output.w;
        let product = RowProduct::new(OP, rows, second.input.c, second.output.c, weights, tail)?;
        Ok(SeparableKernel { op: *op, window, product })
    }

    /// Reads `src` and `residual` and writes `dst`, all NHWC.
    ///
    /// # Errors
    /// If a slice is missing, not wanted, or of another length than the op says.
    pub fn run(&self, src: &[f32], residual: Option<&[f32]>, dst: &mut [f32]) -> Result<()> {
        let (between, output) = (self.op.pointwise().input, self.op.pointwise().output);
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
