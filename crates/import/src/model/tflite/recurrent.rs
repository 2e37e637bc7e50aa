//! `LSTM`, `RNN`, and the sequences of both: steps and states.
//!
//! An operator of one step keeps its state from run to run, as TensorFlow Lite does with the file's variables. One
//! of several steps begins each run with zeros: there the state is what the step before left.

use super::cells::{Options, below, lstm_of, matrix, plain_of, vector};
use super::import::{Import, Op};
use super::names::fused;
use super::operands::missing;
use crate::graph::Value;
use crate::model::build::{
    Cell, Coupled, Kind, Layer, Lstm, MOST_UNROLLED, Mapped, Operand, State, Steps, dense,
};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

type Done = Result<(), Reason>;

/// Input 0 as `time batch features`, and whether time is stored first.
struct Sequence {
    x: Operand,
    batch: usize,
    count: usize,
    time_first: bool,
}

impl Sequence {
    /// A sequence: batch, time and features, or time first.
    fn of<'a>(import: &mut Import<'a>, op: &Op<'a>, time_first: bool) -> Result<Self, Reason> {
        let value = import.value(op, 0)?;
        let dims = import.dims(value)?;
        let &[first, second, _] = dims.extents() else {
            return refused!("found an input of {dims}, wanted batch, time and features");
        };
        let (batch, count) = if time_first { (second, first) } else { (first, second) };
        import.allow_steps(count.min(MOST_UNROLLED))?;
        let order = if time_first { vec![0, 1, 2] } else { vec![1, 0, 2] };
        Ok(Sequence { x: Operand::Value(Mapped { value, order, kind: Kind::F32 }), batch, count, time_first })
    }

    /// What all steps make of it, stored as it is.
    fn run(
        &self,
        import: &mut Import<'_>,
        part: &str,
        layer: &Layer,
        backwards: bool,
    ) -> Result<Value, Reason> {
        let steps = Steps { count: self.count, backwards, lengths: None };
        // One step begins with what the run before left.
        let kept = match self.count {
            1 => import.state(layer, self.batch)?,
            _ => None,
        };
        let (b, along) = (&mut import.build, usize::from(!self.time_first));
        let (all, last) = layer.run(b, part, self.x.clone(), &steps, (kept.clone(), along))?;
        keep(import, kept, Some(last))?;
        let all = import.build.mapped(all)?;
        import.build.logical(&all)
    }
}

/// Input 0 of batch and features.
pub(super) fn one_step<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(Operand, usize), Reason> {
    let value = import.value(op, 0)?;
    let dims = import.dims(value)?;
    match *dims.extents() {
        [batch, _] => Ok((Operand::Value(Mapped::plain(value, 2, Kind::F32)), batch)),
        _ => refused!("found an input of {dims}, wanted batch and features"),
    }
}

impl Import<'_> {
    /// A state of the graph of `batch units`.
    pub(super) fn state_of(&mut self, part: &str, extents: &[usize]) -> Result<Operand, Reason> {
        let zeros = super::control::zeros(self, extents)?;
        let name = self.build.part(part)?;
        let state = self.build.graph.state(&name, zeros);
        Ok(Operand::Value(Mapped::plain(state, extents.len(), Kind::F32)))
    }

    /// The states of the graph that a layer's cell keeps.
    fn state(&mut self, layer: &Layer, batch: usize) -> Result<Option<State>, Reason> {
        let (recurrent, units) = match &layer.cell {
            Cell::Lstm(cell) => (cell.recurrent.clone(), Some(cell.units)),
            Cell::Plain(cell) => (Some(cell.recurrent.clone()), None),
            Cell::Gru(_) => (None, None),
        };
        let Some(recurrent) = recurrent else { return Ok(None) };
        let [_, outputs] = matrix(self, &recurrent)?;
        let cell = match units {
            Some(units) => Some(self.state_of("cell_state", &[batch, units])?),
            None => None,
        };
        Ok(Some(State { output: self.state_of("output_state", &[batch, outputs])?, cell }))
    }
}

/// Says what the next run begins with.
pub(super) fn keep(import: &mut Import<'_>, kept: Option<State>, last: Option<State>) -> Done {
    let (Some(kept), Some(last)) = (kept, last) else { return Ok(()) };
    for (state, next) in [(Some(kept.output), Some(last.output)), (kept.cell, last.cell)] {
        if let (Some(state), Some(next)) = (state, next) {
            let (state, next) = (import.build.mapped(state)?, import.build.mapped(next)?);
            let next = import.build.logical(&next)?;
            import.build.graph.update(state.value, next)?;
        }
    }
    Ok(())
}

/// Steps of a sequence in one direction.
fn sequence<'a>(import: &mut Import<'a>, op: &Op<'a>, layer: &Layer, time_first: bool) -> Done {
    let sequence = Sequence::of(import, op, time_first)?;
    let nodes = sequence.count.min(MOST_UNROLLED);
    import.build.budget.spend(nodes.saturating_mul(16 * (import.build.current.len() + 16)))?;
    let y = sequence.run(import, "", layer, false)?;
    import.write(op, 0, y)
}

/// Steps of a sequence in both directions, joined along the features or as two outputs.
fn both<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    layers: [Layer; 2],
    time_first: bool,
    merges: bool,
) -> Done {
    if op.outputs.len() != if merges { 1 } else { 2 } {
        return refused!("found {} outputs of two directions, joined: {merges}", op.outputs.len());
    }
    let sequence = Sequence::of(import, op, time_first)?;
    let [forwards, backwards] = layers;
    let part = if merges { "forwards" } else { "" };
    let forwards = sequence.run(import, part, &forwards, false)?;
    if merges {
        let backwards = sequence.run(import, "backwards", &backwards, true)?;
        let y = import.build.add("", |graph, name| graph.concat(name, &[forwards, backwards], -1))?;
        return import.write(op, 0, y);
    }
    import.write(op, 0, forwards)?;
    import.begin(op, 1)?;
    let backwards = sequence.run(import, "", &backwards, true)?;
    import.write(op, 1, backwards)
}

/// `UNIDIRECTIONAL_SEQUENCE_LSTM`.
pub(super) fn sequence_lstm<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[20, 24], 1)?;
    let wanted = "UnidirectionalSequenceLSTMOptions";
    let table = op.table.sequence_lstm().ok_or_else(|| missing(op, wanted))?;
    let options = Options::new(table.activation(), table.cell_clip(), table.projection_clip())?;
    import.begin(op, 0)?;
    let (layer, _) = lstm_of(import, op, 1, Some(20), options)?;
    sequence(import, op, &layer, table.time_major())
}

/// `BIDIRECTIONAL_SEQUENCE_LSTM`.
pub(super) fn bidirectional_lstm<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[48], op.outputs.len().clamp(1, 2))?;
    let wanted = "BidirectionalSequenceLSTMOptions";
    let table = op.table.bidirectional_lstm().ok_or_else(|| missing(op, wanted))?;
    if (39..48).any(|index| op.has(index)) {
        return refused!("found an auxiliary input, wanted none");
    }
    let options = Options::new(table.activation(), table.cell_clip(), table.projection_clip())?;
    import.begin(op, 0)?;
    let layers = [lstm_of(import, op, 1, None, options)?.0, lstm_of(import, op, 18, None, options)?.0];
    both(import, op, layers, table.time_major(), table.merge_outputs())
}

/// `UNIDIRECTIONAL_SEQUENCE_RNN`.
pub(super) fn sequence_rnn<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[5], 1)?;
    let table = op.table.sequence_rnn().ok_or_else(|| missing(op, "SequenceRNNOptions"))?;
    let function = fused(table.activation())?;
    import.begin(op, 0)?;
    let (layer, _) = plain_of(import, op, 1, function)?;
    sequence(import, op, &layer, table.time_major())
}

/// `BIDIRECTIONAL_SEQUENCE_RNN`.
pub(super) fn bidirectional_rnn<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[12], op.outputs.len().clamp(1, 2))?;
    let wanted = "BidirectionalSequenceRNNOptions";
    let table = op.table.bidirectional_rnn().ok_or_else(|| missing(op, wanted))?;
    if (9..12).any(|index| op.has(index)) {
        return refused!("found an auxiliary input, wanted none");
    }
    let function = fused(table.activation())?;
    import.begin(op, 0)?;
    let layers = [plain_of(import, op, 1, function)?.0, plain_of(import, op, 5, function)?.0];
    both(import, op, layers, table.time_major(), table.merge_outputs())
}

/// One step, whose state is kept from run to run.
fn stepped<'a>(import: &mut Import<'a>, op: &Op<'a>, layer: &Layer) -> Done {
    let (x, batch) = one_step(import, op)?;
    let kept = import.state(layer, batch)?;
    let b = &mut import.build;
    let sums = dense(b, "inputs", x, &layer.weights, layer.bias.as_ref(), None)?;
    let last = layer.cell.step(b, sums, kept.clone())?;
    let y = last.output.clone();
    keep(import, kept, Some(last))?;
    import.finish(op, 0, y)
}

/// `RNN`.
pub(super) fn rnn<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    op.check(&[5], 1)?;
    let table = op.table.rnn().ok_or_else(|| missing(op, "RNNOptions"))?;
    let function = fused(table.activation())?;
    import.begin(op, 0)?;
    let (layer, _) = plain_of(import, op, 1, function)?;
    stepped(import, op, &layer)
}

/// `LSTM`.
pub(super) fn lstm<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Done {
    let table = op.table.lstm().ok_or_else(|| missing(op, "LSTMOptions"))?;
    let options = Options::new(table.activation(), table.cell_clip(), table.projection_clip())?;
    if table.kernel() == 1 {
        return basic(import, op, options);
    }
    op.check(&[20, 24], 1)?;
    import.begin(op, 0)?;
    let (layer, _) = lstm_of(import, op, 1, Some(20), options)?;
    stepped(import, op, &layer)
}

/// A step of the older kind: one matrix for input and output, gates in the order `i g f o`, the state given and
/// returned. Where the file says that the state is a variable, it is kept from run to run.
fn basic<'a>(import: &mut Import<'a>, op: &Op<'a>, options: Options) -> Done {
    op.check(&[5], 4)?;
    import.begin(op, 0)?;
    let (x, batch) = one_step(import, op)?;
    let weights = below(import, op, &[2])?;
    let bias = vector(import, op, 3)?;
    let [rows, depth] = matrix(import, &weights)?;
    let units = rows / 4;
    let mut before = |index: usize, part: &str| -> Result<(Operand, bool), Reason> {
        let position = import.tensors.position(op.input(index)?)?;
        match import.tensors.tensor(position)?.is_variable() {
            true => Ok((import.state_of(part, &[batch, units])?, true)),
            false => Ok((Operand::Value(Mapped::plain(import.value(op, index)?, 2, Kind::F32)), false)),
        }
    };
    let ((output, keeps_output), (cell, keeps_cell)) = (before(1, "output_state")?, before(4, "cell_state")?);
    let b = &mut import.build;
    let joined = b.joined("joined", vec![x, output.clone()], 1)?;
    if b.shape(&joined)?.last() != Some(&depth) || rows != 4 * units {
        return refused!("found weights of {rows} rows and {depth} columns for {units} units");
    }
    let sums = dense(b, "gates", joined.clone(), &weights, bias.as_ref(), None)?;
    let step = Cell::Lstm(Box::new(Lstm {
        units,
        places: [0, 2, 1, 3],
        coupled: Coupled::No,
        recurrent: None,
        peepholes: [None, None, None],
        norms: None,
        projection: None,
        functions: [Some(Function::Sigmoid), Some(Function::Tanh), Some(Function::Tanh)],
        clips: options.clips,
    }));
    let given = State { output: output.clone(), cell: Some(cell.clone()) };
    let next = step.step(b, sums.clone(), Some(given))?;
    for (keeps, state, next) in
        [(keeps_output, output, Some(&next.output)), (keeps_cell, cell, next.cell.as_ref())]
    {
        if let (true, Some(next)) = (keeps, next) {
            let kept = State { output: state, cell: None };
            keep(import, Some(kept), Some(State { output: next.clone(), cell: None }))?;
        }
    }
    let cell = next.cell.ok_or("found no cell")?;
    for (index, result) in [next.output, cell, joined, sums].into_iter().enumerate() {
        if index > 0 {
            import.begin(op, index)?;
        }
        import.finish(op, index, result)?;
    }
    Ok(())
}
