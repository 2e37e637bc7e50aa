//! Elements that are put where they belong, without a function: reads, numbers, what was computed, and choices between these.

use super::copy::{Extent, Step, copy, fill};
use super::evaluation::Evaluation;
use super::offset::{Along, Offset, Places, Within};
use super::program::{Compiled, Kind};
use crate::ops::loops::index::AxisSet;
use crate::ops::loops::nest::{MAX_AXES, NodeId};
use pulp::Simd;

/// The places along each axis from the first ones on and below the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Region {
    pub(super) from: Places,
    pub(super) to: Places,
}

impl Region {
    fn count(&self, axis: usize) -> usize {
        self.to[axis] - self.from[axis]
    }
}

/// Where the elements of a tile go: the first one, and how far each is from the one before along each axis.
pub(super) struct Target<'a> {
    pub(super) values: &'a mut [f32],
    pub(super) first: usize,
    pub(super) strides: &'a Places,
    /// The axes along which there are several places.
    pub(super) dims: &'a [usize],
}

impl<S: Simd> Evaluation<'_, S> {
    /// Where the first element of a region goes.
    fn at(&self, region: &Region, target: &Target<'_>) -> usize {
        let each =
            target.dims.iter().map(|&axis| (region.from[axis] - self.start[axis]) * target.strides[axis]);
        target.first + each.sum::<usize>()
    }

    /// Puts the values of a node at the places of a region.
    pub(super) fn place(&self, id: NodeId, region: &Region, target: &mut Target<'_>) {
        match &self.program.nodes[id] {
            Compiled::Number(number) => self.fill(*number, region, target),
            Compiled::Read { source, at, within, otherwise } => {
                let src = self.sources.get(*source).copied().unwrap_or_default();
                let mixed = at.mixed_axes;
                self.divide(within, mixed, *region, target, &mut |part, holds, target| match holds {
                    true => self.copy(src, at, part, target),
                    false => self.fill(*otherwise, part, target),
                });
            }
            Compiled::Place(at) => self.put_index(at, region, target),
            Compiled::Choose { within, then, otherwise } => {
                self.divide(within, 0, *region, target, &mut |part, holds, target| {
                    self.place(if holds { *then } else { *otherwise }, part, target);
                });
            }
            Compiled::Apply(..) | Compiled::Pair { .. } | Compiled::Normalised { .. } | Compiled::Reduce => {
                self.copy_values(id, region, target)
            }
        }
    }

    /// Divides a region into parts for all places of which the guards hold or do not, and whose places along the axes of
    /// `mixed` are single ones.
    fn divide(
        &self,
        within: &Within,
        mixed: AxisSet,
        region: Region,
        target: &mut Target<'_>,
        each: &mut dyn FnMut(&Region, bool, &mut Target<'_>),
    ) {
        let mut left = region;
        for (axis, range) in &within.ranges {
            let axis = *axis;
            let (from, to) = (left.from[axis], left.to[axis]);
            let first = range.start.clamp(from, to);
            let end = range.end.clamp(first, to);
            for (from, to) in [(from, first), (end, to)] {
                if from < to {
                    let mut outside = left;
                    (outside.from[axis], outside.to[axis]) = (from, to);
                    each(&outside, false, target);
                }
            }
            if first == end {
                return;
            }
            (left.from[axis], left.to[axis]) = (first, end);
        }
        let singles = mixed | within.mixed_axes;
        if singles == 0 {
            return each(&left, within.holds(&left.from), target);
        }
        // Guards hold for places of an axis that lie together: the longest one, so that there are few parts.
        let can_be_line = |axis: &usize| {
            let own = 1 << axis;
            singles & own != 0 && mixed & own == 0 && within.divides(*axis)
        };
        let line = target.dims.iter().copied().filter(can_be_line).max_by_key(|&axis| left.count(axis));
        let is_single = |axis: &usize| singles & (1 << axis) != 0 && line != Some(*axis);
        let axes: Vec<usize> = target.dims.iter().copied().filter(is_single).collect();
        let count: usize = axes.iter().map(|&axis| left.count(axis)).product();
        for place in 0..count {
            let (mut rest, mut part) = (place, left);
            for &axis in axes.iter().rev() {
                part.from[axis] = left.from[axis] + rest % left.count(axis);
                part.to[axis] = part.from[axis] + 1;
                rest /= left.count(axis);
            }
            let Some(axis) = line else {
                each(&part, within.holds(&part.from), target);
                continue;
            };
            let (from, to) = (left.from[axis], left.to[axis]);
            let own = within.range(axis, &part.from, to);
            let first = own.start.clamp(from, to);
            let end = own.end.clamp(first, to);
            for (from, to, holds) in [(from, first, false), (first, end, true), (end, to, false)] {
                if from < to {
                    (part.from[axis], part.to[axis]) = (from, to);
                    each(&part, holds, target);
                }
            }
        }
    }

    fn fill(&self, value: f32, region: &Region, target: &mut Target<'_>) {
        let first = self.at(region, target);
        let mut dims = [(1, 1); MAX_AXES];
        let mut rank = 0;
        for &axis in target.dims {
            let (count, step) = (region.count(axis), target.strides[axis]);
            if count == 1 {
                continue;
            }
            match rank {
                // Places that follow each other are those of one dimension.
                1.. if dims[rank - 1].1 == count * step => dims[rank - 1] = (dims[rank - 1].0 * count, step),
                _ => {
                    dims[rank] = (count, step);
                    rank += 1;
                }
            }
        }
        fill(value, &dims[..rank], target.values, first);
    }

    /// Writes an index as floats.
    fn put_index(&self, at: &Offset, region: &Region, target: &mut Target<'_>) {
        let (&axis, outer) = target.dims.split_last().unwrap_or((&0, &[]));
        let lines: usize = outer.iter().map(|&axis| region.count(axis)).product();
        let (mut line, stride) = (*region, at.stride(axis));
        let count = if target.dims.is_empty() { 1 } else { region.count(axis) };
        for place in 0..lines {
            let mut rest = place;
            for &axis in outer.iter().rev() {
                line.from[axis] = region.from[axis] + rest % region.count(axis);
                rest /= region.count(axis);
            }
            let (first, step) = (self.at(&line, target), target.strides[axis].max(1));
            let Some(slots) = target.values.get_mut(first..) else { return };
            let begin = at.without(0, &line.from);
            match (stride, slots.get_mut(..count)) {
                (Some(0), Some(slots)) if step == 1 => slots.fill(begin as f32),
                (Some(stride), Some(slots)) if step == 1 => {
                    for (slot, further) in slots.iter_mut().zip(0i32..) {
                        *slot = begin as f32 + stride as f32 * further as f32;
                    }
                }
                _ => {
                    let mut places = line.from;
                    for slot in slots.iter_mut().step_by(step).take(count) {
                        *slot = at.without(0, &places) as f32;
                        places[axis] += 1;
                    }
                }
            }
        }
    }

    /// Copies elements of a source.
    fn copy(&self, src: &[f32], at: &Offset, region: &Region, target: &mut Target<'_>) {
        let first = self.at(region, target);
        let mut dims = [Extent::ONE; MAX_AXES];
        let mut tables: AxisSet = 0;
        for (own, &axis) in dims.iter_mut().zip(target.dims) {
            let (count, to) = (region.count(axis), target.strides[axis]);
            let from = match (&at.along[axis], at.along[axis].step(region.from[axis], region.to[axis])) {
                _ if count == 1 => Step::Stride(0),
                (_, Ok(stride)) => Step::Stride(stride),
                (Along::Table(table, _), Err(None)) => {
                    tables |= 1 << axis;
                    Step::Table(table.get(region.from[axis]..region.to[axis]).unwrap_or_default())
                }
                (_, Err(last)) => {
                    // The part whose places are at one distance, and the others.
                    let behind = last.unwrap_or_default() + 1;
                    let (mut part, mut rest) = (*region, *region);
                    (part.to[axis], rest.from[axis]) = (behind, behind);
                    self.copy(src, at, &part, target);
                    return self.copy(src, at, &rest, target);
                }
            };
            *own = Extent { count, from, to };
        }
        let from = at.without(tables, &region.from);
        copy((src, from), &mut dims[..target.dims.len()], (target.values, first));
    }

    /// Copies what was computed for the tile.
    fn copy_values(&self, id: NodeId, region: &Region, target: &mut Target<'_>) {
        let strides = match self.program.kinds[id] {
            Kind::Single => return self.fill(self.single(id), region, target),
            Kind::Rows => &self.row_strides,
            Kind::Inner => &self.inner_strides,
            Kind::Places => &self.strides,
        };
        let first = self.at(region, target);
        let mut dims = [Extent::ONE; MAX_AXES];
        let mut from = 0;
        for (own, &axis) in dims.iter_mut().zip(target.dims) {
            from += (region.from[axis] - self.start[axis]) * strides[axis];
            let step = Step::Stride(strides[axis] as i64);
            *own = Extent { count: region.count(axis), from: step, to: target.strides[axis] };
        }
        let dims = &mut dims[..target.dims.len()];
        copy((self.computed(id), from as i64), dims, (target.values, first));
    }
}
