//! Sparse constants to dense ones.
//!
//! A tensor of `n` axes is stored as a tree of `n + k` levels, one for each axis and one for each axis of the
//! blocks it may be cut into. A dense level has every index; a sparse one has, for element `e` of the level
//! before, those at `segments[e]..segments[e + 1]` of its list. The leaves are the values, in order.

use super::constant::{elements_of, position};
use super::schema::{Level, Sparsity};
use crate::model::budget::Budget;
use crate::model::reason::Reason;
use crate::sorted;

enum Indices {
    All(usize),
    Some { segments: Vec<i64>, indices: Vec<i64> },
}

struct Tree<'v, T> {
    /// The axis of each level; those of a block follow those of the tensor.
    order: Vec<usize>,
    levels: Vec<Indices>,
    /// For each axis of a block, the tensor's axis and the block's extent.
    blocks: Vec<(usize, usize)>,
    extents: &'v [usize],
    stored: &'v [T],
}

/// The elements of a dense tensor of `extents`, `zero` where none is stored.
pub(super) fn densify<T: Copy>(
    sparsity: &Sparsity<'_>,
    extents: &[usize],
    stored: &[T],
    zero: T,
    budget: &mut Budget,
) -> Result<Vec<T>, Reason> {
    let elements = elements_of(extents)?;
    budget.spend(elements.saturating_mul(size_of::<T>()))?;
    let order: Option<Vec<usize>> = sparsity
        .traversal_order()
        .map_or_else(Vec::new, |order| order.iter().collect())
        .into_iter()
        .map(|axis: i32| usize::try_from(axis).ok())
        .collect();
    let order = order.ok_or("found a negative axis in a sparse tensor's order")?;
    let map: Vec<i32> = sparsity.block_map().map_or_else(Vec::new, |map| map.iter().collect());
    let levels: Vec<Level<'_>> = sparsity.levels().map_or_else(Vec::new, |levels| levels.iter().collect());
    let wanted = extents.len() + map.len();
    let mut sorted = order.clone();
    sorted::sort(&mut sorted, Ord::cmp);
    if sorted != (0..wanted).collect::<Vec<_>>() || levels.len() != wanted {
        return refused!(
            "found a sparse tensor of order {order:?} and {} levels, wanted each of {wanted} axes once",
            levels.len()
        );
    }
    let mut blocks = Vec::with_capacity(map.len());
    for (index, axis) in map.iter().enumerate() {
        let level = order.iter().position(|&axis| axis == extents.len() + index);
        let size = level.and_then(|level| levels.get(level)).map_or(0, |level| level.size());
        let axis = usize::try_from(*axis).ok().filter(|&axis| axis < extents.len());
        let (Some(axis), Ok(size @ 1..)) = (axis, usize::try_from(size)) else {
            return refused!("found blocks {map:?} of extent {size}, wanted axes of {extents:?}");
        };
        blocks.push((axis, size));
    }
    let levels = levels.iter().map(level_indices).collect::<Result<Vec<_>, Reason>>()?;
    let tree = Tree { order, levels, blocks, extents, stored };
    let mut dense = vec![zero; elements];
    tree.walk(0, 0, &mut vec![0; wanted], &mut dense, budget)?;
    Ok(dense)
}

fn level_indices(level: &Level<'_>) -> Result<Indices, Reason> {
    match level.format() {
        0 => match usize::try_from(level.size()) {
            Ok(size) => Ok(Indices::All(size)),
            Err(_) => refused!("found a level of {} indices, wanted at least 0", level.size()),
        },
        1 => Ok(Indices::Some { segments: level.segments(), indices: level.indices() }),
        other => refused!("found a level of format {other}, wanted 0 (dense) or 1 (sparse)"),
    }
}

impl<T: Copy> Tree<'_, T> {
    fn walk(
        &self,
        level: usize,
        element: usize,
        index: &mut Vec<usize>,
        dense: &mut [T],
        budget: &mut Budget,
    ) -> Result<(), Reason> {
        budget.spend(1)?;
        let (Some(&axis), Some(indices)) = (self.order.get(level), self.levels.get(level)) else {
            return self.put(element, index, dense);
        };
        match indices {
            Indices::All(size) => {
                for at in 0..*size {
                    index[axis] = at;
                    self.walk(
                        level + 1,
                        element.saturating_mul(*size).saturating_add(at),
                        index,
                        dense,
                        budget,
                    )?;
                }
            }
            Indices::Some { segments, indices } => {
                let end = |at: usize| segments.get(at).and_then(|&end| usize::try_from(end).ok());
                let range = end(element).zip(end(element.saturating_add(1)));
                let (first, last) = range.filter(|&(_, last)| last <= indices.len()).ok_or_else(|| {
                    format!("found no indices of element {element} in level {level} of a sparse tensor")
                })?;
                for (at, &own) in indices.iter().enumerate().take(last).skip(first) {
                    index[axis] = usize::try_from(own).unwrap_or(usize::MAX);
                    self.walk(level + 1, at, index, dense, budget)?;
                }
            }
        }
        Ok(())
    }

    fn put(&self, element: usize, index: &[usize], dense: &mut [T]) -> Result<(), Reason> {
        let (mut own, inner) = (index[..self.extents.len()].to_vec(), &index[self.extents.len()..]);
        for (&(axis, size), &within) in self.blocks.iter().zip(inner) {
            own[axis] = own[axis].saturating_mul(size).saturating_add(within);
        }
        let inside = own.iter().zip(self.extents).all(|(&index, &extent)| index < extent);
        let (true, Some(&value)) = (inside, self.stored.get(element)) else {
            return refused!(
                "found element {element} at {own:?} of a sparse tensor, wanted one of {} within {:?}",
                self.stored.len(),
                self.extents
            );
        };
        dense[position(self.extents, &own)] = value;
        Ok(())
    }
}
