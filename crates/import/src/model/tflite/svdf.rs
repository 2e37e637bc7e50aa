//! `SVDF`.

use super::cells::{below, matrix, vector};
use super::import::{Import, Op};
use super::names::fused;
use super::operands::missing;
use super::recurrent::{keep, one_step};
use crate::model::build::{State, columns, dense, reduced};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;

/// `SVDF`: each filter sees the features through one vector, and its last results through another.
pub(super) fn svdf<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[5], 1)?;
    let table = op.table.svdf().ok_or_else(|| missing(op, "SVDFOptions"))?;
    let activation = fused(table.activation())?;
    import.begin(op, 0)?;
    let (features, time) = (below(import, op, &[1])?, below(import, op, &[2])?);
    let bias = vector(import, op, 3)?;
    let (x, batch) = one_step(import, op)?;
    let rank = usize::try_from(table.rank()).unwrap_or(0);
    let ([filters, depth], [other, memory]) = (matrix(import, &features)?, matrix(import, &time)?);
    let found = import.build.shape(&x)?.last().copied();
    if rank == 0 || !filters.is_multiple_of(rank) || filters != other || found != Some(depth) {
        return refused!(
            "found weights {filters}x{depth} and {other}x{memory} of rank {rank} for {found:?} features"
        );
    }
    let seen = dense(&mut import.build, "features", x, &features, None, None)?;
    let mut seen = import.build.with_extents("newest", seen, &[batch, filters, 1])?;
    if memory > 1 {
        let state = import.state_of("state", &[batch, filters, memory - 1])?;
        let b = &mut import.build;
        let whole = b.joined("memory", vec![state.clone(), seen], 2)?;
        let next = columns(b, "next", &whole, 1, memory - 1)?;
        let kept = State { output: state, cell: None };
        keep(import, Some(kept), Some(State { output: next, cell: None }))?;
        seen = whole;
    }
    let b = &mut import.build;
    let time = b.with_extents("time", time, &[1, filters, memory])?;
    let products = b.apply("products", Function::Mul, &[seen.into(), time.into()])?;
    let sums = reduced(b, "sums", products, Reduction::Sum, &[2], false)?;
    let ranks = b.with_extents("ranks", sums, &[batch, filters / rank, rank])?;
    let mut y = reduced(b, "sum", ranks, Reduction::Sum, &[2], false)?;
    if let Some(bias) = bias {
        y = b.apply("biased", Function::Add, &[y.into(), bias.into()])?;
    }
    if let Some(function) = activation {
        y = b.apply("activated", function, &[y.into()])?;
    }
    import.finish(op, 0, y)
}
