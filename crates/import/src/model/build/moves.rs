//! Elements moved: cut out, with others around.

use super::axes::{Count, axis};
use super::builder::Builder;
use super::kind::Kind;
use super::operand::{Mapped, Operand, stored, without};
use super::rows::from_start;
use crate::dims::Dim;
use crate::model::constant::{Constant, Integers, position, ranged};
use crate::model::reason::Reason;
use crate::ops::remap::{AxisRange, PadMode};

/// Some of the elements of a slot, a range for each axis: (first, count, step).
pub(crate) fn cut(
    b: &mut Builder,
    part: &str,
    slot: Operand,
    ranges: &[(usize, usize, i64)],
) -> Result<Operand, Reason> {
    match slot {
        Operand::Constant(constant, kind) => {
            let own = constant.extents();
            let target: Vec<usize> = ranges.iter().map(|range| range.1).collect();
            let (first, steps) = ranged(&own, ranges.iter().map(|&(first, _, step)| (first, step as isize)));
            Ok(Operand::Constant(constant.strided(target, &mut b.budget, first, &steps)?, kind))
        }
        Operand::Value(mapped) => {
            let extents = b.extents(&mapped)?;
            if ranges
                .iter()
                .zip(&extents)
                .all(|(&(first, count, step), &extent)| (first, count, step) == (0, extent, 1))
            {
                return Ok(Operand::Value(mapped));
            }
            if ranges.iter().any(|range| range.1 == 0) {
                let extents = ranges.iter().map(|range| range.1).collect();
                return Ok(Operand::Constant(
                    Constant::Integers(Integers::new(extents, Vec::new())),
                    mapped.kind,
                ));
            }
            let of = |&(first, count, step): &(usize, usize, i64)| {
                let (first, step) = (first as isize, step as isize);
                let last = first + step * (count as isize - 1);
                let end = if step > 0 { Some(last + 1) } else { (last > 0).then(|| last - 1) };
                AxisRange { begin: Some(first), end, step }
            };
            let ranges: Vec<AxisRange> = ranges.iter().map(of).collect();
            let ranges = stored(&ranges, &mapped.order);
            let value = b.add(part, |graph, name| graph.strided_slice(name, mapped.value, &ranges))?;
            Ok(Operand::Value(Mapped { value, ..mapped }))
        }
    }
}

/// A slot with elements before and after those of each axis; where there are fewer than none, some are cut off.
pub(crate) fn padded(
    b: &mut Builder,
    part: &str,
    slot: Operand,
    own: &[usize],
    around: &[(i64, i64)],
    mode: PadMode,
) -> Result<Operand, Reason> {
    let mut ranges = Vec::with_capacity(own.len());
    for (&extent, &(before, after)) in own.iter().zip(around) {
        let (first, last) = (before.min(0).unsigned_abs() as usize, after.min(0).unsigned_abs() as usize);
        let count = extent.checked_sub(first).and_then(|count| count.checked_sub(last));
        let count = count.ok_or_else(|| format!("found pads {around:?} of {own:?}"))?;
        ranges.push((first, count, 1));
    }
    let pads = around.iter().any(|&(before, after)| before > 0 || after > 0);
    let slot = cut(b, if pads { "cut" } else { part }, slot, &ranges)?;
    if !pads {
        return Ok(slot);
    }
    let mapped = b.mapped(slot)?;
    let size = |pad: i64| pad.clamp(0, i64::from(i32::MAX)) as usize;
    let before: Vec<usize> = around.iter().map(|pads| size(pads.0)).collect();
    let after: Vec<usize> = around.iter().map(|pads| size(pads.1)).collect();
    let (before, after) = (stored(&before, &mapped.order), stored(&after, &mapped.order));
    let value = b.add(part, |graph, name| graph.pad(name, mapped.value, &before, &after, mode))?;
    Ok(Operand::Value(Mapped { value, ..mapped }))
}

/// Some elements along one axis.
pub(crate) fn part_of(
    b: &mut Builder,
    part: &str,
    operand: &Operand,
    axis: usize,
    [first, count]: [usize; 2],
) -> Result<Operand, Reason> {
    let extents = b.shape(operand)?;
    if extents.get(axis).is_none_or(|&extent| first.checked_add(count).is_none_or(|end| end > extent)) {
        return refused!("found {extents:?}, wanted {} elements along axis {axis}", first + count);
    }
    let mut ranges: Vec<(usize, usize, i64)> = extents.iter().map(|&extent| (0, extent, 1)).collect();
    ranges[axis] = (first, count, 1);
    cut(b, part, operand.clone(), &ranges)
}

/// Some columns: elements along the last axis.
pub(crate) fn columns(
    b: &mut Builder,
    part: &str,
    operand: &Operand,
    first: usize,
    count: usize,
) -> Result<Operand, Reason> {
    let last = b.shape(operand)?.len().saturating_sub(1);
    part_of(b, part, operand, last, [first, count])
}

/// Some rows: elements along the first axis.
pub(crate) fn rows(
    b: &mut Builder,
    operand: &Operand,
    first: usize,
    count: usize,
) -> Result<Operand, Reason> {
    part_of(b, "rows", operand, 0, [first, count])
}

/// The element `at` along an axis, which falls away.
pub(crate) fn one_of(
    b: &mut Builder,
    part: &str,
    operand: &Operand,
    axis: usize,
    at: usize,
) -> Result<Operand, Reason> {
    let inner = if part.is_empty() { "one" } else { part };
    match part_of(b, inner, operand, axis, [at, 1])? {
        Operand::Constant(constant, kind) => {
            let mut extents = constant.extents();
            extents.remove(axis);
            Ok(Operand::Constant(constant.reshaped(&extents)?, kind))
        }
        Operand::Value(mapped) => {
            let removed = mapped.place(axis);
            let mut extents = b.dims(mapped.value)?.extents().to_vec();
            extents.remove(removed);
            let value = b.reshaped(part, mapped.value, &extents)?;
            Ok(Operand::Value(Mapped { value, order: without(&mapped.order, &[axis]), kind: mapped.kind }))
        }
    }
}

/// Operands of one shape side by side along a new axis: a constant if all are.
pub(crate) fn stacked(
    b: &mut Builder,
    part: &str,
    list: Vec<Operand>,
    axis: usize,
) -> Result<Operand, Reason> {
    let kind = list.first().map_or(Kind::F32, Operand::kind);
    if list.iter().all(|operand| matches!(operand, Operand::Constant(..))) {
        let mut whole = Vec::with_capacity(list.len());
        for operand in list {
            let mut extents = b.shape(&operand)?;
            extents.insert(axis.min(extents.len()), 1);
            whole.push(b.with_extents("", operand, &extents)?);
        }
        return b.joined(part, whole, axis);
    }
    let mut values = Vec::with_capacity(list.len());
    for operand in list {
        let mapped = b.mapped(operand)?;
        values.push(b.logical(&mapped)?);
    }
    let value = b.add(part, |graph, name| graph.stack(name, &values, axis as isize))?;
    Ok(Operand::Value(Mapped::plain(value, b.dims(value)?.rank(), kind)))
}

/// The whole several times along each axis.
pub(crate) fn tiled(b: &mut Builder, operand: Operand, repeats: &[usize]) -> Result<Operand, Reason> {
    let own = b.shape(&operand)?;
    if repeats.len() != own.len() {
        return refused!("found {repeats:?} for {own:?}, wanted one number for each axis");
    }
    match operand {
        Operand::Constant(constant, kind) => {
            let target: Option<Vec<usize>> =
                own.iter().zip(repeats).map(|(extent, count)| extent.checked_mul(*count)).collect();
            let target = target.ok_or_else(|| format!("found {repeats:?} times {own:?}"))?;
            let source = |index: &[usize]| {
                let at: Vec<usize> = index.iter().zip(&own).map(|(&at, &extent)| at % extent).collect();
                position(&own, &at)
            };
            Ok(Operand::Constant(constant.moved(target, &mut b.budget, source)?, kind))
        }
        Operand::Value(mapped) => {
            let repeats = stored(repeats, &mapped.order);
            let value = b.add("", |graph, name| graph.tile(name, mapped.value, &repeats))?;
            Ok(Operand::Value(Mapped { value, ..mapped }))
        }
    }
}

/// An operand in the extents that it broadcasts to.
pub(crate) fn spread(b: &mut Builder, operand: Operand, target: &[usize]) -> Result<Operand, Reason> {
    match operand {
        Operand::Constant(constant, kind) => {
            Ok(Operand::Constant(constant.broadcast_to(target.to_vec(), &mut b.budget)?, kind))
        }
        value if target.contains(&0) => {
            let nothing = Constant::Integers(Integers::new(target.to_vec(), Vec::new()));
            Ok(Operand::Constant(nothing, value.kind()))
        }
        Operand::Value(mapped) => {
            let value = b.logical(&mapped)?;
            let mut dims: Vec<Dim> = target.iter().map(|&extent| extent.into()).collect();
            // A leading extent that stays may become another one.
            let own = b.dims(value)?;
            if let (Some(first), true) = (dims.first_mut(), own.extents().first() == target.first())
                && own.rank() == target.len()
            {
                *first = Dim::Rest;
            }
            let value = b.add("", |graph, name| graph.broadcast_to(name, value, &dims))?;
            Ok(Operand::Value(Mapped::plain(value, target.len(), mapped.kind)))
        }
    }
}

/// The elements along an axis that indices list, behind the first `shared` axes, which the indices have too.
pub(crate) fn gathered(
    b: &mut Builder,
    x: Operand,
    indices: Operand,
    (at, shared): (usize, usize),
    count: Count,
) -> Result<Operand, Reason> {
    let own = b.shape(&x)?;
    let Some(&extent) = own.get(at) else { return refused!("found axis {at} of {own:?}") };
    check_within(b, &indices, (at, &[extent]), count)?;
    let index = match indices {
        Operand::Constant(Constant::Integers(known), _) if shared == 0 => {
            let place = |&index: &i64| axis(index, extent);
            let list = known.values.iter().map(place).collect::<Result<Vec<_>, Reason>>()?;
            match (x, &list[..]) {
                (Operand::Constant(constant, kind), _) => {
                    let taken = constant.gathered(at, &list, &known.dims, &mut b.budget)?;
                    return Ok(Operand::Constant(taken, kind));
                }
                (x, &[one]) => {
                    let one = one_of(b, if known.dims.is_empty() { "" } else { "one" }, &x, at, one)?;
                    let target = [&own[..at], &known.dims, &own[at + 1..]].concat();
                    return if known.dims.is_empty() { Ok(one) } else { b.with_extents("", one, &target) };
                }
                (x, _) => {
                    let list = list.into_iter().map(|index| index as i64).collect();
                    return gathered_by(b, x, Operand::integers(known.dims, list), (at, 0));
                }
            }
        }
        Operand::Constant(Constant::Floats(_), _) => return refused!("found indices that are floats"),
        index if count == Count::FromEnd => from_start(b, index, extent)?,
        index => index,
    };
    gathered_by(b, x, index, (at, shared))
}

fn gathered_by(
    b: &mut Builder,
    x: Operand,
    index: Operand,
    (at, shared): (usize, usize),
) -> Result<Operand, Reason> {
    let (x, index) = (b.mapped(x)?, b.mapped(index)?);
    let (own, index) = (b.logical(&x)?, b.logical(&index)?);
    let value = b.add("", |graph, name| graph.gather(name, own, index, at as isize, shared))?;
    Ok(Operand::Value(Mapped::plain(value, b.dims(value)?.rank(), x.kind)))
}

/// Refuses indices that are known and beyond the extents of the axes from `first` on, of which each row has one index.
/// What a run computes is not known: the elements of an index beyond are 0.
pub(super) fn check_within(
    b: &Builder,
    indices: &Operand,
    (first, extents): (usize, &[usize]),
    count: Count,
) -> Result<(), Reason> {
    let known: Vec<i64> = match indices {
        Operand::Constant(Constant::Integers(known), _) => known.values.to_vec(),
        Operand::Value(mapped) => match b.graph.tensor(mapped.value)? {
            Some(tensor) => match tensor.to_i64() {
                Some(known) => known.into_owned(),
                None => tensor.to_f32().iter().map(|&index| index as i64).collect(),
            },
            None => return Ok(()),
        },
        Operand::Constant(..) => return Ok(()),
    };
    for (place, &index) in known.iter().enumerate() {
        let axis = place % extents.len().max(1);
        let extent = extents.get(axis).copied().unwrap_or(0);
        let least = if count == Count::FromEnd { -(extent as i64) } else { 0 };
        if !(least..extent as i64).contains(&index) {
            let axis = first + axis;
            return refused!(
                "found index {index} along axis {axis} of {extent} elements, wanted one from {least} to {}",
                extent as i64 - 1
            );
        }
    }
    Ok(())
}
