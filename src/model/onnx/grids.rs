//! Maps sampled at the places of a grid.

use super::elementwise::Arg;
use super::import::{Import, Op, Slot};
use super::kind::Kind;
use super::moves::cut;
use super::order::Mapped;
use super::order::channels_last;
use super::products::{product, swapped};
use super::slots::counted;
use crate::model::budget::Reason;
use crate::ops::elementwise::Function as F;

type Done = Result<(), Reason>;

/// How places are read.
struct Rule<'a> {
    padding: &'a str,
    aligned: bool,
}

impl Import<'_> {
    fn e(&mut self, function: F, args: &[Arg]) -> Result<Arg, Reason> {
        self.apply("part", function, args).map(Arg::Slot)
    }
}

/// `GridSample` of feature maps.
pub(super) fn sample<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (own, places) = (i.extents_of(op, 0)?, i.extents_of(op, 1)?);
    let (&[n, c, h, w], &[_, oh, ow, 2]) = (&own[..], &places[..]) else {
        return Err(format!("found a grid of {places:?} for {own:?}, wanted maps of rank 4"));
    };
    let rule = Rule { padding: op.text("padding_mode", "zeros")?, aligned: op.flag("align_corners", false) };
    let x = i.mapped(op, 0)?;
    let order = channels_last(4);
    let x = Mapped { value: i.in_order(&x, &order)?, order, kind: x.kind };
    // Rows of channels, one for each pixel.
    let rows = Slot::Value(Mapped::plain(x.value, 4, x.kind));
    let rows = i.slot_reshaped("pixels", rows, &[n * h * w, c])?;
    let grid = i.slot(op, 1)?;
    let coordinate = |i: &mut Import<'a>, column: usize, extent: usize| -> Result<Arg, Reason> {
        let part = cut(i, "column", grid.clone(), &[(0, n, 1), (0, oh, 1), (0, ow, 1), (column, 1, 1)])?;
        let part: Arg = i.slot_reshaped("column", part, &[n, oh, ow])?.into();
        let (scale, offset) = match rule.aligned {
            true => ((extent - 1) as f32 / 2.0, (extent - 1) as f32 / 2.0),
            false => (extent as f32 / 2.0, (extent as f32 - 1.0) / 2.0),
        };
        let scaled = i.e(F::Mul, &[part, scale.into()])?;
        i.e(F::Add, &[scaled, offset.into()])
    };
    let (u, v) = (coordinate(i, 0, w)?, coordinate(i, 1, h)?);
    // The taps along each axis: a place, and its weight.
    let taps = |i: &mut Import<'a>, place: Arg, extent: usize| -> Result<Vec<(Arg, Arg)>, Reason> {
        match op.text("mode", "linear")? {
            "nearest" => {
                let place = settled(i, place, extent, &rule)?;
                Ok(vec![(i.e(F::Round, &[place])?, Arg::Number(1.0))])
            }
            "linear" | "bilinear" => {
                let place = settled(i, place, extent, &rule)?;
                let first = i.e(F::Floor, std::slice::from_ref(&place))?;
                let share = i.e(F::Sub, &[place, first.clone()])?;
                let rest = i.e(F::Sub, &[1.0.into(), share.clone()])?;
                let second = i.e(F::Add, &[first.clone(), 1.0.into()])?;
                Ok(vec![(first, rest), (second, share)])
            }
            "cubic" | "bicubic" => cubic(i, place, extent, &rule),
            other => Err(format!("found mode {other:?}, wanted nearest, linear or cubic")),
        }
    };
    let (columns, lines) = (taps(i, u, w)?, taps(i, v, h)?);
    let mut sum: Option<Arg> = None;
    for (line, line_weight) in &lines {
        for (column, column_weight) in &columns {
            let tap = tap(i, &rows, [n, h, w, c], [oh, ow], line, column)?;
            let weight = match (line_weight, column_weight) {
                (Arg::Number(_), Arg::Number(_)) => None,
                _ => Some(i.e(F::Mul, &[line_weight.clone(), column_weight.clone()])?),
            };
            let term = match weight {
                None => tap,
                Some(Arg::Slot(weight)) => {
                    let weight = i.slot_reshaped("weight", weight, &[n, oh, ow, 1])?;
                    i.e(F::Mul, &[tap, weight.into()])?
                }
                Some(number) => i.e(F::Mul, &[tap, number])?,
            };
            sum = Some(match sum {
                None => term,
                Some(sum) => i.e(F::Add, &[sum, term])?,
            });
        }
    }
    let Some(Arg::Slot(slot)) = sum else { return Err("found no taps".to_owned()) };
    let slot = i.slot_transposed(slot, &[0, 3, 1, 2])?;
    i.set(op, 0, slot)
}

/// A place as the padding has it: for linear and nearest taps, before they are chosen.
fn settled(i: &mut Import<'_>, place: Arg, extent: usize, rule: &Rule<'_>) -> Result<Arg, Reason> {
    let last = (extent - 1) as f32;
    match rule.padding {
        "zeros" => Ok(place),
        "border" => i.e(F::Clamp, &[place, 0.0.into(), last.into()]),
        "reflection" => reflected(i, place, extent, rule.aligned),
        other => Err(format!("found padding_mode {other:?}")),
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

/// The pixels at whole places, zero outside of the map.
fn tap(
    i: &mut Import<'_>,
    rows: &Slot,
    [n, h, w, c]: [usize; 4],
    [oh, ow]: [usize; 2],
    line: &Arg,
    column: &Arg,
) -> Result<Arg, Reason> {
    let within = |i: &mut Import<'_>, place: &Arg, extent: usize| -> Result<Arg, Reason> {
        let low = i.e(F::GreaterEqual, &[place.clone(), 0.0.into()])?;
        let high = i.e(F::Less, &[place.clone(), (extent as f32).into()])?;
        i.e(F::LogicalAnd, &[low, high])
    };
    let (a, b) = (within(i, line, h)?, within(i, column, w)?);
    let inside = i.e(F::LogicalAnd, &[a, b])?;
    let scaled = i.e(F::Mul, &[line.clone(), (w as f32).into()])?;
    let mut at = i.e(F::Add, &[scaled, column.clone()])?;
    if n > 1 {
        let image = counted(n, 0, 3);
        let image = i.apply("image", F::Mul, &[image.into(), ((h * w) as f32).into()])?;
        at = i.e(F::Add, &[at, image.into()])?;
    }
    // Elements of no pixel are zero.
    let at = i.e(F::Select, &[inside, at, (-1.0).into()])?;
    let Arg::Slot(at) = at else { return Err("found no places".to_owned()) };
    let (at, x) = (i.mapped_slot(at, None)?, i.mapped_slot(rows.clone(), None)?);
    let (at, x) = (i.logical(&at)?, i.logical(&x)?);
    let value = i.add("tap", |graph, name| graph.gather(name, x, at, 0, 0))?;
    let value = i.reshaped("taps", value, &[n, oh, ow, c])?;
    Ok(Slot::Value(Mapped::plain(value, 4, Kind::F32)).into())
}

/// `AffineGrid`: the places of an evenly spaced grid, moved by a matrix.
pub(super) fn affine<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let size = super::operands::sizes(&i.integers(op, 1)?)?;
    let aligned = op.flag("align_corners", false);
    let spatial = size.get(2..).unwrap_or(&[]).to_vec();
    if !(2..=3).contains(&spatial.len()) || spatial.contains(&0) {
        return Err(format!("found the size {size:?}, wanted that of maps of 2 or 3 axes"));
    }
    let count = crate::model::constant::elements_of(&spatial)?;
    let wide = spatial.len() + 1;
    i.budget.spend(count.saturating_mul(4 * wide))?;
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
    let base = Slot::Constant(super::tensors::floats(&[1, count, wide], base)?, Kind::F32);
    let theta = i.slot(op, 0)?;
    let turned = swapped(i, theta)?;
    let grid = product(i, "grid", base, turned)?;
    let grid = i.slot_reshaped("", grid, &[&[size[0]], &spatial[..], &[wide - 1]].concat())?;
    i.set(op, 0, grid)
}
