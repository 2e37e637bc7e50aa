//! Reductions, and what is like them.

use super::import::{Import, Op};
use crate::emit::Bits;
use crate::model::build::{self, Builder, Extreme, Hot, Operand, axes, axis, from_start, reduced};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::one_hot::OneHot;
use crate::ops::reduce::Reduction;
use crate::ops::remap::PadMode;

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
    let (along, keep) = along(i, op)?;
    let mut slot = i.slot(op, 0)?;
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

/// The axes of a reduction, and whether they stay.
fn along<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<(Vec<usize>, bool), Reason> {
    let rank = i.extents_of(op, 0)?.len();
    let along = match i.listed(op, 1, "axes")?.filter(|list| !list.is_empty()) {
        Some(list) => axes(&list, rank)?,
        None if op.flag("noop_with_empty_axes", false) => Vec::new(),
        None => (0..rank).collect(),
    };
    Ok((along, op.flag("keepdims", true)))
}

/// `ReduceLogSumExp`.
pub(super) fn log_sum_exp<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (along, keep) = along(i, op)?;
    if along.is_empty() {
        return super::shapes::identity(i, op);
    }
    let x = i.slot(op, 0)?;
    let slot = build::log_sum_exp(i, x, &along, keep)?;
    i.set(op, 0, slot)
}

/// `Softmax`, or its logarithm: along one axis from version 13 on, along all behind one before.
pub(super) fn softmax<'a>(i: &mut Import<'a>, op: &Op<'a>, log: bool) -> Done {
    let x = i.slot(op, 0)?;
    let along = op.int("axis", if op.version >= 13 { -1 } else { 1 });
    let slot = softmax_of(i, x, (along, op.version), log)?;
    i.set(op, 0, slot)
}

/// The softmax of an operand by the rule of a version.
pub(super) fn softmax_of(
    b: &mut Builder,
    x: Operand,
    (along, version): (i64, i64),
    log: bool,
) -> Result<Operand, Reason> {
    let own = b.shape(&x)?;
    let place = axis(along, own.len())?;
    if version >= 13 || place + 1 == own.len() {
        return build::softmax(b, "", x, place, (1.0, log));
    }
    let (outer, inner) = own.split_at(place);
    let rows = b.with_extents("rows", x, &[outer.iter().product(), inner.iter().product()])?;
    let slot = build::softmax(b, "softmax", rows, 1, (1.0, log))?;
    b.with_extents("", slot, &own)
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
    let place = axis(op.int("axis", 0), i.extents_of(op, 0)?.len())?;
    let (last, keep) = (op.flag("select_last_index", false), op.flag("keepdims", true));
    let x = i.slot(op, 0)?;
    let slot = build::arg(i, x, place, Extreme { largest, last, keep })?;
    i.set(op, 0, slot)
}

pub(super) fn cumsum<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let place = i.integers(op, 1)?.first().copied().ok_or("found no axis")?;
    let place = axis(place, i.extents_of(op, 0)?.len())?;
    let x = i.slot(op, 0)?;
    let slot = build::cumsum(i, x, place, [op.flag("exclusive", false), op.flag("reverse", false)])?;
    i.set(op, 0, slot)
}

/// `CumProd`: each step multiplies by what lies twice as far back as in the one before.
pub(super) fn cumprod<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let place = i.integers(op, 1)?.first().copied().ok_or("found no axis")?;
    let place = axis(place, own.len())?;
    let reverse = op.flag("reverse", false);
    let mut slot = i.slot(op, 0)?;
    let kind = slot.kind();
    let moved = |i: &mut Import<'a>, slot: Operand, by: usize| -> Result<Operand, Reason> {
        let by = by.min(own[place]) as i64;
        let mut around = vec![(0, 0); own.len()];
        around[place] = if reverse { (-by, by) } else { (by, -by) };
        if by as usize == own[place] {
            return i.filled(&own, 1.0);
        }
        crate::model::build::padded(i, "moved", slot, &own, &around, PadMode::Constant(Bits(1.0)))
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
    let depth = depth as usize;
    let place = axis(op.int("axis", -1), i.extents_of(op, 0)?.len() + 1)?;
    let index = i.slot(op, 0)?;
    let index = from_start(i, index, depth)?;
    let slot = build::one_hot(i, index, Hot { depth, on, off, axis: place, kind })?;
    i.set(op, 0, slot)
}

/// `TopK`: along any axis, the largest or the smallest.
pub(super) fn top_k<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let count = if op.has(1) { i.integers(op, 1)?.first().copied() } else { Some(op.int("k", -1)) };
    let count = count.and_then(|count| usize::try_from(count).ok()).ok_or("found no number of elements")?;
    let place = axis(op.int("axis", -1), i.extents_of(op, 0)?.len())?;
    let x = i.slot(op, 0)?;
    let [values, indices] = build::top_k(i, x, place, count, op.flag("largest", true))?;
    i.set(op, 0, values)?;
    i.set(op, 1, indices)
}
