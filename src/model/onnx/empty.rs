//! Operators that are given a tensor without elements, as a cache has none before the first token, and as `NonZero` may find
//! none. Their results follow from the extents alone, and a graph has no such values.

use super::import::{Import, Op};
use crate::model::build::{Kind, Operand, axis, floats, integers};
use crate::model::constant::{Constant, Integers, broadcast, elements_of};
use crate::model::reason::Reason;

/// Functions of each element, of numbers.
const EACH: [&str; 55] = [
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BitShift",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
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
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Sub",
    "Sum",
    "Swish",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
];

/// Functions of each element whose results are booleans.
const TRUTHS: [&str; 11] = [
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
];

/// What has the extents of its first input.
const SAME: [&str; 12] = [
    "CumSum",
    "Dropout",
    "Hardmax",
    "Identity",
    "InstanceNormalization",
    "LayerNormalization",
    "LogSoftmax",
    "LpNormalization",
    "RMSNormalization",
    "RotaryEmbedding",
    "Softmax",
    "Trilu",
];

/// What computes each of a batch alone.
const BATCHES: [&str; 15] = [
    "AveragePool",
    "Conv",
    "ConvTranspose",
    "DepthToSpace",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "GridSample",
    "GroupNormalization",
    "LRN",
    "LpPool",
    "MaxPool",
    "Resize",
    "SpaceToDepth",
    "Upsample",
];

fn empty(extents: Vec<usize>) -> Result<Constant, Reason> {
    match elements_of(&extents)? {
        0 => Ok(Constant::Integers(Integers::new(extents, Vec::new()))),
        count => floats(&extents, vec![0.0; count]),
    }
}

impl Operand {
    /// A tensor without elements.
    pub(super) fn nothing(extents: Vec<usize>, kind: Kind) -> Self {
        Operand::Constant(Constant::Integers(Integers::new(extents, Vec::new())), kind)
    }
}

/// None of a tensor's elements along an axis.
pub(super) fn none_along(i: &Import<'_>, slot: &Operand, place: usize) -> Result<Operand, Reason> {
    let mut extents = i.shape(slot)?;
    extents[place] = 0;
    Ok(Operand::nothing(extents, slot.kind()))
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
        "NonZero" => (vec![own.len(), 0], Kind::I64),
        "OneHot" => {
            let depth = i.integers(op, 1)?.first().copied().unwrap_or(0);
            let place = axis(op.int("axis", -1), own.len() + 1)?;
            let mut extents = own;
            extents.insert(place, usize::try_from(depth).map_err(|_| format!("found depth {depth}"))?);
            (extents, i.kind_of(op, 2)?)
        }
        "ArgMax" | "ArgMin" => {
            let place = along(0)?;
            let mut extents = own;
            match op.flag("keepdims", true) {
                true => extents[place] = 1,
                false => drop(extents.remove(place)),
            }
            (extents, Kind::I64)
        }
        "Gemm" => {
            let other = i.extents_of(op, 1)?;
            let (&[a, b], &[c, d]) = (&own[..], &other[..]) else { return Ok(None) };
            let [m, k] = if op.flag("transA", false) { [b, a] } else { [a, b] };
            let [k2, n] = if op.flag("transB", false) { [d, c] } else { [c, d] };
            if k != k2 {
                return refused!("found products of {own:?} and {other:?}");
            }
            (vec![m, n], first)
        }
        "MatMul" => {
            let other = i.extents_of(op, 1)?;
            if let ([.., k], [k2]) = (&own[..], &other[..])
                && k == k2
            {
                return Ok(Some((own[..own.len() - 1].to_vec(), first)));
            }
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
    let is_nothing = |slot: Result<Operand, Reason>| match slot {
        Ok(Operand::Constant(constant, kind)) => !kind.is_handle() && constant.elements() == 0,
        _ => false,
    };
    // A matrix that is kept as integers has elements.
    let is_empty = |name: &&str| i.unread(name).is_none() && is_nothing(i.find(name));
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
    if BATCHES.contains(&op.node.op) {
        return of_no_batch(i, op);
    }
    let Some((extents, kind)) = result(i, op)? else { return Ok(false) };
    // A product over nothing is zeros; any other result with elements is none of these.
    if elements_of(&extents)? > 0 && op.node.op != "MatMul" {
        return Ok(false);
    }
    i.budget.spend(elements_of(&extents)?.saturating_mul(4))?;
    if op.node.op == "Dropout" && op.writes(1) {
        i.write_constant(op, 1, empty(extents.clone())?, Kind::Bool)?;
    }
    if op.node.op == "LayerNormalization" {
        let place = axis(op.int("axis", -1), extents.len())?;
        let each: Vec<usize> =
            extents.iter().enumerate().map(|(at, &extent)| if at < place { extent } else { 1 }).collect();
        for index in (1..3).filter(|&index| op.writes(index)) {
            if elements_of(&each)? > 0 {
                return Ok(false);
            }
            i.write_constant(op, index, empty(each.clone())?, Kind::F32)?;
        }
    }
    let constant = empty(extents)?;
    i.write_constant(op, 0, constant, kind)?;
    Ok(true)
}

/// Works out an operator that is given a batch of none: its results have the other extents that one of the batch gives.
fn of_no_batch<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    let (own, kind) = (i.extents_of(op, 0)?, i.kind_of(op, 0)?);
    let Some((0, rest)) = own.split_first().filter(|(_, rest)| !rest.contains(&0)) else { return Ok(false) };
    let Some(handler) = (i.handlers.find)(op.node.domain, op.node.op) else { return Ok(false) };
    let (name, one) = (op.input_name(0)?, [&[1], rest].concat());
    i.budget.spend(elements_of(&one)?.saturating_mul(4))?;
    // Nothing of what is added stays.
    let (graph, moved, cast, known) = (i.graph.clone(), i.moved.clone(), i.cast.clone(), i.known.clone());
    let transposes = i.transposes;
    let Some(scope) = i.scopes.last_mut() else { return Ok(false) };
    let uploaded = scope.uploaded.clone();
    scope.uploaded.remove(name);
    let before = scope.slots.insert(name, Operand::Constant(empty(one)?, kind));
    let done = handler(i, op);
    let mut written = Vec::new();
    for (index, output) in op.node.outputs.iter().enumerate().filter(|(_, output)| !output.is_empty()) {
        if let Ok(slot) = i.find(output) {
            written.push((index, i.shape(&slot)?, slot.kind()));
        }
    }
    (i.graph, i.moved, i.cast, i.known) = (graph, moved, cast, known);
    i.transposes = transposes;
    if let Some(scope) = i.scopes.last_mut() {
        scope.uploaded = uploaded;
        op.node.outputs.iter().for_each(|output| drop(scope.slots.remove(output)));
        match before {
            Some(before) => drop(scope.slots.insert(name, before)),
            None => drop(scope.slots.remove(name)),
        }
    }
    done?;
    for (index, mut extents, kind) in written {
        extents[0] = 0;
        i.write_constant(op, index, empty(extents)?, kind)?;
    }
    Ok(true)
}
