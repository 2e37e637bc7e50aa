//! Types of elements: casts, and functions as the type of their arguments has them.
//!
//! Integers of at most 16 bits are f32 in a graph; what they do not hold wraps. Those of 32 and 64 bits are integers.

use super::bitwise::{of_integers, wrapped};
use super::builder::Builder;
use super::each::{Arg, all_constant};
use super::kind::Kind;
use super::operand::{Mapped, Operand};
use crate::dtype::DType;
use crate::host::HostTensor;
use crate::model::constant::{Constant, Integers};
use crate::model::narrow_integers;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::integer::IntegerFunction;

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
            let mut mapped = b.typed(mapped)?;
            if to == Kind::U32 && from.narrow().is_some_and(|narrow| narrow.signed) {
                // Negative integers wrap, where negative floats become 0.
                mapped.value = b.add("integer", |graph, name| graph.cast(name, mapped.value, DType::I32))?;
            }
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
        // As at the run, which has such integers of 32 bits.
        Constant::Floats(tensor) if to == Kind::I32 => {
            tensor.to_nhwc().iter().map(|&value| i64::from(value as i32)).collect()
        }
        Constant::Floats(tensor) if to == Kind::U32 => {
            tensor.to_nhwc().iter().map(|&value| i64::from(value as u32)).collect()
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
    if function == Function::Pow
        && let Some(integers) = integers_of(args)
    {
        return of_integers(b, IntegerFunction::Pow, &integers);
    }
    if let (Function::Pow, false, [Arg::Operand(base), exponent]) = (function, kind.is_float(), args)
        && may_be_fraction(exponent)
    {
        let base = converted(b, base.clone(), Kind::F32)?;
        let power = b.apply("power", function, &[base.into(), exponent.clone()])?;
        return converted(b, power, kind);
    }
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
        _ => b.apply(last, function, args)?,
    };
    match narrow {
        Some(narrow) => wrapped(b, narrow, whole),
        None => Ok(whole),
    }
}

/// Whether an exponent is of floats that are not known to be whole numbers.
fn may_be_fraction(exponent: &Arg) -> bool {
    let is_whole = |tensor: &HostTensor| tensor.to_nhwc().iter().all(|value| value.fract() == 0.0);
    match exponent {
        Arg::Operand(Operand::Constant(Constant::Floats(tensor), kind)) => {
            kind.is_float() && !is_whole(tensor)
        }
        Arg::Operand(operand) => operand.kind().is_float(),
        Arg::Number(_) => false,
    }
}

/// The tensors of arguments of one type of integers.
fn integers_of(args: &[Arg]) -> Option<Vec<Operand>> {
    let kind = args.first().and_then(Arg::kind).filter(|kind| !kind.is_float() && !kind.is_handle())?;
    let integer = |arg: &Arg| match arg {
        Arg::Operand(operand) if operand.kind() == kind => Some(operand.clone()),
        _ => None,
    };
    args.iter().map(integer).collect()
}

/// The quotient of integers, cut off towards zero.
pub(crate) fn quotient(b: &mut Builder, part: &str, args: [Arg; 2]) -> Result<Operand, Reason> {
    if all_constant(&args).is_some() {
        return b.apply(part, Function::Div, &args);
    }
    narrow_integers::quotient(part, args, &mut |part: &str, function, args: &[Arg]| {
        b.apply(part, function, args).map(Arg::Operand)
    })?
    .operand()
}
