//! Products of integers whose zero points are found at the run or known: `DynamicQuantizeLinear`, `MatMulInteger`, `ConvInteger` and
//! what com.microsoft has of these, on bytes. Sums are exact in 32 bits.

use super::import::{Import, Op};
use super::rounded_values::Rounded;
use crate::dims::{Dim, Dims};
use crate::emit::Activation;
use crate::graph::{DynamicWeights, Extras, Value};
use crate::host::HostTensor;
use crate::model::build::{Kind, Mapped, Operand, RunWeights, Windows, channels_last, converted};
use crate::model::constant::Constant;
use crate::model::reason::Reason;
use crate::ops::dynamic_conv2d::DynamicConv2d;
use crate::ops::dynamic_range::RangeRule;
use crate::ops::elementwise::Function;
use crate::parallel;
use std::sync::atomic::{AtomicBool, Ordering};

/// A factor of a product of integers: floats that are rounded by their range, or integers from 0 or from -128 on.
#[derive(Debug, Clone)]
pub(super) struct Left {
    x: Mapped,
    ranges: Value,
    /// What is added to integers to be unsigned; `None` for floats.
    offset: Option<u8>,
}

/// Constant integers less the zero point of their output.
struct Right {
    weights: RunWeights,
    /// What is left of the zero points where differences have more than 8 bits: the weights are less 128 instead, and the last
    /// output has the sums of the input.
    left: Option<Vec<i64>>,
}

/// How many are added to integers of this type to be unsigned.
fn offset(kind: Kind) -> Option<u8> {
    match kind {
        Kind::I8 => Some(128),
        Kind::U8 => Some(0),
        _ => None,
    }
}

/// Rounds input 0 of an operator by its own range; `None` if that is left to floats.
pub(super) fn rounded<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<Option<(Mapped, Rounded)>, Reason> {
    let Operand::Value(mapped) = i.slot(op, 0)? else { return Ok(None) };
    if i.computes || !i.on_bytes || mapped.kind != Kind::F32 || mapped.rank() == 0 {
        return Ok(None);
    }
    let x = mapped.value;
    let whole = [Dim::Fixed(1), Dim::Rest];
    let row = i.add("whole", |graph, name| graph.reshape(name, x, &whole))?;
    let ranges = i.add("ranges", |graph, name| graph.dynamic_range(name, row, RangeRule::Low))?;
    let zero = number(i, "zero", ranges, 1)?;
    Ok(Some((mapped, Rounded { x, ranges, zero })))
}

/// A number of a range, without axes.
fn number(i: &mut Import<'_>, part: &str, ranges: Value, index: usize) -> Result<Value, Reason> {
    let one = i.slice("number", ranges, 1, [index, index + 1])?;
    i.reshape(part, one, &[])
}

/// `DynamicQuantizeLinear` on bytes, if it can be added.
pub(super) fn linear<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    let Some((mapped, rounded)) = rounded(i, op)? else { return Ok(false) };
    let (x, ranges) = (rounded.x, rounded.ranges);
    let bytes = i.add("bytes", |graph, name| graph.dynamic_quantize(name, x, ranges, true))?;
    let channels = i.dims(x)?.extents().last().copied().unwrap_or(1);
    let value = i.add("", |graph, name| graph.dequantize(name, bytes, 1.0, 0, channels))?;
    let scale = number(i, "scale", ranges, 0)?;
    let zero = rounded.zero;
    i.quantised.rounded.insert(value, rounded);
    i.set(op, 0, Operand::Value(Mapped { value, kind: Kind::U8, ..mapped }))?;
    i.set(op, 1, Operand::Value(Mapped::plain(scale, 0, Kind::F32)))?;
    i.set(op, 2, Operand::Value(Mapped::plain(zero, 0, Kind::U8)))?;
    Ok(true)
}

/// The scale by which a factor was rounded.
pub(super) fn scale(i: &mut Import<'_>, (_, rounded): &(Mapped, Rounded)) -> Result<Operand, Reason> {
    Ok(Operand::Value(Mapped::plain(number(i, "own_scale", rounded.ranges, 0)?, 0, Kind::F32)))
}

/// The floats that a factor was rounded from.
pub(super) fn left_of((mapped, rounded): &(Mapped, Rounded)) -> Left {
    Left { x: mapped.clone(), ranges: rounded.ranges, offset: None }
}

/// The left factor at an input, with its zero point at another one.
pub(super) fn left<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    [index, zero]: [usize; 2],
) -> Result<Option<Left>, Reason> {
    let Operand::Value(mapped) = i.slot(op, index)? else { return Ok(None) };
    let Some(offset) = offset(mapped.kind).filter(|_| !i.computes && i.on_bytes) else { return Ok(None) };
    let zero = if op.has(zero) { Some(i.slot(op, zero)?) } else { None };
    let rounded = i.quantised.rounded.get(&mapped.value).cloned();
    let point = match (zero, rounded) {
        (Some(Operand::Value(point)), Some(Rounded { x, ranges, zero })) if point.value == zero => {
            return Ok(Some(Left { x: Mapped { value: x, ..mapped }, ranges, offset: None }));
        }
        (None, _) => 0,
        (Some(Operand::Constant(Constant::Integers(list), _)), _) => match list.values[..] {
            [point] => point,
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let range = HostTensor::new(Dims::new(&[1, 3])?, vec![1.0, (point + i64::from(offset)) as f32, 1.0])?;
    let ranges = i.add("range", |graph, name| Ok(graph.constant(name, range)))?;
    Ok(Some(Left { x: mapped, ranges, offset: Some(offset) }))
}

/// How many outputs are gathered together: where the file has them side by side, a line of the cache has several.
const TILE: usize = 32;

/// The integers of each output, `depth` for each, less a number of the output; `place` gives the place of element `k` of output
/// `o`. Nothing if one is missing or no signed byte.
fn gathered(
    list: &[i64],
    depth: usize,
    less: &[i64],
    place: &(impl Fn(usize, usize) -> usize + Sync),
) -> Option<Vec<i8>> {
    let count = less.len().checked_mul(depth).filter(|&count| count <= list.len())?;
    let mut values = vec![0; count];
    let fits = AtomicBool::new(true);
    let tiles = values.chunks_mut(TILE * depth.max(1)).enumerate().collect();
    parallel::each(tiles, |(tile, to): (usize, &mut [i8])| {
        for k in 0..depth {
            for (o, to) in (tile * TILE..).zip(to.chunks_exact_mut(depth)) {
                let byte = list.get(place(o, k)).and_then(|integer| i8::try_from(integer - less[o]).ok());
                match byte {
                    Some(byte) => to[k] = byte,
                    None => fits.store(false, Ordering::Relaxed),
                }
            }
        }
    });
    fits.into_inner().then_some(values)
}

impl<'a> Import<'a> {
    /// The bytes of a factor in an order of axes.
    fn bytes_in_order(&mut self, left: &Left, order: &[usize]) -> Result<Value, Reason> {
        let value = self.in_order(&left.x, order)?;
        let ranges = left.ranges;
        if let Some(&known) = self.quantised.at_run.get(&(value, ranges)) {
            return Ok(known);
        }
        let made = match left.offset {
            None => self.add("bytes", |graph, name| graph.dynamic_quantize(name, value, ranges, true))?,
            Some(offset) => {
                let range = crate::ops::bytes::ByteRange::all(offset);
                self.add("bytes", |graph, name| graph.quantize(name, value, 1.0, range))?
            }
        };
        self.quantised.at_run.insert((value, ranges), made);
        Ok(made)
    }

    /// The right factor at an input, with its zero points at another one, as weights `o kh kw c` of these extents: `place` gives
    /// the place of element `k` of output `o`.
    fn right(
        &mut self,
        op: &Op<'a>,
        [index, zero]: [usize; 2],
        extents: [usize; 4],
        place: impl Fn(usize, usize) -> usize + Sync,
    ) -> Result<Option<Right>, Reason> {
        let Operand::Constant(Constant::Integers(list), kind) = self.slot(op, index)? else {
            return Ok(None);
        };
        let [outputs, height, width, channels] = extents;
        let zeros: Vec<i64> = match op.has(zero) {
            false => vec![0],
            true => match self.slot(op, zero)? {
                Operand::Constant(Constant::Integers(zeros), _) => zeros.values.to_vec(),
                _ => return Ok(None),
            },
        };
        let Some(offset) = offset(kind).filter(|_| [1, outputs].contains(&zeros.len())) else {
            return Ok(None);
        };
        let (depth, less) = (height * width * channels, 128 - i64::from(offset));
        self.budget.spend(12 * list.values.len())?;
        let zero = |o: usize| zeros.get(o).or(zeros.first()).copied().unwrap_or(0);
        let zeros: Vec<i64> = (0..outputs).map(zero).collect();
        let (values, extents, left) = match gathered(&list.values, depth, &zeros, &place) {
            Some(values) => (values, extents, None),
            None => {
                let same = vec![less; outputs];
                let Some(mut values) = gathered(&list.values, depth, &same, &place) else { return Ok(None) };
                values.extend(std::iter::repeat_n(1, depth));
                let left = zeros.iter().map(|zero| zero - less).collect();
                (values, [outputs + 1, height, width, channels], Some(left))
            }
        };
        Ok(Some(Right { weights: RunWeights::of(&values, extents, &[1.0])?, left }))
    }

    /// The sums of a convolution of bytes `n h w c`, in i32.
    fn sums_at_run(
        &mut self,
        [bytes, ranges]: [Value; 2],
        right: &Right,
        windows: &Windows,
    ) -> Result<Operand, Reason> {
        let words = right.weights.words.clone();
        let weights = self.add("weights", |graph, name| Ok(graph.constant(name, words)))?;
        let weights = DynamicWeights { weights, scale: None };
        let pair = |list: &[usize]| [list.first().copied().unwrap_or(1), list.get(1).copied().unwrap_or(1)];
        let (stride, dilation) = (pair(&windows.stride), pair(&windows.dilation));
        let (padding, activation) = (windows.padding(), Activation::None);
        let options = DynamicConv2d { stride, dilation, padding, sums: true, activation };
        let extras = Extras::default();
        let sums = self
            .add("sums", |graph, name| graph.dynamic_conv2d(name, bytes, ranges, weights, extras, options))?;
        let whole = |value: Value| Operand::Value(Mapped::plain(value, 4, Kind::I32));
        let Some(left) = &right.left else { return Ok(whole(sums)) };
        let outputs = left.len();
        let own = self.slice("own", sums, 3, [0, outputs])?;
        let of_input = self.slice("of_input", sums, 3, [outputs, outputs + 1])?;
        let points = Operand::integers(vec![outputs], left.clone()).of_kind(Kind::I32);
        let more = self.apply("more", Function::Mul, &[whole(of_input).into(), points.into()])?;
        self.apply("whole", Function::Sub, &[whole(own).into(), more.into()])
    }
}

/// The product of a factor with the constant matrix at input `right`, whose zero point is at another one, in i32.
pub(super) fn product<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    left: &Left,
    right: [usize; 2],
) -> Result<Option<Operand>, Reason> {
    let own = i.extents_of(op, right[0])?;
    let (rank, &[depth, outputs]) = (left.x.rank(), &own[..]) else { return Ok(None) };
    let shape = i.extents(&left.x)?;
    if rank < 2 || shape.last() != Some(&depth) || depth * outputs == 0 {
        return Ok(None);
    }
    let extents = [outputs, 1, 1, depth];
    let Some(right) = i.right(op, right, extents, |o, k| k * outputs + o)? else { return Ok(None) };
    let order: Vec<usize> = (0..rank).collect();
    let bytes = i.bytes_in_order(left, &order)?;
    let packed = i.dims(bytes)?.extents().last().copied().unwrap_or(1);
    let one_row = [Dim::Fixed(1), Dim::Fixed(1), Dim::Rest, Dim::Fixed(packed)];
    let rows = i.add("rows", |graph, name| graph.reshape(name, bytes, &one_row))?;
    let sums = i.sums_at_run([rows, left.ranges], &right, &Windows::new(&[1, 1]))?;
    let mut behind = shape.get(1..).unwrap_or_default().to_vec();
    if let Some(last) = behind.last_mut() {
        *last = outputs;
    }
    let sums = i.build.mapped(sums)?.value;
    let value = i.with_rest("", sums, &behind)?;
    Ok(Some(Operand::Value(Mapped::plain(value, rank, Kind::I32))))
}

/// The [`product`], converted to f32.
pub(super) fn floats_of_product<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    left: &Left,
    right: [usize; 2],
) -> Result<Option<Operand>, Reason> {
    let inner = format!("{}/product", i.build.current);
    i.build.budget.spend(inner.len())?;
    let outer = std::mem::replace(&mut i.build.current, inner);
    let product = product(i, op, left, right);
    i.build.current = outer;
    match product? {
        Some(sums) => converted(i, sums, Kind::F32).map(Some),
        None => Ok(None),
    }
}

/// `MatMulInteger`, if it can be added.
pub(super) fn matmul<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    let Some(left) = left(i, op, [0, 2])? else { return Ok(false) };
    let Some(sums) = product(i, op, &left, [1, 3])? else { return Ok(false) };
    i.set(op, 0, sums)?;
    Ok(true)
}

/// `ConvInteger` of two spatial axes without groups, if it can be added.
pub(super) fn conv<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    let own = i.extents_of(op, 1)?;
    let (&[outputs, channels, height, width], 1) = (&own[..], op.int("group", 1)) else { return Ok(false) };
    let Some(left) = left(i, op, [0, 2])? else { return Ok(false) };
    let input = i.extents(&left.x)?;
    if input.len() != 4 || input.get(1) != Some(&channels) || own.contains(&0) {
        return Ok(false);
    }
    let windows = Windows::read(op, input.get(2..).unwrap_or_default(), &[height, width])?;
    if windows.has_negative_pads() {
        return Ok(false);
    }
    let taps = height * width;
    let place = |o: usize, k: usize| (o * channels + k % channels) * taps + k / channels;
    let Some(right) = i.right(op, [1, 3], [outputs, height, width, channels], place)? else {
        return Ok(false);
    };
    let order = channels_last(4);
    let bytes = i.bytes_in_order(&left, &order)?;
    let sums = i.sums_at_run([bytes, left.ranges], &right, &windows)?;
    let value = i.build.mapped(sums)?.value;
    i.write(op, 0, Mapped { value, order, kind: Kind::I32 })?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_gathered_by_output_from_rows_and_columns() {
        // More outputs than a tile has, and no multiple.
        let (outputs, depth) = (2 * TILE + 7, 5);
        let list: Vec<i64> = (0..outputs * depth).map(|index| (index * 37 % 200) as i64 - 100).collect();
        let less: Vec<i64> = (0..outputs).map(|o| o as i64 % 3).collect();
        let by_row = |o: usize, k: usize| k * outputs + o;
        let by_column = |o: usize, k: usize| o * depth + k;
        let wanted = |place: &dyn Fn(usize, usize) -> usize| -> Vec<i8> {
            let places = (0..outputs).flat_map(|o| (0..depth).map(move |k| (o, k)));
            places.map(|(o, k)| (list[place(o, k)] - less[o]) as i8).collect()
        };
        assert_eq!(gathered(&list, depth, &less, &by_row), Some(wanted(&by_row)));
        assert_eq!(gathered(&list, depth, &less, &by_column), Some(wanted(&by_column)));
        // One that is no signed byte, and one too few.
        let mut large = list.clone();
        large[outputs] = 200;
        assert_eq!(gathered(&large, depth, &less, &by_row), None);
        assert_eq!(gathered(&list[1..], depth, &less, &by_row), None);
        assert_eq!(gathered(&[], 0, &less, &by_row), Some(Vec::new()));
    }
}
