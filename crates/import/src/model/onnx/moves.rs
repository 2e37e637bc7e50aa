//! Operators that move elements.

use super::import::{Import, Op};
use crate::emit::Bits;
use crate::model::build::{
    Around, Mapped, Operand, axes, axis, cut, is_kept, joined, kept_with, padded, sizes, surrounded, tiled,
};
use crate::model::constant::Constant;
use crate::model::reason::Reason;
use crate::ops::remap::PadMode;
use crate::sorted;

type Done = Result<(), Reason>;

/// `Transpose`: only the order changes in which the axes are stored.
pub(super) fn transpose<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let rank = own.len();
    let permutation = match op.ints("perm").filter(|list| !list.is_empty()) {
        Some(list) => list.iter().map(|&own| axis(own, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).rev().collect(),
    };
    let mut sorted = permutation.clone();
    sorted::sort(&mut sorted, Ord::cmp);
    if sorted.iter().enumerate().any(|(place, &axis)| place != axis) || sorted.len() != rank {
        return refused!("found the permutation {permutation:?} for rank {rank}, wanted each axis once");
    }
    match i.slot(op, 0)? {
        Operand::Constant(constant, kind) => {
            let constant = i.constant_in_order(&constant, &permutation)?;
            i.write_constant(op, 0, constant, kind)
        }
        Operand::Value(mapped) => {
            let place = |axis: &usize| permutation.iter().position(|own| own == axis);
            let order = mapped.order.iter().filter_map(place).collect();
            i.write(op, 0, Mapped { order, ..mapped })
        }
    }
}

/// `Concat`: in the order in which most of the inputs are stored.
pub(super) fn concat<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let mut slots = Vec::with_capacity(op.inputs());
    for index in 0..op.inputs() {
        slots.push((op.input_name(index)?, i.slot(op, index)?, i.extents_of(op, index)?));
    }
    let kind = i.kind_of(op, 0)?;
    let rank = slots.first().map_or(0, |(_, _, extents)| extents.len());
    let place = axis(op.int("axis", 1), rank)?;
    // What has no elements adds none.
    if slots.iter().any(|(_, _, extents)| !extents.contains(&0)) {
        slots.retain(|(_, _, extents)| !extents.contains(&0));
    }
    if slots.iter().all(|(_, slot, _)| matches!(slot, Operand::Constant(..))) {
        let constants: Vec<Constant> = slots
            .into_iter()
            .filter_map(|(_, slot, _)| match slot {
                Operand::Constant(constant, _) => Some(constant),
                Operand::Value(_) => None,
            })
            .collect();
        let joined = joined(i, &constants, place)?;
        return i.write_constant(op, 0, joined, kind);
    }
    match &slots[..] {
        [(_, slot, _)] => return i.set(op, 0, slot.clone()),
        [(_, cache, _), (_, new, _)] if place + 2 == rank && is_kept(i, cache) => {
            let all = kept_with(i, "", cache, new.clone(), None)?;
            return i.set(op, 0, all);
        }
        _ => (),
    }
    let mut order: Option<(usize, Vec<usize>)> = None;
    for (_, slot, extents) in &slots {
        if let Operand::Value(mapped) = slot {
            let elements: usize = extents.iter().product();
            if order.as_ref().is_none_or(|(most, _)| elements > *most) {
                order = Some((elements, mapped.order.clone()));
            }
        }
    }
    let order = order.map_or_else(|| (0..rank).collect(), |(_, order)| order);
    let mut values = Vec::with_capacity(slots.len());
    for (name, slot, _) in slots {
        let mapped = i.mapped_slot(slot, Some(name))?;
        if mapped.rank() != rank {
            return refused!("found inputs of rank {rank} and {}, wanted one rank", mapped.rank());
        }
        values.push(i.in_order(&mapped, &order)?);
    }
    let along = order.iter().position(|&own| own == place).unwrap_or(place) as isize;
    let value = i.add("", |graph, name| graph.concat(name, &values, along))?;
    i.write(op, 0, Mapped { value, order, kind })
}

/// `Slice`: starts, ends, axes and steps are inputs from version 10 on, attributes before.
pub(super) fn slice<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let starts = i.listed(op, 1, "starts")?.ok_or("found no starts, wanted one for each axis that is cut")?;
    let ends = i.listed(op, 2, "ends")?.ok_or("found no ends, wanted one for each axis that is cut")?;
    let along = match i.listed(op, 3, "axes")? {
        Some(list) => list.iter().map(|&place| axis(place, own.len())).collect::<Result<Vec<_>, _>>()?,
        None => (0..starts.len()).collect(),
    };
    let steps = if op.has(4) { i.integers(op, 4)? } else { vec![1; starts.len()] };
    if [ends.len(), along.len(), steps.len()].iter().any(|&count| count != starts.len())
        || starts.len() > own.len()
    {
        return refused!(
            "found starts {starts:?}, ends {ends:?}, axes {along:?}, steps {steps:?}, wanted lists of one length"
        );
    }
    let mut ranges: Vec<(usize, usize, i64)> = own.iter().map(|&extent| (0, extent, 1)).collect();
    for (((&start, &end), &step), &place) in starts.iter().zip(&ends).zip(&steps).zip(&along) {
        let range = ranges.get_mut(place).ok_or("found an axis too many")?;
        *range = range_of(own[place] as i64, start, end, step)?;
    }
    let slot = i.slot(op, 0)?;
    let slot = cut(i, "", slot, &ranges)?;
    i.set(op, 0, slot)
}

/// The first element, the number of elements and the step of a range as numpy has it.
fn range_of(extent: i64, start: i64, end: i64, step: i64) -> Result<(usize, usize, i64), Reason> {
    if step == 0 || step == i64::MIN {
        return refused!("found a step of {step}, wanted another");
    }
    let from_end = |place: i64| if place < 0 { place.saturating_add(extent) } else { place };
    let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
    let (start, end) = (from_end(start).clamp(low.max(0), high.max(0)), from_end(end).clamp(low, high));
    let distance = if step > 0 { end - start } else { start - end };
    let count = distance.max(0).unsigned_abs().div_ceil(step.unsigned_abs());
    Ok((start as usize, count as usize, step))
}

/// `Split`: sizes are an input from version 13 on, an attribute before, equal where there are none.
pub(super) fn split<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let place = axis(op.int("axis", 0), own.len())?;
    let parts = op.node.outputs.len();
    let sizes = match i.listed(op, 1, "split")?.filter(|list| !list.is_empty()) {
        Some(list) => sizes(&list)?,
        None => {
            let each = own[place].div_ceil(parts.max(1));
            (0..parts).map(|part| each.min(own[place].saturating_sub(part * each))).collect()
        }
    };
    if sizes.len() != parts
        || sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size)) != Some(own[place])
    {
        return refused!(
            "found sizes {sizes:?} of axis {place} of {own:?} for {parts} outputs, wanted one for each that add up to it"
        );
    }
    let slot = i.slot(op, 0)?;
    let mut begin = 0;
    for (index, size) in sizes.into_iter().enumerate() {
        let mut ranges: Vec<(usize, usize, i64)> = own.iter().map(|&extent| (0, extent, 1)).collect();
        ranges[place] = (begin, size, 1);
        begin += size;
        if op.writes(index) {
            let name = op.node.outputs[index];
            i.current = format!("{}{name}", i.scopes.last().map_or("", |scope| &scope.prefix));
            let part = cut(i, "", slot.clone(), &ranges)?;
            i.set(op, index, part)?;
        }
    }
    Ok(())
}

/// `Pad`: pads are an input from version 11 on; negative ones cut.
pub(super) fn pad<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let pads = i.listed(op, 1, "pads")?.ok_or("found no pads, wanted two for each axis")?;
    let along = match op.has(3) {
        true => {
            i.integers(op, 3)?.iter().map(|&place| axis(place, own.len())).collect::<Result<Vec<_>, _>>()?
        }
        false => (0..own.len()).collect(),
    };
    if pads.len() != 2 * along.len() {
        return refused!("found {} pads for {} axes, wanted two each", pads.len(), along.len());
    }
    let own_value = if op.has(2) { Some(i.slot(op, 2)?) } else { None };
    let fill = match &own_value {
        None => Some(op.float("value", 0.0)),
        // An integer that f32 does not hold is one of the graph's.
        Some(Operand::Constant(Constant::Integers(known), _)) => known
            .values
            .first()
            .map(|&value| (value as f32, value))
            .filter(|(fill, value)| *fill as i64 == *value)
            .map(|(fill, _)| fill),
        Some(Operand::Constant(known, _)) => Some(known.number().unwrap_or(0.0)),
        Some(Operand::Value(_)) => None,
    };
    let what = match (op.text("mode", "constant")?, own_value, fill) {
        ("constant", Some(value), None) => Around::Operand(value),
        ("constant", _, fill) => Around::Number(fill.unwrap_or(0.0)),
        ("reflect", ..) => Around::Reflect,
        ("edge", ..) => Around::Edge,
        ("wrap", ..) => Around::Wrap,
        (other, ..) => return refused!("found mode {other:?}, wanted constant, reflect, edge or wrap"),
    };
    let x = i.slot(op, 0)?;
    let slot = surrounded(i, x, &around(own.len(), &pads, &along), what)?;
    i.set(op, 0, slot)
}

/// The pads before and after each axis.
fn around(rank: usize, pads: &[i64], along: &[usize]) -> Vec<(i64, i64)> {
    let mut around = vec![(0i64, 0i64); rank];
    for (index, &place) in along.iter().enumerate() {
        around[place] = (pads[index], pads[along.len() + index]);
    }
    around
}

/// `Tile`: as often as the repeats say along each axis.
pub(super) fn tile<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let repeats = sizes(&i.integers(op, 1)?)?;
    let (x, own) = (i.slot(op, 0)?, i.extents_of(op, 0)?);
    if repeats.contains(&0) && repeats.len() == own.len() {
        let extents = own.iter().zip(&repeats).map(|(extent, count)| extent * count).collect();
        return i.set(op, 0, Operand::nothing(extents, x.kind()));
    }
    let slot = tiled(i, x, &repeats)?;
    i.set(op, 0, slot)
}

/// `CenterCropPad`: the middle of each axis, with zeros around where it is too short.
pub(super) fn center<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let wanted = i.integers(op, 1)?;
    let along = match op.ints("axes") {
        Some(list) => list.iter().map(|&place| axis(place, own.len())).collect::<Result<Vec<_>, _>>()?,
        None => axes(&(0..own.len() as i64).collect::<Vec<_>>(), own.len())?,
    };
    let mut around = vec![(0, 0); own.len()];
    for (&place, &extent) in along.iter().zip(&wanted) {
        let more = usize::try_from(extent).ok().and_then(|extent| i64::try_from(extent).ok());
        let more = more.ok_or_else(|| format!("found extent {extent}"))? - own[place] as i64;
        let before = if more >= 0 { more / 2 } else { -((-more) / 2) };
        around[place] = (before, more - before);
    }
    let slot = i.slot(op, 0)?;
    let slot = padded(i, "", slot, &own, &around, PadMode::Constant(Bits(0.0)))?;
    i.set(op, 0, slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_numpy() {
        assert_eq!(range_of(10, 2, -1, 3), Ok((2, 3, 3)));
        assert_eq!(range_of(10, -1, i64::MIN, -1), Ok((9, 10, -1)));
        assert_eq!(range_of(10, 20, 0, -4), Ok((9, 3, -4)));
        assert_eq!(range_of(10, 5, 5, 1).map(|range| range.1), Ok(0));
        assert_eq!(range_of(10, -100, i64::MAX, 1), Ok((0, 10, 1)));
        assert!(range_of(10, 0, 1, 0).is_err());
    }
}
