//! Operators that are given a tensor without elements, as a cache has none before the first token, and as `NonZero` may find
//! none. Their results follow from the extents alone, and a graph has no such values.

use super::import::{Import, Op};
use crate::model::build::{Kind, Operand, axis, floats, integers};
use crate::model::constant::{Constant, Integers, broadcast, elements_of};
use crate::model::reason::Reason;

/// Functions of each element, of numbers.
const EACH: [&str; 45] = [
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Ceil",
    "Celu",
    "Clip",
    "Cos",
    "Cosh",
    "Div",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "LeakyRelu",
    "Log",
    "Max",
    "Mean",
    "Min",
    "Mish",
    "Mod",
    "Mul",
    "Neg",
    "PRelu",
    "Pow",
    "Reciprocal",
    "Relu",
    "Round",
    "Sigmoid",
    "Sign",
    "Sin",
    "Softplus",
    "Sqrt",
    "Sub",
    "Sum",
    "Tan",
    "Tanh",
    "Swish",
];

/// Functions of each element whose results are booleans.
const TRUTHS: [&str; 12] = [
    "And",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "IsInf",
    "IsNaN",
    "Less",
    "LessOrEqual",
    "Not",
    "Or",
    "Xor",
    "BitwiseNot",
];

/// What has the extents of its first input.
const SAME: [&str; 13] = [
    "CumSum",
    "Dropout",
    "Hardmax",
    "Identity",
    "InstanceNormalization",
    "LayerNormalization",
    "LogSoftmax",
    "LpNormalization",
    "RMSNormalization",
    "Reverse",
    "RotaryEmbedding",
    "Softmax",
    "Trilu",
];

fn empty(extents: Vec<usize>) -> Result<Constant, Reason> {
    match elements_of(&extents)? {
        0 => Ok(Constant::Integers(Integers::new(extents, Vec::new()))),
        count => floats(&extents, vec![0.0; count]),
    }
}

/// The extents and the type of the first result of an operator that is given nothing; `None` where another rule says them.
fn result<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<Option<(Vec<usize>, Kind)>, Reason> {
    let name = op.node.op;
    let first = i.kind_of(op, 0)?;
    let own = i.extents_of(op, 0)?;
    let along = |default: i64| axis(op.int("axis", default), own.len());
    Ok(Some(match name {
        _ if EACH.contains(&name) || TRUTHS.contains(&name) || name == "Where" => {
            let mut extents = own.clone();
            let operands = if name == "Clip" { 1 } else { op.inputs() };
            for index in 1..operands {
                extents = broadcast(&extents, &i.extents_of(op, index)?)?;
            }
            let kind = match name {
                "Where" => i.kind_of(op, 1)?,
                _ if TRUTHS.contains(&name) => Kind::Bool,
                _ => first,
            };
            (extents, kind)
        }
        "Cast" => (own, Kind::of(op.int("to", 1))?),
        "CastLike" => (own, i.kind_of(op, 1)?),
        _ if SAME.contains(&name) => (own, first),
        "Gather" => {
            let place = along(0)?;
            let indices = i.extents_of(op, 1)?;
            ([&own[..place], &indices, &own[place + 1..]].concat(), first)
        }
        "GatherElements" => (i.extents_of(op, 1)?, first),
        "GatherND" => {
            let (indices, batch) = (i.extents_of(op, 1)?, op.int("batch_dims", 0).max(0) as usize);
            let deep = indices.last().copied().unwrap_or(0);
            let rest = own.get(batch + deep..).unwrap_or_default();
            ([indices.split_last().map_or(&[][..], |(_, outer)| outer), rest].concat(), first)
        }
        "MatMul" => {
            let other = i.extents_of(op, 1)?;
            let ([.., m, k], [.., k2, n]) = (&own[..], &other[..]) else { return Ok(None) };
            if k != k2 {
                return refused!("found products of {own:?} and {other:?}");
            }
            let mut extents = broadcast(&own[..own.len() - 2], &other[..other.len() - 2])?;
            extents.extend([*m, *n]);
            (extents, first)
        }
        _ => return Ok(None),
    }))
}

/// Works out an operator that is given a tensor without elements. Whether it was one whose result follows from extents.
pub(super) fn of_nothing<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    let is_empty = |name: &&str| match i.find(name) {
        Ok(Operand::Constant(constant, kind)) => !kind.is_handle() && constant.elements() == 0,
        _ => false,
    };
    // An input that may be left out may be given as nothing, too.
    let inputs = op.node.inputs.iter().filter(|name| !name.is_empty());
    if !op.node.domain.is_empty() || !inputs.clone().any(is_empty) || !op.has(0) {
        return Ok(false);
    }
    match op.node.op {
        "Scatter" | "ScatterElements" | "ScatterND" => {
            let data = i.slot(op, 0)?;
            i.set(op, 0, data)?;
            return Ok(true);
        }
        "TopK" => {
            let mut extents = i.extents_of(op, 0)?;
            let kind = i.kind_of(op, 0)?;
            let place = axis(op.int("axis", -1), extents.len())?;
            let count = match op.has(1) {
                true => i.integers(op, 1)?.first().copied().unwrap_or(0),
                false => op.int("k", 0),
            };
            let fits = usize::try_from(count).ok().filter(|count| *count <= extents[place]);
            extents[place] =
                fits.ok_or_else(|| format!("found k {count} along axis {place} of {extents:?}"))?;
            if elements_of(&extents)? > 0 {
                return Ok(false);
            }
            i.write_constant(op, 0, empty(extents.clone())?, kind)?;
            i.write_constant(op, 1, integers(&extents, Vec::new())?, Kind::I64)?;
            return Ok(true);
        }
        _ => (),
    }
    let Some((extents, kind)) = result(i, op)? else { return Ok(false) };
    // A product over nothing is zeros; any other result with elements is none of these.
    if elements_of(&extents)? > 0 && op.node.op != "MatMul" {
        return Ok(false);
    }
    i.budget.spend(elements_of(&extents)?.saturating_mul(4))?;
    let constant = empty(extents)?;
    i.write_constant(op, 0, constant, kind)?;
    Ok(true)
}
