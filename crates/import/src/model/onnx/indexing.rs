//! Elements by computed or given indices.

use super::import::{Import, Op};
use crate::model::build::{
    Arg, Combine, Count, Data, Kind, Mapped, Operand, axis, elements_at, gathered, gathered_rows, rows_at,
    scattered_elements, scattered_rows, sequences_reversed,
};
use crate::model::constant::{elements_of, indices};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

type Done = Result<(), Reason>;

/// `Gather`: elements along an axis by their indices, of which negative ones count from the end.
pub(super) fn gather<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let place = axis(op.int("axis", 0), i.extents_of(op, 0)?.len())?;
    let indices = i.slot(op, 1)?;
    // A constant that is read by value is one of the graph once.
    let x = match &indices {
        Operand::Constant(..) => i.slot(op, 0)?,
        Operand::Value(_) => Operand::Value(i.mapped(op, 0)?),
    };
    let slot = gathered(i, x, indices, (place, 0), Count::FromEnd)?;
    i.set(op, 0, slot)
}

/// `GatherElements`: of each place another index along one axis.
pub(super) fn gather_elements<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let place = axis(op.int("axis", 0), i.extents_of(op, 0)?.len())?;
    let (x, index) = (i.slot(op, 0)?, i.slot(op, 1)?);
    let slot = elements_at(i, "", x, index, place)?;
    i.set(op, 0, slot)
}

/// `GatherND`: rows of indices, one for each of the first axes behind those that are shared.
pub(super) fn gather_nd<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let shared = usize::try_from(op.int("batch_dims", 0)).unwrap_or(usize::MAX);
    let (x, index) = (Operand::Value(i.mapped(op, 0)?), i.slot(op, 1)?);
    let slot = gathered_rows(i, x, index, shared, Count::FromEnd)?;
    i.set(op, 0, slot)
}

/// How updates and elements are combined.
fn combine(op: &Op<'_>) -> Result<Combine, Reason> {
    Ok(match op.text("reduction", "none")? {
        "none" => Combine::Replace,
        "add" => Combine::Add,
        "mul" => Combine::Mul,
        "max" => Combine::Max,
        "min" => Combine::Min,
        other => return refused!("found reduction {other:?}, wanted none, add, mul, max or min"),
    })
}

/// `ScatterElements`; at indices that are computed at each run, on the CPU.
pub(super) fn scatter_elements<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (data, index, updates) = (i.slot(op, 0)?, i.slot(op, 1)?, i.slot(op, 2)?);
    let own = i.shape(&data)?;
    let (place, combine) = (axis(op.int("axis", 0), own.len())?, combine(op)?);
    if own.contains(&0) {
        return i.set(op, 0, data);
    }
    let slot = scattered_elements(i, data, (index, updates), place, combine)?;
    i.set(op, 0, slot)
}

/// `ScatterND`; at indices that are computed at each run, on the CPU.
pub(super) fn scatter_nd<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (data, index, updates) = (i.slot(op, 0)?, i.slot(op, 1)?, i.slot(op, 2)?);
    let (own, how) = (i.shape(&data)?, (combine(op)?, Count::FromEnd));
    if own.contains(&0) {
        return i.set(op, 0, data);
    }
    let slot = scattered_rows(i, Data::Operand(data), (index, updates), &own, how)?;
    i.set(op, 0, slot)
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
    let (mapped, list) = (i.mapped_slot(x, None)?, Operand::integers(vec![kept.len()], kept));
    let list = i.mapped_slot(list, None)?.value;
    let along = mapped.place(place) as isize;
    let value = i.add("", |graph, name| graph.gather(name, mapped.value, list, along, 0))?;
    i.write(op, 0, Mapped { value, ..mapped })
}

/// `ReverseSequence`.
pub(super) fn reverse_sequence<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (x, lengths) = (i.slot(op, 0)?, i.slot(op, 1)?);
    let rank = i.shape(&x)?.len();
    let axes = [axis(op.int("batch_axis", 1), rank)?, axis(op.int("time_axis", 0), rank)?];
    let slot = sequences_reversed(i, x, lengths, axes)?;
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
    let taken = elements_at(i, "taken", x, index.clone(), 1)?;
    let mut losses = i.apply("losses", Function::Neg, &[taken.into()])?;
    let mut weights: Option<Operand> = None;
    if op.has(2) {
        let list = i.slot(op, 2)?;
        weights = Some(rows_at(i, "weights", list, 1, index)?);
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
