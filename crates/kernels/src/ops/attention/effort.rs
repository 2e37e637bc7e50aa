//! What the kernels of `attention` ask of a device.

use super::AttentionOp;
use crate::ops::effort::{Effort, groups};
use crate::ops::plan::Choice;
use crate::ops::spec::extent;

/// Barriers of a block of keys: what lies between two of them is waited for.
const PHASES: u32 = 5;

/// Bytes of all operands.
fn traffic(op: &AttentionOp) -> u64 {
    let sizes = &op.sizes;
    let [rows, keys] = [op.all_rows(), op.parts * op.span()].map(|rows| rows as u64);
    let [heads, features] = [sizes.batch * sizes.heads, sizes.depth + sizes.width].map(|count| count as u64);
    2 * heads * (2 * rows + keys) * features
}

/// Of `tiled`, whose work-group keeps so many bytes.
pub(super) fn tiled(
    op: &AttentionOp,
    choice: &Choice,
    grid: [u32; 3],
    local_bytes: u32,
    loads: u32,
) -> Effort {
    let ([x, y, _], [groups4, rows, _]) =
        (choice.work_group.map(|size| size.max(1)), choice.tile.map(|size| size.max(1)));
    let [depth4, width4] = [op.sizes.depth, op.sizes.width].map(|features| extent(features.div_ceil(4)));
    let (keys4, columns) = (groups4 * x, width4.div_ceil(x));
    let steps = extent(op.span()).div_ceil(4 * keys4);
    let [own, rows4, all, along, keys, steps4] =
        [groups4, rows, columns, depth4, keys4, steps].map(u64::from);
    let each = 16 * rows4 * (own * along + all * keys);
    let staged = along * (rows4 + 4 * own) + keys * (rows4 + 4 * all);
    Effort {
        groups: groups(grid, choice.work_group),
        invocations: x * y,
        registers: (52 + 16 * groups4 * rows).saturating_add((4 * rows).saturating_mul(columns)),
        local_bytes,
        steps,
        ahead: true,
        barriers: steps.saturating_mul(PHASES),
        multiplies: each * steps4,
        loads: u64::from(loads) * steps4,
        staged: staged * steps4,
        added: 0,
        reads: 16 * u64::from(loads) * steps4 * u64::from(x * y),
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
    let [size, rows, _] = choice.tile.map(|size| size.max(1));
    let depth4 = extent(op.sizes.depth.div_ceil(4));
    let blocks = extent(op.span()).div_ceil(size);
    let values = size.div_ceil(slices.max(1)).saturating_mul(columns);
    let loads = u64::from(blocks) * (u64::from(depth4) + u64::from(values));
    Effort {
        groups: groups(grid, choice.work_group),
        invocations: size,
        registers: 40 + 32 + 8 * rows,
        local_bytes,
        steps: blocks.saturating_mul(depth4.div_ceil(8) + values.div_ceil(8) + PHASES),
        ahead: false,
        barriers: blocks.saturating_mul(PHASES),
        multiplies: 4 * u64::from(rows) * loads,
        loads,
        staged: u64::from(rows) * loads,
        added: 0,
        reads: 16 * loads * u64::from(size),
        traffic: traffic(op),
    }
}
