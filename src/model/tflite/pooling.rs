//! `MAX_POOL_2D`, `AVERAGE_POOL_2D` and `L2_POOL_2D` to nodes.

use super::convolution::{padding, positive};
use super::elementwise::{activated, composed};
use super::import::{Import, Op};
use super::names::{self, Fused};
use super::operands::missing;
use crate::emit::Activation;
use crate::model::build::{Mapped, Operand, root_of_powers};
use crate::model::reason::Reason;
use crate::ops::pool::{Pool, Pooling};

/// A mean is over the elements inside the input.
pub(super) fn pool<'a>(import: &mut Import<'a>, op: &Op<'a>, pooling: Pooling) -> Result<(), Reason> {
    let (options, rest) = options(op, pooling)?;
    let x = import.computed(op, 0)?;
    activated(import, op, rest, |import, name| {
        import.build.graph.pool(name, x, options).map_err(Reason::from)
    })
}

/// The root of the mean of the squares.
pub(super) fn l2_pool<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let (options, rest) = options(op, Pooling::Average)?;
    let rest = if options.activation == Activation::None { rest } else { Fused::Own(options.activation) };
    import.computed(op, 0)?;
    let x = import.operand(op, 0)?;
    composed(import, op, rest, |build| {
        root_of_powers(build, x, 2.0, &mut |b, squares| {
            let mapped = b.mapped(squares)?;
            let options = Pool { activation: Activation::None, ..options };
            let value = b.add("means", |graph, name| graph.pool(name, mapped.value, options))?;
            Ok(Operand::Value(Mapped { value, ..mapped }))
        })
    })
}

/// The pooling, and the activation that it does not have itself.
fn options(op: &Op<'_>, pooling: Pooling) -> Result<(Pool, Fused), Reason> {
    op.check(&[1], 1)?;
    let table = op.table.pool().ok_or_else(|| missing(op, "Pool2DOptions"))?;
    let (activation, rest) = names::fused(table.activation())?.split();
    let options = Pool {
        pooling,
        window: positive("window", [table.window_h(), table.window_w()])?,
        stride: positive("stride", [table.stride_h(), table.stride_w()])?,
        padding: padding(table.padding())?,
        activation,
    };
    Ok((options, rest))
}
