//! Angles from their tangents, sines and cosines, by a sum of powers: no op computes them.

use super::builder::Builder;
use super::each::Arg;
use super::operand::Operand;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function as F;
use std::f32::consts::{FRAC_PI_2, PI};

/// The arc tangent of `z` from 0 to 1 is `z` times a sum of powers of `z^2`: their factors, the highest power first.
///
/// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 4.4.49, off by at most 2e-8.
const ARC_TANGENT: [f32; 9] = [
    0.002_866_225_7,
    -0.016_165_737,
    0.042_909_614,
    -0.075_289_64,
    0.106_562_64,
    -0.142_089,
    0.199_935_51,
    -0.333_331_45,
    1.0,
];

fn step(b: &mut Builder, function: F, args: &[Arg]) -> Result<Arg, Reason> {
    b.apply("angle", function, args).map(Arg::Operand)
}

/// The arc tangent of what is from 0 to 1, or what is left of a right angle where `is_steep`.
fn from_flat(b: &mut Builder, z: Arg, is_steep: Arg) -> Result<Arg, Reason> {
    let square = step(b, F::Square, std::slice::from_ref(&z))?;
    let [first, rest @ ..] = ARC_TANGENT;
    let mut sum: Arg = first.into();
    for factor in rest {
        let scaled = step(b, F::Mul, &[square.clone(), sum])?;
        sum = step(b, F::Add, &[scaled, factor.into()])?;
    }
    let angle = step(b, F::Mul, &[sum, z])?;
    let rest = step(b, F::Sub, &[FRAC_PI_2.into(), angle.clone()])?;
    step(b, F::Select, &[is_steep, rest, angle])
}

/// The arc tangent: of `|x| > 1` it is `pi / 2` less that of `1 / |x|`.
pub(crate) fn arc_tangent(b: &mut Builder, x: Arg) -> Result<Operand, Reason> {
    let (sign, size) = (step(b, F::Sign, std::slice::from_ref(&x))?, step(b, F::Abs, &[x])?);
    let inverse = step(b, F::Reciprocal, std::slice::from_ref(&size))?;
    let z = step(b, F::Minimum, &[size.clone(), inverse])?;
    let is_steep = step(b, F::Greater, &[size, 1.0.into()])?;
    let angle = from_flat(b, z, is_steep)?;
    b.apply("", F::Mul, &[sign, angle])
}

/// `atan(x / sqrt(1 - x^2))`.
pub(crate) fn arc_sine(b: &mut Builder, x: Arg) -> Result<Operand, Reason> {
    let above = step(b, F::Add, &[x.clone(), 1.0.into()])?;
    let below = step(b, F::Sub, &[1.0.into(), x.clone()])?;
    let product = step(b, F::Mul, &[above, below])?;
    let root = step(b, F::Sqrt, &[product])?;
    let quotient = step(b, F::Div, &[x, root])?;
    arc_tangent(b, quotient)
}

/// `2 atan(sqrt((1 - x) / (1 + x)))`, which does not cancel near 1.
pub(crate) fn arc_cosine(b: &mut Builder, x: Arg) -> Result<Operand, Reason> {
    let above = step(b, F::Add, &[x.clone(), 1.0.into()])?;
    let below = step(b, F::Sub, &[1.0.into(), x])?;
    let quotient = step(b, F::Div, &[below, above])?;
    let root = step(b, F::Sqrt, &[quotient])?;
    let half = b.within("half", |b| arc_tangent(b, root))?;
    b.apply("", F::Mul, &[half.into(), 2.0.into()])
}

/// The angle of a point, from -pi to pi.
pub(crate) fn angle_of(b: &mut Builder, y: Arg, x: Arg) -> Result<Operand, Reason> {
    let height = step(b, F::Abs, std::slice::from_ref(&y))?;
    let width = step(b, F::Abs, std::slice::from_ref(&x))?;
    let small = step(b, F::Minimum, &[height.clone(), width.clone()])?;
    let large = step(b, F::Maximum, &[height.clone(), width.clone()])?;
    let large = step(b, F::Maximum, &[large, f32::MIN_POSITIVE.into()])?;
    let z = step(b, F::Div, &[small, large])?;
    let is_steep = step(b, F::Greater, &[height, width])?;
    let angle = from_flat(b, z, is_steep)?;
    let behind = step(b, F::Sub, &[PI.into(), angle.clone()])?;
    let is_behind = step(b, F::Less, &[x, 0.0.into()])?;
    let angle = step(b, F::Select, &[is_behind, behind, angle])?;
    let below = step(b, F::Neg, std::slice::from_ref(&angle))?;
    let is_below = step(b, F::Less, &[y, 0.0.into()])?;
    b.apply("", F::Select, &[is_below, below, angle])
}
