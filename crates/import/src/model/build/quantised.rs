//! Floats, and the integers of a grid that stand for them.

use super::builder::Builder;
use super::casts::converted;
use super::kind::Kind;
use super::operand::{Mapped, Operand};
use super::reductions::reduced;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;

/// The multiples of a scale, within a range of these, that stand for floats; halves are rounded to even ones.
pub(crate) fn on_grid(
    b: &mut Builder,
    x: Operand,
    scale: f32,
    [low, high]: [i64; 2],
) -> Result<Operand, Reason> {
    let steps = b.apply("steps", Function::Mul, &[x.into(), (1.0 / scale).into()])?;
    let whole = b.apply("whole", Function::Round, &[steps.into()])?;
    let terms = [whole.into(), (low as f32).into(), (high as f32).into()];
    let bounded = b.apply("bounded", Function::Clamp, &terms)?;
    b.apply("", Function::Mul, &[bounded.into(), scale.into()])
}

/// `round(x / scale) + zero` as integers of a type, within its range.
pub(crate) fn quantised(
    b: &mut Builder,
    x: Operand,
    scale: Operand,
    zero: Option<Operand>,
    kind: Kind,
) -> Result<Operand, Reason> {
    let [low, high] = kind.range().ok_or_else(|| format!("found {kind:?}, wanted integers"))?;
    let quotient = b.apply("quotient", Function::Div, &[x.into(), scale.into()])?;
    let mut steps = b.apply("whole", Function::Round, &[quotient.into()])?;
    if let Some(zero) = zero {
        let zero = converted(b, zero, Kind::F32)?;
        steps = b.apply("moved", Function::Add, &[steps.into(), zero.into()])?;
    }
    match b.apply("", Function::Clamp, &[steps.into(), (low as f32).into(), (high as f32).into()])? {
        // Whole numbers within the range.
        Operand::Value(mapped) => Ok(Operand::Value(Mapped { kind, ..mapped })),
        constant => converted(b, constant, kind),
    }
}

/// `x - zero`, as floats, which do not wrap.
pub(crate) fn centred(b: &mut Builder, x: Operand, zero: Option<Operand>) -> Result<Operand, Reason> {
    let x = converted(b, x, Kind::F32)?;
    let Some(zero) = zero else { return Ok(x) };
    let zero = converted(b, zero, Kind::F32)?;
    b.apply("centred", Function::Sub, &[x.into(), zero.into()])
}

/// The grid of 8 bits that has the range of the elements and of 0: `x` on it, its scale and its zero point.
pub(crate) fn by_range(b: &mut Builder, x: Operand) -> Result<[Operand; 3], Reason> {
    let all: Vec<usize> = (0..b.shape(&x)?.len()).collect();
    let end = |b: &mut Builder, reduction, function| -> Result<Operand, Reason> {
        let own = reduced(b, "end", x.clone(), reduction, &all, false)?;
        b.apply("end", function, &[own.into(), 0.0.into()])
    };
    let high = end(b, Reduction::Max, Function::Maximum)?;
    let low = end(b, Reduction::Min, Function::Minimum)?;
    let range = b.apply("range", Function::Sub, &[high.into(), low.clone().into()])?;
    let scale = b.apply("scale", Function::Div, &[range.into(), 255.0.into()])?;
    let zero = b.apply("zero", Function::Div, &[low.into(), scale.clone().into()])?;
    let zero = b.apply("minus", Function::Neg, &[zero.into()])?;
    let zero = b.apply("bounded", Function::Clamp, &[zero.into(), 0.0.into(), 255.0.into()])?;
    let zero = b.apply("whole", Function::Round, &[zero.into()])?;
    let y = quantised(b, x, scale.clone(), Some(zero.clone()), Kind::U8)?;
    Ok([y, scale, zero.of_kind(Kind::U8)])
}
