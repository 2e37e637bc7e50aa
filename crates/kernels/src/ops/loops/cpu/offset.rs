//! Indices and guards as the CPU evaluates them: what each axis adds by itself, and terms that depend on several axes.

use super::super::index::{AxisSet, Index, Term};
use super::super::nest::{Guard, MAX_AXES, axes_of};
use std::collections::BTreeMap;
use std::ops::Range;

/// Places of the longest axis for which there is a table.
const LONGEST_TABLE: usize = 1 << 18;

/// Places of several axes for which there is one.
const LONGEST_JOINT: usize = 1 << 14;

/// A place along each axis.
pub(super) type Places = [usize; MAX_AXES];

/// What the places along one axis add to an index.
#[derive(Debug, Clone)]
pub(super) enum Along {
    /// A multiple of the place.
    Stride(i64),
    /// A number for each place, and where the distance from one to the next changes: each part's last place and distance.
    Table(Vec<i64>, Vec<(usize, i64)>),
}

impl Along {
    fn at(&self, place: usize) -> i64 {
        match self {
            Along::Stride(stride) => stride * place as i64,
            Along::Table(table, _) => table.get(place).copied().unwrap_or_default(),
        }
    }

    fn add(&mut self, extent: usize, value: impl Fn(usize) -> i64) {
        let table: Vec<i64> = (0..extent).map(|place| self.at(place) + value(place)).collect();
        let mut parts: Vec<(usize, i64)> = Vec::new();
        let mut begin = 0;
        for (place, pair) in table.windows(2).enumerate() {
            let step = pair[1] - pair[0];
            match parts.last_mut() {
                Some((last, own)) if *own == step || begin == place => (*last, *own) = (place + 1, step),
                Some(_) => {
                    begin = place + 1;
                    parts.push((place + 1, 1));
                }
                None => parts.push((1, step)),
            }
        }
        *self = Along::Table(table, parts);
    }

    /// The distance from one to the next of these places, or, if it changes among them, the last place before it does.
    /// Places of which few have the same distance have none.
    pub(super) fn step(&self, from: usize, to: usize) -> std::result::Result<i64, Option<usize>> {
        /// The fewest places of a part on average.
        const LEAST: usize = 4;
        match self {
            Along::Stride(stride) => Ok(*stride),
            Along::Table(table, parts) if parts.len() * LEAST <= table.len() => {
                match parts.iter().find(|(last, _)| *last >= from) {
                    Some((last, step)) if *last + 1 >= to => Ok(*step),
                    Some((last, _)) => Err(Some(*last)),
                    None => Ok(0),
                }
            }
            Along::Table(..) => Err(None),
        }
    }
}

/// What terms of several axes add up to, for each of the places along these.
#[derive(Debug, Clone)]
struct Joint {
    /// The axes, and how far their places are from each other in the table.
    axes: Vec<(usize, usize)>,
    values: Vec<i64>,
}

impl Joint {
    /// The table of `index`; nothing if it has more than `longest` places.
    fn of(index: &Index, extents: &[usize], longest: usize) -> Option<Self> {
        let mut len = 1usize;
        let mut axes = Vec::new();
        for axis in axes_of(index.axes()) {
            axes.push((axis, len));
            len = len.checked_mul(extents[axis]).filter(|&len| len <= longest)?;
        }
        let mut at = [0; MAX_AXES];
        let mut values = Vec::with_capacity(len);
        for place in 0..len {
            for &(axis, apart) in &axes {
                at[axis] = place / apart % extents[axis];
            }
            values.push(index.value(&at));
        }
        Some(Joint { axes, values })
    }

    fn at(&self, at: &Places) -> i64 {
        let place: usize = self.axes.iter().map(|&(axis, apart)| at[axis] * apart).sum();
        self.values.get(place).copied().unwrap_or_default()
    }
}

/// An index: a number, what each axis adds, and terms of several axes.
#[derive(Debug, Clone)]
pub(super) struct Offset {
    constant: i64,
    pub(super) along: Vec<Along>,
    /// The axes that add something.
    axes: Vec<usize>,
    joint: Vec<Joint>,
    /// What is in no table.
    mixed: Option<Index>,
    pub(super) mixed_axes: AxisSet,
}

impl Offset {
    pub(super) fn of(index: &Index, extents: &[usize]) -> Self {
        Offset::with_tables(index, extents, LONGEST_JOINT)
    }

    /// The offset whose tables of several axes have at most so many places.
    fn with_tables(index: &Index, extents: &[usize], longest: usize) -> Self {
        let along = vec![Along::Stride(0); extents.len()];
        let (joint, mixed_axes) = (Vec::new(), 0);
        let mut offset = Offset { constant: 0, along, axes: Vec::new(), joint, mixed: None, mixed_axes };
        let mut mixed = Index::default();
        offset.add(index, 1, extents, &mut mixed);
        offset.mixed_axes = mixed.axes();
        let mut by_axes: BTreeMap<AxisSet, Index> = BTreeMap::new();
        for (term, factor) in mixed.terms() {
            let alone = Index { terms: [(term.clone(), *factor)].into(), constant: 0 };
            let sum = by_axes.entry(alone.axes()).or_default();
            *sum = sum.plus(&alone, 1);
        }
        for sum in by_axes.into_values() {
            match Joint::of(&sum, extents, longest) {
                Some(joint) => offset.joint.push(joint),
                None => offset.mixed = Some(offset.mixed.take().unwrap_or_default().plus(&sum, 1)),
            }
        }
        let adds = |axis: &usize| !matches!(offset.along[*axis], Along::Stride(0));
        offset.axes = (0..extents.len()).filter(adds).collect();
        offset
    }

    fn add(&mut self, index: &Index, factor: i64, extents: &[usize], mixed: &mut Index) {
        self.constant += factor * index.constant();
        for (term, own) in index.terms() {
            let factor = factor * own;
            match term {
                Term::Axis(axis) => match &mut self.along[usize::from(*axis)] {
                    Along::Stride(stride) => *stride += factor,
                    table @ Along::Table(..) => {
                        table.add(extents[usize::from(*axis)], |place| factor * place as i64);
                    }
                },
                // Where it is not inside, nothing is read.
                Term::Inside(of, _) => self.add(of, factor, extents, mixed),
                _ => {
                    let alone = Index { terms: [(term.clone(), factor)].into(), constant: 0 };
                    let axes = alone.axes();
                    let mut each = axes_of(axes);
                    match (each.next(), each.next()) {
                        (Some(axis), None) if extents[axis] <= LONGEST_TABLE => {
                            let mut at = [0; MAX_AXES];
                            let values: Vec<i64> = (0..extents[axis])
                                .map(|place| {
                                    at[axis] = place;
                                    alone.value(&at)
                                })
                                .collect();
                            self.along[axis].add(extents[axis], |place| values[place]);
                        }
                        _ => *mixed = mixed.plus(&alone, 1),
                    }
                }
            }
        }
    }

    /// What the places along all axes but those of `left` add up to.
    pub(super) fn without(&self, left: AxisSet, at: &Places) -> i64 {
        let mut sum = self.constant;
        for &axis in &self.axes {
            if left & (1 << axis) == 0 {
                sum += self.along[axis].at(at[axis]);
            }
        }
        for joint in &self.joint {
            sum += joint.at(at);
        }
        match &self.mixed {
            Some(mixed) => sum + mixed.value(at),
            None => sum,
        }
    }

    /// The distance from one place along an axis to the next, if it is the same for all.
    pub(super) fn stride(&self, axis: usize) -> Option<i64> {
        match self.along.get(axis) {
            Some(Along::Stride(stride)) if self.mixed_axes & (1 << axis) == 0 => Some(*stride),
            _ => None,
        }
    }
}

/// Guards: the places along each axis for which they hold, and those of several axes.
#[derive(Debug, Clone)]
pub(super) struct Within {
    pub(super) ranges: Vec<(usize, Range<usize>)>,
    /// The index of each guard of several axes, and what it is below.
    mixed: Vec<(Offset, i64)>,
    pub(super) mixed_axes: AxisSet,
}

impl Within {
    pub(super) fn of(guards: &[Guard], extents: &[usize]) -> Self {
        let mut within = Within { ranges: Vec::new(), mixed: Vec::new(), mixed_axes: 0 };
        for guard in guards {
            let axes = guard.index.axes();
            let mut each = axes_of(axes);
            let axis = each.next().filter(|_| each.next().is_none());
            match axis.and_then(|axis| Some((axis, range_of(guard, axis, extents[axis])?))) {
                Some(range) => within.ranges.push(range),
                None => {
                    within.mixed.push((Offset::of(&guard.index, extents), guard.below));
                    within.mixed_axes |= axes;
                }
            }
        }
        within
    }

    /// Whether each guard is of one axis.
    pub(super) fn is_plain(&self) -> bool {
        self.mixed.is_empty()
    }

    /// Whether the guards of several axes hold for a part of the places along an axis that lie together, wherever others are.
    pub(super) fn divides(&self, axis: usize) -> bool {
        self.mixed.iter().all(|(index, _)| index.stride(axis).is_some())
    }

    /// Whether the guards of several axes, or of none, hold.
    pub(super) fn holds(&self, at: &Places) -> bool {
        self.mixed.iter().all(|(index, below)| (0..*below).contains(&index.without(0, at)))
    }

    /// The places along `axis`, for which it [`Within::divides`], where the guards of several axes hold at these places of others.
    pub(super) fn range(&self, axis: usize, at: &Places, extent: usize) -> Range<usize> {
        let (mut from, mut to) = (0, extent);
        for (index, below) in &self.mixed {
            let stride = index.stride(axis).unwrap_or_default();
            let first = index.without(1 << axis, at);
            let (low, high) = within_range(first, stride, *below, extent);
            (from, to) = (from.max(low), to.min(high));
        }
        from..to.max(from)
    }
}

/// The places of an axis for which a guard of that axis holds, if these lie together.
fn range_of(guard: &Guard, axis: usize, extent: usize) -> Option<Range<usize>> {
    let mut at = [0; MAX_AXES];
    if let Some(stride) = guard.index.stride(axis) {
        let (low, high) = within_range(guard.index.value(&at), stride, guard.below, extent);
        return Some(low..high);
    }
    if extent > LONGEST_TABLE {
        return None;
    }
    let mut holds = |place: usize| {
        at[axis] = place;
        (0..guard.below).contains(&guard.index.value(&at))
    };
    let Some(first) = (0..extent).find(|&place| holds(place)) else { return Some(0..0) };
    let end = (first..extent).find(|&place| !holds(place)).unwrap_or(extent);
    (end..extent).all(|place| !holds(place)).then_some(first..end)
}

/// The places of `len` for which `first + stride * place` is from 0 on and below `below`.
fn within_range(first: i64, stride: i64, below: i64, len: usize) -> (usize, usize) {
    let len = len as i64;
    let (low, high) = match stride {
        0 if (0..below).contains(&first) => (0, len),
        0 => (0, 0),
        1.. => (
            (-first).div_euclid(stride) + i64::from((-first).rem_euclid(stride) > 0),
            (below - 1 - first).div_euclid(stride) + 1,
        ),
        _ => {
            let down = -stride;
            let over = first - (below - 1);
            (over.div_euclid(down) + i64::from(over.rem_euclid(down) > 0), first.div_euclid(down) + 1)
        }
    };
    let (low, high) = (low.clamp(0, len), high.clamp(0, len));
    (low as usize, high.max(low) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_within_are_those_that_counting_finds() {
        for first in -7i64..8 {
            for stride in -3..4 {
                for below in 1..6 {
                    for len in [1usize, 4, 9] {
                        let holds = |place: usize| (0..below).contains(&(first + stride * place as i64));
                        let wanted: Vec<usize> = (0..len).filter(|&place| holds(place)).collect();
                        let (low, high) = within_range(first, stride, below, len);
                        assert_eq!((low..high).collect::<Vec<_>>(), wanted, "{first} {stride} {below} {len}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_offset_is_its_index() {
        let extents = [6, 5, 4];
        let flat = Index::axis(0).times(20).plus(&Index::axis(1), 4).plus(&Index::axis(2), 1);
        let wrapped = Index::axis(1).plus(&Index::number(3), 1).remainder(5, &extents);
        let index = flat.quotient(7, &extents).times(3).plus(&wrapped, 2).plus(&Index::axis(2), -1);
        let moved = index.plus(&Index::number(9), 1);
        // With a table of all axes, and with none.
        for (longest, tables) in [(120, 1), (1, 0)] {
            let offset = Offset::with_tables(&moved, &extents, longest);
            assert_eq!((offset.joint.len(), offset.mixed.is_none()), (tables, tables == 1));
            let mut at = [0; MAX_AXES];
            for place in 0..120 {
                (at[0], at[1], at[2]) = (place / 20, place / 4 % 5, place % 4);
                assert_eq!(offset.without(0, &at), index.value(&at) + 9, "{at:?}");
            }
        }
    }

    #[test]
    fn guards_hold_where_counting_finds_it() {
        let extents = [6, 5, 4];
        let axis = Index::axis;
        let [divided, left] = [axis(0).quotient(2, &extents), axis(0).remainder(4, &extents)];
        let several = axis(0).times(4).plus(&axis(2), 1).plus(&Index::number(-7), 1);
        let ruled = axis(0).times(5).plus(&axis(1), 1).quotient(3, &extents).plus(&axis(2), -1);
        for (index, below) in [(divided, 2), (left, 3), (several, 9), (ruled, 4)] {
            let within = Within::of(&[Guard { index: index.clone(), below }], &extents);
            let mut at = [0; MAX_AXES];
            for place in 0..120 {
                (at[0], at[1], at[2]) = (place / 20, place / 4 % 5, place % 4);
                let wanted = (0..below).contains(&index.value(&at));
                let in_ranges = within.ranges.iter().all(|(axis, range)| range.contains(&at[*axis]));
                assert_eq!(in_ranges && within.holds(&at), wanted, "{index} at {at:?}");
                for axis in (0..3).filter(|&axis| !within.is_plain() && within.divides(axis)) {
                    let along = within.range(axis, &at, extents[axis]).contains(&at[axis]);
                    assert_eq!(along, wanted, "{index} along {axis} at {at:?}");
                }
            }
        }
    }
}
