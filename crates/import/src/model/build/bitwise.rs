//! Functions of the bits of integers, and others that integers alone have.

use super::builder::Builder;
use super::each::Arg;
use super::kind::Kind;
use super::operand::{Mapped, Operand};
use crate::dtype::DType;
use crate::graph::Term;
use crate::model::constant::{Constant, Integers, broadcast, broadcast_position, elements_of, indices};
use crate::model::narrow_integers::Narrow;
use crate::model::reason::Reason;
use crate::ops::integer::IntegerFunction;

/// A function of integers of one type: a constant if all are.
pub(crate) fn of_integers(
    b: &mut Builder,
    function: IntegerFunction,
    args: &[Operand],
) -> Result<Operand, Reason> {
    let kind = args.first().map_or(Kind::F32, Operand::kind);
    if kind.is_float() || kind.is_handle() {
        return refused!("found {kind:?}, wanted integers");
    }
    if let Some(known) = all_known(args) {
        return Ok(Operand::Constant(Constant::Integers(folded(b, function, kind, &known)?), kind));
    }
    // Integers of fewer bits have them in 32.
    let word = if kind.is_wide() { kind.dtype() } else { DType::I32 };
    let rank = args.iter().map(|arg| Ok(b.shape(arg)?.len())).collect::<Result<Vec<usize>, Reason>>()?;
    let rank = rank.into_iter().max().unwrap_or(0);
    let mut terms = Vec::with_capacity(args.len());
    for arg in args {
        if let Operand::Constant(Constant::Integers(integers), _) = arg
            && let ([number], true) = (&integers.values[..], integers.dims.len() < rank.max(1))
        {
            terms.push(Term::Integer(*number));
            continue;
        }
        let mapped = b.mapped(arg.clone())?;
        let mapped = b.typed(mapped)?;
        let mut value = b.logical(&mapped)?;
        if !kind.is_wide() {
            value = b.add("integers", |graph, name| graph.cast(name, value, word))?;
        }
        terms.push(Term::Value(value));
    }
    let last = if kind.is_wide() { "" } else { "bits" };
    let mut value = b.add(last, |graph, name| graph.integer(name, function, &terms))?;
    if !kind.is_wide() {
        value = b.add("", |graph, name| graph.cast(name, value, kind.dtype()))?;
    }
    let rank = b.dims(value)?.rank();
    let result = Operand::Value(Mapped::plain(value, rank, kind));
    match kind.narrow().filter(|narrow| narrow.bits < 8) {
        Some(narrow) => wrapped(b, narrow, result),
        None => Ok(result),
    }
}

/// The integers of all arguments, if all are known.
fn all_known(args: &[Operand]) -> Option<Vec<&Integers>> {
    let mut all = Vec::with_capacity(args.len());
    for arg in args {
        let Operand::Constant(Constant::Integers(integers), _) = arg else { return None };
        all.push(integers);
    }
    Some(all)
}

fn folded(
    b: &mut Builder,
    function: IntegerFunction,
    kind: Kind,
    args: &[&Integers],
) -> Result<Integers, Reason> {
    let mut extents = Vec::new();
    for own in args {
        extents = broadcast(&extents, &own.dims)?;
    }
    b.budget.spend(elements_of(&extents)?.saturating_mul(16))?;
    let at = |own: &Integers, index: &[usize]| {
        own.values.get(broadcast_position(&own.dims, index)).copied().unwrap_or(0)
    };
    let unsigned = kind == Kind::U64;
    let value = |index: Vec<usize>| {
        let mut given = [0; 3];
        given.iter_mut().zip(args).for_each(|(given, own)| *given = at(own, &index));
        let value = match function {
            // The numbers of this type are kept by their bits.
            IntegerFunction::ShiftRight if unsigned => {
                u32::try_from(given[1]).ok().and_then(|by| (given[0] as u64).checked_shr(by)).unwrap_or(0)
                    as i64
            }
            function => function.of(DType::I64, given),
        };
        kind.wrapped(value)
    };
    Ok(Integers::new(extents.clone(), indices(&extents).map(value).collect::<Vec<i64>>()))
}

/// Whole numbers as integers of a type that may not hold them.
pub(super) fn wrapped(b: &mut Builder, narrow: Narrow, whole: Operand) -> Result<Operand, Reason> {
    narrow
        .wrapped(whole.into(), &mut |part: &str, function, args: &[Arg]| {
            b.apply(part, function, args).map(Arg::Operand)
        })?
        .operand()
}
