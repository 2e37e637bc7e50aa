//! The 1x1 convolution on the CPU: `[n h w, c] x [c, oc]`, the weights packed once.

use super::{OP, PointwiseOp};
use crate::cpu::blocks::cut_panels;
use crate::cpu::micro::Rows;
use crate::cpu::panels::{Panels, Weights};
use crate::cpu::shelf::Shelf;
use crate::cpu::tail::Tail;
use crate::cpu::tile::{Tile, for_each_tile};
use crate::cpu::{CpuKernel, check_len, given, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::operands::{Operands, need};

/// Lays out the weights (`oc 1 1 c`).
pub(in crate::ops) fn kernel(
    op: &PointwiseOp,
    constants: &Operands<'_>,
    shelf: Shelf<'_>,
) -> Result<RowProduct> {
    let (input, output) = (op.0.input, op.0.output);
    let tail = Tail::of(OP, &op.0.epilogue, output.c, constants)?;
    let rows = output.n * output.h * output.w;
    let weights = need(OP, constants, Operand::Weights)?;
    check_len(OP, "weights", weights.len(), input.c * output.c)?;
    Ok(RowProduct::new(OP, rows, [input.c, output.c], || weights, tail, (shelf, "rows")))
}

impl CpuKernel for RowProduct {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (src, residual) = (input(self.op, inputs, Operand::Src)?, given(inputs, Operand::Residual));
        self.product(src, residual, output(self.op, outputs, Operand::Dst)?)
    }
}

/// Rows of `depth` values, each multiplied by one constant matrix.
#[derive(Debug, Clone)]
pub(crate) struct RowProduct {
    op: &'static str,
    rows: usize,
    depth: usize,
    columns: usize,
    panels: Panels,
    tail: Tail,
}

impl RowProduct {
    /// `weights` gives a matrix of `depth x columns`.
    pub(crate) fn new<'w, W: Into<Weights<'w>>>(
        op: &'static str,
        rows: usize,
        [depth, columns]: [usize; 2],
        weights: impl FnOnce() -> W,
        tail: Tail,
        shelf: (Shelf<'_>, &str),
    ) -> Self {
        let panels = tail.panels(depth, [0, columns], weights, shelf);
        RowProduct { op, rows, depth, columns, panels, tail }
    }

    /// Reads `src` and `residual` and writes `dst`, all row by row.
    pub(crate) fn product(&self, src: &[f32], residual: Option<&[f32]>, dst: &mut [f32]) -> Result<()> {
        let RowProduct { op, rows, depth, columns, ref panels, .. } = *self;
        check_len(op, "src", src.len(), rows * depth)?;
        check_len(op, "dst", dst.len(), rows * columns)?;
        self.tail.check_residual(residual, rows * columns)?;
        let cut = cut_panels(rows, depth, columns, panels.width());
        for_each_tile(dst, columns, cut, |[row, column], mut tile| {
            let src = src.get(row * depth..).unwrap_or_default();
            self.multiply(src, [row, column], cut.columns, residual, &mut tile);
        });
        Ok(())
    }

    /// The tile of `width` columns whose first row and column are given; `src` begins with its first
    /// row, `residual` with the first of all.
    fn multiply(
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
pub(crate) fn transpose(source: &[f32], columns: usize, target: &mut [f32]) {
    let rows = source.len() / columns;
    // In squares of which both sides stay in the first-level cache.
    const SQUARE: usize = 32;
    for first_row in (0..rows).step_by(SQUARE) {
        for first in (0..columns).step_by(SQUARE) {
            for row in first_row..rows.min(first_row + SQUARE) {
                let values = &source[row * columns..(row + 1) * columns];
                for (column, value) in values.iter().enumerate().skip(first).take(SQUARE) {
                    if let Some(slot) = target.get_mut(column * rows + row) {
                        *slot = *value;
                    }
                }
            }
        }
    }
}
