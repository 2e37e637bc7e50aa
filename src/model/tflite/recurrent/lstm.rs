//! `LSTM`, `UNIDIRECTIONAL_SEQUENCE_LSTM` and `BIDIRECTIONAL_SEQUENCE_LSTM`.
//!
//! `c = s(f) c + s(i) a(g)`, `h = s(o) a(c)`, where `i f g o = W x + R h + b`, `s` is the logistic function and `a`
//! the activation. Peepholes add `p c` to `i`, `f` and `o`. Without an input gate `s(i)` is `1 - s(f)`. With norms
//! each gate has mean 0 and variance 1 before its factors and bias. A projection makes `h` of `P h + b`.

use super::{Steps, activated, finish, function, stacked, vector};
use crate::emit::Bits;
use crate::graph::{Extras, Right, Value};
use crate::host::HostTensor;
use crate::model::reason::Reason;
use crate::model::tflite::compose::Compose;
use crate::model::tflite::convolution::missing;
use crate::model::tflite::import::{Import, Op};
use crate::ops::elementwise::Function::{self, Add, Clamp, Mul, Sigmoid, Sub};
use crate::ops::normalize::Normalize;

/// What TensorFlow Lite adds to a variance.
const EPSILON: f32 = 1e-8;

/// The options of a cell.
#[derive(Debug, Clone, Copy)]
struct Options {
    activation: Option<Function>,
    cell_clip: f32,
    projection_clip: f32,
}

/// A cell's weights, the gates' one below the other.
struct Cell {
    units: usize,
    outputs: usize,
    inner: HostTensor,
    recurrent: Value,
    /// Of the gates; with norms, after them.
    bias: HostTensor,
    /// Of input, forget and output gate.
    peepholes: [Option<Value>; 3],
    norms: Option<HostTensor>,
    projection: Option<(Value, Option<HostTensor>)>,
    has_input_gate: bool,
    options: Options,
}

impl Cell {
    /// The cell whose weights begin at input `first`.
    fn read<'a>(
        import: &mut Import<'a>,
        op: &Op<'a>,
        first: usize,
        norms: Option<usize>,
        options: Options,
    ) -> Result<Self, Reason> {
        let has_input_gate = op.has(first);
        let gates = |at: usize| if has_input_gate { at..at + 4 } else { at + 1..at + 4 };
        let inner = stacked(import, op, &gates(first).collect::<Vec<_>>())?;
        let recurrent = stacked(import, op, &gates(first + 4).collect::<Vec<_>>())?;
        let biases: Vec<usize> = gates(first + 11).collect();
        let bias = stacked(import, op, &biases)?;
        let count = biases.len();
        let units = bias.dims().elements() / count;
        let shapes = [inner.dims().extents().to_vec(), recurrent.dims().extents().to_vec()];
        let (&[rows, _], &[other, outputs]) = (&shapes[0][..], &shapes[1][..]) else {
            return refused!("found weights {shapes:?}, wanted matrices");
        };
        if rows != count * units || other != rows {
            return refused!("found weights {shapes:?} for {units} units");
        }
        let norms = match norms.filter(|&at| op.has(at + 1)) {
            Some(at) => Some(stacked(import, op, &gates(at).collect::<Vec<_>>())?),
            None => None,
        };
        let mut peepholes = [None; 3];
        for (index, peephole) in peepholes.iter_mut().enumerate() {
            if let Some(weights) = vector(import, op, first + 8 + index)? {
                let row = crate::model::tflite::constant::dims_of(&[weights.dims().elements()])?;
                let weights = weights.reshaped(row)?;
                *peephole = Some(constant(import, op, "peephole", weights)?);
            }
        }
        let projection = match op.has(first + 15) {
            true => {
                let weights = import.floats(op, first + 15)?;
                let bias = vector(import, op, first + 16)?;
                Some((constant(import, op, "projection", weights)?, bias))
            }
            false if outputs != units => {
                return refused!("found {outputs} outputs of {units} units without a projection");
            }
            false => None,
        };
        let recurrent = constant(import, op, "recurrent", recurrent)?;
        Ok(Cell {
            units,
            outputs,
            inner,
            recurrent,
            bias,
            peepholes,
            norms,
            projection,
            has_input_gate,
            options,
        })
    }

    /// Every step of `x`.
    fn run(&self, p: &mut Compose<'_, '_>, x: Value, steps: Steps, backwards: bool) -> Result<Value, Reason> {
        let depth = p.extents(x)?.last().copied();
        if depth != Some(self.inner.shape().c) {
            return refused!("found an input of {depth:?} features for weights {}", self.inner.dims());
        }
        let bias = HostTensor::vector(self.bias.to_nhwc().into_owned())?;
        let bias = self.norms.is_none().then_some(bias);
        let kept = [steps.state(p, "cell_state", self.units)?, steps.state(p, "output_state", self.outputs)?];
        let mut state = match kept {
            [Some(cell), Some(output)] => Some([cell, output]),
            _ => None,
        };
        let y = steps.each(p, x, (&self.inner, bias.as_ref()), backwards, &mut |p, sums| {
            let next = self.step(p, sums, state)?;
            state = Some(next);
            Ok(next[1])
        })?;
        if let Some([cell, output]) = state {
            steps.keep(p, kept[0], cell)?;
            steps.keep(p, kept[1], output)?;
        }
        Ok(y)
    }

    /// Cell and output after one more step, of what the inputs give.
    fn step(
        &self,
        p: &mut Compose<'_, '_>,
        sums: Value,
        state: Option<[Value; 2]>,
    ) -> Result<[Value; 2], Reason> {
        let sums = match state {
            Some([_, output]) => {
                let extras = Extras { residual: Some(sums), ..Extras::default() };
                p.product("gates", output, Right::Value(self.recurrent), true, extras)?
            }
            None => sums,
        };
        let count = 3 + usize::from(self.has_input_gate);
        let mut gates = Vec::with_capacity(4);
        for gate in 0..count {
            gates.push(p.slice("gate", sums, 1, [gate * self.units, (gate + 1) * self.units])?);
        }
        let before = state.map(|[cell, _]| cell);
        let input = match self.has_input_gate {
            true => {
                let sum = self.gate(p, gates[0], 0, before, self.peepholes[0])?;
                Some(p.each("input", Sigmoid, &[sum.into()])?)
            }
            false => None,
        };
        let at = count - 3;
        let forget = self.gate(p, gates[at], at, before, self.peepholes[1])?;
        let forget = p.each("forget", Sigmoid, &[forget.into()])?;
        let update = self.gate(p, gates[at + 1], at + 1, None, None)?;
        let update = activated(p, "update", self.options.activation, update)?;
        let input = match input {
            Some(input) => input,
            None => p.each("rest", Sub, &[1.0.into(), forget.into()])?,
        };
        let mut cell = p.each("new", Mul, &[input.into(), update.into()])?;
        if let Some(before) = before {
            let kept = p.each("kept", Mul, &[forget.into(), before.into()])?;
            cell = p.each("cell", Add, &[kept.into(), cell.into()])?;
        }
        let clip = |p: &mut Compose<'_, '_>, x: Value, clip: f32| match clip > 0.0 {
            true => p.each("clip", Clamp, &[x.into(), (-clip).into(), clip.into()]),
            false => Ok(x),
        };
        let cell = clip(p, cell, self.options.cell_clip)?;
        let output = self.gate(p, gates[at + 2], at + 2, Some(cell), self.peepholes[2])?;
        let output = p.each("output", Sigmoid, &[output.into()])?;
        let bounded = activated(p, "bounded", self.options.activation, cell)?;
        let mut result = p.each("result", Mul, &[output.into(), bounded.into()])?;
        if let Some((weights, bias)) = &self.projection {
            let extras = Extras { bias: bias.clone(), ..Extras::default() };
            result = p.product("projected", result, Right::Value(*weights), true, extras)?;
            result = clip(p, result, self.options.projection_clip)?;
        }
        Ok([cell, result])
    }

    /// A gate's sum with what its peephole sees, normalised if gates are.
    fn gate(
        &self,
        p: &mut Compose<'_, '_>,
        mut sum: Value,
        gate: usize,
        cell: Option<Value>,
        peephole: Option<Value>,
    ) -> Result<Value, Reason> {
        if let (Some(cell), Some(peephole)) = (cell, peephole) {
            let seen = p.each("peephole", Mul, &[cell.into(), peephole.into()])?;
            sum = p.each("sum", Add, &[sum.into(), seen.into()])?;
        }
        let Some(norms) = &self.norms else { return Ok(sum) };
        let own = |of: &HostTensor| {
            let values = of.to_nhwc();
            let own = values.get(gate * self.units..(gate + 1) * self.units).unwrap_or_default();
            HostTensor::vector(own.to_vec()).map_err(Reason::from)
        };
        let (scale, bias) = (own(norms)?, own(&self.bias)?);
        let name = p.name("norm")?;
        let options = Normalize { axes: vec![-1], epsilon: Bits(EPSILON) };
        let normal = p.import.graph.normalize(&name, sum, options, Some(scale), Some(bias));
        normal.map_err(Reason::from)
    }
}

fn constant<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    part: &str,
    tensor: HostTensor,
) -> Result<Value, Reason> {
    let position = import.tensors.position(op.output(0)?)?;
    let name = format!("{}{}", import.frame.scope, import.tensors.name(position));
    let name = import.part_name(&name, part)?;
    Ok(import.graph.constant(&name, tensor))
}

/// Steps of a sequence in one direction.
pub(in super::super) fn sequence_lstm<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[20, 24], 1)?;
    let wanted = "UnidirectionalSequenceLSTMOptions";
    let table = op.table.sequence_lstm().ok_or_else(|| missing(op, wanted))?;
    let options = Options {
        activation: function(table.activation())?,
        cell_clip: table.cell_clip(),
        projection_clip: table.projection_clip(),
    };
    let cell = Cell::read(import, op, 1, Some(20), options)?;
    let x = import.value(op, 0)?;
    let steps = Steps::of(import, x, table.time_major())?;
    let name = import.name(op, 0)?;
    import.budget.spend(steps.count.saturating_mul(16 * (name.len() + 16)))?;
    let y = cell.run(&mut Compose::named(import, &name), x, steps, false)?;
    finish(import, op, &name, y)
}

/// Steps of a sequence in both directions, joined along the features or as two outputs.
pub(in super::super) fn bidirectional_lstm<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[48], op.outputs.len().clamp(1, 2))?;
    let wanted = "BidirectionalSequenceLSTMOptions";
    let table = op.table.bidirectional_lstm().ok_or_else(|| missing(op, wanted))?;
    if (39..48).any(|index| op.has(index)) {
        return refused!("found an auxiliary input, wanted none");
    }
    let options = Options {
        activation: function(table.activation())?,
        cell_clip: table.cell_clip(),
        projection_clip: table.projection_clip(),
    };
    let cells = [Cell::read(import, op, 1, None, options)?, Cell::read(import, op, 18, None, options)?];
    let x = import.value(op, 0)?;
    let steps = Steps::of(import, x, table.time_major())?;
    super::plain::both(import, op, table.merge_outputs(), &mut |p, backwards| {
        cells[usize::from(backwards)].run(p, x, steps, backwards)
    })
}

/// One step.
pub(in super::super) fn lstm<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let table = op.table.lstm().ok_or_else(|| missing(op, "LSTMOptions"))?;
    let options = Options {
        activation: function(table.activation())?,
        cell_clip: table.cell_clip(),
        projection_clip: table.projection_clip(),
    };
    if table.kernel() == 1 {
        return basic(import, op, options);
    }
    op.check(&[20, 24], 1)?;
    let cell = Cell::read(import, op, 1, Some(20), options)?;
    let x = import.value(op, 0)?;
    let steps = Steps::one(import, x)?;
    let name = import.name(op, 0)?;
    let y = cell.run(&mut Compose::named(import, &name), x, steps, false)?;
    let y = Compose::named(import, &name).reshape("rows", y, &[steps.batch, cell.outputs])?;
    finish(import, op, &name, y)
}

/// A step of the older kind: one matrix for input and output, gates in the order `i g f o`, the state given and
/// returned. Where the file says that the state is a variable, it is kept from run to run.
fn basic<'a>(import: &mut Import<'a>, op: &Op<'a>, options: Options) -> Result<(), Reason> {
    op.check(&[5], 4)?;
    let x = import.value(op, 0)?;
    let steps = Steps::one(import, x)?;
    let (weights, bias) = (import.floats(op, 2)?, vector(import, op, 3)?);
    let &[rows, depth] = weights.dims().extents() else {
        return refused!("found weights {}, wanted a matrix", weights.dims());
    };
    let units = rows / 4;
    let names = (0..4).map(|index| import.name(op, index)).collect::<Result<Vec<_>, Reason>>()?;
    let mut before = |index: usize, part: &str| -> Result<(Value, bool), Reason> {
        let position = import.tensors.position(op.input(index)?)?;
        if !import.tensors.tensor(position)?.is_variable() {
            return Ok((import.value(op, index)?, false));
        }
        let mut p = Compose::named(import, &names[0]);
        let state = steps.state(&mut p, part, units)?.ok_or("found steps, wanted one")?;
        Ok((state, true))
    };
    let ((output, keeps_output), (cell, keeps_cell)) = (before(1, "output_state")?, before(4, "cell_state")?);
    let mut parts = Compose::named(import, &names[0]);
    let p = &mut parts;
    let joined = p.concat("joined", &[x, output], 1)?;
    if p.extents(joined)?.last() != Some(&depth) || rows != 4 * units {
        return refused!("found weights {} for {units} units", weights.dims());
    }
    let extras = Extras { bias, ..Extras::default() };
    let sums = p.product("gates", joined, Right::Constant(weights), true, extras)?;
    let mut gate = |index: usize, part: &str, function: Option<Function>| {
        let gate = p.slice("gate", sums, 1, [index * units, (index + 1) * units])?;
        activated(p, part, function, gate)
    };
    let (input, update) = (gate(0, "input", Some(Sigmoid))?, gate(1, "update", Some(Function::Tanh))?);
    let (forget, out) = (gate(2, "forget", Some(Sigmoid))?, gate(3, "output", Some(Sigmoid))?);
    let new = p.each("new", Mul, &[input.into(), update.into()])?;
    let kept = p.each("kept", Mul, &[forget.into(), cell.into()])?;
    let next = p.each("cell", Add, &[kept.into(), new.into()])?;
    let next = match options.cell_clip > 0.0 {
        true => {
            p.each("clip", Clamp, &[next.into(), (-options.cell_clip).into(), options.cell_clip.into()])?
        }
        false => next,
    };
    let bounded = p.each("bounded", Function::Tanh, &[next.into()])?;
    let result = p.each("result", Mul, &[out.into(), bounded.into()])?;
    steps.keep(p, keeps_output.then_some(output), result)?;
    steps.keep(p, keeps_cell.then_some(cell), next)?;
    for (index, (value, name)) in [result, next, joined, sums].into_iter().zip(&names).enumerate() {
        let extents = import.dims(value)?.extents().to_vec();
        let value = Compose::named(import, name).reshape("", value, &extents)?;
        import.write(op, index, value)?;
    }
    Ok(())
}
