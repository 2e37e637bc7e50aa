//! Operators that draw: `RandomNormal` and `RandomUniform`, `Bernoulli`, `Multinomial`, and `Dropout` in training. Each
//! run draws anew, by the session's seed, the node's name and its `seed`.

use super::import::{Import, Op};
use crate::model::build::{Kind, Operand, chosen, converted, drawn, drawn_like, integers};
use crate::model::constant::{Constant, elements_of};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function as F;
use crate::ops::random::Random;

type Done = Result<(), Reason>;

/// Operators whose results are others at each run, even where all that they read is known.
const DRAWING: [&str; 6] =
    ["RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"];

/// Whether an operator may draw.
pub(super) fn draws(op: &Op<'_>) -> bool {
    op.node.domain.is_empty() && (DRAWING.contains(&op.node.op) || op.node.op == "Dropout")
}

/// Refuses to draw where results are wanted while the file is read.
fn check(i: &Import<'_>) -> Done {
    if i.computes {
        return refused!("found random numbers in an operator whose results' extents depend on values");
    }
    Ok(())
}

/// The node's own seed.
fn seed(op: &Op<'_>) -> u64 {
    match op.attributes.get("seed") {
        // `Dropout` has an integer there, the others a float.
        Some(seed) if op.node.op == "Dropout" => seed.int as u64 ^ 1 << 32,
        Some(seed) => u64::from(seed.float.to_bits()) | 1 << 33,
        None => 0,
    }
}

/// The distribution of a node of an operator that is named after it.
fn distribution(op: &Op<'_>, normal: bool) -> Result<Random, Reason> {
    let options = match normal {
        true => Random::normal(op.preset("mean")?, op.preset("scale")?),
        false => Random::uniform(op.preset("low")?, op.preset("high")?),
    };
    Ok(options.seed(seed(op)))
}

/// The type of floats that a node asks for.
fn floats(op: &Op<'_>, otherwise: Kind) -> Result<Kind, Reason> {
    let kind = if op.has_attribute("dtype") { Kind::of(op.int("dtype", 1))? } else { otherwise };
    match kind.is_float() {
        true => Ok(kind),
        false => refused!("found random numbers of {kind:?}, wanted floats"),
    }
}

/// `RandomNormal` and `RandomUniform`.
pub(super) fn of_shape<'a>(i: &mut Import<'a>, op: &Op<'a>, normal: bool) -> Done {
    check(i)?;
    let kind = floats(op, Kind::F32)?;
    let listed = op.ints("shape").ok_or("found no shape, wanted one")?;
    let extents = listed.iter().map(|&extent| usize::try_from(extent));
    let Ok(extents) = extents.collect::<Result<Vec<usize>, _>>() else {
        return refused!("found shape {listed:?}, wanted extents");
    };
    let slot = drawn(i, "", distribution(op, normal)?, &extents)?;
    i.set(op, 0, slot.of_kind(kind))
}

/// `RandomNormalLike` and `RandomUniformLike`.
pub(super) fn like<'a>(i: &mut Import<'a>, op: &Op<'a>, normal: bool) -> Done {
    check(i)?;
    let slot = i.slot(op, 0)?;
    let kind = floats(op, if slot.kind().is_float() { slot.kind() } else { Kind::F32 })?;
    let slot = drawn_like(i, "", distribution(op, normal)?, &slot)?;
    i.set(op, 0, slot.of_kind(kind))
}

/// `Bernoulli`: 1 with the probability that an element of the input is.
pub(super) fn bernoulli<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    check(i)?;
    let odds = i.slot(op, 0)?;
    let kind = if op.has_attribute("dtype") { Kind::of(op.int("dtype", 1))? } else { odds.kind() };
    let drawn = drawn_like(i, "drawn", Random::uniform(0.0, 1.0).seed(seed(op)), &odds)?;
    let truth = i.apply("", F::Less, &[drawn.into(), odds.into()])?;
    let slot = converted(i, truth, kind)?;
    i.set(op, 0, slot)
}

/// `Multinomial`: classes by logarithms of their weights.
pub(super) fn multinomial<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    check(i)?;
    let kind = Kind::of(op.int("dtype", 6))?;
    if !matches!(kind, Kind::I32 | Kind::I64) {
        return refused!("found classes of {kind:?}, wanted I32 or I64");
    }
    let count = op.int("sample_size", 1);
    let Some(count) = usize::try_from(count).ok().filter(|count| *count > 0) else {
        return refused!("found a sample size of {count}, wanted at least 1");
    };
    let logs = i.slot(op, 0)?;
    let places = chosen(i, logs, count, seed(op))?;
    let slot = converted(i, places, kind)?;
    i.set(op, 0, slot)
}

/// `Dropout`: in inference the input; in training 0 with the probability `ratio`, and otherwise the input over `1 - ratio`.
pub(super) fn dropout<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let training = if op.has(2) { Some(i.slot(op, 2)?) } else { None };
    let ratio = match op.has(1) {
        true => i.slot(op, 1)?,
        false => i.filled(&[], 0.5)?,
    };
    let known = match &ratio {
        Operand::Constant(constant, _) => constant.number(),
        Operand::Value(_) => None,
    };
    let trains = match &training {
        None => Some(false),
        Some(Operand::Constant(constant, _)) => Some(constant.number().is_some_and(|truth| truth != 0.0)),
        Some(Operand::Value(_)) => None,
    };
    if trains == Some(false) || known == Some(0.0) {
        return kept(i, op);
    }
    check(i)?;
    if let Some(ratio) = known.filter(|ratio| !(0.0..=1.0).contains(ratio)) {
        return refused!("found a ratio of {ratio}, wanted one from 0 to 1");
    }
    let x = i.slot(op, 0)?;
    let drawn = drawn_like(i, "drawn", Random::uniform(0.0, 1.0).seed(seed(op)), &x)?;
    let mut mask = i.apply("mask", F::GreaterEqual, &[drawn.into(), ratio.clone().into()])?;
    let mut scale = match known {
        Some(ratio) => (1.0 / (1.0 - ratio)).into(),
        None => {
            let rest = i.apply("rest", F::Sub, &[1.0.into(), ratio.into()])?;
            i.apply("scale", F::Reciprocal, &[rest.into()])?.into()
        }
    };
    if let (None, Some(training)) = (trains, training) {
        let still = i.apply("still", F::LogicalNot, &[training.clone().into()])?;
        mask = i.apply("mask", F::LogicalOr, &[mask.into(), still.into()])?;
        scale = i.apply("factor", F::Select, &[training.into(), scale, 1.0.into()])?.into();
    }
    let kind = x.kind();
    let scaled = i.apply("scaled", F::Mul, &[x.into(), scale])?;
    let slot = i.apply("", F::Select, &[mask.clone().into(), scaled.into(), 0.0.into()])?;
    i.set(op, 0, slot.of_kind(kind))?;
    i.set(op, 1, mask)
}

/// The input, and a mask that is true everywhere.
fn kept<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let slot = i.slot(op, 0)?;
    i.set(op, 0, slot)?;
    if op.writes(1) {
        let extents = i.extents_of(op, 0)?;
        let count = elements_of(&extents)?;
        i.budget.spend(count.saturating_mul(2 * size_of::<i64>()))?;
        let ones: Constant = integers(&extents, vec![1; count])?;
        i.set(op, 1, Operand::Constant(ones, Kind::Bool))?;
    }
    Ok(())
}
