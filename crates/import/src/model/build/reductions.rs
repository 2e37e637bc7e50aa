//! Reductions over axes.

use super::builder::Builder;
use super::casts::quotient;
use super::constants::{floats, integers};
use super::kind::Kind;
use super::operand::{Mapped, Operand, without};
use crate::model::budget::Budget;
use crate::model::constant::{Constant, Indices, Integers, broadcast_position, elements_of};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;

/// An operand reduced over axes. The mean of integers is one, cut off towards zero.
pub(crate) fn reduced(
    b: &mut Builder,
    part: &str,
    operand: Operand,
    reduction: Reduction,
    along: &[usize],
    keep: bool,
) -> Result<Operand, Reason> {
    if let Operand::Constant(Constant::Integers(own), kind) = &operand
        && (own.values.is_empty() || !kind.is_float())
    {
        let folded = match own.values.is_empty() {
            true => of_nothing(&own.dims, *kind, reduction, along, keep, &mut b.budget)?,
            false => of_integers(own, *kind, reduction, along, keep, &mut b.budget)?,
        };
        return Ok(Operand::Constant(folded, *kind));
    }
    let mapped = b.mapped(operand)?;
    let places: Vec<isize> = along.iter().map(|&axis| mapped.place(axis) as isize).collect();
    let order = if keep { mapped.order.clone() } else { without(&mapped.order, along) };
    let is_whole = reduction == Reduction::Mean && !mapped.kind.is_float();
    let (own, first) = if is_whole { ("sum", Reduction::Sum) } else { (part, reduction) };
    let value = b.add(own, |graph, name| graph.reduce(name, mapped.value, first, &places, keep))?;
    let result = Operand::Value(Mapped { value, order, kind: mapped.kind });
    if !is_whole {
        return Ok(result);
    }
    let extents = b.extents(&mapped)?;
    let count: usize = along.iter().filter_map(|&axis| extents.get(axis)).product();
    quotient(b, part, [result.into(), (count as f32).into()])
}

/// Integers that are known, reduced as their type does.
fn of_integers(
    own: &Integers,
    kind: Kind,
    reduction: Reduction,
    along: &[usize],
    keep: bool,
    budget: &mut Budget,
) -> Result<Constant, Reason> {
    let kept = |(axis, &extent): (usize, &usize)| if along.contains(&axis) { 1 } else { extent };
    let whole: Vec<usize> = own.dims.iter().enumerate().map(kept).collect();
    let elements = elements_of(&whole)?;
    budget.spend((elements + own.values.len()).saturating_mul(16))?;
    let count = own.values.len() / elements.max(1);
    let first = match reduction {
        Reduction::Sum | Reduction::Mean | Reduction::Any => 0,
        Reduction::Product | Reduction::All => 1,
        Reduction::Max => i64::MIN,
        Reduction::Min => i64::MAX,
    };
    let mut values = vec![first; elements];
    let mut every = Indices::new(&own.dims);
    for &value in own.values.iter() {
        let at = every.following().map_or(0, |index| broadcast_position(&whole, index));
        let Some(place) = values.get_mut(at) else { break };
        *place = match reduction {
            Reduction::Sum | Reduction::Mean => place.wrapping_add(value),
            Reduction::Product => place.wrapping_mul(value),
            Reduction::Max => value.max(*place),
            Reduction::Min => value.min(*place),
            Reduction::Any => i64::from(*place != 0 || value != 0),
            Reduction::All => i64::from(*place != 0 && value != 0),
        };
    }
    for value in &mut values {
        *value = match reduction {
            Reduction::Mean => *value / count.max(1) as i64,
            _ => kind.wrapped(*value),
        };
    }
    integers(&reduced_extents(&own.dims, along, keep), values)
}

fn reduced_extents(own: &[usize], along: &[usize], keep: bool) -> Vec<usize> {
    let extent = |(axis, &extent): (usize, &usize)| match along.contains(&axis) {
        true => keep.then_some(1),
        false => Some(extent),
    };
    own.iter().enumerate().filter_map(extent).collect()
}

/// What a reduction of no elements gives, for each index along the other axes.
fn of_nothing(
    own: &[usize],
    kind: Kind,
    reduction: Reduction,
    along: &[usize],
    keep: bool,
    budget: &mut Budget,
) -> Result<Constant, Reason> {
    let number = match reduction {
        Reduction::Sum | Reduction::Any => 0.0,
        Reduction::Product | Reduction::All => 1.0,
        Reduction::Max => f32::NEG_INFINITY,
        Reduction::Min => f32::INFINITY,
        Reduction::Mean => f32::NAN,
    };
    let extents = reduced_extents(own, along, keep);
    let count = elements_of(&extents)?;
    // They are made as a list, and copied.
    budget.spend(count.saturating_mul(16))?;
    if let Some([low, high]) = kind.range() {
        let number = match reduction {
            Reduction::Max => low,
            Reduction::Min => high,
            Reduction::Mean => return refused!("found the mean of no integers"),
            _ => number as i64,
        };
        return integers(&extents, vec![number; count]);
    }
    floats(&extents, vec![number; count])
}

/// The logarithm of the sum of powers of e: the largest element is taken off before and added after, unless it is
/// infinite.
pub(crate) fn log_sum_exp(
    b: &mut Builder,
    x: Operand,
    along: &[usize],
    keep: bool,
) -> Result<Operand, Reason> {
    let most = reduced(b, "most", x.clone(), Reduction::Max, along, true)?;
    let most = b.apply("finite", Function::Clamp, &[most.into(), f32::MIN.into(), f32::MAX.into()])?;
    let below = b.apply("below", Function::Sub, &[x.into(), most.clone().into()])?;
    let powers = b.apply("powers", Function::Exp, &[below.into()])?;
    let sum = reduced(b, "sum", powers, Reduction::Sum, along, keep)?;
    let log = b.apply("log", Function::Log, &[sum.into()])?;
    // Over one element each, only the axes are other ones.
    let most = if keep { most } else { reduced(b, "largest", most, Reduction::Max, along, false)? };
    b.apply("", Function::Add, &[log.into(), most.into()])
}
