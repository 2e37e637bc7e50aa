//! Floats, and the integers of a grid that stand for them.

use super::builder::Builder;
use super::casts::converted;
use super::kind::Kind;
use super::operand::{Mapped, Operand};
use super::reductions::reduced;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;

/// What f32 leaves uncertain of a few hundred steps.
const NEAR: f32 = 1.0 / 8192.0;

/// How a number is rounded to a whole one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// Rounds to the nearest integer, halves to even ones.
    Even,
    /// Rounds to the nearest integer, halves up. The number was computed in f32: one that is nearly halfway is halfway.
    Up,
    /// Rounds to the nearest integer; halves, and what is nearly halfway, go away from a whole number.
    Away(i64),
    /// Rounds down, but for what is nearly the next integer.
    Down,
}

/// Whole numbers of steps.
fn whole(b: &mut Builder, steps: Operand, rounding: Rounding) -> Result<Operand, Reason> {
    match rounding {
        Rounding::Even => b.apply("whole", Function::Round, &[steps.into()]),
        Rounding::Up | Rounding::Down => {
            let more = if rounding == Rounding::Up { 0.5 + NEAR } else { NEAR };
            let moved = b.apply("moved", Function::Add, &[steps.into(), more.into()])?;
            b.apply("whole", Function::Floor, &[moved.into()])
        }
        Rounding::Away(from) => {
            let stored = b.apply("stored", Function::Add, &[steps.into(), (from as f32).into()])?;
            let sign = b.apply("sign", Function::Sign, &[stored.clone().into()])?;
            let half = b.apply("half", Function::Mul, &[sign.into(), (0.5 + NEAR).into()])?;
            let moved = b.apply("moved", Function::Add, &[stored.into(), half.into()])?;
            let whole = b.apply("whole", Function::Truncate, &[moved.into()])?;
            b.apply("from_zero", Function::Sub, &[whole.into(), (from as f32).into()])
        }
    }
}

/// The multiples of a scale, within a range of these, that stand for floats.
pub(crate) fn on_grid(
    b: &mut Builder,
    x: Operand,
    scale: f32,
    [low, high]: [i64; 2],
    rounding: Rounding,
) -> Result<Operand, Reason> {
    let steps = b.apply("steps", Function::Mul, &[x.into(), (1.0 / scale).into()])?;
    let whole = whole(b, steps, rounding)?;
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
    let mut steps = whole(b, quotient, Rounding::Even)?;
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
    let zero = whole(b, zero, Rounding::Even)?;
    let y = quantised(b, x, scale.clone(), Some(zero.clone()), Kind::U8)?;
    Ok([y, scale, zero.of_kind(Kind::U8)])
}
