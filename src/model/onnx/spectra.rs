//! Fourier transforms as products with matrices of cosines and sines, and windows.

use super::import::{Import, Op, Slot};
use super::kind::Kind;
use super::moves::{cut, padded};
use super::operands::axis;
use super::products::product;
use crate::emit::Bits;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::remap::PadMode;
use std::f64::consts::TAU;

type Done = Result<(), Reason>;

/// The longest transform: its matrices have as many rows and columns.
const MAX_LENGTH: usize = 1 << 13;

/// A matrix `rows columns` of a function of the angle `TAU k n / length`.
fn matrix(
    i: &mut Import<'_>,
    [rows, columns]: [usize; 2],
    length: usize,
    of: impl Fn(usize, usize, f64) -> f64,
) -> Result<Slot, Reason> {
    if length > MAX_LENGTH || rows > MAX_LENGTH || columns > MAX_LENGTH {
        return refused!("found a transform of {length} elements, wanted at most {MAX_LENGTH}");
    }
    i.budget.spend(rows.saturating_mul(columns).saturating_mul(8))?;
    let mut values = Vec::with_capacity(rows * columns);
    for n in 0..rows {
        for k in 0..columns {
            values.push(of(n, k, TAU * ((n * k) % length) as f64 / length as f64) as f32);
        }
    }
    Ok(Slot::Constant(super::tensors::floats(&[rows, columns], values)?, Kind::F32))
}

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
    if length == 0 {
        return refused!("found a transform of no elements, wanted at least one");
    }
    // The axis last but for the parts, which come first.
    let mut order: Vec<usize> = vec![rank - 1];
    order.extend((0..rank - 1).filter(|&axis| axis != place));
    order.push(place);
    let slot = i.slot(op, 0)?;
    let slot = i.slot_transposed(slot, &order)?;
    let halves = inverse && onesided;
    let given = if halves { length / 2 + 1 } else { length };
    let mut extents = i.slot_extents(&slot)?;
    let mut around = vec![(0, 0); rank];
    around[rank - 1] = (0, given as i64 - own[place] as i64);
    let slot = padded(i, "length", slot, &extents, &around, PadMode::Constant(Bits(0.0)))?;
    extents[rank - 1] = given;
    let part = |i: &mut Import<'a>, at: usize| -> Result<Slot, Reason> {
        let mut ranges: Vec<(usize, usize, i64)> = extents.iter().map(|&extent| (0, extent, 1)).collect();
        ranges[0] = (at, 1, 1);
        cut(i, "signal", slot.clone(), &ranges)
    };
    let real = part(i, 0)?;
    let imaginary = if complex { Some(part(i, 1)?) } else { None };
    let columns = if onesided && !inverse { length / 2 + 1 } else { length };
    let scale = if inverse { 1.0 / length as f64 } else { 1.0 };
    // What a frequency that is left out adds, its mirror image does.
    let twice = move |n: usize| if halves && n > 0 && 2 * n != length { 2.0 } else { 1.0 };
    let shape = [given, columns];
    let cosines = matrix(i, shape, length, |n, _, angle| twice(n) * scale * angle.cos())?;
    let sign = if inverse { 1.0 } else { -1.0 };
    let sines = matrix(i, shape, length, |n, _, angle| twice(n) * sign * scale * angle.sin())?;
    let mut first = product(i, "real", real.clone(), cosines.clone())?;
    if let Some(imaginary) = &imaginary {
        let more = product(i, "part", imaginary.clone(), sines.clone())?;
        first = i.apply("real", Function::Sub, &[first.into(), more.into()])?;
    }
    let mut parts = vec![first];
    if !halves {
        let mut second = product(i, "imaginary", real, sines)?;
        if let Some(imaginary) = imaginary {
            let more = product(i, "part", imaginary, cosines)?;
            second = i.apply("imaginary", Function::Add, &[second.into(), more.into()])?;
        }
        parts.push(second);
    }
    let both = i.slots_joined("spectrum", parts, 0)?;
    // Back to the order of the input.
    let mut back = vec![0; rank];
    for (at, &axis) in order.iter().enumerate() {
        back[axis] = at;
    }
    let slot = i.slot_transposed(both, &back)?;
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
        (false, false) => {
            return refused!("found neither a window nor the length of a frame, wanted one of them");
        }
    };
    let frames = whole.checked_sub(length).map(|rest| rest / step + 1);
    let frames =
        frames.ok_or_else(|| format!("found frames of {length} of {whole} elements, wanted shorter ones"))?;
    i.budget.spend(frames.saturating_mul(length).saturating_mul(8))?;
    let places =
        (0..frames).flat_map(|frame| (0..length).map(move |at| (frame * step + at) as i64)).collect();
    let places = i.mapped_slot(Slot::integers(vec![frames, length], places), None)?.value;
    let x = i.slot(op, 0)?;
    let x = i.slot_reshaped("signal", x, &[batch, whole])?;
    let x = i.mapped_slot(x, None)?;
    let x = i.logical(&x)?;
    let value = i.add("frames", |graph, name| graph.gather(name, x, places, 1, 0))?;
    let mut slot = Slot::Value(super::order::Mapped::plain(value, 3, Kind::F32));
    if op.has(2) {
        let window = i.slot(op, 2)?;
        slot = i.apply("windowed", Function::Mul, &[slot.into(), window.into()])?;
    }
    let columns = if op.flag("onesided", true) { length / 2 + 1 } else { length };
    let cosines = matrix(i, [length, columns], length, |_, _, angle| angle.cos())?;
    let sines = matrix(i, [length, columns], length, |_, _, angle| -angle.sin())?;
    let mut parts = Vec::with_capacity(2);
    for matrix in [cosines, sines] {
        let part = product(i, "part", slot.clone(), matrix)?;
        parts.push(i.slot_reshaped("part", part, &[batch, frames, columns, 1])?);
    }
    let slot = i.slots_joined("", parts, 3)?;
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
    let values = super::tensors::floats(&[size], (0..size).map(at).collect())?;
    i.set(op, 0, Slot::Constant(values, kind))
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
    let values = super::tensors::floats(&[bins, bands], matrix)?;
    i.set(op, 0, Slot::Constant(values, kind))
}
