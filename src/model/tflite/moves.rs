//! Operators that move elements, of values and of constants.

use super::constant::{Constant, Integers, dims_of, position};
use super::convolution::{dilated, missing};
use super::elementwise::activated;
use super::import::{Import, Input, Op};
use super::names;
use super::shapes::{axis, extents, rest_of, sizes};
use super::tensors::{Budget, Reason};
use crate::dims::Dim;
use crate::emit::Bits;
use crate::error::Error;
use crate::graph::Value;
use crate::host::HostTensor;
use crate::ops::remap::{AxisRange, PadMode};

/// `TRANSPOSE` by a constant permutation.
pub(super) fn transpose<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let extents = extents(import, op)?;
    let wanted = import.integers(op, 1)?;
    let permutation =
        wanted.values.iter().map(|&from| axis(from, extents.len())).collect::<Result<Vec<_>, _>>()?;
    let mut sorted = permutation.clone();
    sorted.sort_unstable();
    if sorted != (0..extents.len()).collect::<Vec<_>>() {
        return Err(format!("found permutation {:?} for {extents:?}, wanted each axis once", wanted.values));
    }
    match import.input(op, 0)? {
        Input::Value(x) => node(import, op, |import, name| import.graph.transpose(name, x, &permutation)),
        Input::Constant(constant) => {
            let target = permutation.iter().map(|&from| extents[from]).collect();
            let moved = constant.moved(target, &mut import.budget, |index| {
                let mut source = vec![0; index.len()];
                for (&from, &index) in permutation.iter().zip(index) {
                    source[from] = index;
                }
                position(&extents, &source)
            })?;
            import.write_constant(op, 0, moved)
        }
    }
}

/// `STRIDED_SLICE`: ranges with steps, masks for their ends, axes that are dropped or new.
pub(super) fn strided_slice<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[4], 1)?;
    let table = op.table.strided_slice().ok_or_else(|| missing(op, "StridedSliceOptions"))?;
    let extents = extents(import, op)?;
    let [begin, end, step] =
        [import.integers(op, 1)?, import.integers(op, 2)?, import.integers(op, 3)?].map(|list| list.values);
    if begin.len() != end.len() || begin.len() != step.len() || begin.len() > 32 {
        return Err(format!("found {begin:?} to {end:?} by {step:?}, wanted lists of one length"));
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
        return Err(format!("found {} ranges for {extents:?}, wanted one for each axis", ranges.len()));
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
fn bounded(index: i64) -> isize {
    index.clamp(-(i32::MAX as i64), i32::MAX as i64) as isize
}

/// `SLICE`: a beginning and a size along each axis; a size of -1 is the rest.
pub(super) fn slice<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[3], 1)?;
    let extents = extents(import, op)?;
    let (begin, size) = (import.integers(op, 1)?.values, import.integers(op, 2)?.values);
    if begin.len() != extents.len() || size.len() != extents.len() {
        return Err(format!("found {begin:?} and {size:?} for {extents:?}, wanted one for each axis"));
    }
    let mut ranges = Vec::with_capacity(extents.len());
    for ((&begin, &size), &extent) in begin.iter().zip(size.iter()).zip(&extents) {
        let extent = extent as i64;
        let end = if size == -1 { extent } else { begin.saturating_add(size) };
        if begin < 0 || size < -1 || end > extent || begin > extent {
            return Err(format!("found {size} elements from {begin} of {extent}, wanted a range within it"));
        }
        ranges.push(AxisRange { begin: Some(bounded(begin)), end: Some(bounded(end)), step: 1 });
    }
    sliced(import, op, &extents, &ranges, None)
}

/// `SPLIT` into equal parts.
pub(super) fn split<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], op.outputs.len().max(1))?;
    let position = import.integers(op, 0)?.values;
    let [place] = position[..] else { return Err(format!("found axes {position:?}, wanted one")) };
    let extents = extents_of(import, op, 1)?;
    let axis = axis(place, extents.len())?;
    let parts = op.outputs.len();
    if extents[axis] % parts != 0 {
        return Err(format!("found {parts} parts of axis {axis} of {extents:?}, wanted equal ones"));
    }
    divided(import, op, 1, axis, &vec![extents[axis] / parts; parts])
}

/// `SPLIT_V` into parts of given sizes, one of which may be -1 for what is left.
pub(super) fn split_v<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[3], op.outputs.len().max(1))?;
    let extents = extents(import, op)?;
    let (listed, position) = (import.integers(op, 1)?.values, import.integers(op, 2)?.values);
    let [place] = position[..] else { return Err(format!("found axes {position:?}, wanted one")) };
    let axis = axis(place, extents.len())?;
    let known: i64 = listed.iter().filter(|&&size| size != -1).fold(0, |sum, &size| sum.saturating_add(size));
    let rest = (extents[axis] as i64).saturating_sub(known);
    let filled: Vec<i64> = listed.iter().map(|&size| if size == -1 { rest } else { size }).collect();
    let sizes = sizes(&filled)?;
    if sizes.len() != op.outputs.len() || sizes.iter().sum::<usize>() != extents[axis] {
        return Err(format!(
            "found sizes {listed:?} for {} outputs of axis {axis} of {extents:?}, wanted one each and all of it",
            op.outputs.len()
        ));
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
        return Err(format!("found {} outputs for axis {axis} of {extents:?}", op.outputs.len()));
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
        && let Some(parts) = constants(import, op)?
    {
        let joined = joined(&parts, axis, &mut import.budget)?;
        return import.write_constant(op, 0, joined);
    }
    let values = values(import, op)?;
    activated(import, op, names::fused(table.activation())?, |import, name| {
        import.graph.concat(name, &values, axis as isize).map_err(|error| error.to_string())
    })
}

/// `PAD` with zeros and `PADV2` with a constant.
pub(super) fn pad<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2, 3], 1)?;
    let fill = if op.has(2) {
        let fill = import.constant(op, 2)?;
        fill.number().ok_or_else(|| format!("found a fill of {:?}, wanted one element", fill.extents()))?
    } else {
        0.0
    };
    if fill.is_nan() {
        return Err("found a fill that is no number".to_owned());
    }
    padded(import, op, PadMode::Constant(Bits(fill)))
}

/// `MIRROR_PAD` without or with the border.
pub(super) fn mirror_pad<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let table = op.table.mirror_pad().ok_or_else(|| missing(op, "MirrorPadOptions"))?;
    match table.mode() {
        0 => padded(import, op, PadMode::Reflect),
        1 => padded(import, op, PadMode::Symmetric),
        other => Err(format!("found mode {other}, wanted 0 (REFLECT) or 1 (SYMMETRIC)")),
    }
}

fn padded<'a>(import: &mut Import<'a>, op: &Op<'a>, mode: PadMode) -> Result<(), Reason> {
    let x = import.value(op, 0)?;
    let [before, after] = pairs(import, op, 1, import.dims(x)?.rank())?;
    node(import, op, |import, name| import.graph.pad(name, x, &before, &after, mode))
}

/// Input `index`, `count` pairs of numbers: what comes before, and what comes after.
fn pairs<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    index: usize,
    count: usize,
) -> Result<[Vec<usize>; 2], Reason> {
    let pairs = import.integers(op, index)?;
    let numbers = sizes(&pairs.values)?;
    if pairs.dims != [count, 2] {
        return Err(format!("{}: found {:?}, wanted {count} pairs", import.describe(op, index), pairs.dims));
    }
    let of = |place: usize| numbers.iter().skip(place).step_by(2).copied().collect();
    Ok([of(0), of(1)])
}

/// `TILE`: the whole several times along each axis.
pub(super) fn tile<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let extents = extents(import, op)?;
    let repeats = sizes(&import.integers(op, 1)?.values)?;
    if repeats.len() != extents.len() {
        return Err(format!("found {repeats:?} for {extents:?}, wanted one number for each axis"));
    }
    match import.input(op, 0)? {
        Input::Value(x) => node(import, op, |import, name| import.graph.tile(name, x, &repeats)),
        Input::Constant(constant) => {
            let target: Option<Vec<usize>> =
                extents.iter().zip(&repeats).map(|(&extent, &count)| extent.checked_mul(count)).collect();
            let target = target.ok_or_else(|| format!("found {repeats:?} times {extents:?}"))?;
            let moved = constant.moved(target, &mut import.budget, |index| {
                let index: Vec<usize> =
                    index.iter().zip(&extents).map(|(&at, &extent)| at % extent).collect();
                position(&extents, &index)
            })?;
            import.write_constant(op, 0, moved)
        }
    }
}

/// `BROADCAST_TO` by numpy's rule.
pub(super) fn broadcast_to<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let extents = extents(import, op)?;
    let wanted = sizes(&import.integers(op, 1)?.values)?;
    if super::constant::broadcast(&extents, &wanted)? != wanted {
        return Err(format!("found {extents:?} to {wanted:?}, wanted extents that are equal or 1"));
    }
    match import.input(op, 0)? {
        Input::Value(x) => {
            let mut target: Vec<Dim> = wanted.iter().map(|&extent| extent.into()).collect();
            if let (Some(first), true) = (target.first_mut(), wanted.first() == extents.first())
                && wanted.len() == extents.len()
            {
                *first = Dim::Rest;
            }
            node(import, op, |import, name| import.graph.broadcast_to(name, x, &target))
        }
        Input::Constant(constant) => {
            let moved = constant.moved(wanted, &mut import.budget, |index| {
                super::constant::broadcast_position(&extents, index)
            })?;
            import.write_constant(op, 0, moved)
        }
    }
}

/// `REVERSE_V2` along some axes.
pub(super) fn reverse<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let x = import.value(op, 0)?;
    let axes: Vec<isize> = import.integers(op, 1)?.values.iter().map(|&axis| bounded(axis)).collect();
    node(import, op, |import, name| import.graph.reverse(name, x, &axes))
}

/// `DEPTH_TO_SPACE`: the block's index is the outer part of a channel's.
pub(super) fn depth_to_space<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let table = op.table.depth_to_space().ok_or_else(|| missing(op, "DepthToSpaceOptions"))?;
    let (x, block) = (import.value(op, 0)?, block(table.block())?);
    node(import, op, |import, name| import.graph.depth_to_space(name, x, block))
}

/// `SPACE_TO_DEPTH`: the inverse.
pub(super) fn space_to_depth<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let table = op.table.space_to_depth().ok_or_else(|| missing(op, "SpaceToDepthOptions"))?;
    let (x, block) = (import.value(op, 0)?, block(table.block())?);
    node(import, op, |import, name| import.graph.space_to_depth(name, x, block))
}

fn block(block: i32) -> Result<usize, Reason> {
    usize::try_from(block)
        .ok()
        .filter(|&block| block > 0)
        .ok_or_else(|| format!("found blocks of {block}, wanted at least 1"))
}

/// `SPACE_TO_BATCH_ND` with zeros around, or the beginning of a dilated convolution.
pub(super) fn space_to_batch<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[3], 1)?;
    let x = import.value(op, 0)?;
    let block = sizes(&import.integers(op, 1)?.values)?;
    let [before, after] = pairs(import, op, 2, block.len())?;
    if let Some(phases) = dilated(import, op, &block, [&before, &after])? {
        return import.dilate(op, x, phases);
    }
    node(import, op, |import, name| import.graph.space_to_batch(name, x, &block, &before, &after))
}

/// `BATCH_TO_SPACE_ND` with crops.
pub(super) fn batch_to_space<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[3], 1)?;
    let x = import.value(op, 0)?;
    let block = sizes(&import.integers(op, 1)?.values)?;
    let [before, after] = pairs(import, op, 2, block.len())?;
    node(import, op, |import, name| import.graph.batch_to_space(name, x, &block, &before, &after))
}

/// `GATHER` along an axis.
pub(super) fn gather<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let (place, batch_dims) = op.table.gather().map_or((0, 0), |table| (table.axis(), table.batch_dims()));
    let extents = extents(import, op)?;
    let axis = axis(i64::from(place), extents.len())?;
    if let (Input::Constant(constant), Input::Constant(Constant::Integers(indices)), 0) =
        (import.input(op, 0)?, import.input(op, 1)?, batch_dims)
    {
        let count = extents[axis] as i64;
        if let Some(index) = indices.values.iter().find(|&&index| !(-count..count).contains(&index)) {
            return Err(format!("found index {index} along axis {axis} of {extents:?}"));
        }
        let (outer, inner) = (&extents[..axis], &extents[axis + 1..]);
        let target = [outer, &indices.dims, inner].concat();
        let moved = constant.moved(target, &mut import.budget, |index| {
            let (outer, rest) = index.split_at(axis);
            let (listed, inner) = rest.split_at(indices.dims.len());
            let at = indices.values.get(position(&indices.dims, listed)).copied().unwrap_or(0);
            let at = if at < 0 { at + count } else { at };
            position(&extents, &[outer, &[at as usize], inner].concat())
        })?;
        return import.write_constant(op, 0, moved);
    }
    let batch_dims = usize::try_from(batch_dims).map_err(|_| format!("found batch_dims {batch_dims}"))?;
    let (x, indices) = (import.value(op, 0)?, import.value(op, 1)?);
    node(import, op, |import, name| import.graph.gather(name, x, indices, axis as isize, batch_dims))
}

/// `GATHER_ND`: elements by rows of indices.
pub(super) fn gather_nd<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let (x, indices) = (import.value(op, 0)?, import.value(op, 1)?);
    node(import, op, |import, name| import.graph.gather_nd(name, x, indices))
}

/// Adds one node as output 0.
pub(super) fn node<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    add: impl FnOnce(&mut Import<'a>, &str) -> Result<Value, Error>,
) -> Result<(), Reason> {
    let name = import.name(op, 0)?;
    let value = add(import, &name).map_err(|error| error.to_string())?;
    import.write(op, 0, value)
}

/// The extents of input `index`.
fn extents_of<'a>(import: &mut Import<'a>, op: &Op<'a>, index: usize) -> Result<Vec<usize>, Reason> {
    Ok(match import.input(op, index)? {
        Input::Value(value) => import.dims(value)?.extents().to_vec(),
        Input::Constant(constant) => constant.extents(),
    })
}

/// Every input as a value.
fn values<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<Vec<Value>, Reason> {
    (0..op.inputs.len()).map(|index| import.value(op, index)).collect()
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
            return Err(format!("found {own:?} beside {extents:?} along axis {axis}"));
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
        Constant::Floats(tensor.map_err(|error| error.to_string())?)
    };
    flat.moved(extents, budget, |index| {
        let part = starts.iter().rev().find(|(_, first, own)| *first <= index[axis] && own[axis] > 0);
        part.map_or(usize::MAX, |(start, first, own)| {
            let mut index = index.to_vec();
            index[axis] -= first;
            start + position(own, &index)
        })
    })
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
            return Err(format!("found an index beyond axis {at} of {extents:?}"));
        }
    }
    match import.input(op, from)? {
        Input::Constant(constant) => {
            let moved = constant.moved(counts, &mut import.budget, |index| {
                let source: Vec<usize> = index
                    .iter()
                    .zip(&picked)
                    .zip(ranges)
                    .map(|((&at, &(first, _)), range)| (first as isize + at as isize * range.step) as usize)
                    .collect();
                position(extents, &source)
            })?;
            let moved = match target {
                Some(target) => moved.reshaped(&target)?,
                None => moved,
            };
            import.write_constant(op, to, moved)
        }
        Input::Value(x) => {
            let name = import.name(op, to)?;
            let whole = if target.is_some() { import.part_name(&name, "slice")? } else { name.clone() };
            let mut value =
                import.graph.strided_slice(&whole, x, ranges).map_err(|error| error.to_string())?;
            if let Some(target) = target {
                let target = rest_of(&target, &counts, extents);
                value = import.graph.reshape(&name, value, &target).map_err(|error| error.to_string())?;
            }
            import.write(op, to, value)
        }
    }
}

/// The first index of a range and the number of its indices, as in Python.
fn picked(range: &AxisRange, extent: usize) -> Result<(usize, usize), Reason> {
    let (extent, step) = (extent as isize, range.step);
    let (low, high) = if step < 0 { (-1, extent - 1) } else { (0, extent) };
    let place = |index: isize| (if index < 0 { index + extent } else { index }).clamp(low, high);
    let (first, last) = match step {
        0 => return Err("found a step of 0, wanted another".to_owned()),
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

    #[test]
    fn constants_are_joined_along_any_axis() {
        let part = |dims: &[usize], values: &[i64]| Constant::Integers(Integers::new(dims.to_vec(), values));
        let parts = [part(&[2, 1], &[1, 4]), part(&[2, 2], &[2, 3, 5, 6])];
        let whole = joined(&parts, 1, &mut Budget::new(1000));
        assert_eq!(whole, Ok(part(&[2, 3], &[1, 2, 3, 4, 5, 6])));
        assert!(joined(&parts, 0, &mut Budget::new(1000)).is_err());
    }
}
