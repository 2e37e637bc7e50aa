//! Operators that take parts of values and of constants.

use super::constant::ranged;
use super::import::{Import, Op};
use super::operands::missing;
use super::shapes::{extents, extents_of, rest_of};
use super::slots::{Input, Joined, nothing};
use crate::model::build::{axis, sizes};
use crate::model::reason::Reason;
use crate::ops::remap::AxisRange;

/// `STRIDED_SLICE`: ranges with steps, masks for their ends, axes that are dropped or new.
pub(super) fn strided_slice<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[4], 1)?;
    let table = op.table.strided_slice().ok_or_else(|| missing(op, "StridedSliceOptions"))?;
    let extents = extents(import, op)?;
    let [begin, end, step] =
        [import.integers(op, 1)?, import.integers(op, 2)?, import.integers(op, 3)?].map(|list| list.values);
    if begin.len() != end.len() || begin.len() != step.len() || begin.len() > 32 {
        return refused!("found {begin:?} to {end:?} by {step:?}, wanted lists of one length");
    }
    let set = |mask: i32, entry: usize| mask >> entry & 1 == 1;
    let new = |entry: usize| set(table.new_axis_mask(), entry);
    let wide = |entry: usize| set(table.ellipsis_mask(), entry);
    let used = (0..begin.len()).filter(|&entry| !new(entry) && !wide(entry)).count();
    let (mut ranges, mut axes) = (Vec::new(), Vec::new());
    for entry in 0..begin.len() {
        if wide(entry) {
            for _ in 0..extents.len().saturating_sub(used) {
                ranges.push(AxisRange::ALL);
                axes.push(Axis::Kept);
            }
        } else if new(entry) {
            axes.push(Axis::New);
        } else {
            let first = bounded(begin[entry]);
            let last = if table.offset() {
                bounded(begin[entry].saturating_add(end[entry]))
            } else {
                bounded(end[entry])
            };
            if set(table.shrink_axis_mask(), entry) {
                let end = (first != -1).then_some(first + 1);
                ranges.push(AxisRange { begin: Some(first), end, step: 1 });
                axes.push(Axis::Dropped);
            } else {
                ranges.push(AxisRange {
                    begin: (!set(table.begin_mask(), entry)).then_some(first),
                    end: (!set(table.end_mask(), entry)).then_some(last),
                    step: bounded(step[entry]),
                });
                axes.push(Axis::Kept);
            }
        }
    }
    if ranges.len() > extents.len() {
        return refused!("found {} ranges for {extents:?}, wanted one for each axis", ranges.len());
    }
    while ranges.len() < extents.len() {
        ranges.push(AxisRange::ALL);
        axes.push(Axis::Kept);
    }
    if axes.iter().all(|axis| *axis == Axis::Kept) {
        return sliced(import, op, &extents, &ranges, None);
    }
    sliced(import, op, &extents, &ranges, Some(&axes))
}

/// What becomes of an axis of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Axis {
    Kept,
    Dropped,
    New,
}

/// An index of a file as the graph takes it: what is beyond any extent stays so.
pub(super) fn bounded(index: i64) -> isize {
    index.clamp(-(i32::MAX as i64), i32::MAX as i64) as isize
}

/// `SLICE`: a beginning and a size along each axis; a size of -1 is the rest.
pub(super) fn slice<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[3], 1)?;
    let extents = extents(import, op)?;
    let (begin, size) = (import.integers(op, 1)?.values, import.integers(op, 2)?.values);
    if begin.len() != extents.len() || size.len() != extents.len() {
        return refused!("found {begin:?} and {size:?} for {extents:?}, wanted one for each axis");
    }
    let mut ranges = Vec::with_capacity(extents.len());
    for ((&begin, &size), &extent) in begin.iter().zip(size.iter()).zip(&extents) {
        let extent = extent as i64;
        let end = if size == -1 { extent } else { begin.saturating_add(size) };
        if begin < 0 || size < -1 || end > extent || begin > extent {
            return refused!("found {size} elements from {begin} of {extent}, wanted a range within it");
        }
        ranges.push(AxisRange { begin: Some(bounded(begin)), end: Some(bounded(end)), step: 1 });
    }
    sliced(import, op, &extents, &ranges, None)
}

/// `SPLIT` into equal parts.
pub(super) fn split<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], op.outputs.len().max(1))?;
    let position = import.integers(op, 0)?.values;
    let [place] = position[..] else { return refused!("found axes {position:?}, wanted one") };
    let extents = extents_of(import, op, 1)?;
    let axis = axis(place, extents.len())?;
    let parts = op.outputs.len();
    if extents[axis] % parts != 0 {
        return refused!("found {parts} parts of axis {axis} of {extents:?}, wanted equal ones");
    }
    divided(import, op, 1, axis, &vec![extents[axis] / parts; parts])
}

/// `SPLIT_V` into parts of given sizes, one of which may be -1 for what is left.
pub(super) fn split_v<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[3], op.outputs.len().max(1))?;
    let extents = extents(import, op)?;
    let (listed, position) = (import.integers(op, 1)?.values, import.integers(op, 2)?.values);
    let [place] = position[..] else { return refused!("found axes {position:?}, wanted one") };
    let axis = axis(place, extents.len())?;
    let known: i64 = listed.iter().filter(|&&size| size != -1).fold(0, |sum, &size| sum.saturating_add(size));
    let rest = (extents[axis] as i64).saturating_sub(known);
    let filled: Vec<i64> = listed.iter().map(|&size| if size == -1 { rest } else { size }).collect();
    let sizes = sizes(&filled)?;
    if sizes.len() != op.outputs.len() || sizes.iter().sum::<usize>() != extents[axis] {
        return refused!(
            "found sizes {listed:?} for {} outputs of axis {axis} of {extents:?}, wanted one each and all of it",
            op.outputs.len()
        );
    }
    divided(import, op, 0, axis, &sizes)
}

/// `UNPACK`: each index along an axis as an output of its own.
pub(super) fn unpack<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], op.outputs.len().max(1))?;
    let extents = extents(import, op)?;
    let place = op.table.unpack().map_or(0, |table| table.axis());
    let axis = axis(i64::from(place), extents.len())?;
    if extents[axis] != op.outputs.len() {
        return refused!(
            "found {} outputs for axis {axis} of {extents:?}, wanted one for each index",
            op.outputs.len()
        );
    }
    for index in 0..extents[axis] {
        let mut ranges = vec![AxisRange::ALL; extents.len()];
        let first = bounded(index as i64);
        ranges[axis] = AxisRange { begin: Some(first), end: Some(first + 1), step: 1 };
        let mut axes = vec![Axis::Kept; extents.len()];
        axes[axis] = Axis::Dropped;
        part(import, op, 0, index, &extents, &ranges, Some(&axes))?;
    }
    Ok(())
}

/// Parts of input `from` along an axis, each an output.
fn divided<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    from: usize,
    axis: usize,
    sizes: &[usize],
) -> Result<(), Reason> {
    let extents = extents_of(import, op, from)?;
    let mut begin = 0;
    for (index, &size) in sizes.iter().enumerate() {
        let mut ranges = vec![AxisRange::ALL; extents.len()];
        let (first, last) = (bounded(begin as i64), bounded((begin + size) as i64));
        ranges[axis] = AxisRange { begin: Some(first), end: Some(last), step: 1 };
        part(import, op, from, index, &extents, &ranges, None)?;
        begin += size;
    }
    Ok(())
}

fn sliced<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    extents: &[usize],
    ranges: &[AxisRange],
    axes: Option<&[Axis]>,
) -> Result<(), Reason> {
    part(import, op, 0, 0, extents, ranges, axes)
}

/// Ranges of input `from`, of `extents`, as output `to`; `axes` are those of the result and those dropped.
fn part<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    from: usize,
    to: usize,
    extents: &[usize],
    ranges: &[AxisRange],
    axes: Option<&[Axis]>,
) -> Result<(), Reason> {
    let picked = ranges
        .iter()
        .zip(extents)
        .map(|(range, &extent)| picked(range, extent))
        .collect::<Result<Vec<_>, Reason>>()?;
    let counts: Vec<usize> = picked.iter().map(|&(_, count)| count).collect();
    let target = axes.map(|axes| {
        let mut counts = counts.iter();
        let mut target = Vec::new();
        for axis in axes {
            match axis {
                Axis::New => target.push(1),
                Axis::Dropped => drop(counts.next()),
                Axis::Kept => target.extend(counts.next()),
            }
        }
        target
    });
    if let (Some(axes), Some(at)) = (axes, counts.iter().position(|&count| count != 1)) {
        let of_axis = axes.iter().filter(|axis| **axis != Axis::New).nth(at);
        if of_axis == Some(&Axis::Dropped) {
            return refused!("found an index beyond axis {at} of {extents:?}, wanted one within it");
        }
    }
    if counts.contains(&0) {
        return import.write_constant(op, to, nothing(target.unwrap_or(counts)));
    }
    if let Some(joined) = import.joined(op, from)?
        && let Some(cut) = part_of(import, &joined, &picked, ranges, extents)?
    {
        return import.write_joined(op, to, cut, target);
    }
    match import.input(op, from)? {
        Input::Constant(constant) => {
            let ranges = picked.iter().zip(ranges).map(|(&(first, _), range)| (first, range.step));
            let (first, steps) = ranged(extents, ranges);
            let moved = constant.strided(counts, &mut import.build.budget, first, &steps)?;
            let moved = match target {
                Some(target) => moved.reshaped(&target)?,
                None => moved,
            };
            import.write_constant(op, to, moved)
        }
        Input::Value(x) => {
            let name = import.name(op, to)?;
            let whole = if target.is_some() { import.part_name(&name, "slice")? } else { name.clone() };
            let mut value = import.build.graph.strided_slice(&whole, x, ranges)?;
            if let Some(target) = target {
                let target = rest_of(&target, &counts, extents);
                value = import.build.graph.reshape(&name, value, &target)?;
            }
            import.write(op, to, value)
        }
    }
}

/// A part of what is not joined yet, if it is of whole values along the axis of the parts.
fn part_of(
    import: &mut Import<'_>,
    joined: &Joined,
    picked: &[(usize, usize)],
    ranges: &[AxisRange],
    extents: &[usize],
) -> Result<Option<Joined>, Reason> {
    let whole = |(axis, &(first, count)): (usize, &(usize, usize))| {
        ranges[axis].step == 1 && (axis == joined.axis || (first == 0 && count == extents[axis]))
    };
    if !picked.iter().enumerate().all(whole) {
        return Ok(None);
    }
    let (first, count) = picked[joined.axis];
    joined.cut(first, first + count, &mut import.build.budget)
}

/// The first index of a range and the number of its indices, as in Python.
fn picked(range: &AxisRange, extent: usize) -> Result<(usize, usize), Reason> {
    let (extent, step) = (extent as isize, range.step);
    let (low, high) = if step < 0 { (-1, extent - 1) } else { (0, extent) };
    let place = |index: isize| (if index < 0 { index + extent } else { index }).clamp(low, high);
    let (first, last) = match step {
        0 => return refused!("found a step of 0, wanted another"),
        1.. => (range.begin.map_or(0, place), range.end.map_or(extent, place)),
        _ => (range.begin.map_or(extent - 1, place), range.end.map_or(-1, place)),
    };
    let count = if step > 0 { (last - first + step - 1) / step } else { (first - last - step - 1) / -step };
    Ok((first.max(0) as usize, count.max(0) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_python() {
        let of = |begin, end, step, extent| picked(&AxisRange { begin, end, step }, extent);
        assert_eq!(of(None, None, 1, 5), Ok((0, 5)));
        assert_eq!(of(Some(-2), None, 1, 5), Ok((3, 2)));
        assert_eq!(of(Some(1), Some(100), 2, 6), Ok((1, 3)));
        assert_eq!(of(None, None, -1, 5), Ok((4, 5)));
        assert_eq!(of(Some(3), Some(-5), -2, 5), Ok((3, 2)));
        assert_eq!(of(Some(4), Some(2), 1, 5).map(|(_, count)| count), Ok(0));
        assert!(of(None, None, 0, 5).is_err());
    }
}
