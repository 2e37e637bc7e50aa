//! The 1x1 convolution: `[n h w, c] x [c, oc]`.

use super::blocks::cut_panels;
use super::check_len;
use super::panels::{Panels, Rows};
use super::tail::Tail;
use super::tile::{Tile, for_each_tile};
use crate::error::Result;
use crate::ops::pointwise::PointwiseOp;

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
    panels: Panels,
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
        let panels = Panels::new(depth, columns, weights, tail.bounds().map(|(bias, _)| bias));
        Ok(RowProduct { op, rows, depth, columns, panels, tail })
    }

    pub(super) fn run(&self, src: &[f32], residual: Option<&[f32]>, dst: &mut [f32]) -> Result<()> {
        let RowProduct { op, rows, depth, columns, ref panels, .. } = *self;
        check_len(op, "src", src.len(), rows * depth)?;
        self.check(residual, dst)?;

        let cut = cut_panels(rows, depth, columns, panels.width());
        for_each_tile(dst, columns, cut, |[row, column], mut tile| {
            let src = src.get(row * depth..).unwrap_or_default();
            self.multiply(src, [row, column], cut.columns, residual, &mut tile);
        });
        Ok(())
    }

    /// Refuses a residual or a destination of another length than the shapes say.
    pub(super) fn check(&self, residual: Option<&[f32]>, dst: &[f32]) -> Result<()> {
        check_len(self.op, "dst", dst.len(), self.rows * self.columns)?;
        self.tail.check_residual(residual, self.rows * self.columns)
    }

    /// The columns that a tile of whole rows has.
    pub(super) fn all_columns(&self) -> usize {
        self.columns.next_multiple_of(self.panels.width().max(1))
    }

    /// The tile of `width` columns whose first row and column are given; `src` begins with its first
    /// row, `residual` with the first of all.
    pub(super) fn multiply(
        &self,
        src: &[f32],
        [row, column]: [usize; 2],
        width: usize,
        residual: Option<&[f32]>,
        tile: &mut Tile<'_>,
    ) {
        let RowProduct { depth, columns, ref panels, ref tail, .. } = *self;
        let rows = Rows {
            src,
            first: 0,
            lines: 1,
            line_stride: 0,
            per_line: tile.rows(),
            row_stride: depth,
            taps: &[0],
            values: depth,
        };
        let residual = residual.and_then(|residual| residual.get(row * columns + column..));
        let part = column..columns.min(column + width);
        panels.multiply(rows, part, tile, 0, tail.finish(residual, columns));
        tail.apply_after(tile, column, residual, columns);
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
