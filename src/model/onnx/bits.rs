//! Operators on the bits of integers that are known while the file is read.

use super::import::{Import, Op};
use crate::model::build::{Kind, Operand};
use crate::model::constant::{Constant, Integers, broadcast, broadcast_position, elements_of, indices};
use crate::model::reason::Reason;
use half::{bf16, f16};

type Done = Result<(), Reason>;

fn integers<'a>(i: &Import<'a>, op: &Op<'a>, index: usize) -> Result<Integers, Reason> {
    match i.constant(op, index)? {
        Constant::Integers(integers) => Ok(integers),
        Constant::Floats(tensor) => refused!("found floats of {}, wanted integers", tensor.dims()),
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
    i.set(op, 0, Operand::integers(extents, values).of_kind(kind))
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
        (other, _) => refused!("found direction {other:?}, wanted LEFT or RIGHT"),
    }
}

pub(super) fn not<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let kind: Kind = i.kind_of(op, 0)?;
    let own = integers(i, op, 0)?;
    let values = own.values.iter().map(|&value| kind.wrapped(!value)).collect();
    i.set(op, 0, Operand::integers(own.dims, values).of_kind(kind))
}

/// `BitCast` of a constant: the bits of each element as those of another type of the same width.
pub(super) fn cast<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (from, to) = (i.kind_of(op, 0)?, Kind::of(op.int("to", 1))?);
    if from == to {
        return super::shapes::identity(i, op);
    }
    let width = |kind: Kind| match kind {
        Kind::F16 | Kind::Bf16 => Some(2),
        Kind::F32 => Some(4),
        // Constants have fewer bits than these.
        Kind::F64 => None,
        kind => Some(super::tensors::width(kind)),
    };
    if width(from).is_none() || width(from) != width(to) {
        return refused!("found {from:?} as {to:?}, wanted types of one width of at most 4 bytes for floats");
    }
    let constant = i.constant(op, 0)?;
    let extents = constant.extents();
    i.budget.spend(constant.elements().saturating_mul(16))?;
    let bits: Vec<i64> = match &constant {
        Constant::Integers(integers) => integers.values.to_vec(),
        Constant::Floats(tensor) => tensor.to_nhwc().iter().map(|&value| bits_of(value, from)).collect(),
    };
    let constant = match to.is_float() {
        true => crate::model::build::floats(&extents, bits.iter().map(|&bits| float_of(bits, to)).collect())?,
        false => {
            crate::model::build::integers(&extents, bits.iter().map(|&bits| to.wrapped(bits)).collect())?
        }
    };
    i.write_constant(op, 0, constant, to)
}

fn bits_of(value: f32, kind: Kind) -> i64 {
    match kind {
        Kind::F16 => i64::from(f16::from_f32(value).to_bits()),
        Kind::Bf16 => i64::from(bf16::from_f32(value).to_bits()),
        _ => i64::from(value.to_bits()),
    }
}

fn float_of(bits: i64, kind: Kind) -> f32 {
    match kind {
        Kind::F16 => f16::from_bits(bits as u16).to_f32(),
        Kind::Bf16 => bf16::from_bits(bits as u16).to_f32(),
        _ => f32::from_bits(bits as u32),
    }
}
