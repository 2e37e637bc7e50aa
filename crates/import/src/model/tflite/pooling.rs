//! `MAX_POOL_2D`, `AVERAGE_POOL_2D` and `L2_POOL_2D` to nodes.

use super::elementwise::composed;
use super::import::{Import, Op};
use super::names;
use super::operands::missing;
use super::windows::{map, of_file, positive, windows};
use crate::model::build::{Counted, Operand, Pools, Windows, pooled, powers_pooled};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::pool::Pooling;

/// A mean is over the elements inside the input.
pub(super) fn pool<'a>(import: &mut Import<'a>, op: &Op<'a>, pooling: Pooling) -> Result<(), Reason> {
    let (x, windows, after) = read(import, op)?;
    let pools = Pools { pooling, windows, counted: Counted::Inside, ceil: false };
    composed(import, op, None, |b| {
        let y = pooled(b, "", x, &pools, after)?;
        of_file(b, y)
    })
}

/// The root of the mean of the squares.
pub(super) fn l2_pool<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let (x, windows, after) = read(import, op)?;
    composed(import, op, after, |b| {
        let y = powers_pooled(b, x, (2.0, false), windows, (false, Counted::Inside))?;
        of_file(b, y)
    })
}

/// The map, the windows, and the function after the pooling.
fn read<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(Operand, Windows, Option<Function>), Reason> {
    op.check(&[1], 1)?;
    let table = op.table.pool().ok_or_else(|| missing(op, "Pool2DOptions"))?;
    let after = names::fused(table.activation())?;
    let kernel = positive("window", [table.window_h(), table.window_w()])?;
    let stride = positive("stride", [table.stride_h(), table.stride_w()])?;
    import.computed(op, 0)?;
    let x = map(import, op, 0, 4)?;
    let own = import.build.shape(&x)?;
    let windows = windows(table.padding(), &kernel, &stride, &[1, 1], own.get(2..).unwrap_or(&[]))?;
    Ok((x, windows, after))
}
