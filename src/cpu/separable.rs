//! A depthwise and a 1x1 convolution as one: what lies between them stays in a core's cache.

use super::blocks::{cut_product, with_scratch};
use super::check_len;
use super::depthwise::Channelwise;
use super::pointwise::RowProduct;
use super::tail::Tail;
use crate::error::Result;
use crate::ops::separable::SeparableOp;
use gemm::Parallelism;
use rayon::prelude::*;

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
        let cut = cut_product(1, pixels, between.c + output.c);
        if !matches!(cut.parallelism, Parallelism::None) {
            // So few pixels that all workers share one product.
            return with_scratch(between.elements(), |between| {
                self.window.run(src, None, between)?;
                self.product.run(between, residual, dst)
            });
        }
        let rows = cut.rows.div_ceil(output.w);
        dst.par_chunks_mut(rows * output.w * output.c).enumerate().try_for_each(|(index, dst)| {
            let first = index * rows;
            let values = dst.len() / output.c * between.c;
            with_scratch(values, |between| {
                self.window.rows(first, src, None, between);
                self.product.block(first * output.w, between, residual, dst, Parallelism::None)
            })
        })
    }
}
