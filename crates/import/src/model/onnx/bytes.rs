//! Quantized operators on bytes: those of `QLinear...`, and operators between `DequantizeLinear` and `QuantizeLinear`.
//!
//! Each is read as floats too, as `quantised.rs` does it. What reads bytes alone reads these, so that nothing of the floats is
//! left in the network. It is noted of a value of floats which operator made it of bytes; `QuantizeLinear` of it adds that
//! operator on bytes.

use super::byte_origins::{Known, Made, Origin, convolution_weights, matrix, of_32_bits};
use super::import::{Import, Op};
use crate::emit::Bits;
use crate::model::build::{Bytes, Grid, Kind, Mapped, Operand, Windows, channels_last, rescaled, table};
use crate::model::constant::Constant;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::quantized_pool::QuantizedPooling;
use std::sync::Arc;

/// How many are added to integers of this type to be unsigned.
fn offset(kind: Kind) -> Option<i64> {
    match kind {
        Kind::I8 => Some(128),
        Kind::U8 => Some(0),
        _ => None,
    }
}

impl<'a> Import<'a> {
    /// A number that an input is, if it is known; `default` where it is left out.
    fn known_number(&self, op: &Op<'a>, index: usize, default: Option<f32>) -> Result<Option<f32>, Reason> {
        if !op.has(index) {
            return Ok(default);
        }
        Ok(match self.slot(op, index)? {
            Operand::Constant(constant, _) => constant.number(),
            Operand::Value(_) => None,
        })
    }

    /// The grid of a scale and a zero point at inputs, of integers of this type.
    fn known_grid(&self, op: &Op<'a>, [scale, zero]: [usize; 2], kind: Kind) -> Result<Option<Grid>, Reason> {
        let Some(offset) = offset(kind) else { return Ok(None) };
        let scale = self.known_number(op, scale, None)?;
        let zero = self.known_number(op, zero, Some(0.0))?;
        let (Some(scale), Some(zero)) = (scale, zero) else { return Ok(None) };
        let positive = scale > 0.0 && scale.is_finite() && (1.0 / scale).is_finite();
        let zero = u8::try_from(zero as i64 + offset).ok().filter(|_| positive);
        Ok(zero.map(|zero| Grid { scale, zero }))
    }

    /// Integers at an input as bytes that stand for floats.
    fn bytes(&mut self, op: &Op<'a>, index: usize, params: [usize; 2]) -> Result<Option<Bytes>, Reason> {
        let Operand::Value(mapped) = self.slot(op, index)? else { return Ok(None) };
        let Some(grid) = self.known_grid(op, params, mapped.kind)? else { return Ok(None) };
        self.bytes_of(&mapped, grid)
    }

    /// A value of integers as bytes.
    fn bytes_of(&mut self, mapped: &Mapped, grid: Grid) -> Result<Option<Bytes>, Reason> {
        let Some(offset) = offset(mapped.kind) else { return Ok(None) };
        if let Some(known) = self.quantised.bytes.get(&mapped.value) {
            return Ok(
                (mapped.order == channels_last(mapped.rank())).then(|| Bytes { grid, ..known.clone() })
            );
        }
        if mapped.rank() == 0 {
            return Ok(None);
        }
        let value = self.in_order(mapped, &channels_last(mapped.rank()))?;
        let steps = Grid { scale: 1.0, zero: offset as u8 };
        let bytes = self.bytes_made("bytes", value, steps)?;
        Ok(Some(Bytes { grid, ..bytes }))
    }

    /// Writes bytes as the integers of output 0, of this type.
    fn put_bytes(&mut self, op: &Op<'a>, bytes: Option<Bytes>, kind: Kind) -> Result<bool, Reason> {
        let (Some(bytes), Some(offset)) = (bytes, offset(kind)) else { return Ok(false) };
        let steps = Grid { scale: 1.0, zero: offset as u8 };
        let value = self.bytes_as_floats("", &Bytes { grid: steps, ..bytes.clone() })?;
        let order = channels_last(bytes.extents.len());
        self.quantised.bytes.insert(value, bytes);
        self.write(op, 0, Mapped { value, order, kind })?;
        Ok(true)
    }

    /// The integers of a constant at an input, less the zero point at another one.
    fn known_integers(&mut self, op: &Op<'a>, index: usize, zero: usize) -> Result<Option<Known>, Reason> {
        let Operand::Constant(Constant::Integers(integers), _) = self.slot(op, index)? else {
            return Ok(None);
        };
        let zeros: Vec<i64> = match op.has(zero) {
            false => Vec::new(),
            true => match self.slot(op, zero)? {
                Operand::Constant(Constant::Integers(zeros), _) => zeros.values.to_vec(),
                _ => return Ok(None),
            },
        };
        let less = zeros.first().copied().unwrap_or(0);
        if zeros.iter().any(|&zero| zero != less) {
            return Ok(None);
        }
        self.budget.spend(8 * integers.values.len())?;
        let values = match less {
            0 => Arc::clone(&integers.values),
            _ => integers.values.iter().map(|value| value.saturating_sub(less)).collect(),
        };
        Ok(Some(Known { values, extents: integers.dims.clone(), scales: Vec::new() }))
    }

    /// The scales at an input: one, or one for each index along an axis.
    fn known_scales(&mut self, op: &Op<'a>, index: usize) -> Result<Option<Vec<f32>>, Reason> {
        let Operand::Constant(constant, _) = self.slot(op, index)? else { return Ok(None) };
        Ok(Some(constant.floats(&mut self.budget)?.to_nhwc().into_owned()))
    }

    /// Adds what a value was made of, on bytes.
    fn of_bytes(&mut self, made: &Made, grid: Grid) -> Result<Option<Bytes>, Reason> {
        let Some(range) = grid.range(made.after) else { return Ok(None) };
        let to = (grid, range);
        Ok(match &made.origin {
            Origin::Bytes(x) if x.grid == grid && made.after.is_none() => Some(x.clone()),
            Origin::Bytes(x) => match made.after {
                None => {
                    rescaled([x.grid, grid], 1.0).map(|table| self.bytes_looked_up("bytes", x, &table, grid))
                }
                Some(after) => bounded(after)
                    .map(|of| self.bytes_looked_up("bytes", x, &table(of, [x.grid, grid]), grid)),
            }
            .transpose()?,
            Origin::Convolution(x, weights, depthwise, windows) => {
                Some(self.bytes_convolved("bytes", x, (weights, *depthwise), windows, to)?)
            }
            Origin::Product(x, weights) => {
                self.build.within("bytes", |b| b.bytes_multiplied(x, weights, to))?
            }
            Origin::Combined([a, b], function) => self.bytes_combined("bytes", [a, b], *function, to)?,
            Origin::Largest(x, windows) if x.grid == grid => {
                Some(self.bytes_pooled("bytes", x, QuantizedPooling::Max, windows, to)?)
            }
            Origin::Mean(x) => {
                let Some(&[_, height, width, _]) = x.extents.first_chunk::<4>() else { return Ok(None) };
                let factor = x.grid.scale / grid.scale * (1.0 / (height * width) as f32);
                let pooling = QuantizedPooling::Scaled { zero: x.grid.zero, factor: Bits(factor) };
                Some(self.bytes_pooled("bytes", x, pooling, &Windows::new(&[height, width]), to)?)
            }
            Origin::Joined(parts, axis)
                if parts.iter().all(|part| part.grid == grid) && made.after.is_none() =>
            {
                self.bytes_joined("bytes", parts, *axis)?
            }
            Origin::Function(x, of) if made.after.is_none() => {
                Some(self.bytes_looked_up("bytes", x, &table(of, [x.grid, grid]), grid)?)
            }
            Origin::Leaky(x, slope) if made.after.is_none() => rescaled([x.grid, grid], *slope)
                .map(|table| self.bytes_looked_up("bytes", x, &table, grid))
                .transpose()?,
            _ => None,
        })
    }

    /// The bytes that stand for a value of floats, which nothing is behind.
    fn plain(&self, op: &Op<'a>, index: usize) -> Result<Option<Bytes>, Reason> {
        let Operand::Value(mapped) = self.slot(op, index)? else { return Ok(None) };
        Ok(match self.quantised.made.get(&mapped.value) {
            Some(Made { origin: Origin::Bytes(bytes), after: None, order }) if *order == mapped.order => {
                Some(bytes.clone())
            }
            _ => None,
        })
    }
}

/// The function of bounds.
fn bounded(after: Function) -> Option<fn(f32) -> f32> {
    match after {
        Function::Relu => Some(|x| x.max(0.0)),
        Function::Relu6 => Some(|x| x.clamp(0.0, 6.0)),
        _ => None,
    }
}

/// The windows of an operator over a map of bytes, if they are of two axes and cut nothing.
fn windows_of(op: &Op<'_>, x: &Bytes, kernel: [usize; 2]) -> Result<Option<Windows>, Reason> {
    let &[_, height, width, _] = &x.extents[..] else { return Ok(None) };
    let windows = Windows::read(op, &[height, width], &kernel)?;
    Ok((!windows.has_negative_pads()).then_some(windows))
}

/// Adds an operator of integers on bytes, if it can.
pub(super) fn added<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    if i.computes || !i.on_bytes || op.node.outputs.len() != 1 {
        return Ok(false);
    }
    match op.node.op {
        "QuantizeLinear" => quantize(i, op),
        "DequantizeLinear" => dequantize(i, op),
        "QLinearConv" => conv(i, op),
        "QLinearAdd" => binary(i, op, Function::Add),
        "QLinearMul" => binary(i, op, Function::Mul),
        _ => Ok(false),
    }
}

fn quantize<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    let Operand::Value(mapped) = i.slot(op, 0)? else { return Ok(false) };
    let kind = match (op.has(2), op.int("output_dtype", 0)) {
        (true, _) => i.kind_of(op, 2)?,
        (false, 0) => Kind::U8,
        (false, code) => Kind::of(code)?,
    };
    let Some(grid) = i.known_grid(op, [1, 2], kind)? else { return Ok(false) };
    if mapped.kind != Kind::F32 || mapped.rank() == 0 {
        return Ok(false);
    }
    let made = i.quantised.made.get(&mapped.value).filter(|made| made.order == mapped.order).cloned();
    let bytes = match made {
        Some(made) => i.of_bytes(&made, grid)?,
        None => None,
    };
    let bytes = match bytes {
        Some(bytes) => bytes,
        None => {
            let value = i.in_order(&mapped, &channels_last(mapped.rank()))?;
            i.bytes_made("bytes", value, grid)?
        }
    };
    i.put_bytes(op, Some(bytes), kind)
}

fn dequantize<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    let Operand::Value(x) = i.slot(op, 0)? else { return Ok(false) };
    if i.kind_of(op, 1)? != Kind::F32 || !i.quantised.bytes.contains_key(&x.value) {
        return Ok(false);
    }
    let Some(bytes) = i.bytes(op, 0, [1, 2])? else { return Ok(false) };
    let value = i.bytes_as_floats("", &bytes)?;
    let order = channels_last(bytes.extents.len());
    let made = Made { origin: Origin::Bytes(bytes), after: None, order: order.clone() };
    i.quantised.made.insert(value, made);
    i.write(op, 0, Mapped { value, order, kind: Kind::F32 })?;
    Ok(true)
}

fn conv<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    let Some(x) = i.bytes(op, 0, [1, 2])? else { return Ok(false) };
    let kind = i.kind_of(op, 7)?;
    let Some(grid) = i.known_grid(op, [6, 7], kind)? else { return Ok(false) };
    let (Some(known), Some(scales)) = (i.known_integers(op, 3, 5)?, i.known_scales(op, 4)?) else {
        return Ok(false);
    };
    let bias = if op.has(8) { of_32_bits(i.known_integers(op, 8, usize::MAX)?.as_ref()) } else { None };
    if op.has(8) && bias.is_none() {
        return Ok(false);
    }
    let known = Known { scales, ..known };
    let channels = x.extents.last().copied().unwrap_or(0);
    let Some((weights, depthwise)) = convolution_weights(&known, channels, bias) else { return Ok(false) };
    let kernel = [known.extents[2], known.extents[3]];
    let Some(windows) = windows_of(op, &x, kernel)? else { return Ok(false) };
    let Some(range) = grid.range(None) else { return Ok(false) };
    let y = i.bytes_convolved("bytes", &x, (&weights, depthwise), &windows, (grid, range))?;
    i.put_bytes(op, Some(y), kind)
}

fn binary<'a>(i: &mut Import<'a>, op: &Op<'a>, function: Function) -> Result<bool, Reason> {
    let (a, b) = (i.bytes(op, 0, [1, 2])?, i.bytes(op, 3, [4, 5])?);
    let (Some(a), Some(b)) = (a, b) else { return Ok(false) };
    let kind = i.kind_of(op, 0)?;
    let Some(grid) = i.known_grid(op, [6, 7], kind)? else { return Ok(false) };
    let Some(range) = grid.range(None) else { return Ok(false) };
    let y = i.bytes_combined("bytes", [&a, &b], function, (grid, range))?;
    i.put_bytes(op, y, kind)
}

/// Notes what an operator on floats made of bytes.
pub(super) fn noted<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let &[output] = &op.node.outputs[..] else { return Ok(()) };
    // Constants are known by their names, which are others within functions and branches.
    if i.computes || !i.on_bytes || i.scopes.len() != 1 || output.is_empty() {
        return Ok(());
    }
    if op.node.op == "DequantizeLinear" {
        // Weights and biases.
        if let (Some(known), Some(scales)) = (i.known_integers(op, 0, 2)?, i.known_scales(op, 1)?)
            && op.int("block_size", 0) == 0
        {
            i.quantised.known.insert(output, Arc::new(Known { scales, ..known }));
        }
        // Integers that no operator on bytes wrote: what reads bytes alone makes bytes of them. A constant that stays integers
        // is none, and not made floats to see that.
        if i.unread(output).is_none()
            && let Ok(Operand::Value(y)) = i.find(output)
            && y.kind == Kind::F32
            && let Some(bytes) = i.bytes(op, 0, [1, 2])?
        {
            let made = Made { origin: Origin::Bytes(bytes), after: None, order: y.order };
            i.quantised.made.insert(y.value, made);
        }
        return Ok(());
    }
    if i.quantised.made.is_empty() {
        return Ok(());
    }
    let Ok(Operand::Value(y)) = i.find(output) else { return Ok(()) };
    if y.kind == Kind::F32
        && let Some((origin, after)) = origin(i, op)?
    {
        i.quantised.made.insert(y.value, Made { origin, after, order: y.order });
    }
    Ok(())
}

/// What made output 0 of an operator, and the bounds behind it.
fn origin<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<Option<(Origin, Option<Function>)>, Reason> {
    let known = |i: &Import<'a>, index: usize| {
        op.input_name(index).ok().and_then(|name| i.quantised.known.get(name).cloned())
    };
    let only = |i: &Import<'a>| i.plain(op, 0);
    let function = |x: Option<Bytes>, of: fn(f32) -> f32| x.map(|x| (Origin::Function(x, of), None));
    Ok(match op.node.op {
        "Relu" | "Clip" => {
            let Operand::Value(x) = i.slot(op, 0)? else { return Ok(None) };
            let after = match op.node.op {
                "Relu" => Function::Relu,
                _ => {
                    let (low, high) = (i.known_number(op, 1, None)?, i.known_number(op, 2, None)?);
                    if (low, high) != (Some(0.0), Some(6.0)) {
                        return Ok(None);
                    }
                    Function::Relu6
                }
            };
            let made =
                i.quantised.made.get(&x.value).filter(|made| made.after.is_none() && made.order == x.order);
            made.map(|made| (made.origin.clone(), Some(after)))
        }
        "Conv" => {
            let (Some(x), Some(weights)) = (only(i)?, known(i, 1)) else { return Ok(None) };
            let bias = if op.has(2) { of_32_bits(known(i, 2).as_deref()) } else { None };
            if op.has(2) && bias.is_none() {
                return Ok(None);
            }
            let channels = x.extents.last().copied().unwrap_or(0);
            let Some((own, depthwise)) = convolution_weights(&weights, channels, bias) else {
                return Ok(None);
            };
            let windows = windows_of(op, &x, [weights.extents[2], weights.extents[3]])?;
            windows.map(|windows| (Origin::Convolution(x, Arc::new(own), depthwise, windows), None))
        }
        "Gemm" | "MatMul" => {
            let (Some(x), Some(weights)) = (only(i)?, known(i, 1)) else { return Ok(None) };
            let plain = op.float("alpha", 1.0) == 1.0 && op.float("beta", 1.0) == 1.0;
            let bias = if op.has(2) { of_32_bits(known(i, 2).as_deref()) } else { None };
            if !plain || op.flag("transA", false) || x.extents.len() > 2 || op.has(2) && bias.is_none() {
                return Ok(None);
            }
            matrix(&weights, op.flag("transB", false), bias)
                .map(|own| (Origin::Product(x, Arc::new(own)), None))
        }
        "Add" | "Mul" => {
            let (Some(a), Some(b)) = (i.plain(op, 0)?, i.plain(op, 1)?) else { return Ok(None) };
            let function = if op.node.op == "Add" { Function::Add } else { Function::Mul };
            (a.extents.len() == b.extents.len()).then_some((Origin::Combined([a, b], function), None))
        }
        "MaxPool" => {
            let (Some(x), Some(&[height, width])) = (only(i)?, op.ints("kernel_shape")) else {
                return Ok(None);
            };
            if op.flag("ceil_mode", false) {
                return Ok(None);
            }
            let kernel = [height, width].map(|extent| usize::try_from(extent).unwrap_or(0));
            let windows = windows_of(op, &x, kernel)?.filter(|windows| windows.dilation == [1, 1]);
            windows.map(|windows| (Origin::Largest(x, windows), None))
        }
        "GlobalAveragePool" => only(i)?.filter(|x| x.extents.len() == 4).map(|x| (Origin::Mean(x), None)),
        "Concat" => {
            let mut parts = Vec::with_capacity(op.inputs());
            for index in 0..op.inputs() {
                let Some(part) = i.plain(op, index)? else { return Ok(None) };
                parts.push(part);
            }
            let order = channels_last(parts.first().map_or(0, |part| part.extents.len()));
            let axis = crate::model::build::axis(op.int("axis", 0), order.len())?;
            let Some(place) = order.iter().position(|&own| own == axis) else { return Ok(None) };
            Some((Origin::Joined(parts, place), None))
        }
        "Reshape" | "Flatten" | "Squeeze" => {
            let Some(x) = only(i)? else { return Ok(None) };
            let Ok(Operand::Value(y)) = i.find(op.node.outputs[0]) else { return Ok(None) };
            let extents = i.extents(&y)?;
            // Rows of channels: nothing else lies in the same order in both.
            let [batch, channels] = extents[..] else { return Ok(None) };
            if x.extents.first() != Some(&batch) || x.extents.last() != Some(&channels) {
                return Ok(None);
            }
            i.bytes_reshaped("bytes", &x, &extents)?.map(|bytes| (Origin::Bytes(bytes), None))
        }
        "Sigmoid" => function(only(i)?, |x| 1.0 / (1.0 + (-x).exp())),
        "Tanh" => function(only(i)?, f32::tanh),
        "HardSwish" => function(only(i)?, |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)),
        "LeakyRelu" => {
            let slope = op.preset("alpha")?;
            only(i)?.map(|x| (Origin::Leaky(x, slope), None))
        }
        _ => None,
    })
}
