//! `LSTM`, `GRU` and `RNN`: weights, states and options of each direction.

use super::contributed::{is_packed, unpacked};
use super::import::{Import, Op};
use crate::model::build::{
    Cell, Clips, Coupled, Gru, Kind, Layer, Lstm, MOST_UNROLLED, Mapped, Operand, Plain, State, Steps,
    converted, floats, one_of, part_of, stacked,
};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

type Done = Result<(), Reason>;

/// The operators. Gates lie in the order `i o f c`, and `z r h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Lstm,
    Gru,
    Rnn,
}

impl Form {
    const fn gates(self) -> usize {
        match self {
            Form::Lstm => 4,
            Form::Gru => 3,
            Form::Rnn => 1,
        }
    }

    /// The functions of a direction where the file names none.
    const fn functions(self) -> &'static [Function] {
        match self {
            Form::Lstm => &[Function::Sigmoid, Function::Tanh, Function::Tanh],
            Form::Gru => &[Function::Sigmoid, Function::Tanh],
            Form::Rnn => &[Function::Tanh],
        }
    }
}

pub(super) fn sequence<'a>(i: &mut Import<'a>, op: &Op<'a>, form: Form) -> Done {
    let batch_first = op.int("layout", 0) == 1;
    let own = i.extents_of(op, 0)?;
    let &[first, second, _] = &own[..] else {
        return refused!("found an input of {own:?}, wanted time, batch and features");
    };
    let (count, batch) = if batch_first { (second, first) } else { (first, second) };
    let lengths = lengths(i, op, count, batch)?;
    let directions: &[bool] = match op.text("direction", "forward")? {
        "forward" => &[false],
        "reverse" => &[true],
        "bidirectional" => &[false, true],
        other => return refused!("found direction {other:?}"),
    };
    let units = i.extents_of(op, 2)?.get(if is_packed(op) { 1 } else { 2 }).copied().unwrap_or(0);
    i.budget.spend(count.min(MOST_UNROLLED).saturating_mul(1024).saturating_mul(directions.len()))?;
    i.budget.spend(batch.saturating_mul(units).saturating_mul(16))?;
    // Time first, which moves nothing: the order in which the axes are stored is another.
    let time_first = |i: &mut Import<'a>, index: usize| -> Result<Operand, Reason> {
        let operand = i.slot(op, index)?;
        if batch_first { i.transposed(operand, &[1, 0, 2]) } else { Ok(operand) }
    };
    let x = time_first(i, 0)?;
    let mut results: [Vec<Operand>; 3] = Default::default();
    for (direction, &backwards) in directions.iter().enumerate() {
        let layer = layer(i, op, form, direction, units)?;
        let mut given = |index: usize| -> Result<Option<Operand>, Reason> {
            if !op.has(index) {
                return Ok(None);
            }
            let all = time_first(i, index)?;
            let own = one_of(i, "direction", &all, 0, direction)?;
            i.with_extents("part", own, &[batch, units]).map(Some)
        };
        let output = given(5)?;
        let cell = if form == Form::Lstm { given(6)? } else { None };
        let state = match (output, cell) {
            (None, None) => None,
            (Some(output), cell) => Some(State { output, cell }),
            (None, cell) => Some(State { output: i.filled(&[batch, units], 0.0)?, cell }),
        };
        let steps = Steps { count, backwards, lengths: lengths.clone() };
        let (outputs, last) = layer.run(i, "steps", x.clone(), &steps, (state, 0))?;
        results[0].push(outputs);
        results[1].push(last.output);
        results[2].extend(last.cell);
    }
    finish(i, op, results, batch_first)
}

/// Writes what the directions give.
fn finish<'a>(i: &mut Import<'a>, op: &Op<'a>, results: [Vec<Operand>; 3], batch_first: bool) -> Done {
    // Time, direction, batch and units; the last ones without time.
    for (index, list) in results.into_iter().enumerate().filter(|(index, _)| op.writes(*index)) {
        let all = stacked(i, "result", list, usize::from(index == 0))?;
        let mapped = i.mapped_slot(all, None)?;
        let order = match (batch_first, index) {
            (false, _) => mapped.order.clone(),
            (true, 0) => vec![1, 2, 0, 3],
            (true, _) => vec![1, 0, 2],
        };
        i.write(op, index, Mapped { order, ..mapped })?;
    }
    Ok(())
}

/// One direction's weights and functions.
fn layer<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    form: Form,
    direction: usize,
    units: usize,
) -> Result<Layer, Reason> {
    let wide = form.gates().saturating_mul(units);
    let depth = i.extents_of(op, 1)?.get(if is_packed(op) { 1 } else { 2 }).copied().unwrap_or(0);
    let own = |i: &mut Import<'a>, index: usize, target: &[usize]| -> Result<Operand, Reason> {
        let (all, at) = match is_packed(op) && index < 3 {
            true => (unpacked(i, op, index, direction)?, 0),
            false => (i.slot(op, index)?, direction),
        };
        let own = one_of(i, "direction", &all, 0, at)?;
        i.with_extents("part", own, target)
    };
    let (weights, recurrent) = (own(i, 1, &[wide, depth])?, own(i, 2, &[wide, units])?);
    let functions = functions(op, form, direction)?;
    let clip = op.float("clip", 0.0);
    let separate = form == Form::Gru && op.int("linear_before_reset", 0) != 0;
    let (mut bias, mut late) = (None, None);
    if op.has(3) {
        let both = own(i, 3, &[2 * wide])?;
        let of_input = part_of(i, "bias", &both, 0, [0, wide])?;
        let mut of_state = part_of(i, "bias", &both, 0, [wide, wide])?;
        if separate {
            late = Some(part_of(i, "late", &of_state, 0, [2 * units, units])?);
            let gates = part_of(i, "bias", &of_state, 0, [0, 2 * units])?;
            let none = Operand::Constant(floats(&[units], vec![0.0; units])?, Kind::F32);
            of_state = i.joined("bias", vec![gates, none], 0)?;
        }
        bias = Some(i.apply("bias", Function::Add, &[of_input.into(), of_state.into()])?);
    }
    let cell = match form {
        Form::Lstm => {
            let mut peepholes = [None, None, None];
            if op.has(7) {
                let all = own(i, 7, &[3 * units])?;
                // They lie in the order `i o f`.
                for (peephole, place) in peepholes.iter_mut().zip([0, 2, 1]) {
                    *peephole = Some(part_of(i, "peephole", &all, 0, [place * units, units])?);
                }
            }
            Cell::Lstm(Box::new(Lstm {
                units,
                places: [0, 2, 3, 1],
                coupled: if op.int("input_forget", 0) == 0 { Coupled::No } else { Coupled::Forget },
                recurrent: Some(i.kept("recurrent", recurrent)?),
                peepholes,
                norms: None,
                projection: None,
                functions: [functions[0], functions[1], functions[2]].map(Some),
                clips: Clips { sums: clip, ..Clips::default() },
            }))
        }
        Form::Gru => Cell::Gru(Box::new(Gru {
            units,
            recurrent: Gru::split(i, &recurrent, units)?,
            resets_product: separate,
            late,
            functions: [functions[0], functions[1]].map(Some),
            clip,
        })),
        Form::Rnn => {
            let recurrent = i.kept("recurrent", recurrent)?;
            Cell::Plain(Plain { recurrent, function: Some(functions[0]), clip })
        }
    };
    Ok(Layer { weights, bias, cell })
}

/// The functions of a direction.
fn functions(op: &Op<'_>, form: Form, direction: usize) -> Result<Vec<Function>, Reason> {
    let named = op.attributes.get("activations").filter(|named| !named.strings.is_empty());
    let Some(named) = named else { return Ok(form.functions().to_vec()) };
    let count = form.functions().len();
    let own = named.strings.get(direction * count..(direction + 1) * count);
    let function = |name: &&[u8]| match name.to_ascii_lowercase().as_slice() {
        b"sigmoid" => Ok(Function::Sigmoid),
        b"tanh" => Ok(Function::Tanh),
        b"relu" => Ok(Function::Relu),
        other => refused!(
            "found the activation {:?}, wanted Sigmoid, Tanh or Relu",
            other.escape_ascii().to_string()
        ),
    };
    own.ok_or("found too few activations")?.iter().map(function).collect()
}

/// How many steps each sequence of a batch has, `batch 1`, where that is not all of them.
fn lengths<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    steps: usize,
    batch: usize,
) -> Result<Option<Operand>, Reason> {
    if !op.has(4) {
        return Ok(None);
    }
    let own = i.extents_of(op, 4)?;
    if own != [batch] {
        return refused!("found lengths of {own:?}, wanted one for each of {batch} sequences");
    }
    let slot = i.slot(op, 4)?;
    if let Operand::Constant(..) = slot
        && i.integers(op, 4)?.iter().all(|&length| length == steps as i64)
    {
        return Ok(None);
    }
    let slot = converted(i, slot, Kind::F32)?;
    i.with_extents("lengths", slot, &[batch, 1]).map(Some)
}
