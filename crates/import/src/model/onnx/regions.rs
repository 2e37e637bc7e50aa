//! Maps sampled in regions and at moved taps.

use super::filter::outputs_first;
use super::hosted::{self, Regions};
use super::import::{Import, Op};
use super::pixels::linear;
use crate::model::build::{
    Arg, Arranged, Filter, Groups, Kind, Mapped, Operand, Weights, Windows, channels_last, convolution, cut,
};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function as F;
use crate::ops::reduce::Reduction;

type Done = Result<(), Reason>;

/// `RoiAlign`: each region of a map as a map of one size, the mean or the largest of samples between its pixels.
pub(super) fn align<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (own, regions) = (i.extents_of(op, 0)?, i.extents_of(op, 1)?);
    let (&[_, c, h, w], &[count, 4]) = (&own[..], &regions[..]) else {
        return refused!("found regions of {regions:?} for {own:?}, wanted four numbers each for maps");
    };
    let size = |name: &str, least: i64| {
        usize::try_from(op.int(name, 1)).ok().filter(|&size| size >= least as usize && size <= 1 << 12)
    };
    let (Some(oh), Some(ow)) = (size("output_height", 1), size("output_width", 1)) else {
        return refused!("found a size that is none");
    };
    let taps = usize::try_from(op.int("sampling_ratio", 0)).ok().filter(|taps| *taps <= 64);
    let taps = taps.ok_or_else(|| {
        format!("found sampling_ratio {}, wanted a number from 0 to 64", op.int("sampling_ratio", 0))
    })?;
    let default = if op.version >= 16 { "half_pixel" } else { "output_half_pixel" };
    let half = match op.text("coordinate_transformation_mode", default)? {
        "half_pixel" => true,
        "output_half_pixel" => false,
        other => {
            return refused!(
                "found coordinate_transformation_mode {other:?}, wanted half_pixel or output_half_pixel"
            );
        }
    };
    let scale = op.preset("spatial_scale")?;
    if taps == 0 {
        let max = op.text("mode", "avg")? == "max";
        return hosted::align(i, op, Regions { map: [c, h, w], output: [oh, ow], scale, half, max });
    }
    let boxes = i.slot(op, 1)?;
    let corner = |i: &mut Import<'a>, column: usize| -> Result<Arg, Reason> {
        let part = cut(i, "corner", boxes.clone(), &[(0, count, 1), (column, 1, 1)])?;
        let scaled = i.e(F::Mul, &[part.into(), scale.into()])?;
        if half { i.e(F::Sub, &[scaled, 0.5.into()]) } else { Ok(scaled) }
    };
    // The samples along an axis of each region, and whether they are near the map.
    let along =
        |i: &mut Import<'a>, first: usize, bins: usize, extent: usize| -> Result<(Arg, Arg), Reason> {
            let (begin, end) = (corner(i, first)?, corner(i, first + 2)?);
            let mut length = i.e(F::Sub, &[end, begin.clone()])?;
            if !half {
                length = i.e(F::Maximum, &[length, 1.0.into()])?;
            }
            let steps = bins * taps;
            let shares = (0..steps).map(|step| (step as f32 + 0.5) / steps as f32).collect();
            let shares = Operand::Constant(crate::model::build::floats(&[1, steps], shares)?, Kind::F32);
            let moved = i.e(F::Mul, &[length, shares.into()])?;
            let place = i.e(F::Add, &[begin, moved])?;
            let low = i.e(F::GreaterEqual, &[place.clone(), (-1.0).into()])?;
            let high = i.e(F::LessEqual, &[place.clone(), (extent as f32).into()])?;
            let near = i.e(F::LogicalAnd, &[low, high])?;
            Ok((i.e(F::Clamp, &[place, 0.0.into(), (extent as f32 - 1.0).into()])?, near))
        };
    let (rows, columns) = (along(i, 1, oh, h)?, along(i, 0, ow, w)?);
    let (lines, wide) = (oh * taps, ow * taps);
    let target = [count, lines, wide];
    let shaped = |i: &mut Import<'a>, arg: Arg, extents: &[usize]| -> Result<Arg, Reason> {
        match arg {
            Arg::Operand(slot) => i.with_extents("samples", slot, extents).map(Arg::Operand),
            number => Ok(number),
        }
    };
    let (y, x) = (shaped(i, rows.0, &[count, lines, 1])?, shaped(i, columns.0, &[count, 1, wide])?);
    let (near_y, near_x) = (shaped(i, rows.1, &[count, lines, 1])?, shaped(i, columns.1, &[count, 1, wide])?);
    let near = i.e(F::LogicalAnd, &[near_y, near_x])?;
    let near = shaped(i, near, &[count, lines, wide, 1])?;
    let axes = [linear(i, y)?, linear(i, x)?];
    let maps = i.slot(op, 0)?;
    let kind = maps.kind();
    let pixels = i.pixels(maps, 1)?;
    let image = i.slot(op, 2)?;
    let image: Arg = i.with_extents("image", image, &[count, 1, 1])?.into();
    let (samples, reduction) = match op.text("mode", "avg")? {
        "avg" => (pixels.sum(i, Some(&image), None, &axes, &target)?, Reduction::Mean),
        "max" => {
            // The largest of the weighted pixels, not of the samples.
            let mut most: Option<Operand> = None;
            for (tap, weight) in pixels.weighted(i, Some(&image), None, &axes, &target)? {
                let term = i.apply("term", F::Mul, &[tap.into(), weight.unwrap_or(Arg::Number(1.0))])?;
                most = Some(match most {
                    None => term,
                    Some(most) => i.apply("most", F::Maximum, &[most.into(), term.into()])?,
                });
            }
            (most.ok_or("found no taps")?, Reduction::Max)
        }
        other => return refused!("found mode {other:?}, wanted avg or max"),
    };
    let samples = i.apply("near", F::Select, &[near, samples.into(), 0.0.into()])?;
    let split = i.with_extents("bins", samples, &[count * oh, taps, ow, taps, c])?;
    let pooled = crate::model::build::reduced(i, "pooled", split, reduction, &[1, 3], false)?;
    let slot = i.with_extents("", pooled, &[count, oh, ow, c])?;
    let slot = i.transposed(slot, &[0, 3, 1, 2])?;
    i.set(op, 0, slot.of_kind(kind))
}

/// `DeformConv` in two dimensions: a convolution whose taps are moved by offsets, between pixels and outside of the map.
pub(super) fn deform<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (own, offsets) = (i.extents_of(op, 0)?, i.extents_of(op, 2)?);
    let weights = i.tensor(op, 1)?;
    let filter = weights.dims();
    let (&[n, c, h, w], &[_, _, oh, ow], &[oc, inner, kh, kw]) = (&own[..], &offsets[..], filter.extents())
    else {
        return refused!("found weights of {filter} for {own:?}, wanted maps of rank 4");
    };
    let windows = Windows::read(op, &[h, w], &[kh, kw])?;
    let groups = super::filter::groups(op)?;
    let shifts =
        usize::try_from(op.int("offset_group", 1)).ok().filter(|&own| own > 0 && c.is_multiple_of(own));
    let shifts = shifts.ok_or_else(|| {
        format!("found offset_group {}, wanted a divisor of the channels", op.int("offset_group", 1))
    })?;
    let taps = kh * kw;
    if c != groups * inner || !oc.is_multiple_of(groups) || offsets[1] != 2 * taps * shifts {
        return refused!(
            "found weights of {filter} and offsets of {offsets:?} for {own:?}, wanted two offsets for each tap and output pixel"
        );
    }
    let places = oh * ow;
    let per_tap = |i: &mut Import<'a>, slot: Operand| -> Result<Operand, Reason> {
        let slot = i.with_extents("offsets", slot, &[n, shifts, taps, places])?;
        i.transposed(slot, &[0, 3, 2, 1])
    };
    let moves = i.slot(op, 2)?;
    let moves = i.with_extents("moves", moves, &[n, shifts * taps, 2, places])?;
    let mut axes = Vec::with_capacity(2);
    for axis in 0..2 {
        let part =
            cut(i, "axis", moves.clone(), &[(0, n, 1), (0, shifts * taps, 1), (axis, 1, 1), (0, places, 1)])?;
        let part = per_tap(i, part)?;
        i.budget.spend(places.saturating_mul(taps).saturating_mul(8))?;
        let mut base = Vec::with_capacity(places * taps);
        for place in 0..places {
            for tap in 0..taps {
                let (at, tap) = if axis == 0 { (place / ow, tap / kw) } else { (place % ow, tap % kw) };
                let whole = at * windows.stride[axis] + tap * windows.dilation[axis];
                base.push(whole as f32 - windows.pads[axis].0 as f32);
            }
        }
        let base = Operand::Constant(crate::model::build::floats(&[1, places, taps, 1], base)?, Kind::F32);
        let place = i.e(F::Add, &[part.into(), base.into()])?;
        axes.push(linear(i, place)?);
    }
    let maps = i.slot(op, 0)?;
    let kind = maps.kind();
    let pixels = i.pixels(maps, shifts)?;
    let image = if n > 1 { Some(Arg::from(i.counted(n, 0, 4)?)) } else { None };
    let group = if shifts > 1 { Some(Arg::from(i.counted(shifts, 3, 4)?)) } else { None };
    let target = [n, places, taps, shifts];
    let mut columns = pixels.sum(i, image.as_ref(), group.as_ref(), &axes, &target)?;
    if op.has(4) {
        let mask = i.slot(op, 4)?;
        let mask = per_tap(i, mask)?;
        let mask = i.with_extents("mask", mask, &[n, places, taps, shifts, 1])?;
        columns = i.apply("masked", F::Mul, &[columns.into(), mask.into()])?;
    }
    // What was a window is a pixel: its taps are channels, within each group.
    let columns = i.with_extents("columns", columns, &[n * places, taps, groups, inner])?;
    let columns = i.transposed(columns, &[0, 2, 1, 3])?;
    let columns = i.with_extents("columns", columns, &[n, oh, ow, groups * taps * inner])?;
    let weights = Filter::new(weights, &outputs_first(4), Groups::of(groups))?;
    let pixels = weights.arranged(i, &Arranged::by(&[0, 2, 3, 1]), &[oc, 1, 1, taps * inner])?;
    let mut filter = Filter::new(pixels, &[0, 2, 3, 1], Groups::of(groups))?;
    if op.has(3) {
        filter = filter.with_bias(i.list(op, 3)?)?;
    }
    let value = i.mapped_slot(columns, None)?.value;
    let columns = Operand::Value(Mapped { value, order: channels_last(4), kind });
    let weights = Weights::Known { filter, summand: None };
    let y = convolution(i, columns, weights, Windows::new(&[1, 1]), None)?;
    i.set(op, 0, y)
}
