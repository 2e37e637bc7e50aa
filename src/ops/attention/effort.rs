//! What the kernels of `attention` ask of a device.

use super::AttentionOp;
use crate::ops::effort::{Effort, groups};
use crate::ops::plan::Choice;
use crate::ops::spec::extent;

/// Bytes of all operands.
fn traffic(op: &AttentionOp) -> u64 {
    let sizes = &op.sizes;
    let rows = 2 * op.all_rows() + op.parts * op.span();
    (4 * sizes.batch * sizes.heads * rows * (sizes.depth + sizes.width) / 2) as u64
}

/// Of `tiled`, whose work-group keeps so many bytes.
pub(super) fn tiled(
    op: &AttentionOp,
    choice: &Choice,
    grid: [u32; 3],
    local_bytes: u32,
    loads: u32,
) -> Effort {
    let ([x, y, _], [groups4, rows, _]) = (choice.work_group, choice.tile);
    let [depth4, width4] = [op.sizes.depth, op.sizes.width].map(|features| extent(features.div_ceil(4)));
    let (keys4, columns) = (groups4 * x, width4.div_ceil(x));
    let steps = extent(op.span()).div_ceil(4 * keys4);
    let each = 16 * rows * (groups4 * depth4 + columns * keys4);
    let staged = depth4 * (rows + 4 * groups4) + keys4 * (rows + 4 * columns);
    Effort {
        groups: groups(grid, choice.work_group),
        invocations: x * y,
        registers: 52 + 16 * groups4 * rows + 4 * rows * columns,
        local_bytes,
        steps,
        ahead: true,
        barriers: 5 * steps,
        multiplies: u64::from(each * steps),
        loads: u64::from(loads * steps),
        staged: u64::from(staged * steps),
        added: 0,
        reads: 16 * u64::from(loads * steps * x * y),
        traffic: traffic(op),
    }
}

/// Of `row`.
pub(super) fn row(
    op: &AttentionOp,
    choice: &Choice,
    grid: [u32; 3],
    local_bytes: u32,
    [slices, columns]: [u32; 2],
) -> Effort {
    let [size, rows, _] = choice.tile;
    let depth4 = extent(op.sizes.depth.div_ceil(4));
    let blocks = extent(op.span()).div_ceil(size);
    let values = size.div_ceil(slices) * columns;
    let loads = blocks * (depth4 + values);
    Effort {
        groups: groups(grid, choice.work_group),
        invocations: size,
        registers: 40 + 32 + 8 * rows,
        local_bytes,
        steps: blocks * (depth4.div_ceil(8) + values.div_ceil(8)),
        ahead: false,
        barriers: 5 * blocks,
        multiplies: u64::from(4 * rows * loads),
        loads: u64::from(loads),
        staged: u64::from(rows * loads),
        added: 0,
        reads: 16 * u64::from(loads * size),
        traffic: traffic(op),
    }
}
