//! Operators on quantised tensors, as floats that are rounded to the integers' grid.

use super::import::{Import, Op};
use super::integer_products;
use crate::emit::Bits;
use crate::model::build::{self, Kind, Mapped, Operand, axis, by_range, channels_last, converted, product};
use crate::model::constant::{Constant, position};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::quantization::Quantization;

type Done = Result<(), Reason>;

/// A scale or a zero point with as many axes as it broadcasts along `place` of rank `rank` with.
fn spread<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    index: usize,
    place: usize,
    rank: usize,
) -> Result<Operand, Reason> {
    let slot = i.slot(op, index)?;
    let own = i.extents_of(op, index)?;
    let size = usize::try_from(op.int("block_size", 0)).map_err(|_| "found blocks of no elements")?;
    if size > 0 {
        let whole = i.extents_of(op, 0)?;
        return of_blocks(i, slot, place, size, &whole);
    }
    if own.len() != 1 || own == [1] && rank > 0 {
        let one = own.iter().product::<usize>() == 1;
        return match (slot, one) {
            (Operand::Constant(constant, kind), true) => Ok(Operand::Constant(constant.reshaped(&[])?, kind)),
            (slot, _) => Ok(slot),
        };
    }
    let mut extents = vec![1; rank];
    match extents.get_mut(place) {
        Some(extent) => *extent = own[0],
        None => return refused!("found axis {place} of rank {rank}, wanted one that is there"),
    }
    Ok(match slot {
        Operand::Constant(constant, kind) => Operand::Constant(constant.reshaped(&extents)?, kind),
        Operand::Value(mapped) => {
            let value = i.reshaped("channels", mapped.value, &extents)?;
            Operand::Value(Mapped::plain(value, rank, mapped.kind))
        }
    })
}

/// A scale or a zero point of blocks along an axis, of the extents of what it belongs to.
fn of_blocks(
    i: &mut Import<'_>,
    slot: Operand,
    place: usize,
    size: usize,
    own: &[usize],
) -> Result<Operand, Reason> {
    let extents = i.shape(&slot)?;
    let fits = place < own.len()
        && extents.len() == own.len()
        && (0..own.len()).all(|axis| match axis == place {
            true => extents[axis] == own[axis].div_ceil(size),
            false => extents[axis] == own[axis],
        });
    if !fits {
        return refused!(
            "found scales of {extents:?} for blocks of {size} along axis {place} of {own:?}, wanted one for each block"
        );
    }
    match slot {
        Operand::Constant(constant, kind) => {
            let source = |index: &[usize]| {
                let mut at = index.to_vec();
                at[place] /= size;
                position(&extents, &at)
            };
            Ok(Operand::Constant(constant.moved(own.to_vec(), &mut i.budget, source)?, kind))
        }
        Operand::Value(mapped) => {
            let list =
                Operand::integers(vec![own[place]], (0..own[place]).map(|at| (at / size) as i64).collect());
            let list = i.mapped_slot(list, None)?.value;
            let along = mapped.place(place) as isize;
            let value = i.add("blocks", |graph, name| graph.gather(name, mapped.value, list, along, 0))?;
            Ok(Operand::Value(Mapped { value, ..mapped }))
        }
    }
}

/// `(x - zero) * scale`.
pub(super) fn dequantize<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let slot = i.slot(op, 0)?;
    let slot = floats(i, op, slot, 1, 2, "")?;
    i.set(op, 0, slot)
}

/// The floats that integers stand for.
pub(super) fn floats<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    x: Operand,
    scale: usize,
    zero: usize,
    part: &str,
) -> Result<Operand, Reason> {
    let rank = i.shape(&x)?.len();
    let place = match i.extents_of(op, scale)?.len() {
        1 if rank > 0 => axis(op.int("axis", 1), rank).unwrap_or(0),
        _ if op.int("block_size", 0) > 0 => axis(op.int("axis", 1), rank)?,
        _ => 0,
    };
    floats_along(i, op, x, (scale, zero, place), part)
}

/// The floats that integers stand for, whose scales and zero points belong to an axis if there are several.
fn floats_along<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    x: Operand,
    (scale, zero, place): (usize, usize, usize),
    part: &str,
) -> Result<Operand, Reason> {
    let (rank, kind) = (i.shape(&x)?.len(), i.kind_of(op, scale)?);
    if let (Operand::Value(mapped), Some(own)) = (&x, known_steps(i, op, [scale, zero], x.kind())?)
        && kind == Kind::F32
    {
        let order = channels_last(mapped.rank());
        let q = i.in_order(mapped, &order)?;
        let value = i.add(part, |graph, name| graph.dequantize_linear(name, q, own))?;
        return Ok(Operand::Value(Mapped { value, order, kind }));
    }
    let own = if op.has(zero) { Some(spread(i, op, zero, place, rank)?) } else { None };
    let x = build::centred(i, x, own)?;
    let spread_scale = spread(i, op, scale, place, rank)?;
    let slot = i.apply(part, Function::Mul, &[x.into(), spread_scale.into()])?.of_kind(kind);
    with_scales(i, op, slot, (scale, place))
}

/// A constant that is integers times the scales at an input, with these.
fn with_scales<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    slot: Operand,
    (scale, place): (usize, usize),
) -> Result<Operand, Reason> {
    let (Operand::Constant(Constant::Floats(tensor), kind), Operand::Constant(scales, _)) =
        (&slot, i.slot(op, scale)?)
    else {
        return Ok(slot);
    };
    let scales = scales.floats(&mut i.budget)?.to_nhwc().into_owned();
    let positive = scales.iter().all(|&scale| scale > 0.0 && scale.is_finite());
    let of_axis = scales.len() == 1 || tensor.dims().extents().get(place) == Some(&scales.len());
    if !positive || !of_axis || op.int("block_size", 0) > 0 {
        return Ok(slot);
    }
    let axis = if scales.len() == 1 { 0 } else { place };
    Ok(Operand::Constant(Constant::Floats(tensor.clone().with_scales(scales, axis)), *kind))
}

/// A number that an input is, if it is known; `default` where it is left out.
fn known_number<'a>(
    i: &Import<'a>,
    op: &Op<'a>,
    index: usize,
    default: Option<f32>,
) -> Result<Option<f32>, Reason> {
    if !op.has(index) {
        return Ok(default);
    }
    Ok(match i.slot(op, index)? {
        Operand::Constant(constant, _) => constant.number(),
        Operand::Value(_) => None,
    })
}

/// What integers of a type of at most 16 bits stand for, by the scale and the zero point at inputs; nothing where these are not
/// one known number each, or everything is known.
fn known_steps<'a>(
    i: &Import<'a>,
    op: &Op<'a>,
    [scale, zero]: [usize; 2],
    kind: Kind,
) -> Result<Option<Quantization>, Reason> {
    let Some([low, high]) = kind.range().filter(|_| kind != Kind::Bool && !i.computes) else {
        return Ok(None);
    };
    let (scale, zero) = (known_number(i, op, scale, None)?, known_number(i, op, zero, Some(0.0))?);
    let (Some(scale), Some(zero)) = (scale, zero) else { return Ok(None) };
    let (Ok(low), Ok(high)) = (i32::try_from(low), i32::try_from(high)) else { return Ok(None) };
    let own = Quantization { scale: Bits(scale), zero: zero as i32, low, high };
    Ok(own.check("steps").is_ok().then_some(own))
}

/// `round(x / scale) + zero`, within the integers' range.
pub(super) fn quantize<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let x = i.slot(op, 0)?;
    let rank = i.extents_of(op, 0)?.len();
    let place = if rank > 0 { axis(op.int("axis", 1), rank).unwrap_or(0) } else { 0 };
    let kind = match (op.has(2), op.int("output_dtype", 0)) {
        (true, _) => i.kind_of(op, 2)?,
        (false, 0) => Kind::U8,
        (false, code) => Kind::of(code)?,
    };
    let slot = rounded(i, op, x, 1, 2, place, kind)?;
    i.set(op, 0, slot)
}

pub(super) fn rounded<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    x: Operand,
    scale: usize,
    zero: usize,
    place: usize,
    kind: Kind,
) -> Result<Operand, Reason> {
    let rank = i.shape(&x)?.len();
    if let (Operand::Value(mapped), Some(own)) = (&x, known_steps(i, op, [scale, zero], kind)?)
        && mapped.kind == Kind::F32
    {
        let order = channels_last(mapped.rank());
        let x = i.in_order(mapped, &order)?;
        let value = i.add("", |graph, name| graph.quantize_linear(name, x, own))?;
        return Ok(Operand::Value(Mapped { value, order, kind }));
    }
    let scale = spread(i, op, scale, place, rank)?;
    let zero = if op.has(zero) { Some(spread(i, op, zero, place, rank)?) } else { None };
    build::quantised(i, x, scale, zero, kind)
}

/// Whether the integers at an input stand for floats by one known scale and zero point.
fn is_quantized<'a>(i: &Import<'a>, op: &Op<'a>, index: usize) -> Result<bool, Reason> {
    let slot = i.slot(op, index)?;
    let is_value = matches!(slot, Operand::Value(_));
    Ok(is_value && known_steps(i, op, [index + 1, index + 2], slot.kind())?.is_some())
}

/// `QLinearMatMul`: the product of the floats, rounded.
pub(super) fn matmul<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let b = i.slot(op, 3)?;
    let matrix = matches!(b, Operand::Constant(..)) && i.shape(&b)?.len() == 2;
    if is_quantized(i, op, 0)? && (matrix || is_quantized(i, op, 3)?) {
        let a = i.slot(op, 0)?;
        let a = floats_along(i, op, a, (1, 2, 0), "a")?;
        let b = floats_along(i, op, b, (4, 5, if matrix { 1 } else { 0 }), "b")?;
        let x = product(i, "floats", a, b)?;
        let kind = i.kind_of(op, 7)?;
        let slot = rounded(i, op, x, 6, 7, 0, kind)?;
        return i.set(op, 0, slot);
    }
    let (a, b) = (i.slot(op, 0)?, i.slot(op, 3)?);
    let (zero_a, zero_b) = (i.slot(op, 2)?, i.slot(op, 5)?);
    let (a, b) = (build::centred(i, a, Some(zero_a))?, build::centred(i, b, Some(zero_b))?);
    // The sums of integers are exact; the scales come after.
    let sums = product(i, "sums", a, b)?;
    let (scale_a, scale_b) = (i.slot(op, 1)?, i.slot(op, 4)?);
    let scale = i.apply("scale", Function::Mul, &[scale_a.into(), scale_b.into()])?;
    let x = i.apply("floats", Function::Mul, &[sums.into(), scale.into()])?;
    let kind = i.kind_of(op, 7)?;
    let slot = rounded(i, op, x, 6, 7, 0, kind)?;
    i.set(op, 0, slot)
}

/// The floats of `QGemm`, with its summand, where its left factor and the constant right one are integers by known scales and
/// `alpha` is 1; nothing elsewhere.
pub(super) fn gemm_on_numbers<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<Option<Operand>, Reason> {
    let matrix = i.slot(op, 3)?;
    let is_known = matches!(matrix, Operand::Constant(..)) && i.shape(&matrix)?.len() == 2;
    let plain = op.preset("alpha")? == 1.0 && !op.flag("transA", false);
    let rows = op.has(6) && !matches!(i.slot(op, 6)?, Operand::Constant(..));
    if !is_known || !plain || rows || !is_quantized(i, op, 0)? {
        return Ok(None);
    }
    let x = i.slot(op, 0)?;
    let x = floats_along(i, op, x, (1, 2, 0), "a")?;
    let transposed = op.flag("transB", false);
    let matrix = floats_along(i, op, matrix, (4, 5, usize::from(!transposed)), "b")?;
    let matrix = if transposed { matrix } else { build::swapped(i, matrix)? };
    let bias = if op.has(6) { Some(bias(i, op, 6)?) } else { None };
    let part = if op.has(7) { "floats" } else { "" };
    i.build.within(part, |b| build::dense(b, "", x, &matrix, bias.as_ref(), None)).map(Some)
}

/// `QLinearSoftmax` of com.microsoft: the softmax of the floats, rounded.
pub(super) fn softmax<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let x = i.slot(op, 0)?;
    let kind = x.kind();
    let x = floats(i, op, x, 1, 2, "x")?;
    let version = op.int("opset", 1);
    let result = i
        .build
        .within("floats", |b| super::reductions::softmax_of(b, x, (op.int("axis", -1), version), false))?;
    let slot = rounded(i, op, result, 3, 4, 0, kind)?;
    i.set(op, 0, slot)
}

/// `DynamicQuantizeLinear`: the range is that of the elements and of 0.
pub(super) fn dynamic<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    if integer_products::linear(i, op)? {
        return Ok(());
    }
    let x = i.slot(op, 0)?;
    for (index, slot) in by_range(i, x)?.into_iter().enumerate() {
        i.set(op, index, slot)?;
    }
    Ok(())
}

/// A tensor less its zero point, which may be one for each index along its first axis.
fn centred<'a>(i: &mut Import<'a>, op: &Op<'a>, index: usize, zero: usize) -> Result<Operand, Reason> {
    let x = i.slot(op, index)?;
    let rank = i.shape(&x)?.len();
    let zero = if op.has(zero) { Some(spread(i, op, zero, 0, rank)?) } else { None };
    build::centred(i, x, zero)
}

/// `ConvInteger`: of integers less their zero points. With groups, computed weights or in one or three dimensions it is one of
/// floats, which is exact while sums are within 2^24.
pub(super) fn conv_integer<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    if integer_products::conv(i, op)? {
        return Ok(());
    }
    let (x, w) = (centred(i, op, 0, 2)?, centred(i, op, 1, 3)?);
    let slot = super::convolution::sums(i, op, x, w, None)?;
    i.set(op, 0, slot.of_kind(Kind::I32))
}

/// The floats of a bias at an input: integers times the scales of the input and of the weights.
fn bias<'a>(i: &mut Import<'a>, op: &Op<'a>, index: usize) -> Result<Operand, Reason> {
    let (bias, own, others) = (i.slot(op, index)?, i.slot(op, 1)?, i.slot(op, 4)?);
    let bias = converted(i, bias, Kind::F32)?;
    let scale = i.apply("scale", Function::Mul, &[others.into(), own.into()])?;
    let count = i.shape(&scale)?.iter().product();
    let scale = i.with_extents("scale", scale, &[count])?;
    i.apply("bias", Function::Mul, &[bias.into(), scale.into()])
}

/// `QLinearConv`: the sums of integers, then the scales, rounded.
pub(super) fn conv<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let weights = i.slot(op, 3)?;
    let of_maps = matches!(weights, Operand::Constant(..)) && (3..=4).contains(&i.shape(&weights)?.len());
    if of_maps && is_quantized(i, op, 0)? {
        let x = i.slot(op, 0)?;
        let x = floats_along(i, op, x, (1, 2, 0), "x")?;
        let weights = floats_along(i, op, weights, (4, 5, 0), "weights")?;
        let bias = if op.has(8) { Some(bias(i, op, 8)?) } else { None };
        let y = super::convolution::sums(i, op, x, weights, bias)?;
        let kind = if op.has(7) { i.kind_of(op, 7)? } else { Kind::U8 };
        let slot = rounded(i, op, y.of_kind(Kind::F32), 6, 7, 1, kind)?;
        return i.set(op, 0, slot);
    }
    let (x, w) = (centred(i, op, 0, 2)?, centred(i, op, 3, 5)?);
    let bias = if op.has(8) { Some(i.slot(op, 8)?) } else { None };
    let sums = super::convolution::sums(i, op, x, w, bias)?;
    let rank = i.shape(&sums)?.len();
    let (own, others) = (spread(i, op, 1, 1, rank)?, spread(i, op, 4, 1, rank)?);
    let scale = i.apply("scale", Function::Mul, &[own.into(), others.into()])?;
    let floats = i.apply("floats", Function::Mul, &[sums.into(), scale.into()])?;
    let kind = if op.has(7) { i.kind_of(op, 7)? } else { Kind::U8 };
    let slot = rounded(i, op, floats, 6, 7, 1, kind)?;
    i.set(op, 0, slot)
}

/// `QLinearAdd` and `QLinearMul` of com.microsoft.
pub(super) fn binary<'a>(i: &mut Import<'a>, op: &Op<'a>, function: Function) -> Done {
    let (a, b) = (i.slot(op, 0)?, i.slot(op, 3)?);
    let kind = a.kind();
    let (a, b) = (floats(i, op, a, 1, 2, "a")?, floats(i, op, b, 4, 5, "b")?);
    let result = i.apply("floats", function, &[a.into(), b.into()])?;
    let slot = rounded(i, op, result, 6, 7, 0, kind)?;
    i.set(op, 0, slot)
}

/// A function of the floats of a quantised tensor, rounded: of com.microsoft.
pub(super) fn unary<'a>(i: &mut Import<'a>, op: &Op<'a>, function: Function) -> Done {
    let x = i.slot(op, 0)?;
    let kind = x.kind();
    let x = floats(i, op, x, 1, 2, "x")?;
    let result = match function {
        Function::LeakyRelu => i.apply("floats", function, &[x.into(), op.preset("alpha")?.into()])?,
        _ => i.apply("floats", function, &[x.into()])?,
    };
    let slot = rounded(i, op, result, 3, 4, 0, kind)?;
    i.set(op, 0, slot)
}

/// `QLinearGlobalAveragePool` of com.microsoft.
pub(super) fn global_average<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let last = op.flag("channels_last", false);
    let x = i.slot(op, 0)?;
    let kind = x.kind();
    let x = floats(i, op, x, 1, 2, "x")?;
    let rank = i.shape(&x)?.len();
    let axes: Vec<usize> = if last { (1..rank.max(2) - 1).collect() } else { (2..rank).collect() };
    let mean = crate::model::build::reduced(i, "mean", x, crate::ops::reduce::Reduction::Mean, &axes, true)?;
    let slot = rounded(i, op, mean, 3, 4, 0, kind)?;
    i.set(op, 0, slot)
}

/// `QLinearConcat` of com.microsoft: each input with its own scale.
pub(super) fn concat<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let kind = i.kind_of(op, 1)?;
    let mut parts = Vec::new();
    for index in (2..op.inputs()).step_by(3) {
        let x = i.slot(op, index)?;
        parts.push(floats(i, op, x, index + 1, index + 2, "x")?);
    }
    let rank = parts.first().map(|slot| i.shape(slot)).transpose()?.map_or(0, |own| own.len());
    let place = axis(op.int("axis", 1), rank)?;
    let all = i.joined("floats", parts, place)?;
    let slot = rounded(i, op, all, 0, 1, 0, kind)?;
    i.set(op, 0, slot)
}
