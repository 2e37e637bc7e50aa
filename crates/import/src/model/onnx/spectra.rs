//! Fourier transforms and windows.

use super::import::{Import, Op};
use crate::model::build::{Kind, Operand, Transform, axis, part_of, product, waves};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use std::f64::consts::TAU;

type Done = Result<(), Reason>;

/// `DFT`, forwards and backwards, of real and complex signals, all frequencies or those from 0 on.
pub(super) fn transform<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let rank = own.len();
    let place = match op.has(2) {
        true => i.integers(op, 2)?.first().copied().ok_or("found no axis")?,
        false => op.int("axis", if op.version >= 20 { -2 } else { 1 }),
    };
    let place = axis(place, rank)?;
    let complex = match own.last() {
        Some(1) => false,
        Some(2) => true,
        _ => return refused!("found a signal of {own:?}, wanted a last axis of 1 or 2"),
    };
    let (inverse, onesided) = (op.flag("inverse", false), op.flag("onesided", false));
    if place + 1 == rank {
        return refused!("found axis {place} of {own:?}, wanted one before the last");
    }
    let length = match op.has(1) {
        true => usize::try_from(i.integers(op, 1)?.first().copied().unwrap_or(0)).unwrap_or(0),
        false if inverse && onesided => 2 * (own[place] - 1),
        false => own[place],
    };
    let signal = i.slot(op, 0)?;
    let real = part_of(i, "signal", &signal, rank - 1, [0, 1])?;
    let imaginary = if complex { Some(part_of(i, "signal", &signal, rank - 1, [1, 1])?) } else { None };
    let (real, imaginary) = Transform { axis: place, length, inverse, onesided }.of(i, (real, imaginary))?;
    let parts = std::iter::once(real).chain(imaginary).collect();
    let slot = i.joined("spectrum", parts, rank - 1)?;
    i.set(op, 0, slot)
}

/// `STFT`: the spectra of frames of a real signal.
pub(super) fn short_time<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let (batch, whole) = match own[..] {
        [batch, whole] | [batch, whole, 1] => (batch, whole),
        _ => return refused!("found a signal of {own:?}, wanted a real one"),
    };
    let one = |i: &Import<'a>, index: usize| -> Result<usize, Reason> {
        let list = i.integers(op, index)?;
        let number =
            list.first().and_then(|&number| usize::try_from(number).ok()).filter(|&number| number > 0);
        number.ok_or_else(|| format!("found {list:?}, wanted a number from 1 on").into())
    };
    let step = one(i, 1)?;
    let length = match (op.has(3), op.has(2)) {
        (true, _) => one(i, 3)?,
        (false, true) => i.extents_of(op, 2)?.iter().product(),
        (false, false) => return refused!("found neither a window nor the length of a frame"),
    };
    let frames = whole.checked_sub(length).map(|rest| rest / step + 1);
    let frames = frames.ok_or_else(|| format!("found frames of {length} of {whole} elements"))?;
    i.budget.spend(frames.saturating_mul(length).saturating_mul(8))?;
    let places =
        (0..frames).flat_map(|frame| (0..length).map(move |at| (frame * step + at) as i64)).collect();
    let places = i.mapped_slot(Operand::integers(vec![frames, length], places), None)?.value;
    let x = i.slot(op, 0)?;
    let x = i.with_extents("signal", x, &[batch, whole])?;
    let x = i.mapped_slot(x, None)?;
    let x = i.logical(&x)?;
    let value = i.add("frames", |graph, name| graph.gather(name, x, places, 1, 0))?;
    let mut slot = Operand::Value(crate::model::build::Mapped::plain(value, 3, Kind::F32));
    if op.has(2) {
        let window = i.slot(op, 2)?;
        slot = i.apply("windowed", Function::Mul, &[slot.into(), window.into()])?;
    }
    let columns = if op.flag("onesided", true) { length / 2 + 1 } else { length };
    let cosines = waves(i, [length, columns], length, |_, angle| angle.cos())?;
    let sines = waves(i, [length, columns], length, |_, angle| -angle.sin())?;
    let mut parts = Vec::with_capacity(2);
    for matrix in [cosines, sines] {
        let part = product(i, "part", slot.clone(), matrix)?;
        parts.push(i.with_extents("part", part, &[batch, frames, columns, 1])?);
    }
    let slot = i.joined("", parts, 3)?;
    i.set(op, 0, slot)
}

/// A window of cosines: `a - b cos(x) + c cos(2 x)`.
pub(super) fn window<'a>(i: &mut Import<'a>, op: &Op<'a>, [a, b, c]: [f64; 3]) -> Done {
    let size = i.integers(op, 0)?.first().copied().unwrap_or(0);
    let size = usize::try_from(size).map_err(|_| format!("found a size of {size}"))?;
    let span = if op.flag("periodic", true) { size } else { size.max(2) - 1 };
    i.budget.spend(size.saturating_mul(8))?;
    let at = |place: usize| {
        let angle = TAU * place as f64 / span.max(1) as f64;
        (a - b * angle.cos() + c * (2.0 * angle).cos()) as f32
    };
    let kind = Kind::of(op.int("output_datatype", 1))?;
    let values = crate::model::build::floats(&[size], (0..size).map(at).collect())?;
    i.set(op, 0, Operand::Constant(values, kind))
}

/// `MelWeightMatrix`: triangles over the bins of a spectrum, evenly spaced on the mel scale.
pub(super) fn mel<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let number = |i: &mut Import<'a>, index: usize| -> Result<f64, Reason> {
        i.constant(op, index)?
            .number()
            .map(f64::from)
            .ok_or_else(|| format!("input {index}: found no number").into())
    };
    let [bands, length, rate] = [number(i, 0)?, number(i, 1)?, number(i, 2)?];
    let edges = [number(i, 3)?, number(i, 4)?];
    let fits = (1.0..=65_536.0).contains(&bands) && (1.0..=16_777_216.0).contains(&length) && rate > 0.0;
    if !fits || edges.iter().any(|edge| !(0.0..=1e9).contains(edge)) {
        return refused!("found {bands} bands of {length} elements at {rate} from {edges:?}");
    }
    let (bands, bins) = (bands as usize, length as usize / 2 + 1);
    i.budget.spend(bands.saturating_mul(bins).saturating_mul(8))?;
    let to_mel = |hertz: f64| 2595.0 * (1.0 + hertz / 700.0).log10();
    let [low, high] = edges.map(to_mel);
    let step = (high - low) / (bands + 2) as f64;
    let bin = |edge: usize| {
        let hertz = 700.0 * (10f64.powf((low + edge as f64 * step) / 2595.0) - 1.0);
        (((length + 1.0) * hertz / rate).floor() as i64).clamp(0, bins as i64)
    };
    let mut matrix = vec![0.0f32; bins * bands];
    for band in 0..bands {
        let (first, middle, end) = (bin(band), bin(band + 1), bin(band + 2));
        let mut put = |at: i64, value: f64| {
            if let Some(element) = usize::try_from(at).ok().and_then(|at| matrix.get_mut(at * bands + band)) {
                *element = value as f32;
            }
        };
        if middle == first {
            put(middle, 1.0);
        }
        (first..=middle)
            .filter(|_| middle > first)
            .for_each(|at| put(at, (at - first) as f64 / (middle - first) as f64));
        (middle..end).for_each(|at| put(at, (end - at) as f64 / (end - middle) as f64));
    }
    let kind = Kind::of(op.int("output_datatype", 1))?;
    let values = crate::model::build::floats(&[bins, bands], matrix)?;
    i.set(op, 0, Operand::Constant(values, kind))
}
