//! Elements by computed or given indices.

use super::empty::none_along;
use super::import::{Import, Op};
use super::scatters::{self, Places};
use crate::model::build::{Arg, Kind, Mapped, Operand, axis, cut};
use crate::model::constant::{Constant, elements_of, indices, position, strides};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

type Done = Result<(), Reason>;

/// Places that f32 counts.
const MAX_PLACES: usize = 1 << 24;

/// The most updates of one element.
const MAX_LAYERS: usize = 64;

impl Import<'_> {
    /// Indices of which negative ones count from the end of `extent`.
    fn counted_from_start(&mut self, index: Operand, extent: usize) -> Result<Operand, Reason> {
        if let Operand::Constant(Constant::Integers(integers), kind) = &index
            && integers.values.iter().all(|&index| index >= 0)
        {
            return Ok(Operand::Constant(Constant::Integers(integers.clone()), *kind));
        }
        let negative = self.apply("negative", Function::Less, &[index.clone().into(), 0.0.into()])?;
        let moved = self.apply("moved", Function::Add, &[index.clone().into(), (extent as f32).into()])?;
        self.apply("index", Function::Select, &[negative.into(), moved.into(), index.into()])
    }

    /// Rows of a tensor, flattened to `rows inner`, by places that are whole numbers.
    fn rows_at(&mut self, part: &str, x: Operand, inner: usize, places: Operand) -> Result<Operand, Reason> {
        let extents = self.shape(&x)?;
        let count = elements_of(&extents)?;
        if count == 0 {
            return refused!("found {extents:?} to choose from, wanted elements");
        }
        if count / inner.max(1) > MAX_PLACES {
            return refused!("found {count} elements to choose from, wanted at most {MAX_PLACES}");
        }
        let kind = x.kind();
        let flat = if inner == 1 { vec![count] } else { vec![count / inner, inner] };
        let x = self.with_extents("flat", x, &flat)?;
        let (x, places) = (self.mapped_slot(x, None)?, self.mapped_slot(places, None)?);
        let (x, places) = (self.logical(&x)?, self.logical(&places)?);
        let value = self.add(part, |graph, name| graph.gather(name, x, places, 0, 0))?;
        let rank = self.dims(value)?.rank();
        Ok(Operand::Value(Mapped::plain(value, rank, kind)))
    }
}

/// `GatherElements`: of each place another index along one axis.
pub(super) fn gather_elements<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (own, wanted) = (i.extents_of(op, 0)?, i.extents_of(op, 1)?);
    let place = axis(op.int("axis", 0), own.len())?;
    let (x, index) = (i.slot(op, 0)?, i.slot(op, 1)?);
    let slot = elements_at(i, "", x, index, &own, &wanted, place)?;
    i.set(op, 0, slot)
}

fn elements_at(
    i: &mut Import<'_>,
    part: &str,
    x: Operand,
    index: Operand,
    own: &[usize],
    wanted: &[usize],
    place: usize,
) -> Result<Operand, Reason> {
    let rank = own.len();
    if wanted.len() != rank {
        return refused!("found indices of {wanted:?} for {own:?}");
    }
    let steps = strides(own);
    let index = i.counted_from_start(index, own[place])?;
    let mut places = i.apply("places", Function::Mul, &[index.into(), (steps[place] as f32).into()])?;
    let mut offset: Option<Operand> = None;
    for axis in (0..rank).filter(|&axis| axis != place && wanted[axis] > 1) {
        let along = i.counted(wanted[axis], axis, rank)?;
        let along = i.apply("along", Function::Mul, &[along.into(), (steps[axis] as f32).into()])?;
        offset = Some(match offset {
            None => along,
            Some(offset) => i.apply("offset", Function::Add, &[offset.into(), along.into()])?,
        });
    }
    if let Some(offset) = offset {
        places = i.apply("places", Function::Add, &[places.into(), offset.into()])?;
    }
    let slot = i.rows_at("elements", x, 1, places)?;
    i.with_extents(part, slot, wanted)
}

/// `GatherND`: rows of indices, one for each of the first axes behind those that are shared.
pub(super) fn gather_nd<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (own, wanted) = (i.extents_of(op, 0)?, i.extents_of(op, 1)?);
    let shared = usize::try_from(op.int("batch_dims", 0)).unwrap_or(usize::MAX);
    let Some((&count, outer)) = wanted.split_last() else {
        return refused!("found no rows of indices, wanted indices of at least rank 1");
    };
    if shared > outer.len() || shared.saturating_add(count) > own.len() || own[..shared] != outer[..shared] {
        return refused!("found rows of {wanted:?} for {own:?} with {shared} shared axes");
    }
    let steps = strides(own.get(..shared + count).unwrap_or(&[]));
    let inner: usize = own[shared + count..].iter().product();
    let index = i.slot(op, 1)?;
    let mut places: Option<Operand> = None;
    let mut add = |i: &mut Import<'a>, term: Operand| -> Done {
        places = Some(match places.take() {
            None => term,
            Some(places) => i.apply("places", Function::Add, &[places.into(), term.into()])?,
        });
        Ok(())
    };
    for column in 0..count {
        let mut ranges: Vec<(usize, usize, i64)> = wanted.iter().map(|&extent| (0, extent, 1)).collect();
        if let Some(range) = ranges.last_mut() {
            *range = (column, 1, 1);
        }
        let one = cut(i, "column", index.clone(), &ranges)?;
        let one = i.with_extents("column", one, outer)?;
        let one = i.counted_from_start(one, own[shared + column])?;
        let term = i.apply("term", Function::Mul, &[one.into(), (steps[shared + column] as f32).into()])?;
        add(i, term)?;
    }
    for axis in 0..shared {
        let along = i.counted(outer[axis], axis, outer.len())?;
        let along = i.apply("along", Function::Mul, &[along.into(), (steps[axis] as f32).into()])?;
        add(i, along)?;
    }
    let places = places.ok_or("found no indices")?;
    let x = i.slot(op, 0)?;
    let slot = i.rows_at("rows", x, inner, places)?;
    let slot = i.with_extents("", slot, &[outer, &own[shared + count..]].concat())?;
    i.set(op, 0, slot)
}

/// `ScatterElements`; at indices that are computed at each run, on the CPU.
pub(super) fn scatter_elements<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (own, extents) = (i.extents_of(op, 0)?, i.extents_of(op, 1)?);
    let place = axis(op.int("axis", 0), own.len())?;
    if extents.len() != own.len() {
        return refused!(
            "found indices of {extents:?} for {own:?}, wanted no more axes, and extents within the data's"
        );
    }
    if matches!(i.slot(op, 1)?, Operand::Value(_)) {
        i.budget.spend(elements_of(&extents)?.saturating_mul(16 * own.len()))?;
        if extents.iter().zip(&own).enumerate().any(|(at, (count, extent))| at != place && count > extent) {
            return refused!(
                "found indices of {extents:?} for {own:?}, wanted no more axes, and extents within the data's"
            );
        }
        let first = indices(&extents).map(|mut at| {
            at[place] = 0;
            position(&own, &at)
        });
        let columns = vec![(own[place], strides(&own)[place])];
        return scatters::scattered(i, op, &own, Places { first: first.collect(), columns, inner: 1 });
    }
    let list = i.integers(op, 1)?;
    i.budget.spend(8 * list.len())?;
    let mut places = Vec::with_capacity(list.len());
    for (mut at, &index) in indices(&extents).zip(&list) {
        at[place] = axis(index, own[place])?;
        if at.iter().zip(&own).any(|(at, extent)| at >= extent) {
            return refused!(
                "found indices of {extents:?} for {own:?}, wanted no more axes, and extents within the data's"
            );
        }
        places.push(position(&own, &at));
    }
    scattered(i, op, &own, 1, &places)
}

/// `ScatterND`; at indices that are computed at each run, on the CPU.
pub(super) fn scatter_nd<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (own, extents) = (i.extents_of(op, 0)?, i.extents_of(op, 1)?);
    let count = extents.last().copied().filter(|&count| count > 0 && count <= own.len());
    let count = count.ok_or_else(|| {
        format!("found rows of {extents:?} for {own:?}, wanted at most an index for each axis")
    })?;
    if matches!(i.slot(op, 1)?, Operand::Value(_)) {
        let rows = elements_of(&extents)? / count;
        i.budget.spend(rows.saturating_mul(16))?;
        let columns = own.iter().copied().zip(strides(&own)).take(count).collect();
        let inner = own[count..].iter().product();
        return scatters::scattered(i, op, &own, Places { first: vec![0; rows], columns, inner });
    }
    let list = i.integers(op, 1)?;
    i.budget.spend(8 * (list.len() / count))?;
    let mut places = Vec::with_capacity(list.len() / count);
    for row in list.chunks(count) {
        let at = row
            .iter()
            .zip(&own)
            .map(|(&index, &extent)| axis(index, extent))
            .collect::<Result<Vec<_>, _>>()?;
        places.push(position(&own[..count], &at));
    }
    let inner = own[count..].iter().product();
    scattered(i, op, &own, inner, &places)
}

/// Writes the data with the updates at these places, each of `inner` elements; one that comes later counts, or they are
/// combined.
fn scattered<'a>(i: &mut Import<'a>, op: &Op<'a>, own: &[usize], inner: usize, places: &[usize]) -> Done {
    let function = match op.text("reduction", "none")? {
        "none" => None,
        "add" => Some(Function::Add),
        "mul" => Some(Function::Mul),
        "max" => Some(Function::Maximum),
        "min" => Some(Function::Minimum),
        other => return refused!("found reduction {other:?}"),
    };
    if own.contains(&0) {
        let data = i.slot(op, 0)?;
        return i.set(op, 0, data);
    }
    let rows = elements_of(own)? / inner.max(1);
    // A layer, and the indices that are made of it.
    let bytes = rows.saturating_mul(size_of::<Option<usize>>() + 3 * size_of::<i64>());
    i.budget.spend(bytes)?;
    let (data, updates) = (i.slot(op, 0)?, i.slot(op, 2)?);
    let kind = data.kind();
    // Each layer has one update of an element at most.
    let mut layers: Vec<Vec<Option<usize>>> = vec![vec![None; rows]];
    for (update, &place) in places.iter().enumerate() {
        let free = layers.iter().position(|layer| layer[place].is_none());
        match (function, free) {
            (None, _) => layers[0][place] = Some(update),
            (Some(_), Some(free)) => layers[free][place] = Some(update),
            (Some(_), None) if layers.len() < MAX_LAYERS => {
                i.budget.spend(bytes)?;
                let mut layer = vec![None; rows];
                layer[place] = Some(update);
                layers.push(layer);
            }
            (Some(_), None) => {
                return refused!("found more than {MAX_LAYERS} updates of one element, wanted fewer");
            }
        }
    }
    let flat = |count: usize| if inner == 1 { vec![count] } else { vec![count, inner] };
    let mut result = i.with_extents("data", data, &flat(rows))?;
    let updates = i.with_extents("updates", updates, &flat(places.len()))?;
    for layer in layers {
        let both = i.joined("both", vec![result.clone(), updates.clone()], 0)?;
        let list = layer
            .iter()
            .enumerate()
            .map(|(row, update)| update.map_or(row, |update| rows + update) as i64)
            .collect();
        let taken = i.rows_at("taken", both, inner, Operand::integers(vec![rows], list))?;
        result = match function {
            None => taken,
            Some(function) => {
                let mask = layer.iter().map(|update| i64::from(update.is_some())).collect();
                let shape = if inner == 1 { vec![rows] } else { vec![rows, 1] };
                let mask: Arg = Operand::integers(shape, mask).of_kind(Kind::Bool).into();
                let combined = i.apply("combined", function, &[result.clone().into(), taken.into()])?;
                i.apply("result", Function::Select, &[mask, combined.into(), result.into()])?
            }
        };
    }
    let result = i.with_extents("", result.of_kind(kind), own)?;
    i.set(op, 0, result)
}

/// `Compress`: the elements along an axis, or of all, where a condition that is known is true.
pub(super) fn compress<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    i.is_divided_at(op, 1)?;
    let kept = i.integers(op, 1)?;
    let kept: Vec<i64> =
        kept.iter().enumerate().filter(|(_, keep)| **keep != 0).map(|(at, _)| at as i64).collect();
    let own = i.extents_of(op, 0)?;
    let x = i.slot(op, 0)?;
    let (x, place) = match op.has_attribute("axis") {
        true => (x, axis(op.int("axis", 0), own.len())?),
        false => (i.with_extents("flat", x, &[elements_of(&own)?])?, 0),
    };
    if kept.is_empty() {
        let none = none_along(i, &x, place)?;
        return i.set(op, 0, none);
    }
    let (mapped, list) = (i.mapped_slot(x, None)?, Operand::integers(vec![kept.len()], kept));
    let list = i.mapped_slot(list, None)?.value;
    let along = mapped.place(place) as isize;
    let value = i.add("", |graph, name| graph.gather(name, mapped.value, list, along, 0))?;
    i.write(op, 0, Mapped { value, ..mapped })
}

/// `ReverseSequence`, of lengths that are known.
pub(super) fn reverse_sequence<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let (batch, time) = (axis(op.int("batch_axis", 1), own.len())?, axis(op.int("time_axis", 0), own.len())?);
    let lengths = i.integers(op, 1)?;
    if lengths.len() != own[batch] || batch == time {
        return refused!("found {} lengths for {own:?}, wanted one for each of the batch", lengths.len());
    }
    i.budget.spend(elements_of(&own)?.saturating_mul(16))?;
    let list: Vec<i64> = indices(&own)
        .map(|at| {
            let length = lengths[at[batch]];
            let step = at[time] as i64;
            if step < length { length - 1 - step } else { step }
        })
        .collect();
    let (x, index) = (i.slot(op, 0)?, Operand::integers(own.clone(), list));
    let slot = elements_at(i, "", x, index, &own, &own, time)?;
    i.set(op, 0, slot)
}

/// `NonZero` of a tensor that is known.
pub(super) fn non_zero<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let constant = i.constant(op, 0)?;
    let extents = constant.extents();
    let values = super::convolution::floats_of(i, &constant)?;
    let found: Vec<Vec<usize>> =
        indices(&extents).zip(&values).filter(|(_, value)| **value != 0.0).map(|(at, _)| at).collect();
    i.budget.spend(found.len().saturating_mul(16 * extents.len().max(1)))?;
    let list = (0..extents.len()).flat_map(|axis| found.iter().map(move |at| at[axis] as i64)).collect();
    i.set(op, 0, Operand::integers(vec![extents.len(), found.len()], list))
}

/// `NegativeLogLikelihoodLoss` and `SoftmaxCrossEntropyLoss`: of logarithms, or of what a softmax makes them of.
pub(super) fn loss<'a>(i: &mut Import<'a>, op: &Op<'a>, of_scores: bool) -> Done {
    let own = i.extents_of(op, 0)?;
    if own.len() < 2 {
        return refused!("found an input of {own:?}, wanted at least rank 2");
    }
    let mut x = i.slot(op, 0)?;
    if of_scores {
        let mapped = i.mapped_slot(x, None)?;
        let options =
            crate::ops::softmax::Softmax { axis: mapped.place(1) as isize, log: true, ..Default::default() };
        let value = i.add("log", |graph, name| graph.softmax(name, mapped.value, options))?;
        x = Operand::Value(Mapped { value, ..mapped });
        i.set(op, 1, x.clone())?;
    }
    let mut wanted = own.clone();
    wanted[1] = 1;
    let target = i.slot(op, 1)?;
    let target = i.with_extents("target", target, &wanted)?;
    let known = match op.has_attribute("ignore_index") {
        true => Some(i.apply(
            "known",
            Function::NotEqual,
            &[target.clone().into(), (op.int("ignore_index", 0) as f32).into()],
        )?),
        false => None,
    };
    // What is left out must still be an index.
    let index = match &known {
        Some(known) => {
            i.apply("index", Function::Select, &[known.clone().into(), target.clone().into(), 0.0.into()])?
        }
        None => target,
    };
    let taken = elements_at(i, "taken", x, index.clone(), &own, &wanted, 1)?;
    let mut losses = i.apply("losses", Function::Neg, &[taken.into()])?;
    let mut weights: Option<Operand> = None;
    if op.has(2) {
        let list = i.slot(op, 2)?;
        weights = Some(i.rows_at("weights", list, 1, index)?);
    }
    if let Some(known) = known {
        let one = weights.take().map_or(Arg::Number(1.0), Arg::from);
        let part = i.apply("weights", Function::Select, &[known.into(), one, 0.0.into()])?;
        weights = Some(part.of_kind(Kind::F32));
    }
    if let Some(weights) = &weights {
        losses = i.apply("weighted", Function::Mul, &[losses.into(), weights.clone().into()])?;
    }
    let all: Vec<usize> = (0..own.len()).collect();
    let sum = |i: &mut Import<'a>, part: &str, slot| {
        crate::model::build::reduced(i, part, slot, crate::ops::reduce::Reduction::Sum, &all, false)
    };
    let slot = match op.text("reduction", "mean")? {
        "none" => {
            let mut extents = own.clone();
            extents.remove(1);
            i.with_extents("", losses, &extents)?
        }
        "sum" => sum(i, "", losses)?,
        "mean" => {
            let whole = sum(i, "sum", losses)?;
            match weights {
                Some(weights) => {
                    let count = sum(i, "count", weights)?;
                    i.apply("", Function::Div, &[whole.into(), count.into()])?
                }
                None => {
                    let count = elements_of(&wanted)? as f32;
                    i.apply("", Function::Mul, &[whole.into(), (1.0 / count).into()])?
                }
            }
        }
        other => return refused!("found reduction {other:?}"),
    };
    i.set(op, 0, slot)
}
