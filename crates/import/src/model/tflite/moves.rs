//! Operators that move elements, of values and of constants.

use super::convolution::dilated;
use super::import::{Import, Op};
use super::operands::{missing, node};
use super::shapes::extents;
use super::slices::bounded;
use crate::model::build::{
    Around, Count, Operand, axis, gathered, gathered_rows, sizes, spread, surrounded, tiled,
};
use crate::model::reason::Reason;
use crate::sorted;

/// `TRANSPOSE` by a constant permutation.
pub(super) fn transpose<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let extents = extents(import, op)?;
    let wanted = import.integers(op, 1)?;
    let permutation =
        wanted.values.iter().map(|&from| axis(from, extents.len())).collect::<Result<Vec<_>, _>>()?;
    let mut sorted = permutation.clone();
    sorted::sort(&mut sorted, Ord::cmp);
    if sorted != (0..extents.len()).collect::<Vec<_>>() {
        return refused!("found permutation {:?} for {extents:?}, wanted each axis once", wanted.values);
    }
    match import.operand(op, 0)? {
        Operand::Value(x) => {
            node(import, op, |import, name| import.build.graph.transpose(name, x.value, &permutation))
        }
        constant => {
            let moved = import.build.transposed(constant, &permutation)?;
            import.put(op, 0, moved)
        }
    }
}

/// `PAD` with zeros and `PADV2` with a number.
pub(super) fn pad<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2, 3], 1)?;
    if !op.has(2) {
        return padded(import, op, Around::Number(0.0));
    }
    if import.is_computed(op, 2)? {
        let fill = import.operand(op, 2)?;
        return padded(import, op, Around::Operand(fill));
    }
    let fill = import.constant(op, 2)?;
    let fill =
        fill.number().ok_or_else(|| format!("found a fill of {:?}, wanted one element", fill.extents()))?;
    if fill.is_nan() {
        return refused!("found a fill that is no number, wanted one");
    }
    padded(import, op, Around::Number(fill))
}

/// `MIRROR_PAD` without or with the border.
pub(super) fn mirror_pad<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let table = op.table.mirror_pad().ok_or_else(|| missing(op, "MirrorPadOptions"))?;
    match table.mode() {
        0 => padded(import, op, Around::Reflect),
        1 => padded(import, op, Around::Symmetric),
        other => refused!("found mode {other}, wanted 0 (REFLECT) or 1 (SYMMETRIC)"),
    }
}

fn padded<'a>(import: &mut Import<'a>, op: &Op<'a>, what: Around) -> Result<(), Reason> {
    let x = import.shared(op, 0)?;
    let [before, after] = pairs(import, op, 1, import.build.shape(&x)?.len())?;
    let around: Vec<(i64, i64)> =
        before.iter().zip(&after).map(|(&before, &after)| (before as i64, after as i64)).collect();
    let result = surrounded(import.begin(op, 0)?, x, &around, what)?;
    match around.iter().all(|&pads| pads == (0, 0)) {
        true => import.finish(op, 0, result),
        false => import.put(op, 0, result),
    }
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
    let repeats = sizes(&import.integers(op, 1)?.values)?;
    let x = import.operand(op, 0)?;
    let result = tiled(import.begin(op, 0)?, x, &repeats)?;
    import.put(op, 0, result)
}

/// `BROADCAST_TO` by numpy's rule.
pub(super) fn broadcast_to<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let x = import.operand(op, 0)?;
    let (own, wanted) = (import.build.shape(&x)?, sizes(&import.integers(op, 1)?.values)?);
    if super::constant::broadcast(&own, &wanted)? != wanted {
        return refused!("found {own:?} to {wanted:?}, wanted extents that are equal or 1");
    }
    let result = spread(import.begin(op, 0)?, x, &wanted)?;
    import.put(op, 0, result)
}

/// `REVERSE_V2` along some axes.
pub(super) fn reverse<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let x = import.value(op, 0)?;
    let axes: Vec<isize> = import.integers(op, 1)?.values.iter().map(|&axis| bounded(axis)).collect();
    node(import, op, |import, name| import.build.graph.reverse(name, x, &axes))
}

/// `DEPTH_TO_SPACE`: the block's index is the outer part of a channel's.
pub(super) fn depth_to_space<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let table = op.table.depth_to_space().ok_or_else(|| missing(op, "DepthToSpaceOptions"))?;
    let (x, block) = (import.value(op, 0)?, block(table.block())?);
    node(import, op, |import, name| import.build.graph.depth_to_space(name, x, block))
}

/// `SPACE_TO_DEPTH`: the inverse.
pub(super) fn space_to_depth<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let table = op.table.space_to_depth().ok_or_else(|| missing(op, "SpaceToDepthOptions"))?;
    let (x, block) = (import.value(op, 0)?, block(table.block())?);
    node(import, op, |import, name| import.build.graph.space_to_depth(name, x, block))
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
    node(import, op, |import, name| import.build.graph.space_to_batch(name, x, &block, &before, &after))
}

/// `BATCH_TO_SPACE_ND` with crops.
pub(super) fn batch_to_space<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[3], 1)?;
    let x = import.value(op, 0)?;
    let block = sizes(&import.integers(op, 1)?.values)?;
    let [before, after] = pairs(import, op, 2, block.len())?;
    node(import, op, |import, name| import.build.graph.batch_to_space(name, x, &block, &before, &after))
}

/// `GATHER` along an axis.
pub(super) fn gather<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let (place, batch_dims) = op.table.gather().map_or((0, 0), |table| (table.axis(), table.batch_dims()));
    let extents = extents(import, op)?;
    let axis = axis(i64::from(place), extents.len())?;
    let shared = usize::try_from(batch_dims).map_err(|_| format!("found batch_dims {batch_dims}"))?;
    let (x, indices) = match shared > 0 || import.is_computed(op, 1)? {
        true => (import.shared(op, 0)?, import.shared(op, 1)?),
        false => (import.operand(op, 0)?, import.operand(op, 1)?),
    };
    let result = gathered(import.begin(op, 0)?, x, indices, (axis, shared), Count::FromStart)?;
    import.put(op, 0, result)
}

/// `EMBEDDING_LOOKUP`: rows of a table.
pub(super) fn embedding_lookup<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let (indices, table) = (import.shared(op, 0)?, import.shared(op, 1)?);
    let result = gathered(import.begin(op, 0)?, table, indices, (0, 0), Count::FromStart)?;
    import.put(op, 0, result)
}

/// `GATHER_ND`: elements by rows of indices.
pub(super) fn gather_nd<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let (x, indices) = (import.shared(op, 0)?, import.shared(op, 1)?);
    let result = gathered_rows(import.begin(op, 0)?, x, indices, 0, Count::FromStart)?;
    import.put(op, 0, result)
}
