//! Pooling in one to three dimensions.

use super::import::{Import, Op};
use crate::model::build::{
    Builder, Counted, Operand, Pools, Windows, pooled, powers_pooled, reduced, root_of_powers, sizes,
};
use crate::model::reason::Reason;
use crate::ops::pool::Pooling;
use crate::ops::reduce::Reduction;

type Done = Result<(), Reason>;

pub(super) fn max<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    pool(i, op, Pooling::Max)?;
    if !op.writes(1) {
        return Ok(());
    }
    let name = op.node.outputs.first().copied().filter(|name| !name.is_empty());
    let slot = i.find(name.ok_or("found no output of the largest elements")?)?;
    let outputs = i.shape(&slot)?;
    super::columns::largest(i, op, outputs.get(2..).unwrap_or(&[]))
}

pub(super) fn average<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    pool(i, op, Pooling::Average)
}

fn pool<'a>(i: &mut Import<'a>, op: &Op<'a>, pooling: Pooling) -> Done {
    let x = Operand::Value(i.mapped(op, 0)?);
    let pools = pools(i, op, &x, pooling)?;
    let y = pooled(i, "", x, &pools, None)?;
    i.set(op, 0, y)
}

/// The means of windows of `x`, channels behind the batch.
pub(super) fn average_of(i: &mut Import<'_>, op: &Op<'_>, x: Operand) -> Result<Operand, Reason> {
    let pools = pools(i, op, &x, Pooling::Average)?;
    pooled(i, "mean", x, &pools, None)
}

fn pools(b: &Builder, op: &Op<'_>, x: &Operand, pooling: Pooling) -> Result<Pools, Reason> {
    let counted = if op.flag("count_include_pad", false) { Counted::Pads } else { Counted::Inside };
    let windows = windows(b, op, x)?;
    Ok(Pools { pooling, windows, counted, ceil: is_rounded_up(op)? })
}

fn windows(b: &Builder, op: &Op<'_>, x: &Operand) -> Result<Windows, Reason> {
    let own = b.shape(x)?;
    let kernel = sizes(op.ints("kernel_shape").unwrap_or(&[]))?;
    Windows::read(op, own.get(2..).unwrap_or(&[]), &kernel)
}

/// Whether the number of windows is rounded up, as it is with explicit pads alone.
fn is_rounded_up(op: &Op<'_>) -> Result<bool, Reason> {
    Ok(op.flag("ceil_mode", false) && matches!(op.text("auto_pad", "NOTSET")?, "NOTSET" | ""))
}

/// `LpPool`: the root of the sum of the powers of a window's elements.
pub(super) fn lp<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let x = Operand::Value(i.mapped(op, 0)?);
    let (windows, p) = (windows(i, op, &x)?, op.int("p", 2) as f32);
    let y = powers_pooled(i, x, (p, true), windows, (is_rounded_up(op)?, Counted::All))?;
    i.set(op, 0, y)
}

/// `GlobalLpPool`: the same over all axes behind the channels.
pub(super) fn global_lp<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let rank = i.extents_of(op, 0)?.len();
    if rank < 3 {
        return refused!("found an input of rank {rank}, wanted at least 3");
    }
    let along: Vec<usize> = (2..rank).collect();
    let x = i.slot(op, 0)?;
    let slot = root_of_powers(i, x, op.int("p", 2) as f32, &mut |b, powers| {
        reduced(b, "sum", powers, Reduction::Sum, &along, true)
    })?;
    i.set(op, 0, slot)
}

/// `GlobalAveragePool` and the like: over all axes behind the channels.
pub(super) fn global<'a>(i: &mut Import<'a>, op: &Op<'a>, reduction: Reduction) -> Done {
    let x = i.mapped(op, 0)?;
    if x.rank() < 3 {
        return refused!("found an input of rank {}, wanted at least 3", x.rank());
    }
    let along: Vec<usize> = (2..x.rank()).collect();
    let y = reduced(i, "", Operand::Value(x), reduction, &along, true)?;
    i.set(op, 0, y)
}
