//! `MAX_POOL_2D`, `AVERAGE_POOL_2D` and `L2_POOL_2D` to nodes.

use super::convolution::{missing, padding, positive};
use super::elementwise::activated;
use super::import::{Import, Op};
use super::names::{self, Fused};
use crate::emit::Activation;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::pool::{Pool, Pooling};

/// A mean is over the elements inside the input.
pub(super) fn pool<'a>(import: &mut Import<'a>, op: &Op<'a>, pooling: Pooling) -> Result<(), Reason> {
    let (options, rest) = options(op, pooling)?;
    let x = import.computed(op, 0)?;
    activated(import, op, rest, |import, name| import.graph.pool(name, x, options).map_err(Reason::from))
}

/// The root of the mean of the squares.
pub(super) fn l2_pool<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let (options, rest) = options(op, Pooling::Average)?;
    let rest = if options.activation == Activation::None { rest } else { Fused::Own(options.activation) };
    let x = import.computed(op, 0)?;
    activated(import, op, rest, |import, name| {
        let (squares, means) = (import.part_name(name, "squares")?, import.part_name(name, "means")?);
        let graph = &mut import.graph;
        let squares = graph.elementwise(&squares, Function::Square, &[x.into()])?;
        let options = Pool { activation: Activation::None, ..options };
        let means = graph.pool(&means, squares, options)?;
        graph.elementwise(name, Function::Sqrt, &[means.into()]).map_err(Reason::from)
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
