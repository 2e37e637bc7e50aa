//! Operators that a GPU does not pay for: functions of the CPU, in a session on a GPU too.

use super::import::{Import, Op};
use crate::model::build::{Kind, Operand, Wanted, floats, integers};
use crate::model::constant::{Constant, Integers};
use crate::model::reason::Reason;
use crate::sorted;
use std::cmp::Ordering;

type Done = Result<(), Reason>;

impl<'a> Import<'a> {
    /// Where a network may be divided, refuses an operator whose results' extents depend on a value that is computed: the
    /// CPU computes it then, by itself.
    pub(super) fn is_divided_at(&self, op: &Op<'a>, index: usize) -> Done {
        if !self.open || matches!(self.slot(op, index)?, Operand::Constant(..)) {
            return Ok(());
        }
        self.wanted.set(Wanted::Host);
        refused!("found results whose extents depend on the values of {:?}", op.input_name(index)?)
    }

    /// Refuses a result whose extents depend on values where something else than the network's caller reads it.
    fn only_leaves(&self, op: &Op<'a>, index: usize) -> Done {
        let Some(name) = op.node.outputs.get(index).filter(|name| !name.is_empty()) else { return Ok(()) };
        let readers =
            self.scopes.last().and_then(|scope| scope.readers.get(name).copied()).unwrap_or_default();
        let only_leaves = self.scopes.len() == 1 && readers.leaves && readers.count == 1;
        if readers.count == 0 || only_leaves {
            return Ok(());
        }
        let input = op.input_name(0)?;
        refused!(
            "found {name:?} read by other operators, and its extents depend on values of input 0 ({input:?}), wanted a \
             constant"
        )
    }
}

/// Which of some things are the same: the first of each kind, the kind of each, and how many there are of each.
struct Kinds {
    first: Vec<usize>,
    of: Vec<usize>,
    counts: Vec<usize>,
}

/// The kinds of `count` things, in ascending order or in that of the first ones.
fn kinds(count: usize, sorted: bool, compare: impl Fn(usize, usize) -> Ordering) -> Kinds {
    let mut order: Vec<usize> = (0..count).collect();
    sorted::sort(&mut order, |&a, &b| compare(a, b));
    let mut groups: Vec<Vec<usize>> =
        order.chunk_by(|&a, &b| compare(a, b).is_eq()).map(<[usize]>::to_vec).collect();
    if !sorted {
        sorted::sort_by_key(&mut groups, |group| group.first().copied());
    }
    let mut of = vec![0; count];
    for (kind, group) in groups.iter().enumerate() {
        group.iter().for_each(|&one| of[one] = kind);
    }
    let first = groups.iter().filter_map(|group| group.first().copied()).collect();
    Kinds { first, of, counts: groups.iter().map(Vec::len).collect() }
}

/// A tensor as a list of things along an axis: `outer` times `count` times `inner` elements.
#[derive(Clone, Copy)]
struct Things {
    outer: usize,
    count: usize,
    inner: usize,
}

impl Things {
    fn of(extents: &[usize], axis: Option<usize>) -> Self {
        match axis {
            None => Things { outer: 1, count: extents.iter().product(), inner: 1 },
            Some(axis) => Things {
                outer: extents[..axis].iter().product(),
                count: extents[axis],
                inner: extents[axis + 1..].iter().product(),
            },
        }
    }

    /// The places of the elements of thing `index`.
    fn elements(self, index: usize) -> impl Iterator<Item = usize> {
        let of =
            move |row: usize| (0..self.inner).map(move |at| (row * self.count + index) * self.inner + at);
        (0..self.outer).flat_map(of)
    }

    fn compare(self, a: usize, b: usize, element: impl Fn(usize, usize) -> Ordering) -> Ordering {
        let pairs = self.elements(a).zip(self.elements(b));
        pairs.map(|(a, b)| element(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// The things of these indices one behind the other along the axis, of which there are `room`.
    fn chosen<T: Copy>(self, values: &[T], indices: &[usize], room: usize, rest: T) -> Vec<T> {
        let mut chosen = vec![rest; self.outer * room * self.inner];
        for (place, &index) in indices.iter().enumerate() {
            let to = Things { count: room, ..self };
            for (to, from) in to.elements(place).zip(self.elements(index)) {
                chosen[to] = values[from];
            }
        }
        chosen
    }
}

/// Numbers in ascending order, all NaN behind them and equal.
fn ascending(a: f32, b: f32) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// `Unique`: where the input is computed at each run there is room for as many as could be. What is not filled has
/// the index -1 and the count 0.
pub(super) fn unique<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let axis = match op.has_attribute("axis") {
        true => Some(crate::model::build::axis(op.int("axis", 0), own.len())?),
        false => None,
    };
    let (things, sorted) = (Things::of(&own, axis), op.flag("sorted", true));
    let shape = |count: usize| match axis {
        None => vec![count],
        Some(axis) => own.iter().enumerate().map(|(at, &own)| if at == axis { count } else { own }).collect(),
    };
    let kind = i.kind_of(op, 0)?;
    let whole = |list: Vec<usize>| list.into_iter().map(|number| number as i64).collect::<Vec<i64>>();
    if let Operand::Constant(constant, _) = i.slot(op, 0)? {
        // Things without elements are things, too.
        let elements = constant.elements().max(things.count);
        i.budget.spend(elements.saturating_mul(64))?;
        let (found, values) = match &constant {
            Constant::Integers(Integers { values, .. }) => {
                let order = |a, b| things.compare(a, b, |a, b| values[a].cmp(&values[b]));
                let found = kinds(things.count, sorted, order);
                let count = found.first.len();
                let kept = things.chosen(values, &found.first, count, 0);
                (found, integers(&shape(count), kept)?)
            }
            Constant::Floats(tensor) => {
                let values = tensor.to_nhwc();
                let order = |a, b| things.compare(a, b, |a, b| ascending(values[a], values[b]));
                let found = kinds(things.count, sorted, order);
                let count = found.first.len();
                let kept = things.chosen(&values, &found.first, count, 0.0);
                (found, floats(&shape(count), kept)?)
            }
        };
        i.write_constant(op, 0, values, kind)?;
        let count = found.first.len();
        for (index, list) in [(1, found.first), (2, found.of), (3, found.counts)] {
            let extents = if index == 2 { things.count } else { count };
            i.set(op, index, Operand::integers(vec![extents], whole(list)))?;
        }
        return Ok(());
    }
    i.is_divided_at(op, 0)?;
    [0, 1, 3].into_iter().try_for_each(|index| i.only_leaves(op, index))?;
    let room = things.count;
    let outputs = [shape(room), vec![room], vec![room], vec![room]];
    let x = i.slot(op, 0)?;
    let written = i.hosted("", "unique", vec![x], &outputs, move |inputs, outputs| {
        let ([x], [y, first, of, counts]) = (inputs, outputs) else { return Ok(()) };
        let found = kinds(room, sorted, |a, b| things.compare(a, b, |a, b| ascending(x[a], x[b])));
        y.copy_from_slice(&things.chosen(x, &found.first, room, 0.0));
        first.fill(-1.0);
        counts.fill(0.0);
        let write = |to: &mut [f32], list: &[usize]| {
            to.iter_mut().zip(list).for_each(|(to, &number)| *to = number as f32);
        };
        write(first, &found.first);
        write(of, &found.of);
        write(counts, &found.counts);
        Ok(())
    })?;
    for (index, (slot, kind)) in written.into_iter().zip([kind, Kind::I64, Kind::I64, Kind::I64]).enumerate()
    {
        i.set(op, index, slot.of_kind(kind))?;
    }
    Ok(())
}

/// `NonZero` of what is computed at each run: a column for each element that could be, -1 in those that are not filled.
pub(super) fn non_zero<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    if matches!(i.slot(op, 0)?, Operand::Constant(..)) {
        return super::indexing::non_zero(i, op);
    }
    i.is_divided_at(op, 0)?;
    i.only_leaves(op, 0)?;
    let own = i.extents_of(op, 0)?;
    let (rank, room): (usize, usize) = (own.len(), own.iter().product());
    if rank == 0 {
        return refused!("found a scalar, wanted an axis");
    }
    let x = i.slot(op, 0)?;
    let written = i.hosted("", "non_zero", vec![x], &[vec![rank, room]], move |inputs, outputs| {
        let ([x], [places]) = (inputs, outputs) else { return Ok(()) };
        places.fill(-1.0);
        let found = x.iter().enumerate().filter(|(_, value)| **value != 0.0);
        for (column, (at, _)) in found.enumerate() {
            let mut rest = at;
            for axis in (0..rank).rev() {
                places[axis * room + column] = (rest % own[axis]) as f32;
                rest /= own[axis];
            }
        }
        Ok(())
    })?;
    written.into_iter().try_for_each(|slot| i.set(op, 0, slot.of_kind(Kind::I64)))
}

/// What `RoiAlign` is with as many samples as a region has pixels.
#[derive(Clone, Copy)]
pub(super) struct Regions {
    /// Channels, height and width of the maps.
    pub(super) map: [usize; 3],
    pub(super) output: [usize; 2],
    pub(super) scale: f32,
    pub(super) half: bool,
    pub(super) max: bool,
}

impl Regions {
    /// A sample along one axis: the two pixels and the share of the second, if it is near the map.
    fn sample(place: f32, extent: usize) -> Option<(usize, usize, f32)> {
        if extent == 0 || !(-1.0..=extent as f32).contains(&place) {
            return None;
        }
        let place = place.clamp(0.0, extent as f32 - 1.0);
        let low = place as usize;
        Some((low, (low + 1).min(extent - 1), place - low as f32))
    }

    /// One region of one channel.
    fn region(self, map: &[f32], corners: [f32; 4], dst: &mut [f32]) {
        let ([_, h, w], [oh, ow]) = (self.map, self.output);
        let off = if self.half { 0.5 } else { 0.0 };
        let [x0, y0, x1, y1] = corners.map(|corner| corner * self.scale - off);
        let length = |from: f32, to: f32| if self.half { to - from } else { (to - from).max(1.0) };
        let (bin_h, bin_w) = (length(y0, y1) / oh as f32, length(x0, x1) / ow as f32);
        // A region far larger than the map has no more samples than four of each of its pixels.
        let grid = |bin: f32, extent: usize| (bin.ceil().max(0.0) as usize).min(4 * extent.max(16));
        let (rows, columns) = (grid(bin_h, h), grid(bin_w, w));
        for (bin, dst) in dst.iter_mut().enumerate() {
            let (by, bx) = ((bin / ow) as f32, (bin % ow) as f32);
            let (mut sum, mut most) = (0.0f32, f32::NEG_INFINITY);
            for row in 0..rows {
                let y = Self::sample(y0 + bin_h * (by + (row as f32 + 0.5) / rows as f32), h);
                for column in 0..columns {
                    let x = Self::sample(x0 + bin_w * (bx + (column as f32 + 0.5) / columns as f32), w);
                    let (Some((top, bottom, ty)), Some((left, right, tx))) = (y, x) else {
                        most = larger(most, 0.0);
                        continue;
                    };
                    let terms = [
                        (1.0 - ty) * (1.0 - tx) * map[top * w + left],
                        (1.0 - ty) * tx * map[top * w + right],
                        ty * (1.0 - tx) * map[bottom * w + left],
                        ty * tx * map[bottom * w + right],
                    ];
                    sum += terms.iter().sum::<f32>();
                    most = terms.into_iter().fold(most, larger);
                }
            }
            let count = (rows * columns).max(1) as f32;
            *dst = match self.max {
                true if rows * columns == 0 => 0.0,
                true => most,
                false => sum / count,
            };
        }
    }
}

/// The larger number; a NaN is larger than anything.
fn larger(one: f32, other: f32) -> f32 {
    if other > one || other.is_nan() { other } else { one }
}

/// `RoiAlign` whose number of samples depends on the regions.
pub(super) fn align<'a>(i: &mut Import<'a>, op: &Op<'a>, regions: Regions) -> Done {
    let (own, boxes) = (i.extents_of(op, 0)?, i.extents_of(op, 1)?);
    let (images, count) = (own[0], boxes[0]);
    let [c, h, w] = regions.map;
    let [oh, ow] = regions.output;
    let kind = i.kind_of(op, 0)?;
    let inputs = (0..3).map(|index| i.slot(op, index)).collect::<Result<Vec<_>, _>>()?;
    let written = i.hosted("", "roi_align", inputs, &[vec![count, c, oh, ow]], move |inputs, outputs| {
        let ([maps, boxes, image], [dst]) = (inputs, outputs) else { return Ok(()) };
        for (region, dst) in dst.chunks_exact_mut(c * oh * ow).enumerate() {
            let image = image.get(region).map_or(0, |image| *image as usize).min(images.saturating_sub(1));
            let corners = std::array::from_fn(|at| boxes.get(4 * region + at).copied().unwrap_or(0.0));
            for (channel, dst) in dst.chunks_exact_mut(oh * ow).enumerate() {
                let map = maps.get((image * c + channel) * h * w..).unwrap_or_default();
                regions.region(map, corners, dst);
            }
        }
        Ok(())
    })?;
    written.into_iter().try_for_each(|slot| i.set(op, 0, slot.of_kind(kind)))
}
