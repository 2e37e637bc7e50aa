//! Elements by indices that differ from place to place.

use super::axes::{Count, axis};
use super::builder::Builder;
use super::moves::{check_within, spread};
use super::operand::{Mapped, Operand};
use super::rows::{from_start, is_from_start};
use super::scatter::{Combine, Data, Places, scattered, scattered_at};
use crate::model::constant::{Constant, elements_of, indices, position, strides};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// Places that f32 counts.
const MAX_PLACES: usize = 1 << 24;

/// Rows of a tensor, flattened to `rows inner`, by places that are whole numbers.
pub(crate) fn rows_at(
    b: &mut Builder,
    part: &str,
    x: Operand,
    inner: usize,
    places: Operand,
) -> Result<Operand, Reason> {
    let extents = b.shape(&x)?;
    let count = elements_of(&extents)?;
    if count == 0 {
        return refused!("found {extents:?} to choose from, wanted elements");
    }
    if count / inner.max(1) > MAX_PLACES {
        return refused!("found {count} elements to choose from, wanted at most {MAX_PLACES}");
    }
    let kind = x.kind();
    let flat = if inner == 1 { vec![count] } else { vec![count / inner, inner] };
    let x = b.with_extents("flat", x, &flat)?;
    let (x, places) = (b.mapped(x)?, b.mapped(places)?);
    let (x, places) = (b.logical(&x)?, b.logical(&places)?);
    let value = b.gather(part, x, places, 0)?;
    let rank = b.dims(value)?.rank();
    Ok(Operand::Value(Mapped::plain(value, rank, kind)))
}

/// Of each place of `index` the element of `x` that is there, but along one axis, where the index says which one.
pub(crate) fn elements_at(
    b: &mut Builder,
    part: &str,
    x: Operand,
    index: Operand,
    place: usize,
) -> Result<Operand, Reason> {
    let (own, wanted) = (b.shape(&x)?, b.shape(&index)?);
    let rank = own.len();
    if wanted.len() != rank || place >= rank {
        return refused!("found indices of {wanted:?} for {own:?}, wanted as many axes");
    }
    check_within(b, &index, (place, &own[place..=place]), Count::FromEnd)?;
    let steps = strides(&own);
    let index = from_start(b, index, own[place])?;
    let mut places = b.apply("places", Function::Mul, &[index.into(), (steps[place] as f32).into()])?;
    let mut offset: Option<Operand> = None;
    for axis in (0..rank).filter(|&axis| axis != place && wanted[axis] > 1) {
        let along = b.counted(wanted[axis], axis, rank)?;
        let along = b.apply("along", Function::Mul, &[along.into(), (steps[axis] as f32).into()])?;
        offset = Some(match offset {
            None => along,
            Some(offset) => b.apply("offset", Function::Add, &[offset.into(), along.into()])?,
        });
    }
    if let Some(offset) = offset {
        places = b.apply("places", Function::Add, &[places.into(), offset.into()])?;
    }
    let taken = rows_at(b, "elements", x, 1, places)?;
    b.with_extents(part, taken, &wanted)
}

/// Elements by rows of indices, one for each of the first axes behind the `shared` ones, which both have.
pub(crate) fn gathered_rows(
    b: &mut Builder,
    x: Operand,
    index: Operand,
    shared: usize,
    count: Count,
) -> Result<Operand, Reason> {
    let (own, wanted) = (b.shape(&x)?, b.shape(&index)?);
    let Some((&axes, outer)) = wanted.split_last() else {
        return refused!("found no rows of indices, wanted indices of at least rank 1");
    };
    if shared > outer.len()
        || axes == 0
        || shared.saturating_add(axes) > own.len()
        || own[..shared] != outer[..shared]
    {
        return refused!("found rows of {wanted:?} for {own:?} with {shared} shared axes");
    }
    check_within(b, &index, (shared, &own[shared..shared + axes]), count)?;
    let mut index = index;
    if count == Count::FromEnd && !is_from_start(&index) {
        let extents = own[shared..shared + axes].iter().map(|&extent| extent as i64).collect();
        let extents = Operand::integers(vec![axes], extents).of_kind(index.kind());
        let negative = b.apply("negative", Function::Less, &[index.clone().into(), 0.0.into()])?;
        let moved = b.apply("moved", Function::Add, &[index.clone().into(), extents.into()])?;
        index = b.apply("index", Function::Select, &[negative.into(), moved.into(), index.into()])?;
    }
    if shared > 0 {
        // The place in the shared axes, before the own indices.
        let (rank, kind) = (wanted.len(), index.kind());
        let target = [outer, &[1]].concat();
        let mut columns = Vec::with_capacity(shared + 1);
        for (place, &extent) in outer.iter().enumerate().take(shared) {
            let along = b.counted(extent, place, rank)?;
            columns.push(spread(b, along, &target)?.of_kind(kind));
        }
        columns.push(index);
        index = b.joined("rows", columns, rank - 1)?;
    }
    let (x, index) = (b.mapped(x)?, b.mapped(index)?);
    let (value, index) = (b.logical(&x)?, b.logical(&index)?);
    let value = b.add("", |graph, name| graph.gather_nd(name, value, index))?;
    Ok(Operand::Value(Mapped::plain(value, b.dims(value)?.rank(), x.kind)))
}

/// The first elements along an axis turned around, as many as there is a length for in each of the batch.
pub(crate) fn sequences_reversed(
    b: &mut Builder,
    x: Operand,
    lengths: Operand,
    [batch, time]: [usize; 2],
) -> Result<Operand, Reason> {
    let (own, found) = (b.shape(&x)?, b.shape(&lengths)?);
    if batch == time || batch.max(time) >= own.len() || elements_of(&found)? != own[batch] {
        return refused!(
            "found lengths {found:?} along axes {batch} and {time} of {own:?}, wanted one for each of the batch"
        );
    }
    let (count, steps) = (own[batch], own[time]);
    let at = b.counted(steps, 1, 2)?;
    let lengths = b.with_extents("lengths", lengths, &[count, 1])?;
    let at = at.of_kind(lengths.kind());
    let last = b.apply("last", Function::Sub, &[lengths.clone().into(), 1.0.into()])?;
    let turned = b.apply("turned", Function::Sub, &[last.into(), at.clone().into()])?;
    let inside = b.apply("inside", Function::Less, &[at.clone().into(), lengths.into()])?;
    let index = b.apply("indices", Function::Select, &[inside.into(), turned.into(), at.into()])?;
    let rest = (0..own.len()).filter(|axis| ![batch, time].contains(axis));
    let order: Vec<usize> = [batch, time].into_iter().chain(rest).collect();
    let (x, index) = (b.mapped(x)?, b.mapped(index)?);
    let (front, index) = (b.in_order(&x, &order)?, b.logical(&index)?);
    let value = b.add("turned", |graph, name| graph.gather(name, front, index, 1, 1))?;
    let turned = Operand::Value(Mapped { value, order, kind: x.kind });
    b.with_extents("", turned, &own)
}

/// Data with each update in its own place, but along one axis, where the index says which one.
pub(crate) fn scattered_elements(
    b: &mut Builder,
    data: Operand,
    (index, updates): (Operand, Operand),
    place: usize,
    combine: Combine,
) -> Result<Operand, Reason> {
    let (own, extents) = (b.shape(&data)?, b.shape(&index)?);
    let beyond = |(axis, (count, extent)): (usize, (&usize, &usize))| axis != place && count > extent;
    if extents.len() != own.len() || extents.iter().zip(&own).enumerate().any(beyond) {
        return refused!(
            "found indices of {extents:?} for {own:?}, wanted as many axes, and extents within the data's"
        );
    }
    b.budget.spend(elements_of(&extents)?.saturating_mul(16 * own.len()))?;
    let (extent, step) = (own[place], strides(&own)[place]);
    let first = indices(&extents).map(|mut at| {
        at[place] = 0;
        position(&own, &at)
    });
    match index {
        Operand::Constant(Constant::Integers(known), _) => {
            let places = first
                .zip(known.values.iter())
                .map(|(first, &index)| Ok(Some(first + axis(index, extent)? * step)))
                .collect::<Result<Vec<_>, Reason>>()?;
            let whole = [elements_of(&own)?, 1];
            let result = scattered(b, Data::Operand(data), updates, &places, whole, combine)?;
            b.with_extents("", result, &own)
        }
        Operand::Constant(..) => refused!("found indices that are floats, wanted integers"),
        index => {
            let (columns, count) = (vec![(extent, step)], Count::FromEnd);
            let places = Places { first: first.collect(), columns, inner: 1, count };
            scattered_at(b, Some(data), (index, updates), &own, places, combine)
        }
    }
}
