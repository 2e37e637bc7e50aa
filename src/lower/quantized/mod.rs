//! Operators on quantized values, computed on bytes.
//!
//! A loader says in floats what a quantized network computes: `q = round(x / s) + z` ([`Linear::Quantize`]), `y = s (q - z)`
//! ([`Linear::Dequantize`]), and ordinary operators between them. Values are *quantized* where they are such a `y`, or elements of
//! some. This pass finds what an op of bytes computes between quantized values and a `q`:
//!
//! | between quantized values and `q` | becomes |
//! |---|---|
//! | a convolution, a product with a constant matrix; bounds behind it | `quantized_conv2d`, `quantized_depthwise` |
//! | those whose sums are integers below 2^24 in f32, as groups and transposed convolutions have them, and products of two values | the operator of integers in f32, then `quantize` |
//! | a sum, a difference, a product of two | `quantized_binary` |
//! | the largest, the mean of windows; the mean over height and width | `quantized_pool` |
//! | values of one scale behind each other, other dimensions | a concatenation, a view of bytes |
//! | functions of each element of one value | `quantized_lookup`, a table of 256 bytes |
//! | nothing, of a value that no op of bytes writes | `quantize` |
//!
//! It only adds units: where bytes are known, `q` and `y` are made of these, and what computed them in floats is left out if nothing
//! else reads it. Results have the bits of XNNPACK and of ONNX Runtime.

mod bytes;
mod elements;
mod exact;
mod products;
mod values;
mod windows;

use super::network::Network;
use super::step::{OF_BYTES, ON_BYTES};
use super::unit::{Input, Unit};
use crate::dtype::DType;
use crate::emit::{Bits, Operand};
use crate::error::Result;
use crate::graph::Value;
use crate::ops::bytes::ByteRange;
use crate::ops::dequantize::Dequantize;
use crate::ops::operator::Argument;
use crate::ops::quantization::{Linear, Quantization, Rounding};
use std::collections::HashMap;
use std::sync::Arc;

/// Computes operators between quantized values on bytes; nodes that `alone` names stay as they are.
pub(super) fn compute_on_bytes(network: &mut Network<'_>, alone: &dyn Fn(&str) -> bool) -> Result<()> {
    let is_quantizing = |unit: &Unit| matches!(linear(unit), Some((Linear::Dequantize(_), _)));
    if !network.units().iter().any(is_quantizing) {
        return Ok(());
    }
    let (grids, added, bytes) = (values::grids(network), Vec::new(), HashMap::new());
    let mut pass = Pass { network, alone, grids, added, bytes, at: 0, rounding: Rounding::Even };
    let mut changed: HashMap<usize, Unit> = HashMap::new();
    for index in 0..pass.network.units().len() {
        pass.at = index;
        let Some((linear, input)) = linear(&pass.network.units()[index]) else { continue };
        if (pass.alone)(&pass.network.units()[index].name) {
            continue;
        }
        let (bytes, quantization) = match linear {
            Linear::Quantize(own, rounding) => {
                pass.rounding = rounding;
                let Some(grid) = Grid::of(own) else { continue };
                let Some(bytes) = pass.quantized(index, input, grid)? else { continue };
                let output = pass.network.units()[index].outputs[0];
                pass.bytes.insert(output, bytes);
                // The integers themselves.
                (bytes, Quantization { scale: Bits(1.0), zero: 0, ..own })
            }
            Linear::Dequantize(own) => match pass.bytes.get(&input) {
                Some(&bytes) => (bytes, own),
                None => continue,
            },
        };
        if let Some(unit) = pass.numbers(index, bytes, quantization)? {
            changed.insert(index, unit);
        }
    }
    let added = std::mem::take(&mut pass.added);
    let mut units = Vec::with_capacity(network.units().len() + added.len());
    let mut added = added.into_iter().peekable();
    for (index, unit) in network.take_units().into_iter().enumerate() {
        while let Some((_, unit)) = added.next_if(|(place, _)| *place <= index) {
            units.push(unit);
        }
        units.push(changed.remove(&index).unwrap_or(unit));
    }
    network.set_units(units);
    Ok(())
}

/// What a unit is in a quantized network, and the value that it reads.
fn linear(unit: &Unit) -> Option<(Linear, Value)> {
    let linear = unit.operator()?.linear()?;
    let [(_, Input::Value(value))] = unit.inputs[..] else { return None };
    Some((linear, value))
}

/// The numbers that unsigned bytes stand for: `scale (byte - zero)`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Grid {
    scale: f32,
    zero: u8,
    /// What was added to the integers.
    offset: i32,
}

impl Grid {
    /// The numbers of a quantization's integers as bytes, if these have 8 bits.
    fn of(quantization: Quantization) -> Option<Grid> {
        let offset = quantization.byte_offset()?;
        let zero = u8::try_from(quantization.zero + offset).ok()?;
        Some(Grid { scale: quantization.scale.0, zero, offset })
    }

    /// The bytes of numbers from `low` to `high`.
    fn range(self, [low, high]: [f32; 2]) -> ByteRange {
        let all = ByteRange::all(self.zero);
        let at = |number: f32| all.of(number / self.scale);
        ByteRange {
            least: if low == f32::NEG_INFINITY { 0 } else { at(low) },
            most: if high == f32::INFINITY { u8::MAX } else { at(high) },
            ..all
        }
    }

    /// The byte that is nearest to a number, as XNNPACK finds it for tables: the zero point is added before the sum is rounded.
    fn nearest(self, number: f32) -> u8 {
        let sum = number * (1.0 / self.scale) + (f32::from(self.zero) - 128.0);
        if sum.is_nan() { self.zero } else { (sum.round_ties_even().clamp(-128.0, 127.0) + 128.0) as u8 }
    }

    /// The number that a byte stands for.
    fn number(self, byte: u8) -> f32 {
        (f32::from(byte) - f32::from(self.zero)) * self.scale
    }
}

/// A value's bytes, in words along its last axis.
#[derive(Debug, Clone, Copy)]
struct Bytes {
    /// The words.
    value: Value,
    /// The bytes along the last axis.
    channels: usize,
}

/// A value that is quantized.
#[derive(Debug, Clone, Copy)]
struct Quantized {
    value: Value,
    grid: Grid,
}

struct Pass<'p, 'g> {
    network: &'p mut Network<'g>,
    alone: &'p dyn Fn(&str) -> bool,
    /// The quantized values that units write.
    grids: HashMap<Value, values::Depth>,
    /// New units, each with the place of the unit that it goes before, in order.
    added: Vec<(usize, Unit)>,
    /// The bytes of integers and of the numbers that they stand for, by value.
    bytes: HashMap<Value, Bytes>,
    /// The unit that is looked at.
    at: usize,
    /// How it rounds.
    rounding: Rounding,
}

impl Pass<'_, '_> {
    /// The bytes of what unit `index` rounds, `x`, if an op of bytes computes them.
    fn quantized(&mut self, index: usize, x: Value, grid: Grid) -> Result<Option<Bytes>> {
        // No node has this name: what is said of a step by its name is said of this unit alone.
        let name = format!("{}{ON_BYTES}", self.network.units()[index].name);
        if let Some(own) = self.quantization(x) {
            if own.grid == grid {
                return self.bytes_of_ops(own);
            }
        } else {
            if let Some(bytes) = self.of_windows(&name, x, grid)? {
                return self.seen_as(bytes, x);
            }
            if let Some(bytes) = self.of_two(&name, x, grid)? {
                return self.seen_as(bytes, x);
            }
        }
        if let Some(bytes) = self.looked_up(&name, x, grid)? {
            return Ok(Some(bytes));
        }
        Ok(None)
    }

    /// The unit that writes what unit `index` does, of bytes.
    fn numbers(&self, index: usize, bytes: Bytes, quantization: Quantization) -> Result<Option<Unit>> {
        let Some(Grid { scale, zero, .. }) = Grid::of(quantization) else { return Ok(None) };
        let unit = &self.network.units()[index];
        let channels = bytes.channels;
        let (operand, dims) = (Operand::Src, self.network.dims(bytes.value)?);
        let operator = Arc::new(Dequantize { scale: Bits(scale), zero, channels });
        let inputs = vec![(operand, Input::Value(bytes.value))];
        let arguments = vec![Argument { operand, dims, dtype: DType::U32 }];
        let (name, outputs) = (format!("{}{OF_BYTES}", unit.name), unit.outputs.clone());
        Ok(Some(Unit::of_arguments(name, operator, (inputs, arguments), outputs)))
    }
}
