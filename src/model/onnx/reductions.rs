//! Reductions, and what is like them.

use super::import::{Import, Op, Slot};
use super::kind::Kind;
use super::operands::{axes, axis};
use super::order::{Mapped, without};
use crate::emit::Bits;
use crate::model::constant::Constant;
use crate::model::reason::Reason;
use crate::ops::cumsum::CumSum;
use crate::ops::elementwise::Function;
use crate::ops::one_hot::OneHot;
use crate::ops::reduce::Reduction;
use crate::ops::remap::PadMode;
use crate::ops::softmax::Softmax;

type Done = Result<(), Reason>;

/// What is done to elements before and after they are reduced.
#[derive(Clone, Copy)]
pub(super) struct Around {
    pub(super) before: Option<Function>,
    pub(super) after: Option<Function>,
}

pub(super) const PLAIN: Around = Around { before: None, after: None };

/// A reduction over axes, which are an input from version 13 or 18 on and an attribute before.
pub(super) fn reduce<'a>(i: &mut Import<'a>, op: &Op<'a>, reduction: Reduction, around: Around) -> Done {
    let keep = op.flag("keepdims", true);
    let rank = i.extents_of(op, 0)?.len();
    let listed = i.listed(op, 1, "axes")?.filter(|list| !list.is_empty());
    let along = match listed {
        Some(list) => axes(&list, rank)?,
        None if op.flag("noop_with_empty_axes", false) => Vec::new(),
        None => (0..rank).collect(),
    };
    let x = i.slot(op, 0)?;
    let mut slot = x;
    if let Some(function) = around.before {
        slot = i.apply("before", function, &[slot.into()])?;
    }
    let part = if around.after.is_some() { "reduced" } else { "" };
    if !along.is_empty() {
        slot = reduced(i, part, slot, reduction, &along, keep)?;
    }
    if let Some(function) = around.after {
        slot = i.apply("", function, &[slot.into()])?;
    }
    i.set(op, 0, slot)
}

/// A slot reduced over axes.
pub(super) fn reduced(
    i: &mut Import<'_>,
    part: &str,
    slot: Slot,
    reduction: Reduction,
    along: &[usize],
    keep: bool,
) -> Result<Slot, Reason> {
    if let Slot::Constant(constant, _) = &slot
        && constant.elements() == 0
    {
        // A result for each index along the other axes, of nothing.
        let own = constant.extents();
        let kept: Vec<usize> =
            own.iter().enumerate().filter(|(axis, _)| !along.contains(axis)).map(|(_, &own)| own).collect();
        // They are made as a list, and copied.
        i.budget.spend(crate::model::constant::elements_of(&kept)?.saturating_mul(16))?;
    }
    if let Slot::Constant(constant, kind) = &slot
        && let Some(folded) = folded(constant, *kind, reduction, along, keep)
    {
        return Ok(Slot::Constant(folded?, *kind));
    }
    let mapped = i.mapped_slot(slot, None)?;
    let places: Vec<isize> = along.iter().map(|&axis| mapped.place(axis) as isize).collect();
    let value = i.add(part, |graph, name| graph.reduce(name, mapped.value, reduction, &places, keep))?;
    let order = if keep { mapped.order } else { without(&mapped.order, along) };
    Ok(Slot::Value(Mapped { value, order, kind: mapped.kind }))
}

/// Integers of shapes, reduced over all axes.
fn folded(
    constant: &Constant,
    kind: Kind,
    reduction: Reduction,
    along: &[usize],
    keep: bool,
) -> Option<Result<Constant, Reason>> {
    let Constant::Integers(integers) = constant else { return None };
    if integers.values.is_empty() {
        return Some(of_nothing(&integers.dims, kind, reduction, along, keep));
    }
    if along.len() != integers.dims.len() {
        return None;
    }
    let values = integers.values.iter().copied();
    let value = match reduction {
        Reduction::Sum => values.fold(0, i64::wrapping_add),
        Reduction::Product => values.fold(1, i64::wrapping_mul),
        Reduction::Max => values.max()?,
        Reduction::Min => values.min()?,
        _ => return None,
    };
    let extents = if keep { vec![1; along.len()] } else { Vec::new() };
    Some(super::tensors::integers(&extents, vec![value]))
}

/// What a reduction of no elements gives.
fn of_nothing(
    own: &[usize],
    kind: Kind,
    reduction: Reduction,
    along: &[usize],
    keep: bool,
) -> Result<Constant, Reason> {
    let number = match reduction {
        Reduction::Sum | Reduction::Any => 0.0,
        Reduction::Product | Reduction::All => 1.0,
        Reduction::Max => f32::NEG_INFINITY,
        Reduction::Min => f32::INFINITY,
        Reduction::Mean => f32::NAN,
    };
    let extent = |(axis, &extent): (usize, &usize)| match along.contains(&axis) {
        true => keep.then_some(1),
        false => Some(extent),
    };
    let extents: Vec<usize> = own.iter().enumerate().filter_map(extent).collect();
    let count = crate::model::constant::elements_of(&extents)?;
    if let Some([low, high]) = kind.range() {
        let number = match reduction {
            Reduction::Max => low,
            Reduction::Min => high,
            Reduction::Mean => return refused!("found the mean of no integers"),
            _ => number as i64,
        };
        return super::tensors::integers(&extents, vec![number; count]);
    }
    super::tensors::floats(&extents, vec![number; count])
}

/// `ReduceLogSumExp`: the largest is taken off before and added after.
pub(super) fn log_sum_exp<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let keep = op.flag("keepdims", true);
    let rank = i.extents_of(op, 0)?.len();
    let along = match i.listed(op, 1, "axes")?.filter(|list| !list.is_empty()) {
        Some(list) => axes(&list, rank)?,
        None if op.flag("noop_with_empty_axes", false) => return super::shapes::identity(i, op),
        None => (0..rank).collect(),
    };
    let x = i.slot(op, 0)?;
    let most = reduced(i, "most", x.clone(), Reduction::Max, &along, true)?;
    let below = i.apply("below", Function::Sub, &[x.clone().into(), most.into()])?;
    let powers = i.apply("powers", Function::Exp, &[below.into()])?;
    let sum = reduced(i, "sum", powers, Reduction::Sum, &along, keep)?;
    let log = i.apply("log", Function::Log, &[sum.into()])?;
    let most = reduced(i, "largest", x, Reduction::Max, &along, keep)?;
    let slot = i.apply("", Function::Add, &[log.into(), most.into()])?;
    i.set(op, 0, slot)
}

/// `Softmax`, or its logarithm: along one axis from version 13 on, along all behind one before.
pub(super) fn softmax<'a>(i: &mut Import<'a>, op: &Op<'a>, log: bool) -> Done {
    let mapped = i.mapped(op, 0)?;
    let rank = mapped.rank();
    let place = axis(op.int("axis", if op.version >= 13 { -1 } else { 1 }), rank)?;
    let options = |axis| Softmax { axis, log, beta: Bits(1.0) };
    if op.version >= 13 || place + 1 == rank {
        let along = mapped.place(place) as isize;
        let value = i.add("", |graph, name| graph.softmax(name, mapped.value, options(along)))?;
        return i.write(op, 0, Mapped { value, ..mapped });
    }
    let (x, own) = (i.logical(&mapped)?, i.extents(&mapped)?);
    let (outer, inner) = own.split_at(place);
    let rows = i.reshaped("rows", x, &[outer.iter().product(), inner.iter().product()])?;
    let value = i.add("softmax", |graph, name| graph.softmax(name, rows, options(-1)))?;
    let value = i.reshaped("", value, &own)?;
    i.write_plain(op, 0, value, mapped.kind)
}

/// `Hardmax`: 1 at the first largest element along an axis, 0 elsewhere.
pub(super) fn hardmax<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (x, kind) = i.value(op, 0)?;
    let own = i.extents_of(op, 0)?;
    let place = axis(op.int("axis", if op.version >= 13 { -1 } else { 1 }), own.len())?;
    let (x, own, place, shape) = if op.version >= 13 {
        (x, own.clone(), place, own)
    } else {
        let (outer, inner) = own.split_at(place);
        let rows = vec![outer.iter().product(), inner.iter().product()];
        (i.reshaped("rows", x, &rows)?, rows, 1, own)
    };
    let index = i.add("index", |graph, name| graph.arg_max(name, x, place as isize, false))?;
    let options = OneHot { depth: own[place], on: Bits(1.0), off: Bits(0.0), axis: place as isize };
    let value = i.add("hot", |graph, name| graph.one_hot(name, index, options))?;
    let value = i.reshaped("", value, &shape)?;
    i.write_plain(op, 0, value, kind)
}

/// `ArgMax` and `ArgMin`: the index of the first, or of the last.
pub(super) fn arg<'a>(i: &mut Import<'a>, op: &Op<'a>, largest: bool) -> Done {
    let mapped = i.mapped(op, 0)?;
    let place = axis(op.int("axis", 0), mapped.rank())?;
    let keep = op.flag("keepdims", true);
    let along = mapped.place(place);
    let last = op.flag("select_last_index", false);
    let x = if last { super::moves::reversed(i, "turned", mapped.value, along)? } else { mapped.value };
    let part = if last { "index" } else { "" };
    let value = i.add(part, |graph, name| match largest {
        true => graph.arg_max(name, x, along as isize, keep),
        false => graph.arg_min(name, x, along as isize, keep),
    })?;
    let order = if keep { mapped.order.clone() } else { without(&mapped.order, &[place]) };
    let mut slot = Slot::Value(Mapped { value, order, kind: Kind::I64 });
    if last {
        let end = i.extents(&mapped)?[place] as f32 - 1.0;
        slot = i.apply("", Function::Sub, &[end.into(), slot.into()])?;
    }
    i.set(op, 0, slot)
}

pub(super) fn cumsum<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let mapped = i.mapped(op, 0)?;
    let place = i.integers(op, 1)?.first().copied().ok_or("found no axis")?;
    let along = mapped.place(axis(place, mapped.rank())?) as isize;
    let options =
        CumSum { axis: along, exclusive: op.flag("exclusive", false), reverse: op.flag("reverse", false) };
    let value = i.add("", |graph, name| graph.cumsum(name, mapped.value, options))?;
    i.write(op, 0, Mapped { value, ..mapped })
}

/// `CumProd`: each step multiplies by what lies twice as far back as in the one before.
pub(super) fn cumprod<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let place = i.integers(op, 1)?.first().copied().ok_or("found no axis")?;
    let place = axis(place, own.len())?;
    let reverse = op.flag("reverse", false);
    let mut slot = i.slot(op, 0)?;
    let kind = slot.kind();
    let moved = |i: &mut Import<'a>, slot: Slot, by: usize| -> Result<Slot, Reason> {
        let by = by.min(own[place]) as i64;
        let mut around = vec![(0, 0); own.len()];
        around[place] = if reverse { (-by, by) } else { (by, -by) };
        if by as usize == own[place] {
            return i.filled(&own, 1.0);
        }
        super::moves::padded(i, "moved", slot, &own, &around, PadMode::Constant(Bits(1.0)))
    };
    if op.flag("exclusive", false) {
        slot = moved(i, slot, 1)?;
    }
    let mut by = 1;
    while by < own[place] {
        let others = moved(i, slot.clone(), by)?;
        slot = i.apply("products", Function::Mul, &[slot.into(), others.into()])?;
        by *= 2;
    }
    i.set(op, 0, slot.of_kind(kind))
}

/// `OneHot`: negative indices count from the end.
pub(super) fn one_hot<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (depth, values) = (i.constant(op, 1)?.number(), i.list(op, 2)?);
    let kind = i.kind_of(op, 2)?;
    let (Some(depth), &[off, on]) = (depth, &values[..]) else {
        return refused!("found depth {depth:?} and values {values:?}, wanted one and two numbers");
    };
    if !(1.0..=16_777_216.0).contains(&depth) {
        return refused!("found depth {depth}, wanted one from 1 on");
    }
    let rank = i.extents_of(op, 0)?.len();
    let place = axis(op.int("axis", -1), rank + 1)? as isize;
    let index = i.slot(op, 0)?;
    let negative = i.apply("negative", Function::Less, &[index.clone().into(), 0.0.into()])?;
    let moved = i.apply("moved", Function::Add, &[index.clone().into(), depth.into()])?;
    let index = i.apply("index", Function::Select, &[negative.into(), moved.into(), index.into()])?;
    let index = i.mapped_slot(index, None)?;
    let index = i.logical(&index)?;
    let options = OneHot { depth: depth as usize, on: Bits(on), off: Bits(off), axis: place };
    let value = i.add("", |graph, name| graph.one_hot(name, index, options))?;
    i.write_plain(op, 0, value, kind)
}

/// `TopK`: along any axis, the largest or the smallest.
pub(super) fn top_k<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let count = if op.has(1) { i.integers(op, 1)?.first().copied() } else { Some(op.int("k", -1)) };
    let count = count.and_then(|count| usize::try_from(count).ok()).ok_or("found no number of elements")?;
    let own = i.extents_of(op, 0)?;
    let kind = i.kind_of(op, 0)?;
    let rank = own.len();
    let place = axis(op.int("axis", -1), rank)?;
    let largest = op.flag("largest", true);
    let mut slot = i.slot(op, 0)?;
    if !largest {
        slot = i.apply("negative", Function::Neg, &[slot.into()])?;
    }
    let mapped = i.mapped_slot(slot, None)?;
    let mut order: Vec<usize> = (0..rank).filter(|&axis| axis != place).collect();
    order.push(place);
    let x = i.in_order(&mapped, &order)?;
    let name = i.part("values")?;
    let [values, indices] = i.graph.top_k(&name, x, count)?;
    let mut values = Slot::Value(Mapped { value: values, order: order.clone(), kind });
    if !largest {
        values = i.apply("", Function::Neg, &[values.into()])?;
    }
    i.set(op, 0, values)?;
    i.write(op, 1, Mapped { value: indices, order, kind: Kind::I64 })
}
