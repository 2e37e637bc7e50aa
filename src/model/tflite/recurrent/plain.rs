//! `RNN`, `UNIDIRECTIONAL_SEQUENCE_RNN`, `BIDIRECTIONAL_SEQUENCE_RNN` and `SVDF`.
//!
//! `h = a(W x + R h + b)`.

use super::{Steps, activated, finish, function, stacked, vector};
use crate::graph::{Extras, Right, Value};
use crate::host::HostTensor;
use crate::model::reason::Reason;
use crate::model::tflite::compose::Compose;
use crate::model::tflite::convolution::missing;
use crate::model::tflite::import::{Import, Op};
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;

/// A cell's weights.
struct Cell {
    inner: HostTensor,
    recurrent: Value,
    bias: Option<HostTensor>,
    activation: Option<Function>,
    units: usize,
}

impl Cell {
    /// The cell whose weights begin at input `first`.
    fn read<'a>(
        import: &mut Import<'a>,
        op: &Op<'a>,
        first: usize,
        activation: Option<Function>,
    ) -> Result<Self, Reason> {
        let (inner, recurrent) = (stacked(import, op, &[first])?, stacked(import, op, &[first + 1])?);
        let (&[units, _], &[rows, columns]) = (inner.dims().extents(), recurrent.dims().extents()) else {
            return refused!("found weights {} and {}", inner.dims(), recurrent.dims());
        };
        if [rows, columns] != [units; 2] {
            return refused!("found weights {} and {}", inner.dims(), recurrent.dims());
        }
        let bias = vector(import, op, first + 2)?;
        let recurrent = import.value(op, first + 1)?;
        Ok(Cell { inner, recurrent, bias, activation, units })
    }

    fn run(&self, p: &mut Compose<'_, '_>, x: Value, steps: Steps, backwards: bool) -> Result<Value, Reason> {
        let depth = p.extents(x)?.last().copied();
        if depth != Some(self.inner.shape().c) {
            return refused!("found an input of {depth:?} features for weights {}", self.inner.dims());
        }
        let kept = steps.state(p, "state", self.units)?;
        let mut state = kept;
        let y = steps.each(p, x, (&self.inner, self.bias.as_ref()), backwards, &mut |p, sums| {
            let sum = match state {
                Some(before) => {
                    let extras = Extras { residual: Some(sums), ..Extras::default() };
                    p.product("sum", before, Right::Value(self.recurrent), true, extras)?
                }
                None => sums,
            };
            let next = activated(p, "next", self.activation, sum)?;
            state = Some(next);
            Ok(next)
        })?;
        if let Some(state) = state {
            steps.keep(p, kept, state)?;
        }
        Ok(y)
    }
}

/// One step.
pub(in super::super) fn rnn<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[5], 1)?;
    let table = op.table.rnn().ok_or_else(|| missing(op, "RNNOptions"))?;
    let cell = Cell::read(import, op, 1, function(table.activation())?)?;
    let x = import.value(op, 0)?;
    let steps = Steps::one(import, x)?;
    let name = import.name(op, 0)?;
    let y = cell.run(&mut Compose::named(import, &name), x, steps, false)?;
    let y = Compose::named(import, &name).reshape("rows", y, &[steps.batch, cell.units])?;
    finish(import, op, &name, y)
}

/// Steps of a sequence in one direction.
pub(in super::super) fn sequence_rnn<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[5], 1)?;
    let table = op.table.sequence_rnn().ok_or_else(|| missing(op, "SequenceRNNOptions"))?;
    let cell = Cell::read(import, op, 1, function(table.activation())?)?;
    let x = import.value(op, 0)?;
    let steps = Steps::of(import, x, table.time_major())?;
    let name = import.name(op, 0)?;
    let y = cell.run(&mut Compose::named(import, &name), x, steps, false)?;
    finish(import, op, &name, y)
}

/// Steps of a sequence in both directions.
pub(in super::super) fn bidirectional_rnn<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[12], op.outputs.len().clamp(1, 2))?;
    let wanted = "BidirectionalSequenceRNNOptions";
    let table = op.table.bidirectional_rnn().ok_or_else(|| missing(op, wanted))?;
    if (9..12).any(|index| op.has(index)) {
        return refused!("found an auxiliary input, wanted none");
    }
    let activation = function(table.activation())?;
    let cells = [Cell::read(import, op, 1, activation)?, Cell::read(import, op, 5, activation)?];
    let x = import.value(op, 0)?;
    let steps = Steps::of(import, x, table.time_major())?;
    both(import, op, table.merge_outputs(), &mut |p, backwards| {
        cells[usize::from(backwards)].run(p, x, steps, backwards)
    })
}

/// What `run` makes forwards and backwards, joined along the features or as two outputs.
pub(super) fn both<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    merges: bool,
    run: &mut dyn FnMut(&mut Compose<'_, 'a>, bool) -> Result<Value, Reason>,
) -> Result<(), Reason> {
    if op.outputs.len() != if merges { 1 } else { 2 } {
        return refused!("found {} outputs of two directions, joined: {merges}", op.outputs.len());
    }
    let names =
        (0..op.outputs.len()).map(|index| import.name(op, index)).collect::<Result<Vec<_>, Reason>>()?;
    let mut parts = Compose::named(import, &names[0]);
    let (forwards, backwards) = (run(&mut parts, false)?, run(&mut parts, true)?);
    if merges {
        let joined = parts.concat("", &[forwards, backwards], -1)?;
        return import.write(op, 0, joined);
    }
    finish(import, op, &names[0], forwards)?;
    let extents = import.dims(backwards)?.extents().to_vec();
    let value = Compose::named(import, &names[1]).reshape("", backwards, &extents)?;
    import.write(op, 1, value)
}

/// `SVDF`: each filter sees the features through one vector, and its last results through another.
pub(in super::super) fn svdf<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[5], 1)?;
    let table = op.table.svdf().ok_or_else(|| missing(op, "SVDFOptions"))?;
    let activation = function(table.activation())?;
    let (features, time) = (stacked(import, op, &[1])?, stacked(import, op, &[2])?);
    let bias = vector(import, op, 3)?;
    let x = import.value(op, 0)?;
    let steps = Steps::one(import, x)?;
    let (rank, batch) = (usize::try_from(table.rank()).unwrap_or(0), steps.batch);
    let (&[filters, depth], &[other, memory]) = (features.dims().extents(), time.dims().extents()) else {
        return refused!("found weights {} and {}", features.dims(), time.dims());
    };
    let found = import.dims(x)?.extents().last().copied();
    if rank == 0 || filters % rank != 0 || filters != other || found != Some(depth) {
        return refused!(
            "found weights {} and {} of rank {rank} for {found:?} features",
            features.dims(),
            time.dims()
        );
    }
    let name = import.name(op, 0)?;
    let mut parts = Compose::named(import, &name);
    let p = &mut parts;
    let seen = p.product("features", x, Right::Constant(features), true, Extras::default())?;
    let mut seen = p.reshape("newest", seen, &[batch, filters, 1])?;
    if memory > 1 {
        let zeros = crate::model::tflite::control::zeros(p.import, &[batch, filters, memory - 1])?;
        let state = p.name("state")?;
        let state = p.import.graph.state(&state, zeros);
        let whole = p.concat("memory", &[state, seen], 2)?;
        let next = p.slice("next", whole, 2, [1, memory])?;
        p.import.graph.update(state, next)?;
        seen = whole;
    }
    let time = p.constant("time", &[1, filters, memory], time.to_nhwc().into_owned())?;
    let products = p.each("products", Function::Mul, &[seen.into(), time.into()])?;
    let sums = p.reduce("sums", products, Reduction::Sum, 2, false)?;
    let ranks = p.reshape("ranks", sums, &[batch, filters / rank, rank])?;
    let mut y = p.reduce("sum", ranks, Reduction::Sum, 2, false)?;
    if let Some(bias) = bias {
        let bias = p.constant("bias", &[1, filters / rank], bias.to_nhwc().into_owned())?;
        y = p.each("biased", Function::Add, &[y.into(), bias.into()])?;
    }
    let y = activated(p, "activated", activation, y)?;
    finish(import, op, &name, y)
}
