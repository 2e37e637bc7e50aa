//! The 1x1 convolution: `[n h w, c] x [c, oc]`.

use super::blocks::cut_product;
use super::check_len;
use super::product::{Factors, Matrix, multiply};
use super::tail::Tail;
use crate::error::Result;
use crate::ops::pointwise::PointwiseOp;
use gemm::Parallelism;
use rayon::prelude::*;

/// A 1x1 convolution with its constants, to run on the CPU as often as wanted.
#[derive(Debug, Clone)]
pub struct PointwiseKernel {
    product: RowProduct,
}

impl PointwiseKernel {
    /// Lays out the weights (`oc 1 1 c`).
    ///
    /// # Errors
    /// If a constant is missing, not wanted, or of another length than the op says.
    pub fn new(
        op: &PointwiseOp,
        weights: &[f32],
        bias: Option<&[f32]>,
        slope: Option<&[f32]>,
    ) -> Result<Self> {
        let (input, output) = (op.0.input, op.0.output);
        let tail = Tail::new("pointwise", &op.0.epilogue, output.c, bias, slope)?;
        let rows = output.n * output.h * output.w;
        Ok(PointwiseKernel { product: RowProduct::new("pointwise", rows, input.c, output.c, weights, tail)? })
    }

    /// Reads `src` and `residual` and writes `dst`, all NHWC.
    ///
    /// # Errors
    /// If a slice is missing, not wanted, or of another length than the op says.
    pub fn run(&self, src: &[f32], residual: Option<&[f32]>, dst: &mut [f32]) -> Result<()> {
        self.product.run(src, residual, dst)
    }
}

/// Rows of `depth` values, each multiplied by one constant matrix.
#[derive(Debug, Clone)]
pub(super) struct RowProduct {
    op: &'static str,
    rows: usize,
    depth: usize,
    columns: usize,
    /// `depth x columns`: the order in which the product reads them without repacking.
    weights: Vec<f32>,
    tail: Tail,
}

impl RowProduct {
    /// `weights` is `columns x depth`.
    pub(super) fn new(
        op: &'static str,
        rows: usize,
        depth: usize,
        columns: usize,
        weights: &[f32],
        tail: Tail,
    ) -> Result<Self> {
        check_len(op, "weights", weights.len(), depth * columns)?;
        let mut transposed = vec![0.0; weights.len()];
        transpose(weights, depth, &mut transposed);
        Ok(RowProduct { op, rows, depth, columns, weights: transposed, tail })
    }

    pub(super) fn run(&self, src: &[f32], residual: Option<&[f32]>, dst: &mut [f32]) -> Result<()> {
        let RowProduct { op, rows, depth, columns, .. } = *self;
        check_len(op, "src", src.len(), rows * depth)?;
        self.check(residual, dst)?;

        let cut = cut_product(1, rows, depth + columns);
        dst.par_chunks_mut(cut.rows * columns).enumerate().try_for_each(|(index, dst)| {
            let first = index * cut.rows;
            let src = src.get(first * depth..).unwrap_or_default();
            self.block(first, src, residual, dst, cut.parallelism)
        })
    }

    /// Refuses a residual or a destination of another length than the shapes say.
    pub(super) fn check(&self, residual: Option<&[f32]>, dst: &[f32]) -> Result<()> {
        check_len(self.op, "dst", dst.len(), self.rows * self.columns)?;
        self.tail.check_residual(residual, self.rows * self.columns)
    }

    /// The rows from row `first` on, as many as `dst` holds, of which `src` is the left operand.
    pub(super) fn block(
        &self,
        first: usize,
        src: &[f32],
        residual: Option<&[f32]>,
        dst: &mut [f32],
        parallelism: Parallelism,
    ) -> Result<()> {
        let RowProduct { depth, columns, ref weights, ref tail, .. } = *self;
        let rows = dst.len() / columns;
        let lhs = Matrix { data: src, strides: [depth, 1] };
        let rhs = Matrix { data: weights, strides: [columns, 1] };
        multiply([rows, columns, depth], dst, columns, lhs, rhs, Factors::PLAIN, parallelism)?;
        tail.apply(dst, columns, residual.and_then(|residual| residual.get(first * columns..)));
        Ok(())
    }
}

/// Writes the transpose of `source`, whose rows have `columns` values.
pub(super) fn transpose(source: &[f32], columns: usize, target: &mut [f32]) {
    let rows = source.len() / columns;
    for (row, values) in source.chunks_exact(columns).enumerate() {
        for (value, slot) in values.iter().zip(target.iter_mut().skip(row).step_by(rows)) {
            *slot = *value;
        }
    }
}
