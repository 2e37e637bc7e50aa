//! Operators that join values, and constants.

use super::constant::{Constant, Integers, dims_of, position};
use super::convolution::missing;
use super::elementwise::activated;
use super::frame::Joined;
use super::import::{Import, Input, Op};
use super::moves::node;
use super::names;
use super::shapes::{axis, extents};
use super::tensors::Budget;
use crate::graph::Value;
use crate::host::HostTensor;
use crate::model::reason::Reason;

/// `PACK`: values of the same extents along a new axis.
pub(super) fn pack<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[op.inputs.len().max(1)], 1)?;
    let extents = extents(import, op)?;
    let place = op.table.pack().map_or(0, |table| table.axis());
    let axis = axis(i64::from(place), extents.len() + 1)?;
    if let Some(parts) = constants(import, op)? {
        let with_axis = |constant: Constant| {
            let mut extents = constant.extents();
            extents.insert(axis.min(extents.len()), 1);
            constant.reshaped(&extents)
        };
        let parts = parts.into_iter().map(with_axis).collect::<Result<Vec<_>, _>>()?;
        let joined = joined(&parts, axis, &mut import.budget)?;
        return import.write_constant(op, 0, joined);
    }
    let values = values(import, op)?;
    node(import, op, |import, name| import.graph.stack(name, &values, axis as isize))
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
        let joined = joined(&parts, axis, &mut import.budget)?;
        return import.write_constant(op, 0, joined);
    }
    let values = values(import, op)?;
    activated(import, op, names::fused(table.activation())?, |import, name| {
        import.graph.concat(name, &values, axis as isize).map_err(Reason::from)
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
        let own = super::slices::extents_of(import, op, index)?;
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
    import.budget.spend(parts.len().saturating_mul(64))?;
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

/// Constants one behind the other along an axis.
fn joined(parts: &[Constant], axis: usize, budget: &mut Budget) -> Result<Constant, Reason> {
    let mut extents = parts.first().map(Constant::extents).unwrap_or_default();
    // Where the elements of each part begin, and its first index along the axis.
    let (mut starts, mut elements, mut along) = (Vec::new(), 0usize, 0usize);
    for part in parts {
        let own = part.extents();
        let same = own.len() == extents.len()
            && own.iter().zip(&extents).enumerate().all(|(at, (own, other))| at == axis || own == other);
        if !same || axis >= own.len() {
            return refused!(
                "found {own:?} beside {extents:?} along axis {axis}, wanted the same other extents"
            );
        }
        starts.push((elements, along, own.clone()));
        elements = elements.saturating_add(part.elements());
        along += own[axis];
    }
    extents[axis] = along;
    budget.spend(elements.saturating_mul(8))?;
    let all_integers = parts.iter().all(|part| matches!(part, Constant::Integers(_)));
    let flat = if all_integers {
        let values = parts.iter().flat_map(|part| match part {
            Constant::Integers(integers) => integers.values.to_vec(),
            Constant::Floats(_) => Vec::new(),
        });
        Constant::Integers(Integers::vector(values.collect()))
    } else {
        let mut values = Vec::with_capacity(elements);
        for part in parts {
            values.extend_from_slice(&part.floats(budget)?.to_nhwc());
        }
        let tensor = HostTensor::new(dims_of(&[values.len()])?, values);
        Constant::Floats(tensor?)
    };
    flat.moved(extents, budget, |index| {
        let part = starts.iter().rev().find(|(_, first, own)| *first <= index[axis] && own[axis] > 0);
        part.map_or(usize::MAX, |(start, first, own)| {
            let inner: usize = own[axis + 1..].iter().product();
            start + position(own, index) - first * inner
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_joined_along_any_axis() {
        let part = |dims: &[usize], values: &[i64]| Constant::Integers(Integers::new(dims.to_vec(), values));
        let parts = [part(&[2, 1], &[1, 4]), part(&[2, 2], &[2, 3, 5, 6])];
        let whole = joined(&parts, 1, &mut Budget::new(1000));
        assert_eq!(whole, Ok(part(&[2, 3], &[1, 2, 3, 4, 5, 6])));
        assert!(joined(&parts, 0, &mut Budget::new(1000)).is_err());
    }
}
