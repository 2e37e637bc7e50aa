//! What the kernels of `depthwise` are given.

use super::DepthwiseOp;
use crate::ops::convolution::Convolution;
use crate::ops::spec::{Params, extent};

/// The most input columns or rows that a kernel keeps in registers.
const MAX_COLUMNS: usize = 16;

/// The most taps of a window that a kernel keeps in registers.
const MAX_WEIGHTS: usize = 25;

/// Input columns (axis 1) or rows (axis 0) that so many neighbouring outputs read.
pub(super) fn span(problem: &Convolution, axis: usize, outputs: usize) -> usize {
    (outputs - 1) * problem.stride[axis] + (problem.kernel[axis] - 1) * problem.dilation[axis] + 1
}

/// Whether a tile of columns and rows fits into registers: the window is unrolled, and its weights and a
/// row of the input are registers.
pub(super) fn in_registers(problem: &Convolution, [columns, rows]: [usize; 2]) -> bool {
    let weights = problem.kernel[0] * problem.kernel[1];
    weights <= MAX_WEIGHTS && fits_row(problem, columns) && span(problem, 0, rows) <= MAX_COLUMNS
}

/// Whether the input columns of so many neighbouring outputs fit into registers.
pub(super) fn fits_row(problem: &Convolution, columns: usize) -> bool {
    span(problem, 1, columns) <= MAX_COLUMNS
}

/// Width x height x slices, the tile being columns and rows.
pub(super) fn grid(op: &DepthwiseOp, tile: [u32; 3]) -> [u32; 3] {
    let output = op.0.output;
    let slices = extent(output.slices()) * extent(output.n);
    [extent(output.w).div_ceil(tile[0]), extent(output.h).div_ceil(tile[1]), slices]
}

/// Invocations of a work-group whose maps lie in rows.
pub(super) const SIZE: u32 = 64;

/// How many of them have neighbouring slices of a pixel.
pub(super) fn beside(op: &DepthwiseOp) -> u32 {
    extent(op.0.output.slices()).next_power_of_two().min(SIZE / 2)
}

/// Where the input lies in rows, if it does.
pub(super) fn row_params(op: &DepthwiseOp) -> Params {
    op.0.rows.map(|place| place.params()).unwrap_or_default()
}
