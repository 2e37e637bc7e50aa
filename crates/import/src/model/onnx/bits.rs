//! Operators on the bits of integers.

use super::import::{Import, Op};
use crate::model::build::{Kind, of_integers};
use crate::model::constant::Constant;
use crate::model::reason::Reason;
use crate::ops::integer::IntegerFunction;
use half::{bf16, f16};

type Done = Result<(), Reason>;

/// A function of the bits of integers.
pub(super) fn of<'a>(i: &mut Import<'a>, op: &Op<'a>, function: IntegerFunction) -> Done {
    let args = (0..function.arity()).map(|index| i.slot(op, index)).collect::<Result<Vec<_>, Reason>>()?;
    let result = of_integers(i, function, &args)?;
    i.set(op, 0, result)
}

/// `BitShift`: by as many places as there are, or more, nothing is left but the sign.
pub(super) fn shift<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    match op.text("direction", "")? {
        "LEFT" => of(i, op, IntegerFunction::ShiftLeft),
        "RIGHT" => of(i, op, IntegerFunction::ShiftRight),
        other => refused!("found direction {other:?}, wanted LEFT or RIGHT"),
    }
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
