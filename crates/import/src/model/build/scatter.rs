//! Updates put in places of a tensor, or joined with what is there.
//!
//! Where the places are known, each row of the result is taken from the rows of the data and of the updates that lie behind
//! one another; of several, these are reduced. Places that a run computes are a function of the CPU, because updates of one
//! element are taken in order.

use super::axes::Count;
use super::bitwise::wrapped;
use super::builder::Builder;
use super::constants::{floats, integers};
use super::kind::Kind;
use super::operand::{Mapped, Operand};
use crate::error::Error;
use crate::model::constant::{Constant, elements_of, strides};
use crate::model::reason::Reason;
use crate::ops::reduce::Reduction;

/// What becomes of an element and an update of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Combine {
    /// The last update.
    Replace,
    Add,
    Mul,
    Max,
    Min,
}

impl Combine {
    /// A NaN is larger and smaller than anything, as it is for the reductions of known places.
    fn of(self, old: f32, new: f32) -> f32 {
        match self {
            Combine::Replace => new,
            Combine::Add => old + new,
            Combine::Mul => old * new,
            Combine::Max if new > old || new.is_nan() => new,
            Combine::Min if new < old || new.is_nan() => new,
            Combine::Max | Combine::Min => old,
        }
    }

    const fn reduction(self) -> Reduction {
        match self {
            Combine::Replace | Combine::Add => Reduction::Sum,
            Combine::Mul => Reduction::Product,
            Combine::Max => Reduction::Max,
            Combine::Min => Reduction::Min,
        }
    }

    /// Whether an element and itself are that element.
    const fn takes_twice(self) -> bool {
        matches!(self, Combine::Max | Combine::Min)
    }

    /// What leaves every number as it is.
    fn identity(self) -> f32 {
        if self == Combine::Mul { 1.0 } else { 0.0 }
    }
}

/// What updates are put into.
pub(crate) enum Data {
    Operand(Operand),
    /// One number in every place that no update has.
    Each(f32),
}

/// Data of `rows` rows with updates of them, each of `inner` elements, at places that are known; the result is
/// `rows inner`.
pub(crate) fn scattered(
    b: &mut Builder,
    data: Data,
    updates: Operand,
    places: &[Option<usize>],
    [rows, inner]: [usize; 2],
    combine: Combine,
) -> Result<Operand, Reason> {
    let kind = match &data {
        Data::Operand(data) => data.kind(),
        Data::Each(_) => updates.kind(),
    };
    let replaces_all = combine == Combine::Replace
        && places.len() == rows
        && places.iter().enumerate().all(|(row, &place)| place == Some(row));
    if replaces_all {
        return Ok(b.with_extents("updates", updates, &[rows, inner])?.of_kind(kind));
    }
    let (own, elsewhere) = match data {
        Data::Operand(data) => (Some(b.with_extents("data", data, &[rows, inner])?), 0.0),
        Data::Each(number) => (None, number),
    };
    let updates = b.with_extents("updates", updates, &[places.len(), inner])?;
    let Table { most, list, ends } = Table::new(b, places, rows, own.is_some(), combine)?;
    let mut all: Vec<Operand> = own.into_iter().collect();
    all.push(updates);
    for (is_used, number) in ends.into_iter().zip([combine.identity(), elsewhere]) {
        if is_used {
            all.push(row_of(b, kind, number, inner)?);
        }
    }
    let all = b.joined("all", all, 0)?;
    let index = b.mapped(Operand::integers(vec![rows * most], list))?;
    let all = b.mapped(all)?;
    let all = b.logical(&all)?;
    let picked = b.gather("picked", all, index.value, 0)?;
    if most == 1 {
        return Ok(Operand::Value(Mapped::plain(picked, 2, kind)));
    }
    let picked = b.reshape("groups", picked, &[rows, most, inner])?;
    let value = b.reduce("joined", picked, combine.reduction(), 1, false)?;
    let result = Operand::Value(Mapped::plain(value, 2, kind));
    match kind.narrow().filter(|_| matches!(combine, Combine::Add | Combine::Mul)) {
        Some(narrow) => Ok(wrapped(b, narrow, result)?.of_kind(kind)),
        None => Ok(result),
    }
}

/// A row of one number.
fn row_of(b: &mut Builder, kind: Kind, number: f32, inner: usize) -> Result<Operand, Reason> {
    b.budget.spend(inner.saturating_mul(16))?;
    let constant = match kind.is_float() {
        true => floats(&[1, inner], vec![number; inner])?,
        false => integers(&[1, inner], vec![number as i64; inner])?,
    };
    Ok(Operand::Constant(constant, kind))
}

/// For each row of the result the rows that it is made of, as many for each: of the data, the updates, a row that changes
/// nothing, and a row for where nothing is.
struct Table {
    most: usize,
    list: Vec<i64>,
    /// Whether the last two are used.
    ends: [bool; 2],
}

impl Table {
    fn new(
        b: &mut Builder,
        places: &[Option<usize>],
        rows: usize,
        has_data: bool,
        combine: Combine,
    ) -> Result<Self, Reason> {
        b.budget.spend(rows.saturating_mul(16))?;
        let first = if has_data { rows } else { 0 };
        if combine == Combine::Replace {
            let mut list: Vec<i64> = (0..rows).map(|row| if has_data { row as i64 } else { -1 }).collect();
            for (update, place) in places.iter().enumerate() {
                if let Some(place) = place.and_then(|place| list.get_mut(place)) {
                    *place = (first + update) as i64;
                }
            }
            return Ok(Table { most: 1, list, ends: [false; 2] }.closed(first + places.len()));
        }
        let mut counts = vec![usize::from(has_data); rows];
        for place in places.iter().flatten() {
            *counts.get_mut(*place).ok_or("found a place beyond the data")? += 1;
        }
        let most = counts.iter().copied().max().unwrap_or(0).max(1);
        b.budget.spend(rows.saturating_mul(most).saturating_mul(16))?;
        let identity = (first + places.len()) as i64;
        let mut list = vec![identity; rows * most];
        counts.fill(usize::from(has_data));
        if has_data {
            list.iter_mut().step_by(most).enumerate().for_each(|(row, first)| *first = row as i64);
        }
        for (update, place) in places.iter().enumerate() {
            if let &Some(place) = place {
                list[place * most + counts[place]] = (first + update) as i64;
                counts[place] += 1;
            }
        }
        for (row, &count) in list.chunks_mut(most).zip(&counts) {
            // Of the largest, one that is there twice is the same.
            let more = if combine.takes_twice() && count > 0 { row[0] } else { identity };
            row[count..].fill(more);
            if count == 0 {
                row[..if combine.takes_twice() { most } else { 1 }].fill(-1);
            }
        }
        Ok(Table { most, list, ends: [false; 2] }.closed(first + places.len()))
    }

    /// With the rows behind the `count` others numbered, those alone that are used.
    fn closed(mut self, count: usize) -> Self {
        let identity = count as i64;
        self.ends = [self.list.contains(&identity), self.list.contains(&-1)];
        let nothing = identity + i64::from(self.ends[0]);
        self.list.iter_mut().filter(|at| **at == -1).for_each(|at| *at = nothing);
        self
    }
}

/// Where updates belong: behind a first element, as rows of indices say.
pub(crate) struct Places {
    /// The first element of each update, before its indices are counted.
    pub(crate) first: Vec<usize>,
    /// Of each index of a row: the extent that it counts, and the elements from one to the next.
    pub(crate) columns: Vec<(usize, usize)>,
    /// Elements of an update.
    pub(crate) inner: usize,
    pub(crate) count: Count,
}

impl Places {
    /// Of `updates` updates of rows of the last axes of `own`, by as many indices as there are axes before them.
    pub(crate) fn of_rows(own: &[usize], axes: usize, updates: usize, count: Count) -> Result<Self, Reason> {
        let columns = own.iter().copied().zip(strides(own)).take(axes).collect();
        let inner = elements_of(own.get(axes..).unwrap_or(&[]))?;
        Ok(Places { first: vec![0; updates], columns, inner, count })
    }

    /// Where update `index` begins, by its row of indices.
    fn begin(&self, index: usize, row: &[f32]) -> Result<usize, Reason> {
        let mut place = self.first[index];
        for (&index, &(extent, step)) in row.iter().zip(&self.columns) {
            let own = self.count.place(index as i64, extent)?;
            place += own.ok_or_else(|| format!("index {index} along an axis of {extent}"))? * step;
        }
        Ok(place)
    }
}

/// Data of extents `own` with updates at places that each run computes.
pub(crate) fn scattered_at(
    b: &mut Builder,
    data: Option<Operand>,
    (indices, updates): (Operand, Operand),
    own: &[usize],
    places: Places,
    combine: Combine,
) -> Result<Operand, Reason> {
    let found = elements_of(&b.shape(&updates)?)?;
    let wanted = places.first.len().saturating_mul(places.inner);
    if found != wanted {
        return refused!("found {found} elements of updates, wanted {wanted}");
    }
    let kind = data.as_ref().unwrap_or(&updates).kind();
    let has_data = data.is_some();
    let inputs = data.into_iter().chain([indices, updates]).collect();
    let narrow = kind.narrow().filter(|_| matches!(combine, Combine::Add | Combine::Mul));
    let part = if narrow.is_some() { "scattered" } else { "" };
    let written = b.hosted(part, "scatter", inputs, &[own.to_vec()], move |inputs, outputs| {
        let (data, inputs) = inputs.split_at(usize::from(has_data));
        let ([indices, updates], [dst]) = (inputs, outputs) else { return Ok(()) };
        match data {
            [data] => dst.copy_from_slice(data),
            _ => dst.fill(0.0),
        }
        let rows = indices.chunks_exact(places.columns.len().max(1));
        for (index, (row, update)) in rows.zip(updates.chunks_exact(places.inner.max(1))).enumerate() {
            let beyond = |found: String| Error::input("scattered indices", found, "places within the data");
            let begin = places.begin(index, row).map_err(|reason| beyond(reason.into()))?;
            let target = dst.get_mut(begin..begin + places.inner);
            let target = target.ok_or_else(|| beyond(format!("an update at element {begin}")))?;
            target.iter_mut().zip(update).for_each(|(old, &new)| *old = combine.of(*old, new));
        }
        Ok(())
    })?;
    let result = written.into_iter().next().ok_or("found no result")?.of_kind(kind);
    match narrow {
        Some(narrow) => Ok(wrapped(b, narrow, result)?.of_kind(kind)),
        None => Ok(result),
    }
}

/// Data of extents `own` with rows of its last axes put in places, one for each row of `indices`.
pub(crate) fn scattered_rows(
    b: &mut Builder,
    data: Data,
    (indices, updates): (Operand, Operand),
    own: &[usize],
    (combine, count): (Combine, Count),
) -> Result<Operand, Reason> {
    let extents = b.shape(&indices)?;
    let axes = extents.last().copied().filter(|&axes| axes > 0 && axes <= own.len());
    let axes = axes.ok_or_else(|| {
        format!("found rows of {extents:?} for {own:?}, wanted at most an index for each axis")
    })?;
    let (outer, rest) = own.split_at(axes);
    let (rows, inner, updated) = (elements_of(outer)?, elements_of(rest)?, elements_of(&extents)? / axes);
    let found = b.shape(&updates)?;
    if elements_of(&found)? != updated * inner || rows == 0 || inner == 0 {
        return refused!(
            "found updates {found:?} at {extents:?} of {own:?}, wanted a row for each row of indices"
        );
    }
    match indices {
        Operand::Constant(Constant::Integers(indices), _) => {
            b.budget.spend(updated.saturating_mul(16))?;
            let places = count.places(&indices.values, outer)?;
            let result = scattered(b, data, updates, &places, [rows, inner], combine)?;
            b.with_extents("", result, own)
        }
        Operand::Constant(..) => refused!("found indices that are floats, wanted integers"),
        indices => {
            b.budget.spend(updated.saturating_mul(16))?;
            let places = Places::of_rows(own, axes, updated, count)?;
            let data = match data {
                Data::Operand(data) => Some(data),
                Data::Each(0.0) => None,
                Data::Each(number) => Some(b.filled(own, number)?),
            };
            scattered_at(b, data, (indices, updates), own, places, combine)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::host::HostTensor;
    use crate::model::budget::Budget;
    use diptych::Session;

    fn rows(data: Option<&[f32; 6]>, elsewhere: f32, combine: Combine, known: bool) -> Vec<f32> {
        rows_of(data, [5.0, -6.0, 7.0, f32::INFINITY, 9.0, 10.0], elsewhere, combine, known)
    }

    /// Three rows of two with updates of rows 2, 0 and 2, on the CPU.
    fn rows_of(
        data: Option<&[f32; 6]>,
        updates: [f32; 6],
        elsewhere: f32,
        combine: Combine,
        known: bool,
    ) -> Vec<f32> {
        let b = &mut Builder::new(Budget::new(1 << 16), 0, crate::model::prepared);
        let tensor = |extents: &[usize], values: &[f32]| {
            HostTensor::new(Dims::new(extents).expect("extents"), values.to_vec()).expect("a tensor")
        };
        let updates = tensor(&[3, 2], &updates);
        let places = tensor(&[3, 1], &[2.0, 0.0, 2.0]);
        let input = b.graph.input("updates", updates.dims()).expect("an input");
        let given = b.graph.input("places", places.dims()).expect("an input");
        let indices = match known {
            true => Operand::integers(vec![3, 1], vec![2, 0, 2]),
            false => Operand::Value(Mapped::plain(given, 2, Kind::F32)),
        };
        let data = match data {
            Some(data) => {
                let data = floats(&[3, 2], data.to_vec()).expect("a constant");
                Data::Operand(Operand::Constant(data, Kind::F32))
            }
            None => Data::Each(elsewhere),
        };
        let updated = Operand::Value(Mapped::plain(input, 2, Kind::F32));
        let how = (combine, Count::FromStart);
        let result = scattered_rows(b, data, (indices, updated), &[3, 2], how).expect("a result");
        let result = b.mapped(result).expect("a value").value;
        b.graph.output(result).expect("an output");
        let session = Session::on_cpu(&b.graph).expect("a session");
        let found = session.compute(&[("updates", &updates), ("places", &places)]).expect("a run");
        found[0].to_f32().into_owned()
    }

    #[test]
    fn updates_are_put_in_places_that_are_known_and_computed() {
        let (data, inf) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], f32::INFINITY);
        for known in [true, false] {
            let of = |combine| rows(Some(&data), 0.0, combine, known);
            assert_eq!(of(Combine::Replace), [7.0, inf, 3.0, 4.0, 9.0, 10.0], "{known}");
            assert_eq!(of(Combine::Add), [8.0, inf, 3.0, 4.0, 19.0, 10.0], "{known}");
            assert_eq!(of(Combine::Mul), [7.0, inf, 3.0, 4.0, 225.0, -360.0], "{known}");
            assert_eq!(of(Combine::Max), [7.0, inf, 3.0, 4.0, 9.0, 10.0], "{known}");
            assert_eq!(of(Combine::Min), [1.0, 2.0, 3.0, 4.0, 5.0, -6.0], "{known}");
            // An infinite update is in no other row.
            assert_eq!(rows(None, 0.0, Combine::Add, known), [7.0, inf, 0.0, 0.0, 14.0, 4.0], "{known}");
            // A NaN stays, whether it is in the data, in an update, or in one that another follows.
            for combine in [Combine::Max, Combine::Min] {
                let data = [f32::NAN, 2.0, 3.0, f32::NAN, 5.0, 6.0];
                let updates = [f32::NAN, -6.0, 7.0, f32::INFINITY, 9.0, f32::NAN];
                let found = rows_of(Some(&data), updates, 0.0, combine, known);
                let places: Vec<usize> = (0..6).filter(|&place| found[place].is_nan()).collect();
                assert_eq!(places, [0, 3, 4, 5], "{combine:?} {known}: {found:?}");
            }
        }
        assert_eq!(rows(None, -8.0, Combine::Max, true), [7.0, inf, -8.0, -8.0, 9.0, 10.0]);
        assert_eq!(rows(None, -8.0, Combine::Replace, true), [7.0, inf, -8.0, -8.0, 9.0, 10.0]);
    }
}
