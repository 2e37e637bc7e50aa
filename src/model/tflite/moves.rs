//! Operators that move elements, of values and of constants.

use super::constant::{Constant, position, strides};
use super::convolution::{dilated, missing};
use super::import::{Import, Input, Op};
use super::shapes::{axis, extents, sizes};
use super::slices::bounded;
use crate::dims::Dim;
use crate::emit::Bits;
use crate::error::Error;
use crate::graph::Value;
use crate::model::reason::Reason;
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
        return refused!("found permutation {:?} for {extents:?}, wanted each axis once", wanted.values);
    }
    match import.input(op, 0)? {
        Input::Value(x) => node(import, op, |import, name| import.graph.transpose(name, x, &permutation)),
        Input::Constant(constant) => {
            let target = permutation.iter().map(|&from| extents[from]).collect();
            let own = strides(&extents);
            let steps: Vec<isize> = permutation.iter().map(|&from| own[from] as isize).collect();
            let moved = constant.strided(target, &mut import.budget, 0, &steps)?;
            import.write_constant(op, 0, moved)
        }
    }
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
        return refused!("found a fill that is no number, wanted one");
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
        other => refused!("found mode {other}, wanted 0 (REFLECT) or 1 (SYMMETRIC)"),
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
        return refused!("{}: found {:?}, wanted {count} pairs", import.describe(op, index), pairs.dims);
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
        return refused!("found {repeats:?} for {extents:?}, wanted one number for each axis");
    }
    match import.input(op, 0)? {
        Input::Value(x) => node(import, op, |import, name| import.graph.tile(name, x, &repeats)),
        Input::Constant(constant) => {
            let target: Option<Vec<usize>> =
                extents.iter().zip(&repeats).map(|(&extent, &count)| extent.checked_mul(count)).collect();
            let target = target.ok_or_else(|| {
                format!("found {repeats:?} times {extents:?}, wanted one for each axis, and fewer elements")
            })?;
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
        return refused!("found {extents:?} to {wanted:?}, wanted extents that are equal or 1");
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
            let moved = constant.broadcast_to(wanted, &mut import.budget)?;
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
        .ok_or_else(|| format!("found blocks of {block}, wanted at least 1").into())
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
            return refused!(
                "found index {index} along axis {axis} of {extents:?}, wanted one that is there"
            );
        }
        let list: Vec<usize> = indices.values.iter().map(|index| index.rem_euclid(count) as usize).collect();
        let moved = constant.gathered(axis, &list, &indices.dims, &mut import.budget)?;
        return import.write_constant(op, 0, moved);
    }
    if let (Input::Constant(Constant::Integers(indices)), 0) = (import.input(op, 1)?, batch_dims)
        && let [index] = indices.values[..]
    {
        return one_index(import, op, (axis, index), &extents, &indices.dims);
    }
    let batch_dims = usize::try_from(batch_dims)
        .map_err(|_| format!("found batch_dims {batch_dims}, wanted a number from 0 on"))?;
    let (x, indices) = (import.value(op, 0)?, import.value(op, 1)?);
    node(import, op, |import, name| import.graph.gather(name, x, indices, axis as isize, batch_dims))
}

/// `GATHER` of one index that is known: a slice.
fn one_index<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    (axis, index): (usize, i64),
    extents: &[usize],
    dims: &[usize],
) -> Result<(), Reason> {
    let count = extents[axis] as i64;
    let index = if index < 0 { index + count } else { index };
    if !(0..count).contains(&index) {
        return refused!("found index {index} along axis {axis} of {extents:?}, wanted one that is there");
    }
    let x = import.value(op, 0)?;
    let mut ranges = vec![AxisRange::ALL; extents.len()];
    ranges[axis] = AxisRange::new(bounded(index), bounded(index) + 1);
    let target = [&extents[..axis], dims, &extents[axis + 1..]].concat();
    let target: Vec<Dim> = target.into_iter().map(Dim::Fixed).collect();
    let name = import.name(op, 0)?;
    let part = import.part_name(&name, "slice")?;
    let part = import.graph.strided_slice(&part, x, &ranges)?;
    let value = import.graph.reshape(&name, part, &target)?;
    import.write(op, 0, value)
}

/// `EMBEDDING_LOOKUP`: rows of a table.
pub(super) fn embedding_lookup<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let (indices, table) = (import.value(op, 0)?, import.value(op, 1)?);
    node(import, op, |import, name| import.graph.gather(name, table, indices, 0, 0))
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
    let value = add(import, &name)?;
    import.write(op, 0, value)
}
