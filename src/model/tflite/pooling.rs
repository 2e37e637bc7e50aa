//! `MAX_POOL_2D` and `AVERAGE_POOL_2D` to nodes.

use super::convolution::{missing, padding, positive};
use super::import::{Import, Op};
use super::names::{self, Fused};
use super::tensors::Reason;
use crate::ops::pool::{Pool, Pooling};

/// A mean is over the elements inside the input.
pub(super) fn pool<'a>(import: &mut Import<'a>, op: &Op<'a>, pooling: Pooling) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let table = op.table.pool().ok_or_else(|| missing(op, "Pool2DOptions"))?;
    let Fused::Own(activation) = names::fused(table.activation())? else {
        return Err("found fused activation RELU_N1_TO_1, wanted NONE, RELU, RELU6 or TANH".to_owned());
    };
    let options = Pool {
        pooling,
        window: positive("window", [table.window_h(), table.window_w()])?,
        stride: positive("stride", [table.stride_h(), table.stride_w()])?,
        padding: padding(table.padding())?,
        activation,
    };
    let x = import.computed(op, 0)?;
    let name = import.name(op, 0)?;
    let value = import.graph.pool(&name, x, options).map_err(|error| error.to_string())?;
    import.write(op, 0, value)
}
