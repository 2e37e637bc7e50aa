//! Operators on the bits of integers that are known while the file is read.

use super::import::{Import, Op, Slot};
use super::kind::Kind;
use crate::model::budget::Reason;
use crate::model::constant::{Constant, Integers, broadcast, broadcast_position, elements_of, indices};

type Done = Result<(), Reason>;

fn integers<'a>(i: &Import<'a>, op: &Op<'a>, index: usize) -> Result<Integers, Reason> {
    match i.constant(op, index)? {
        Constant::Integers(integers) => Ok(integers),
        Constant::Floats(tensor) => Err(format!("found floats of {}, wanted integers", tensor.dims())),
    }
}

/// A function of two integers.
pub(super) fn pairs<'a>(i: &mut Import<'a>, op: &Op<'a>, function: fn(i64, i64) -> i64) -> Done {
    let kind = i.kind_of(op, 0)?;
    let (a, b) = (integers(i, op, 0)?, integers(i, op, 1)?);
    let extents = broadcast(&a.dims, &b.dims)?;
    i.budget.spend(elements_of(&extents)?.saturating_mul(16))?;
    let at = |own: &Integers, index: &[usize]| {
        own.values.get(broadcast_position(&own.dims, index)).copied().unwrap_or(0)
    };
    let values =
        indices(&extents).map(|index| kind.wrapped(function(at(&a, &index), at(&b, &index)))).collect();
    i.set(op, 0, Slot::integers(extents, values).of_kind(kind))
}

/// `BitShift`: by as many places as there are, or more, nothing is left but the sign.
pub(super) fn shift<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    fn left(a: i64, b: i64) -> i64 {
        u32::try_from(b).ok().and_then(|b| a.checked_shl(b)).unwrap_or(0)
    }
    fn right(a: i64, b: i64) -> i64 {
        u32::try_from(b).ok().and_then(|b| a.checked_shr(b)).unwrap_or(a.signum().min(0))
    }
    fn right_of_unsigned(a: i64, b: i64) -> i64 {
        u32::try_from(b).ok().and_then(|b| (a as u64).checked_shr(b)).unwrap_or(0) as i64
    }
    match (op.text("direction", "")?, i.kind_of(op, 0)?) {
        ("LEFT", _) => pairs(i, op, left),
        ("RIGHT", Kind::U64) => pairs(i, op, right_of_unsigned),
        ("RIGHT", _) => pairs(i, op, right),
        (other, _) => Err(format!("found direction {other:?}, wanted LEFT or RIGHT")),
    }
}

pub(super) fn not<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let kind: Kind = i.kind_of(op, 0)?;
    let own = integers(i, op, 0)?;
    let values = own.values.iter().map(|&value| kind.wrapped(!value)).collect();
    i.set(op, 0, Slot::integers(own.dims, values).of_kind(kind))
}
