//! `LSTM`, `GRU` and `RNN`, one step after the other.
//!
//! | cell | gates, in the order of the weights | state |
//! |---|---|---|
//! | `LSTM` | `i o f c = W x + R h + b` | `C = s(f) C + s(i) tanh(c)`, `H = s(o) tanh(C)` |
//! | `GRU` | `z r h` | `H = (1 - z) tanh(W x + r (R H)) + z H` |
//! | `RNN` | one | `H = tanh(W x + R H + b)` |

use super::cells::{clipped, gru, lstm};
use super::contributed::{is_packed, unpacked};
use super::elementwise::Arg;
use super::import::{Import, Op, Slot};
use super::kind::Kind;
use super::moves::cut;
use super::order::Mapped;
use super::products::{product, swapped};
use crate::host::HostTensor;
use crate::model::constant::{Constant, dims_of};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

type Done = Result<(), Reason>;

/// The most steps: each is a dozen nodes.
const MAX_STEPS: usize = 1024;

/// The kinds of cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    Lstm,
    Gru,
    Rnn,
}

impl Cell {
    const fn gates(self) -> usize {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
            Cell::Rnn => 1,
        }
    }
}

/// One direction's weights.
pub(super) struct Weights {
    input: Slot,
    /// Values of the graph: all gates, or of a GRU all but the last one and the last one.
    pub(super) recurrent: Vec<Slot>,
    /// Of the products with the input and with the state.
    bias: [Option<Slot>; 2],
    pub(super) peepholes: Option<Slot>,
}

/// The functions of one direction.
pub(super) type Functions = Vec<Function>;

pub(super) fn sequence<'a>(i: &mut Import<'a>, op: &Op<'a>, cell: Cell) -> Done {
    let batch_first = op.int("layout", 0) == 1;
    let own = i.extents_of(op, 0)?;
    let &[first, second, _] = &own[..] else {
        return refused!("found an input of {own:?}, wanted time, batch and features");
    };
    let (steps, batch) = if batch_first { (second, first) } else { (first, second) };
    if steps > MAX_STEPS {
        return refused!("found {steps} steps, wanted at most {MAX_STEPS}");
    }
    let lengths = lengths(i, op, steps, batch)?;
    let backwards: &[bool] = match op.text("direction", "forward")? {
        "forward" => &[false],
        "reverse" => &[true],
        "bidirectional" => &[false, true],
        other => return refused!("found direction {other:?}"),
    };
    let units = i.extents_of(op, 2)?.get(if is_packed(op) { 1 } else { 2 }).copied().unwrap_or(0);
    i.budget.spend(steps.saturating_mul(1024).saturating_mul(backwards.len()))?;
    let mut x = i.slot(op, 0)?;
    if batch_first {
        x = exchanged(i, x)?;
    }
    let (mut rows, mut last_rows, mut cells) = (Vec::new(), Vec::new(), Vec::new());
    for (direction, &backwards) in backwards.iter().enumerate() {
        let weights = weights(i, op, direction, cell, units)?;
        let functions = functions(op, direction, cell)?;
        let state = |i: &mut Import<'a>, index: usize| -> Result<Option<Slot>, Reason> {
            if !op.has(index) {
                return Ok(None);
            }
            let mut slot = i.slot(op, index)?;
            if batch_first {
                slot = exchanged(i, slot)?;
            }
            part_of(i, slot, direction, &[batch, units]).map(Some)
        };
        let initial = [state(i, 5)?, if cell == Cell::Lstm { state(i, 6)? } else { None }];
        let (outputs, last) = unrolled(
            i,
            op,
            x.clone(),
            [steps, batch, units],
            cell,
            &weights,
            &functions,
            initial,
            backwards,
            lengths.as_ref(),
        )?;
        rows.push(outputs);
        last_rows.push(last[0].clone());
        cells.push(last[1].clone());
    }
    // Y: time, direction, batch, units.
    let stack = |i: &mut Import<'a>, list: Vec<Slot>, place: isize| -> Result<Slot, Reason> {
        let mut values = Vec::new();
        for slot in list {
            let mapped = i.mapped_slot(slot, None)?;
            values.push(i.logical(&mapped)?);
        }
        let value = i.add("result", |graph, name| graph.stack(name, &values, place))?;
        Ok(Slot::Value(Mapped::plain(value, i.dims(value)?.rank(), Kind::F32)))
    };
    if op.writes(0) {
        let all = stack(i, rows, 1)?;
        let Slot::Value(mapped) = all else { return refused!("found a constant") };
        let order = if batch_first { [1, 2, 0, 3].to_vec() } else { mapped.order.clone() };
        i.write(op, 0, Mapped { order, ..mapped })?;
    }
    for (index, list) in [(1, last_rows), (2, cells)] {
        if op.writes(index) {
            let Slot::Value(mapped) = stack(i, list, 0)? else { return refused!("found a constant") };
            let order = if batch_first { vec![1, 0, 2] } else { mapped.order.clone() };
            i.write(op, index, Mapped { order, ..mapped })?;
        }
    }
    Ok(())
}

/// A slot with its first two axes exchanged.
fn exchanged(i: &mut Import<'_>, slot: Slot) -> Result<Slot, Reason> {
    Ok(match slot {
        Slot::Value(mapped) => {
            let order =
                mapped.order.iter().map(|&axis| [1, 0, 2].get(axis).copied().unwrap_or(axis)).collect();
            Slot::Value(Mapped { order, ..mapped })
        }
        Slot::Constant(constant, kind) => Slot::Constant(i.constant_in_order(&constant, &[1, 0, 2])?, kind),
    })
}

/// The element `at` along the outermost axis, in other dimensions.
pub(super) fn part_of(i: &mut Import<'_>, slot: Slot, at: usize, target: &[usize]) -> Result<Slot, Reason> {
    let extents = match &slot {
        Slot::Value(mapped) => i.extents(mapped)?,
        Slot::Constant(constant, _) => constant.extents(),
    };
    if at >= extents.first().copied().unwrap_or(0) {
        return refused!("found {extents:?} for direction {at}");
    }
    let mut ranges: Vec<(usize, usize, i64)> = extents.iter().map(|&extent| (0, extent, 1)).collect();
    if let Some(range) = ranges.first_mut() {
        *range = (at, 1, 1);
    }
    Ok(match cut(i, "direction", slot, &ranges)? {
        Slot::Constant(constant, kind) => Slot::Constant(constant.reshaped(target)?, kind),
        Slot::Value(mapped) => {
            let value = i.logical(&mapped)?;
            let value = i.reshaped("part", value, target)?;
            Slot::Value(Mapped::plain(value, target.len(), mapped.kind))
        }
    })
}

/// Columns of a slot of rank 1 or 2.
pub(super) fn columns(i: &mut Import<'_>, slot: &Slot, first: usize, count: usize) -> Result<Slot, Reason> {
    let extents = match slot {
        Slot::Value(mapped) => i.extents(mapped)?,
        Slot::Constant(constant, _) => constant.extents(),
    };
    let mut ranges: Vec<(usize, usize, i64)> = extents.iter().map(|&extent| (0, extent, 1)).collect();
    if extents.last().is_none_or(|&extent| extent < first + count) {
        return refused!("found {extents:?}, wanted {} columns", first + count);
    }
    if let Some(range) = ranges.last_mut() {
        *range = (first, count, 1);
    }
    cut(i, "gate", slot.clone(), &ranges)
}

fn weights<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    direction: usize,
    cell: Cell,
    units: usize,
) -> Result<Weights, Reason> {
    let wide = cell.gates().saturating_mul(units);
    let depth = i.extents_of(op, 1)?.get(if is_packed(op) { 1 } else { 2 }).copied().unwrap_or(0);
    let turned = |i: &mut Import<'a>, index: usize, depth: usize| -> Result<Slot, Reason> {
        let (slot, at) = match is_packed(op) {
            true => (unpacked(i, op, index, direction)?, 0),
            false => (i.slot(op, index)?, direction),
        };
        let slot = part_of(i, slot, at, &[wide, depth])?;
        swapped(i, slot)
    };
    let (input, recurrent) = (turned(i, 1, depth)?, turned(i, 2, units)?);
    let parts = match cell {
        Cell::Gru => vec![columns(i, &recurrent, 0, 2 * units)?, columns(i, &recurrent, 2 * units, units)?],
        Cell::Lstm | Cell::Rnn => vec![recurrent],
    };
    // Once for all steps.
    let mut recurrent = Vec::with_capacity(parts.len());
    for part in parts {
        recurrent.push(Slot::Value(i.mapped_slot(part, None)?));
    }
    let mut bias = [None, None];
    if op.has(3) {
        let slot = i.slot(op, 3)?;
        let both = part_of(i, slot, direction, &[2 * wide])?;
        bias = [Some(columns(i, &both, 0, wide)?), Some(columns(i, &both, wide, wide)?)];
    }
    let mut peepholes = None;
    if cell == Cell::Lstm && op.has(7) {
        let slot = i.slot(op, 7)?;
        peepholes = Some(part_of(i, slot, direction, &[3 * units])?);
    }
    Ok(Weights { input, recurrent, bias, peepholes })
}

/// The functions of a direction; the defaults are those of the table above.
fn functions(op: &Op<'_>, direction: usize, cell: Cell) -> Result<Functions, Reason> {
    if op.has_attribute("activations")
        && op.attributes.get("activations").is_some_and(|own| !own.strings.is_empty())
    {
        let count = match cell {
            Cell::Lstm => 3,
            Cell::Gru => 2,
            Cell::Rnn => 1,
        };
        let strings = &op.attributes["activations"].strings;
        let own =
            strings.get(direction * count..(direction + 1) * count).ok_or("found too few activations")?;
        let named = |name: &&[u8]| match name.to_ascii_lowercase().as_slice() {
            b"sigmoid" => Ok(Function::Sigmoid),
            b"tanh" => Ok(Function::Tanh),
            b"relu" => Ok(Function::Relu),
            other => refused!(
                "found the activation {:?}, wanted Sigmoid, Tanh or Relu",
                other.escape_ascii().to_string()
            ),
        };
        return own.iter().map(named).collect();
    }
    Ok(match cell {
        Cell::Lstm => vec![Function::Sigmoid, Function::Tanh, Function::Tanh],
        Cell::Gru => vec![Function::Sigmoid, Function::Tanh],
        Cell::Rnn => vec![Function::Tanh],
    })
}

/// What all steps give, `time batch units`, and the last output and cell.
#[expect(clippy::too_many_arguments, reason = "a cell has as many parts")]
fn unrolled<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    x: Slot,
    [steps, batch, units]: [usize; 3],
    cell: Cell,
    weights: &Weights,
    functions: &Functions,
    initial: [Option<Slot>; 2],
    backwards: bool,
    lengths: Option<&Slot>,
) -> Result<(Slot, [Slot; 2]), Reason> {
    i.budget.spend(batch.saturating_mul(units).saturating_mul(16))?;
    let zero = || -> Result<Slot, Reason> {
        let tensor = HostTensor::new(dims_of(&[batch, units])?, vec![0.0; batch * units]);
        Ok(Slot::Constant(Constant::Floats(tensor?), Kind::F32))
    };
    let wide = cell.gates() * units;
    // The products with the input, of all steps at once.
    let mut sums = product(i, "inputs", x, weights.input.clone())?;
    if let Some(bias) = &weights.bias[0] {
        sums = i.apply("biased", Function::Add, &[sums.into(), bias.clone().into()])?;
    }
    // All but a GRU add the second bias as they add the first.
    let separate = cell == Cell::Gru && op.int("linear_before_reset", 0) != 0;
    let mut late = None;
    if let Some(bias) = &weights.bias[1] {
        let early = match separate {
            false => bias.clone(),
            true => {
                late = Some(columns(i, bias, 2 * units, units)?);
                let gates = columns(i, bias, 0, 2 * units)?;
                let none = super::tensors::floats(&[units], vec![0.0; units])?;
                match gates {
                    Slot::Constant(gates, kind) => {
                        Slot::Constant(super::moves::joined(i, &[gates, none], 0)?, kind)
                    }
                    Slot::Value(_) => return refused!("found a bias computed at each run"),
                }
            }
        };
        sums = i.apply("biased", Function::Add, &[sums.into(), early.into()])?;
    }
    let [h, c] = initial;
    let mut state = [h.map_or_else(zero, Ok)?, c.map_or_else(zero, Ok)?];
    let mut outputs = vec![None; steps];
    for step in 0..steps {
        let at = if backwards { steps - 1 - step } else { step };
        let own = part_of(i, sums.clone(), at, &[batch, wide])?;
        let before = state.clone();
        state = match cell {
            Cell::Lstm => lstm(i, op, own, state, units, weights, functions)?,
            Cell::Gru => gru(i, own, state, units, weights, functions, separate, late.as_ref())?,
            Cell::Rnn => {
                let before = product(i, "state", state[0].clone(), weights.recurrent[0].clone())?;
                let sum = i.apply("sum", Function::Add, &[own.into(), before.into()])?;
                let sum = clipped(i, op, sum)?;
                [i.apply("y", functions[0], &[sum.into()])?, state[1].clone()]
            }
        };
        outputs[at] = Some(match lengths {
            None => state[0].clone(),
            Some(lengths) => {
                let within =
                    i.apply("within", Function::Less, &[(at as f32).into(), lengths.clone().into()])?;
                let [h, c] = state;
                let y = within_or(i, &within, h.clone(), 0.0.into())?;
                let [old_h, old_c] = before;
                let c = match cell {
                    Cell::Lstm => within_or(i, &within, c, old_c.into())?,
                    Cell::Gru | Cell::Rnn => c,
                };
                state = [within_or(i, &within, h, old_h.into())?, c];
                y
            }
        });
    }
    let mut values = Vec::with_capacity(steps);
    for slot in outputs.into_iter().flatten() {
        let mapped = i.mapped_slot(slot, None)?;
        values.push(i.logical(&mapped)?);
    }
    let value = i.add("steps", |graph, name| graph.stack(name, &values, 0))?;
    Ok((Slot::Value(Mapped::plain(value, 3, Kind::F32)), state))
}

/// How many steps each sequence of a batch has, `batch 1`, where that is not all of them.
fn lengths<'a>(i: &mut Import<'a>, op: &Op<'a>, steps: usize, batch: usize) -> Result<Option<Slot>, Reason> {
    if !op.has(4) {
        return Ok(None);
    }
    let own = i.extents_of(op, 4)?;
    if own != [batch] {
        return refused!("found lengths of {own:?}, wanted one for each of {batch} sequences");
    }
    let slot = i.slot(op, 4)?;
    if let Slot::Constant(..) = slot
        && i.integers(op, 4)?.iter().all(|&length| length == steps as i64)
    {
        return Ok(None);
    }
    let slot = super::casts::converted(i, slot, Kind::F32)?;
    i.slot_reshaped("lengths", slot, &[batch, 1]).map(Some)
}

/// `value` in the sequences that `within` says, else the other one.
fn within_or(i: &mut Import<'_>, within: &Slot, value: Slot, other: Arg) -> Result<Slot, Reason> {
    i.apply("ended", Function::Select, &[within.clone().into(), value.into(), other])
}
