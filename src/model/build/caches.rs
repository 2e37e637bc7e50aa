//! Keys and values that a network keeps from one run to the next, as batch, head, place, feature.

use super::builder::Builder;
use super::casts::converted;
use super::kind::Kind;
use super::moves::part_of;
use super::operand::{Mapped, Operand};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// The axis of places.
const PLACES: usize = 2;

/// Where the places of a run lie among those that a cache has: `batch 1` numbers each.
#[derive(Clone)]
pub(crate) struct Lengths {
    /// Places before those of the run.
    pub(crate) past: Operand,
    /// Places in all.
    pub(crate) total: Operand,
}

/// The first `past` places of a cache, if there is one, and those of this run behind them. With `extent` the result has
/// as many places: the cache's own behind, if `keeps`, else zeros.
pub(crate) fn appended(
    b: &mut Builder,
    part: &str,
    cache: Option<Operand>,
    past: usize,
    new: Operand,
    (extent, keeps): (Option<usize>, bool),
) -> Result<Operand, Reason> {
    let own = b.shape(&new)?;
    let &[batch, heads, rows, wide] = &own[..] else { return refused!("found {own:?}, wanted heads") };
    let held = match &cache {
        Some(cache) => b.shape(cache)?.get(PLACES).copied().unwrap_or(0),
        None => 0,
    };
    if past > held {
        return refused!("found {held} places of earlier runs, wanted {past}");
    }
    let end = past + rows;
    let mut parts = Vec::new();
    if let Some(cache) = cache.clone().filter(|_| past > 0) {
        parts.push(part_of(b, "before", &cache, PLACES, [0, past])?);
    }
    parts.push(new);
    let more = extent.unwrap_or(end).saturating_sub(end);
    if more > 0 {
        parts.push(match cache.filter(|_| keeps && held >= end + more) {
            Some(cache) => part_of(b, "behind", &cache, PLACES, [end, more])?,
            None => b.filled(&[batch, heads, more, wide], 0.0)?,
        });
    }
    b.joined(part, parts, PLACES)
}

/// As [`appended`] where each batch has its own number of places, by an [`index_of_each`].
pub(crate) fn appended_each(
    b: &mut Builder,
    part: &str,
    cache: Option<Operand>,
    new: Operand,
    index: &Operand,
) -> Result<Operand, Reason> {
    let all = b.joined("both", cache.into_iter().chain([new]).collect(), PLACES)?;
    let (mapped, index) = (b.mapped(all)?, b.mapped(index.clone())?);
    let (own, index) = (b.logical(&mapped)?, b.logical(&index)?);
    let value = b.add(part, |graph, name| graph.gather(name, own, index, PLACES as isize, 1))?;
    Ok(Operand::Value(Mapped::plain(value, 4, mapped.kind)))
}

/// Where each of `extent` places of a cache is among those that it has, `held`, and those of the run behind them:
/// `batch extent`. Behind the last one there are zeros.
pub(crate) fn index_of_each(
    b: &mut Builder,
    lengths: &Lengths,
    held: usize,
    extent: usize,
) -> Result<Operand, Reason> {
    let Lengths { past, total } = lengths;
    b.once(&format!("index of {extent} in {held}"), &[past, total], |b| {
        let place = counted(b, extent, 1, 2)?;
        let is_past = b.apply("is past", Function::Less, &[place.clone().into(), past.clone().into()])?;
        let begin = b.apply("begin", Function::Sub, &[(held as f32).into(), past.clone().into()])?;
        let moved = b.apply("moved", Function::Add, &[place.clone().into(), begin.into()])?;
        let index =
            b.apply("index", Function::Select, &[is_past.into(), place.clone().into(), moved.into()])?;
        let is_there = b.apply("is there", Function::Less, &[place.into(), total.clone().into()])?;
        // What is at no index is zero.
        b.apply("index", Function::Select, &[is_there.into(), index.into(), (-1.0).into()])
    })
}

/// The numbers `0..count` along an axis, as floats.
pub(crate) fn counted(b: &mut Builder, count: usize, axis: usize, rank: usize) -> Result<Operand, Reason> {
    let numbers = b.counted(count, axis, rank)?;
    converted(b, numbers, Kind::F32)
}
