//! Operators that join values, and constants.

use super::constant::Constant;
use super::elementwise::composed;
use super::import::{Import, Op};
use super::names;
use super::operands::missing;
use super::shapes::extents;
use super::slots::{Input, Joined};
use crate::graph::Value;
use crate::model::build::{Mapped, Operand, axis, joined, stacked};
use crate::model::reason::Reason;

/// `PACK`: values of the same extents along a new axis.
pub(super) fn pack<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[op.inputs.len().max(1)], 1)?;
    let extents = extents(import, op)?;
    let place = op.table.pack().map_or(0, |table| table.axis());
    let axis = axis(i64::from(place), extents.len() + 1)?;
    let kind = import.kind(op.input(0)?)?;
    let parts: Vec<Operand> = match constants(import, op)? {
        Some(parts) => parts.into_iter().map(|constant| Operand::Constant(constant, kind)).collect(),
        None => (0..op.inputs.len()).map(|index| import.shared(op, index)).collect::<Result<_, _>>()?,
    };
    let result = stacked(import.begin(op, 0)?, "", parts, axis)?;
    import.put(op, 0, result)
}

/// `CONCATENATION` along an axis, and the activation of the options.
pub(super) fn concatenation<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[op.inputs.len().max(1)], 1)?;
    let table = op.table.concatenation().ok_or_else(|| missing(op, "ConcatenationOptions"))?;
    let extents = extents(import, op)?;
    let axis = axis(i64::from(table.axis()), extents.len())?;
    if table.activation() == 0
        && import.depth > 0
        && let Some(parts) = unjoined(import, op, axis)?
    {
        return import.write_joined(op, 0, parts, None);
    }
    if table.activation() == 0
        && let Some(parts) = constants(import, op)?
    {
        let joined = joined(&mut import.build, &parts, axis)?;
        return import.write_constant(op, 0, joined);
    }
    let values = values(import, op)?;
    let kind = import.kind(op.input(0)?)?;
    composed(import, op, names::fused(table.activation())?, |b| {
        let value = b.concat("", &values, axis as isize)?;
        Ok(Operand::Value(Mapped::plain(value, extents.len(), kind)))
    })
}

/// Every input as a value.
fn values<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<Vec<Value>, Reason> {
    let mut values = Vec::with_capacity(op.inputs.len());
    for index in 0..op.inputs.len() {
        match import.input(op, index)? {
            Input::Constant(constant) if constant.elements() == 0 => (),
            _ => values.push(import.value(op, index)?),
        }
    }
    Ok(values)
}

/// The inputs of a concatenation in a loop as parts, if one of them is a value: a loop writes a list so, one
/// element at each pass.
fn unjoined<'a>(import: &mut Import<'a>, op: &Op<'a>, axis: usize) -> Result<Option<Joined>, Reason> {
    let (mut parts, mut extents): (Vec<(Input, usize)>, Option<Vec<usize>>) = (Vec::new(), None);
    for index in 0..op.inputs.len() {
        let own = super::shapes::extents_of(import, op, index)?;
        if own.contains(&0) {
            continue;
        }
        let first = extents.get_or_insert_with(|| own.clone());
        let same = own.len() == first.len()
            && own.iter().zip(&*first).enumerate().all(|(at, (own, other))| at == axis || own == other);
        if !same || axis >= own.len() {
            return Ok(None);
        }
        match import.joined(op, index)? {
            Some(joined) if joined.axis == axis => parts.extend(joined.parts.iter().cloned()),
            _ => parts.push((import.input(op, index)?, own[axis])),
        }
    }
    let Some(mut extents) = extents else { return Ok(None) };
    if !parts.iter().any(|(part, _)| matches!(part, Input::Value(_))) {
        return Ok(None);
    }
    import.build.budget.spend(parts.len().saturating_mul(64))?;
    extents[axis] = parts.iter().map(|(_, extent)| extent).sum();
    Ok(Some(Joined { axis, extents, parts }))
}

/// Every input, if all are constants.
fn constants<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<Option<Vec<Constant>>, Reason> {
    let mut constants = Vec::with_capacity(op.inputs.len());
    for index in 0..op.inputs.len() {
        match import.input(op, index)? {
            Input::Constant(constant) => constants.push(constant),
            Input::Value(_) => return Ok(None),
        }
    }
    Ok(Some(constants))
}
