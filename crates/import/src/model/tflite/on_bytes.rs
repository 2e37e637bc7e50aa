//! Operators whose tensors are all of 8-bit integers, computed on bytes.
//!
//! A function says whether it added the operator. Where it did not, because an option, a type or an extent is none that it
//! knows, the operator is computed on the floats that the integers stand for, and rounded ([`super::rounding`]).

use super::elementwise::activation;
use super::exact;
use super::import::{Import, OnBytes, Op};
use super::names::{self, element};
use super::slots::{Readers, Slot};
use super::windows::{positive, windows};
use crate::emit::Bits;
use crate::erf;
use crate::model::build::{Windows, axis, combined_with, rescaled, reshaped_to, table};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::quantized_pool::QuantizedPooling;

/// The function of an operator, by its name.
pub(super) fn handler(name: &str) -> Option<OnBytes> {
    Some(match name {
        "CONV_2D" => |i, op| Ok(convolution(i, op, false)? || exact::convolution(i, op, false)?),
        "DEPTHWISE_CONV_2D" => |i, op| Ok(convolution(i, op, true)? || exact::convolution(i, op, true)?),
        "TRANSPOSE_CONV" => exact::transposed,
        "BATCH_MATMUL" => exact::batch_matmul,
        "FULLY_CONNECTED" => fully_connected,
        "MAX_POOL_2D" | "AVERAGE_POOL_2D" => pool,
        "MEAN" => mean,
        "ADD" => |i, op| binary(i, op, Function::Add),
        "SUB" => |i, op| binary(i, op, Function::Sub),
        "MUL" => |i, op| binary(i, op, Function::Mul),
        "PAD" => pad,
        "CONCATENATION" => concatenation,
        "RESHAPE" => reshape,
        "QUANTIZE" => |i, op| scaled(i, op, 1.0),
        "LEAKY_RELU" => |i, op| {
            let slope = op.table.leaky_relu().map_or(1.0, |table| table.alpha());
            scaled(i, op, slope)
        },
        "LOGISTIC" => |i, op| unary(i, op, |x| 1.0 / (1.0 + (-x).exp())),
        "TANH" => |i, op| unary(i, op, f32::tanh),
        "HARD_SWISH" => |i, op| unary(i, op, |x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0),
        "ELU" => |i, op| unary(i, op, |x| if x < 0.0 { x.exp_m1() } else { x }),
        "ABS" => |i, op| unary(i, op, f32::abs),
        "NEG" => |i, op| unary(i, op, |x| -x),
        "EXP" => |i, op| unary(i, op, f32::exp),
        "SQRT" => |i, op| unary(i, op, f32::sqrt),
        "SQUARE" => |i, op| unary(i, op, |x| x * x),
        "RELU" => |i, op| unary(i, op, |x| x.max(0.0)),
        "RELU6" => |i, op| unary(i, op, |x| x.clamp(0.0, 6.0)),
        "GELU" => gelu,
        "DEQUANTIZE" => dequantise,
        _ => return None,
    })
}

/// `CONV_2D` and `DEPTHWISE_CONV_2D` without groups or a multiplier.
fn convolution<'a>(import: &mut Import<'a>, op: &Op<'a>, by_channel: bool) -> Result<bool, Reason> {
    op.check(&[2, 3], 1)?;
    if import.phases.contains_key(&op.index) {
        return Ok(false);
    }
    let (padding, stride, dilation, activation) = match by_channel {
        true => {
            let Some(table) = op.table.depthwise() else { return Ok(false) };
            let stride = positive("stride", [table.stride_h(), table.stride_w()])?;
            let dilation = positive("dilation", [table.dilation_h(), table.dilation_w()])?;
            (table.padding(), stride, dilation, table.activation())
        }
        false => {
            let Some(table) = op.table.conv2d() else { return Ok(false) };
            let stride = positive("stride", [table.stride_h(), table.stride_w()])?;
            let dilation = positive("dilation", [table.dilation_h(), table.dilation_w()])?;
            (table.padding(), stride, dilation, table.activation())
        }
    };
    let Some(grid) = import.grid_of(op.output(0)?)? else { return Ok(false) };
    let Some(range) = grid.range(names::fused(activation)?) else { return Ok(false) };
    let Some((x, border)) = import.bordered_bytes(op)? else { return Ok(false) };
    let weights = import.tensors.extents(import.tensors.position(op.input(1)?)?)?;
    let (&[_, height, width, channels], &[outer, kernel_h, kernel_w, inner]) = (&x.extents[..], &weights[..])
    else {
        return Ok(false);
    };
    let (extents, outputs, depthwise) = match by_channel {
        // A depthwise convolution of one channel is one of all.
        true if channels == 1 && outer == 1 => ([inner, kernel_h, kernel_w, 1], inner, false),
        true if outer == 1 && inner == channels => ([1, kernel_h, kernel_w, channels], channels, true),
        false if inner == channels => ([outer, kernel_h, kernel_w, channels], outer, false),
        _ => return Ok(false),
    };
    let Some(mut weights) = import.byte_weights(op, extents, outputs)? else { return Ok(false) };
    if by_channel && !depthwise && outputs > 1 {
        // From `1 kh kw o` to `o kh kw 1`.
        let own = &weights.values;
        let turned = (0..outputs).flat_map(|o| own.iter().skip(o).step_by(outputs)).copied();
        weights.values = turned.collect();
    }
    let mut windows = windows(padding, &[kernel_h, kernel_w], &stride, &dilation, &[height, width])?;
    if let Some(border) = border {
        if padding != 1 {
            return Ok(false);
        }
        windows.pads = border.to_vec();
    }
    let y = import
        .begin_bytes(op, |b| b.bytes_convolved("", &x, (&weights, depthwise), &windows, (grid, range)))?;
    import.put_bytes(op, Some(y))
}

/// `PAD` of height and width by the zero point, if a convolution without a border of its own alone reads it.
fn pad<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    op.check(&[2], 1)?;
    let position = import.tensors.position(op.output(0)?)?;
    let Some(grid) = import.grid(position)? else { return Ok(false) };
    let Some(x) = import.bytes(op, 0)?.filter(|x| x.grid == grid && x.extents.len() == 4) else {
        return Ok(false);
    };
    let Some(&Readers { count: 1, last }) = import.readers.get(position) else { return Ok(false) };
    if last >= import.operator_count() || import.is_computed(op, 1)? {
        return Ok(false);
    }
    let reader = import.op(last)?;
    let padding = match reader.name.as_str() {
        "CONV_2D" => reader.table.conv2d().map(|table| table.padding()),
        "DEPTHWISE_CONV_2D" => reader.table.depthwise().map(|table| table.padding()),
        _ => None,
    };
    let pads = import.integers(op, 1)?.values;
    let (Some(1), &[0, 0, top, bottom, left, right, 0, 0]) = (padding, &pads[..]) else { return Ok(false) };
    if [top, bottom, left, right].into_iter().any(|pad| !(0..=i64::from(u16::MAX)).contains(&pad)) {
        return Ok(false);
    }
    import.check_unwritten(position)?;
    import.frame.bytes.insert(position, x);
    import.set(position, Slot::Bordered([(top, bottom), (left, right)]));
    Ok(true)
}

/// `FULLY_CONNECTED` of constant weights.
fn fully_connected<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    op.check(&[2, 3], 1)?;
    let Some(table) = op.table.fully_connected().filter(|table| table.format() == 0) else {
        return Ok(false);
    };
    let Some(grid) = import.grid_of(op.output(0)?)? else { return Ok(false) };
    let Some(range) = grid.range(names::fused(table.activation())?) else { return Ok(false) };
    let Some(x) = import.bytes(op, 0)? else { return Ok(false) };
    let weights = import.tensors.extents(import.tensors.position(op.input(1)?)?)?;
    let &[outputs, depth] = &weights[..] else { return Ok(false) };
    let elements = x.extents.iter().product::<usize>();
    let keeps = table.keep_dims() && x.extents.len() != 2;
    if depth == 0 || elements % depth != 0 || keeps && x.extents.last() != Some(&depth) {
        return Ok(false);
    }
    let Some(weights) = import.byte_weights(op, [outputs, 1, 1, depth], outputs)? else { return Ok(false) };
    let y = import.begin_bytes(op, |b| {
        let y = b.bytes_multiplied(&x, &weights, (grid, range))?;
        match y {
            Some(y) if !keeps && y.extents.len() != 2 => {
                b.bytes_reshaped("flat", &y, &[elements / depth, outputs])
            }
            y => Ok(y),
        }
    })?;
    import.put_bytes(op, y)
}

/// `MAX_POOL_2D` of one scale, and `AVERAGE_POOL_2D`, which keeps it.
fn pool<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    op.check(&[1], 1)?;
    let Some(table) = op.table.pool() else { return Ok(false) };
    let Some(grid) = import.grid_of(op.output(0)?)? else { return Ok(false) };
    let Some(range) = grid.range(names::fused(table.activation())?) else { return Ok(false) };
    let Some(x) = import.bytes(op, 0)?.filter(|x| x.grid == grid) else { return Ok(false) };
    let &[_, height, width, _] = &x.extents[..] else { return Ok(false) };
    let kernel = positive("window", [table.window_h(), table.window_w()])?;
    let stride = positive("stride", [table.stride_h(), table.stride_w()])?;
    let windows = windows(table.padding(), &kernel, &stride, &[1, 1], &[height, width])?;
    let signed =
        import.tensors.tensor(import.tensors.position(op.input(0)?)?)?.element_type() == element::INT8;
    let pooling = match op.name.as_str() {
        "MAX_POOL_2D" => QuantizedPooling::Max,
        _ => QuantizedPooling::Mean(if signed { 128 } else { 0 }),
    };
    let y = import.begin_bytes(op, |b| b.bytes_pooled("", &x, pooling, &windows, (grid, range)))?;
    import.put_bytes(op, Some(y))
}

/// `MEAN` over height and width.
fn mean<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    op.check(&[2], 1)?;
    let keeps = op.table.reducer().is_some_and(|table| table.keep_dims());
    let Some(grid) = import.grid_of(op.output(0)?)? else { return Ok(false) };
    let Some(range) = grid.range(None) else { return Ok(false) };
    let Some(x) = import.bytes(op, 0)? else { return Ok(false) };
    let &[batch, height, width, channels] = &x.extents[..] else { return Ok(false) };
    let listed = import.integers(op, 1)?.values;
    let axes = listed.iter().map(|&at| axis(at, 4)).collect::<Result<Vec<_>, _>>()?;
    if axes != [1, 2] && axes != [2, 1] {
        return Ok(false);
    }
    let factor = x.grid.scale / grid.scale * (1.0 / (height * width) as f32);
    let pooling = QuantizedPooling::Scaled { zero: x.grid.zero, factor: Bits(factor) };
    let windows = Windows::new(&[height, width]);
    let y = import.begin_bytes(op, |b| {
        let y = b.bytes_pooled("mean", &x, pooling, &windows, (grid, range))?;
        match keeps {
            true => Ok(Some(y)),
            false => b.bytes_reshaped("", &y, &[batch, channels]),
        }
    })?;
    import.put_bytes(op, y)
}

/// `ADD`, `SUB` and `MUL`, and the bounds after them.
fn binary<'a>(import: &mut Import<'a>, op: &Op<'a>, function: Function) -> Result<bool, Reason> {
    op.check(&[2], 1)?;
    let Some(grid) = import.grid_of(op.output(0)?)? else { return Ok(false) };
    let Some(range) = grid.range(activation(op)?) else { return Ok(false) };
    let (a, b) = (import.bytes(op, 0)?, import.bytes(op, 1)?);
    let (x, index, number_first) = match (a, b) {
        (Some(a), Some(b)) => {
            let y = import
                .begin_bytes(op, |build| build.bytes_combined("", [&a, &b], function, (grid, range)))?;
            return import.put_bytes(op, y);
        }
        (Some(a), None) => (a, 1, false),
        (None, Some(b)) => (b, 0, true),
        (None, None) => return Ok(false),
    };
    let position = import.tensors.position(op.input(index)?)?;
    let Some(other) = import.grid(position)? else { return Ok(false) };
    let extents = import.tensors.extents(position)?;
    let Some(values) = import.stored_integers(op, index)? else { return Ok(false) };
    let bytes = values.iter().map(|value| u8::try_from(value + i64::from(other.zero)).ok());
    let Some(bytes) = bytes.collect::<Option<Vec<u8>>>() else { return Ok(false) };
    if let &[number] = &bytes[..] {
        let table = combined_with(x.grid, (number, other), function, number_first, (grid, range));
        let Some(table) = table.filter(|_| extents.len() <= x.extents.len()) else { return Ok(false) };
        let y = import.begin_bytes(op, |b| b.bytes_looked_up("", &x, &table, grid))?;
        return import.put_bytes(op, Some(y));
    }
    if number_first && function == Function::Sub || extents.len() > x.extents.len() {
        return Ok(false);
    }
    let y = import.begin_bytes(op, |b| {
        let other = b.known_bytes(&extents, &bytes, other)?;
        b.bytes_combined("", [&x, &other], function, (grid, range))
    })?;
    import.put_bytes(op, y)
}

/// `CONCATENATION` of tensors of one scale.
fn concatenation<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    let Some(table) = op.table.concatenation().filter(|table| table.activation() == 0) else {
        return Ok(false);
    };
    let Some(grid) = import.grid_of(op.output(0)?)? else { return Ok(false) };
    let mut parts = Vec::with_capacity(op.inputs.len());
    for index in 0..op.inputs.len() {
        let Some(part) = import.bytes(op, index)?.filter(|part| part.grid == grid) else { return Ok(false) };
        parts.push(part);
    }
    let Some(rank) = parts.first().map(|part| part.extents.len()) else { return Ok(false) };
    let axis = axis(i64::from(table.axis()), rank)?;
    let y = import.begin_bytes(op, |b| b.bytes_joined("", &parts, axis))?;
    import.put_bytes(op, y)
}

/// `RESHAPE` to known extents.
fn reshape<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    op.check(&[1, 2], 1)?;
    let Some(grid) = import.grid_of(op.output(0)?)? else { return Ok(false) };
    let Some(x) = import.bytes(op, 0)?.filter(|x| x.grid == grid) else { return Ok(false) };
    let wanted: Vec<i64> = if op.has(1) {
        if import.is_computed(op, 1)? {
            return Ok(false);
        }
        import.integers(op, 1)?.values.to_vec()
    } else {
        let shape = op.table.reshape().and_then(|table| table.shape());
        shape.map_or_else(Vec::new, |shape| shape.iter().map(i64::from).collect())
    };
    let target = reshaped_to(&x.extents, &wanted, false)?;
    let y = import.begin_bytes(op, |b| b.bytes_reshaped("", &x, &target))?;
    import.put_bytes(op, y)
}

/// `QUANTIZE` of bytes, and `LEAKY_RELU`.
fn scaled<'a>(import: &mut Import<'a>, op: &Op<'a>, slope: f32) -> Result<bool, Reason> {
    op.check(&[1], 1)?;
    let Some(grid) = import.grid_of(op.output(0)?)? else { return Ok(false) };
    let Some(x) = import.bytes(op, 0)? else { return Ok(false) };
    let Some(table) = rescaled([x.grid, grid], slope) else { return Ok(false) };
    let y = import.begin_bytes(op, |b| b.bytes_looked_up("", &x, &table, grid))?;
    import.put_bytes(op, Some(y))
}

/// A function of each number.
fn unary<'a>(import: &mut Import<'a>, op: &Op<'a>, function: impl Fn(f32) -> f32) -> Result<bool, Reason> {
    op.check(&[1], 1)?;
    let Some(grid) = import.grid_of(op.output(0)?)? else { return Ok(false) };
    let Some(x) = import.bytes(op, 0)? else { return Ok(false) };
    let table = table(function, [x.grid, grid]);
    let y = import.begin_bytes(op, |b| b.bytes_looked_up("", &x, &table, grid))?;
    import.put_bytes(op, Some(y))
}

/// `GELU`, exact or by the hyperbolic tangent.
fn gelu<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    match op.table.gelu().is_some_and(|table| table.approximate()) {
        true => unary(import, op, erf::gelu_tanh_f32),
        false => unary(import, op, erf::gelu_f32),
    }
}

/// `DEQUANTIZE` of bytes: the floats that they stand for.
fn dequantise<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    op.check(&[1], 1)?;
    let position = import.tensors.position(op.input(0)?)?;
    let Some(bytes) = import.frame.bytes.get(&position).cloned() else { return Ok(false) };
    let value = import.begin(op, 0)?.bytes_as_floats("", &bytes)?;
    import.write(op, 0, value)?;
    Ok(true)
}
