//! One step of the cells of recurrent layers (`recurrent`).

use super::elementwise::Arg;
use super::import::{Import, Op, Slot};
use super::products::product;
use super::recurrent::{Functions, Weights, columns};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// Bounded by the option `clip`, if there is one.
pub(super) fn clipped<'a>(i: &mut Import<'a>, op: &Op<'a>, slot: Slot) -> Result<Slot, Reason> {
    let clip = op.float("clip", 0.0);
    match clip > 0.0 {
        true => i.apply("clip", Function::Clamp, &[slot.into(), (-clip).into(), clip.into()]),
        false => Ok(slot),
    }
}

pub(super) fn lstm<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    own: Slot,
    [h, c]: [Slot; 2],
    units: usize,
    weights: &Weights,
    functions: &Functions,
) -> Result<[Slot; 2], Reason> {
    let before = product(i, "state", h, weights.recurrent[0].clone())?;
    let sums = i.apply("gates", Function::Add, &[own.into(), before.into()])?;
    let sums = clipped(i, op, sums)?;
    let mut gates = Vec::with_capacity(4);
    for gate in 0..4 {
        gates.push(columns(i, &sums, gate * units, units)?);
    }
    let peep = |i: &mut Import<'a>, gate: Slot, place: usize, cell: &Slot| -> Result<Slot, Reason> {
        let Some(peepholes) = &weights.peepholes else { return Ok(gate) };
        let share = columns(i, peepholes, place * units, units)?;
        let seen = i.apply("seen", Function::Mul, &[share.into(), cell.clone().into()])?;
        i.apply("peep", Function::Add, &[gate.into(), seen.into()])
    };
    let input = peep(i, gates[0].clone(), 0, &c)?;
    let input = i.apply("input", functions[0], &[input.into()])?;
    let update = i.apply("update", functions[1], &[gates[3].clone().into()])?;
    let new = i.apply("new", Function::Mul, &[input.clone().into(), update.into()])?;
    let forget = match op.int("input_forget", 0) {
        0 => {
            let forget = peep(i, gates[2].clone(), 2, &c)?;
            i.apply("forget", functions[0], &[forget.into()])?
        }
        _ => i.apply("forget", Function::Sub, &[Arg::Number(1.0), input.into()])?,
    };
    let kept = i.apply("kept", Function::Mul, &[forget.into(), c.into()])?;
    let cell = i.apply("cell", Function::Add, &[kept.into(), new.into()])?;
    let output = peep(i, gates[1].clone(), 1, &cell)?;
    let output = i.apply("output", functions[0], &[output.into()])?;
    let bounded = i.apply("bounded", functions[2], &[cell.clone().into()])?;
    let result = i.apply("y", Function::Mul, &[output.into(), bounded.into()])?;
    Ok([result, cell])
}

#[expect(clippy::too_many_arguments, reason = "a cell has as many parts")]
pub(super) fn gru(
    i: &mut Import<'_>,
    own: Slot,
    [h, unused]: [Slot; 2],
    units: usize,
    weights: &Weights,
    functions: &Functions,
    separate: bool,
    late: Option<&Slot>,
) -> Result<[Slot; 2], Reason> {
    let before = product(i, "state", h.clone(), weights.recurrent[0].clone())?;
    let own_gates = columns(i, &own, 0, 2 * units)?;
    let sums = i.apply("gates", Function::Add, &[own_gates.into(), before.into()])?;
    let gates = i.apply("open", functions[0], &[sums.into()])?;
    let (update, reset) = (columns(i, &gates, 0, units)?, columns(i, &gates, units, units)?);
    let last = weights.recurrent[1].clone();
    let seen = if separate {
        let mut seen = product(i, "seen", h.clone(), last)?;
        if let Some(late) = late {
            seen = i.apply("late", Function::Add, &[seen.into(), late.clone().into()])?;
        }
        i.apply("reset", Function::Mul, &[reset.into(), seen.into()])?
    } else {
        let kept = i.apply("reset", Function::Mul, &[reset.into(), h.clone().into()])?;
        product(i, "seen", kept, last)?
    };
    let own = columns(i, &own, 2 * units, units)?;
    let sum = i.apply("sum", Function::Add, &[own.into(), seen.into()])?;
    let new = i.apply("new", functions[1], &[sum.into()])?;
    let difference = i.apply("difference", Function::Sub, &[h.into(), new.clone().into()])?;
    let kept = i.apply("kept", Function::Mul, &[update.into(), difference.into()])?;
    Ok([i.apply("y", Function::Add, &[new.into(), kept.into()])?, unused])
}
