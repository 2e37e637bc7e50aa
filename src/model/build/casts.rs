//! Types of elements: casts, and functions as the type of their arguments has them.
//!
//! Integers of at most 16 bits are f32 in a graph; what they do not hold wraps. Those of 32 and 64 bits are integers.

use super::builder::Builder;
use super::each::{Arg, all_constant};
use super::kind::Kind;
use super::operand::{Mapped, Operand};
use crate::host::HostTensor;
use crate::model::constant::{Constant, Integers};
use crate::model::narrow::{self, Narrow};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// Whether values of one type are others of another type.
pub(crate) fn changes(from: Kind, to: Kind) -> bool {
    let truncates = from.is_float() && !to.is_float();
    from != to && (to == Kind::Bool || truncates || to.narrow().is_some_and(|_| !from.fits(to)))
}

/// A tensor with elements of another type: to an integer towards zero, to a boolean whether it is not 0.
pub(crate) fn converted(b: &mut Builder, operand: Operand, to: Kind) -> Result<Operand, Reason> {
    let from = operand.kind();
    let constant = match operand {
        Operand::Constant(constant, _) => constant,
        Operand::Value(mapped) if from.is_wide() || to.is_wide() => {
            let mapped = b.typed(mapped)?;
            let value = b.add("", |graph, name| graph.cast(name, mapped.value, to.dtype()))?;
            let cast = Operand::Value(Mapped { value, kind: to, ..mapped });
            return match to.narrow().filter(|narrow| narrow.bits < 8) {
                Some(narrow) => wrapped(b, narrow, cast),
                None => Ok(cast),
            };
        }
        value if !changes(from, to) => return Ok(value.of_kind(to)),
        value if to == Kind::Bool => {
            return b.apply("", Function::NotEqual, &[value.into(), 0.0.into()]);
        }
        mut value => {
            let wraps = to.narrow().filter(|_| !from.fits(to));
            if from.is_float() {
                let part = if wraps.is_some() { "truncated" } else { "" };
                value = b.apply(part, Function::Truncate, &[value.into()])?;
            }
            if let Some(narrow) = wraps {
                value = wrapped(b, narrow, value)?;
            }
            return Ok(value.of_kind(to));
        }
    };
    if constant.elements() == 0 {
        return Ok(Operand::Constant(constant, to));
    }
    if to.is_float() {
        let tensor = constant.floats(&mut b.budget)?;
        return Ok(Operand::Constant(Constant::Floats(rounded(&tensor, to)?), to));
    }
    b.budget.spend(8 * constant.elements())?;
    let values: Vec<i64> = match &constant {
        Constant::Integers(integers) => integers.values.iter().map(|&value| to.wrapped(value)).collect(),
        Constant::Floats(tensor) if to == Kind::Bool => {
            tensor.to_nhwc().iter().map(|&value| i64::from(value != 0.0)).collect()
        }
        Constant::Floats(tensor) => tensor.to_nhwc().iter().map(|&value| to.wrapped(value as i64)).collect(),
    };
    Ok(Operand::Constant(Constant::Integers(Integers::new(constant.extents(), values)), to))
}

/// Floats as another type of float holds them.
fn rounded(tensor: &HostTensor, to: Kind) -> Result<HostTensor, Reason> {
    let round: fn(f32) -> f32 = match to {
        Kind::F16 => |value| half::f16::from_f32(value).to_f32(),
        Kind::Bf16 => |value| half::bf16::from_f32(value).to_f32(),
        _ => return Ok(tensor.clone()),
    };
    let values: Vec<f32> = tensor.to_nhwc().iter().map(|&value| round(value)).collect();
    Ok(HostTensor::new(tensor.dims(), values)?)
}

/// A function as the type of its first argument has it: quotients of integers are cut off towards zero, and what narrow
/// integers do not hold wraps.
pub(crate) fn computed(b: &mut Builder, function: Function, args: &[Arg]) -> Result<Operand, Reason> {
    let kind = args.first().and_then(Arg::kind).unwrap_or(Kind::F32);
    // A value of the graph has such a type, and its functions are those of integers.
    if kind.is_float() || kind.is_wide() || all_constant(args).is_some() {
        return b.apply("", function, args);
    }
    let narrow = kind.narrow().filter(|narrow| narrow.may_leave(function));
    if let (Some(narrow), Function::Mul, [one, other]) = (narrow, function, args) {
        return narrow
            .product([one.clone(), other.clone()], &mut |part: &str, function, args: &[Arg]| {
                b.apply(part, function, args).map(Arg::Operand)
            })?
            .operand();
    }
    let last = if narrow.is_some() { "whole" } else { "" };
    let whole = match (function, args) {
        (Function::Div, [one, other]) => quotient(b, last, [one.clone(), other.clone()])?,
        (Function::Pow, _) => {
            let power = b.apply("power", Function::Pow, args)?;
            b.apply(last, Function::Round, &[power.into()])?
        }
        _ => b.apply(last, function, args)?,
    };
    match narrow {
        Some(narrow) => wrapped(b, narrow, whole),
        None => Ok(whole),
    }
}

/// Whole numbers as integers of a type that may not hold them.
pub(crate) fn wrapped(b: &mut Builder, narrow: Narrow, whole: Operand) -> Result<Operand, Reason> {
    narrow
        .wrapped(whole.into(), &mut |part: &str, function, args: &[Arg]| {
            b.apply(part, function, args).map(Arg::Operand)
        })?
        .operand()
}

/// The quotient of integers, cut off towards zero.
pub(crate) fn quotient(b: &mut Builder, part: &str, args: [Arg; 2]) -> Result<Operand, Reason> {
    if all_constant(&args).is_some() {
        return b.apply(part, Function::Div, &args);
    }
    narrow::quotient(part, args, &mut |part: &str, function, args: &[Arg]| {
        b.apply(part, function, args).map(Arg::Operand)
    })?
    .operand()
}
