//! Keys and values that a network keeps from one run to the next, as batch, head, place, feature.

use super::builder::Builder;
use super::casts::converted;
use super::kind::Kind;
use super::moves::part_of;
use super::operand::{Mapped, Operand};
use crate::error::{Hint, Setting};
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

/// The axis of places of a cache of some rank.
fn places_of(rank: usize) -> usize {
    rank.saturating_sub(2)
}

/// Whether the graph keeps `cache` as a state that no operator has changed yet.
pub(crate) fn is_kept(b: &Builder, cache: &Operand) -> bool {
    let Operand::Value(mapped) = cache else { return false };
    mapped.is_plain() && b.caches.iter().any(|own| own.shown == Some(mapped.value) && own.next.is_none())
}

/// How many places a cache that the graph keeps has in all, filled or not.
pub(crate) fn kept_places(b: &Builder, cache: &Operand) -> Result<Option<usize>, Reason> {
    let Operand::Value(mapped) = cache else { return Ok(None) };
    let own = b.caches.iter().find(|own| own.shown == Some(mapped.value)).filter(|_| is_kept(b, cache));
    let Some(own) = own else { return Ok(None) };
    let whole = b.graph.dims(own.state)?;
    Ok(whole.extents().get(places_of(whole.rank())).copied())
}

/// Writes the places of a run into a cache that the graph keeps ([`is_kept`]): from where the run before has ended, or from
/// `at` on, one number for all batches or one for each. The whole cache; or what was shown of it with the places of the run
/// behind, where the run is to see them so ([`Filling::Apart`](crate::session::Filling)).
pub(crate) fn kept_with(
    b: &mut Builder,
    part: &str,
    cache: &Operand,
    new: Operand,
    at: Option<Operand>,
) -> Result<Operand, Reason> {
    let kind = cache.kind();
    let shown = b.shape(cache)?;
    let cache = match cache {
        Operand::Value(mapped) => b.caches.iter().position(|own| own.shown == Some(mapped.value)),
        Operand::Constant(..) => None,
    };
    let cache = cache.ok_or("found no cache")?;
    let adds = b.shape(&new)?;
    let (rank, adds) = (adds.len(), adds.get(places_of(adds.len())).copied().unwrap_or(0));
    let shown = shown.get(places_of(rank)).copied().unwrap_or(0);
    let whole = b.graph.dims(b.caches[cache].state)?.extents().get(places_of(rank)).copied().unwrap_or(0);
    let apart = at.is_none() && b.caches[cache].apart;
    let at = match (at, b.caches[cache].filled) {
        (Some(at), _) => {
            let at = converted(b, at, Kind::I32)?;
            let at = b.mapped(at)?;
            b.logical(&at)?
        }
        (None, Some(_)) if !b.caches[cache].has_mask => {
            let reason =
                "found no input that says which places of a cache are filled, wanted an attention mask";
            return Err(Reason::from(reason).hinted(Some(Hint::new(" (", Setting::Masks, ")"))));
        }
        (None, Some(filled)) if shown + adds == whole => filled,
        (None, _) => {
            return refused!(
                "found {adds} places in a run whose masks have {} behind those that are filled, wanted as many",
                whole.saturating_sub(shown)
            );
        }
    };
    let new = b.mapped(new)?;
    let (new, state) = (b.logical(&new)?, b.caches[cache].state);
    let axis = places_of(rank) as isize;
    let next = b.add(part, |graph, name| graph.update_slice(name, state, new, at, axis))?;
    let mut given = next;
    if apart {
        // Of the state that has changed: what reads the one before would have it copied.
        let all = Operand::Value(Mapped::plain(next, rank, kind));
        let earlier = part_of(b, "earlier", &all, places_of(rank), [0, shown])?;
        let earlier = b.mapped(earlier)?;
        let earlier = b.logical(&earlier)?;
        given = b.add("apart", |graph, name| graph.concat(name, &[earlier, new], axis))?;
    }
    let own = &mut b.caches[cache];
    (own.next, own.given, own.adds, own.apart) = (Some(next), Some(given), adds, apart);
    Ok(Operand::Value(Mapped::plain(given, rank, kind)))
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
    if let Some(cache) = cache.as_ref().filter(|cache| is_kept(b, cache)) {
        return kept_with(b, part, cache, new, None);
    }
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

/// Joins a cache with the places of this run, where each batch has filled its own number of places: `index`, an
/// [`index_of_each`], says which place goes where. [`appended`] does this for one number of places.
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
