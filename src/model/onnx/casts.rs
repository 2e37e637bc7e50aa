//! Types of elements: `Cast` and what else changes them.
//!
//! Values are f32 on a device. What integers of at most 16 bits do not hold wraps; those of 32 and 64 bits are exact to
//! 2^24, and do not wrap.

use super::elementwise::Arg;
use super::import::{Import, Op, Slot};
use super::kind::Kind;
use super::order::Mapped;
use crate::model::constant::{Constant, Integers};
use crate::model::narrow::{self, Narrow};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// `Cast`: to an integer towards zero, to a boolean whether it is not 0.
pub(super) fn cast<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let to = Kind::of(op.int("to", 1))?;
    to_kind(import, op, to)
}

/// `CastLike`: to the type of the second input.
pub(super) fn cast_like<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let to = import.kind_of(op, 1)?;
    to_kind(import, op, to)
}

fn to_kind<'a>(import: &mut Import<'a>, op: &Op<'a>, to: Kind) -> Result<(), Reason> {
    let slot = import.slot(op, 0)?;
    let slot = converted(import, slot, to)?;
    import.set(op, 0, slot)
}

/// A tensor with elements of another type.
pub(super) fn converted(import: &mut Import<'_>, slot: Slot, to: Kind) -> Result<Slot, Reason> {
    Ok(match slot {
        Slot::Constant(constant, _) if constant.elements() == 0 => Slot::Constant(constant, to),
        Slot::Constant(constant, _) if to.is_float() => {
            let tensor = constant.floats(&mut import.budget)?;
            Slot::Constant(Constant::Floats(rounded(&tensor, to)?), to)
        }
        Slot::Constant(constant, _) => {
            let truth = |value: f32| i64::from(value != 0.0);
            let values: Vec<i64> = match &constant {
                Constant::Integers(integers) => {
                    integers.values.iter().map(|&value| to.wrapped(value)).collect()
                }
                Constant::Floats(tensor) if to == Kind::Bool => {
                    tensor.to_nhwc().iter().map(|&v| truth(v)).collect()
                }
                Constant::Floats(tensor) => {
                    tensor.to_nhwc().iter().map(|&value| to.wrapped(value as i64)).collect()
                }
            };
            import.budget.spend(8 * values.len())?;
            Slot::Constant(Constant::Integers(Integers::new(constant.extents(), values)), to)
        }
        Slot::Value(mapped) => {
            let from = mapped.kind;
            let own = Slot::Value(mapped);
            let wraps = to.narrow().filter(|_| !from.fits(to));
            let slot = match (from.is_float(), to) {
                (_, Kind::Bool) if from != Kind::Bool => {
                    import.apply("", Function::NotEqual, &[own.into(), 0.0.into()])?
                }
                (true, to) if !to.is_float() => {
                    let part = if wraps.is_some() { "truncated" } else { "" };
                    import.apply(part, Function::Truncate, &[own.into()])?
                }
                _ => own,
            };
            let slot = match wraps {
                Some(narrow) => wrapped(import, narrow, slot)?,
                None => slot,
            };
            match slot {
                Slot::Value(mapped) => Slot::Value(Mapped { kind: to, ..mapped }),
                constant => constant,
            }
        }
    })
}

/// Floats as another type of float holds them.
fn rounded(tensor: &crate::host::HostTensor, to: Kind) -> Result<crate::host::HostTensor, Reason> {
    let round: fn(f32) -> f32 = match to {
        Kind::F16 => |value| half::f16::from_f32(value).to_f32(),
        Kind::Bf16 => |value| half::bf16::from_f32(value).to_f32(),
        _ => return Ok(tensor.clone()),
    };
    let values: Vec<f32> = tensor.to_nhwc().iter().map(|&value| round(value)).collect();
    crate::host::HostTensor::new(tensor.dims(), values).map_err(Reason::from)
}

/// Whole numbers as integers of a type that may not hold them.
pub(super) fn wrapped(import: &mut Import<'_>, narrow: Narrow, slot: Slot) -> Result<Slot, Reason> {
    let wrapped = narrow.wrapped(slot.into(), &mut |part: &str, function, args: &[Arg]| {
        import.apply(part, function, args).map(Arg::Slot)
    })?;
    wrapped.slot()
}

/// The product of two integers of a type that may not hold it.
pub(super) fn product(import: &mut Import<'_>, narrow: Narrow, factors: [Arg; 2]) -> Result<Slot, Reason> {
    let product = narrow.product(factors, &mut |part: &str, function, args: &[Arg]| {
        import.apply(part, function, args).map(Arg::Slot)
    })?;
    product.slot()
}

/// The quotient of two integers.
pub(super) fn quotient(import: &mut Import<'_>, part: &str, args: &[Arg]) -> Result<Slot, Reason> {
    let [a, b] = args else { return refused!("found {} inputs, wanted 2", args.len()) };
    let quotient =
        narrow::quotient(part, [a.clone(), b.clone()], &mut |part: &str, function, args: &[Arg]| {
            import.apply(part, function, args).map(Arg::Slot)
        })?;
    quotient.slot()
}
