//! Maps sampled at the places of a grid.

use super::import::{Import, Op};
use super::pixels::linear;
use crate::model::build::{Arg, Kind, Operand, cut, product, swapped};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function as F;

type Done = Result<(), Reason>;

/// How places are read.
struct Rule<'a> {
    padding: &'a str,
    aligned: bool,
}

/// `GridSample` of maps of one to three axes.
pub(super) fn sample<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (own, places) = (i.extents_of(op, 0)?, i.extents_of(op, 1)?);
    let rank = own.len().saturating_sub(2);
    let fits = (1..=3).contains(&rank) && places.len() == own.len() && places[0] == own[0];
    if !fits || places[rank + 1] != rank || own.contains(&0) {
        return refused!(
            "found a grid of {places:?} for {own:?}, wanted batch, output extents and a coordinate for each axis"
        );
    }
    let (n, target) = (own[0], &places[..=rank]);
    let rule = Rule { padding: op.text("padding_mode", "zeros")?, aligned: op.flag("align_corners", false) };
    let (x, grid) = (i.slot(op, 0)?, i.slot(op, 1)?);
    let kind = x.kind();
    let pixels = i.pixels(x, 1)?;
    let mut axes = Vec::with_capacity(rank);
    for axis in 0..rank {
        let extent = own[2 + axis];
        let mut ranges: Vec<(usize, usize, i64)> = target.iter().map(|&extent| (0, extent, 1)).collect();
        // The last axis comes first.
        ranges.push((rank - 1 - axis, 1, 1));
        let part = cut(i, "column", grid.clone(), &ranges)?;
        let part: Arg = i.with_extents("column", part, target)?.into();
        let (scale, offset) = match rule.aligned {
            true => ((extent - 1) as f32 / 2.0, (extent - 1) as f32 / 2.0),
            false => (extent as f32 / 2.0, (extent as f32 - 1.0) / 2.0),
        };
        let scaled = i.e(F::Mul, &[part, scale.into()])?;
        let place = i.e(F::Add, &[scaled, offset.into()])?;
        axes.push(taps(i, op, place, extent, &rule)?);
    }
    let image = if n > 1 { Some(Arg::from(i.counted(n, 0, rank + 1)?)) } else { None };
    let slot = pixels.sum(i, image.as_ref(), None, &axes, target)?;
    let back: Vec<usize> = [0, rank + 1].into_iter().chain(1..=rank).collect();
    let slot = i.transposed(slot, &back)?;
    i.set(op, 0, slot.of_kind(kind))
}

/// The taps along an axis: a place, and its weight.
fn taps<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    place: Arg,
    extent: usize,
    rule: &Rule<'_>,
) -> Result<Vec<(Arg, Arg)>, Reason> {
    match op.text("mode", "linear")? {
        "nearest" => {
            let place = settled(i, place, extent, rule)?;
            Ok(vec![(i.e(F::Round, &[place])?, Arg::Number(1.0))])
        }
        "linear" | "bilinear" => {
            let place = settled(i, place, extent, rule)?;
            linear(i, place)
        }
        "cubic" | "bicubic" => cubic(i, place, extent, rule),
        other => refused!("found mode {other:?}, wanted nearest, linear or cubic"),
    }
}

/// A place as the padding has it: for linear and nearest taps, before they are chosen.
fn settled(i: &mut Import<'_>, place: Arg, extent: usize, rule: &Rule<'_>) -> Result<Arg, Reason> {
    let last = (extent - 1) as f32;
    match rule.padding {
        "zeros" => Ok(place),
        "border" => i.e(F::Clamp, &[place, 0.0.into(), last.into()]),
        "reflection" => reflected(i, place, extent, rule.aligned),
        other => refused!("found padding_mode {other:?}, wanted zeros, border or reflection"),
    }
}

/// A place mirrored at the ends, as often as it takes.
fn reflected(i: &mut Import<'_>, place: Arg, extent: usize, aligned: bool) -> Result<Arg, Reason> {
    let last = (extent - 1) as f32;
    let (low, span) = if aligned { (0.0, last) } else { (-0.5, extent as f32) };
    if span == 0.0 {
        return i.e(F::Mul, &[place, 0.0.into()]);
    }
    let moved = i.e(F::Sub, &[place, low.into()])?;
    let folded = i.e(F::FloorMod, &[moved, (2.0 * span).into()])?;
    // The distance from the middle of a period is what a mirror keeps.
    let off = i.e(F::Sub, &[folded, span.into()])?;
    let off = i.e(F::Abs, &[off])?;
    let inside = i.e(F::Sub, &[(span + low).into(), off])?;
    i.e(F::Clamp, &[inside, 0.0.into(), last.into()])
}

/// The four taps of a cubic and their weights; each tap's place is padded by itself.
fn cubic(i: &mut Import<'_>, place: Arg, extent: usize, rule: &Rule<'_>) -> Result<Vec<(Arg, Arg)>, Reason> {
    const A: f32 = -0.75;
    let first = i.e(F::Floor, std::slice::from_ref(&place))?;
    let t = i.e(F::Sub, &[place, first.clone()])?;
    let mut taps = Vec::with_capacity(4);
    for tap in 0..4 {
        let at = i.e(F::Add, &[first.clone(), (tap as f32 - 1.0).into()])?;
        let at = settled(i, at, extent, rule)?;
        let distance = i.e(F::Sub, &[t.clone(), (tap as f32 - 1.0).into()])?;
        let d = i.e(F::Abs, &[distance])?;
        let factors = if tap == 1 || tap == 2 {
            [A + 2.0, -(A + 3.0), 0.0, 1.0]
        } else {
            [A, -5.0 * A, 8.0 * A, -4.0 * A]
        };
        let mut sum: Arg = factors[0].into();
        for factor in &factors[1..] {
            let scaled = i.e(F::Mul, &[d.clone(), sum])?;
            sum = i.e(F::Add, &[scaled, (*factor).into()])?;
        }
        taps.push((at, sum));
    }
    Ok(taps)
}

/// `AffineGrid`: the places of an evenly spaced grid, moved by a matrix.
pub(super) fn affine<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let size = crate::model::build::sizes(&i.integers(op, 1)?)?;
    let aligned = op.flag("align_corners", false);
    let spatial = size.get(2..).unwrap_or(&[]).to_vec();
    if !(2..=3).contains(&spatial.len()) || spatial.contains(&0) {
        return refused!("found the size {size:?}, wanted that of maps of 2 or 3 axes");
    }
    let count = crate::model::constant::elements_of(&spatial)?;
    let wide = spatial.len() + 1;
    i.budget.spend(count.saturating_mul(8 * wide))?;
    let place = |at: usize, extent: usize| match (aligned, extent) {
        (true, 1) => 0.0,
        (true, _) => 2.0 * at as f32 / (extent - 1) as f32 - 1.0,
        (false, _) => (2 * at + 1) as f32 / extent as f32 - 1.0,
    };
    let mut base = Vec::with_capacity(count * wide);
    for at in crate::model::constant::indices(&spatial) {
        base.extend(at.iter().zip(&spatial).rev().map(|(&at, &extent)| place(at, extent)));
        base.push(1.0);
    }
    let base = Operand::Constant(crate::model::build::floats(&[1, count, wide], base)?, Kind::F32);
    let theta = i.slot(op, 0)?;
    let turned = swapped(i, theta)?;
    let grid = product(i, "grid", base, turned)?;
    let grid = i.with_extents("", grid, &[&[size[0]], &spatial[..], &[wide - 1]].concat())?;
    i.set(op, 0, grid)
}
