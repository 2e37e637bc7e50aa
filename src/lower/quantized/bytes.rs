//! The bytes of quantized values, and units that are added.

use super::{Bytes, Grid, Linear, Pass, Quantized, linear, values};
use crate::dims::{Dim, Dims};
use crate::dtype::Precision;
use crate::emit::{Bits, Operand};
use crate::error::{Error, Result};
use crate::graph::{TensorType, Value};
use crate::host::HostTensor;
use crate::lower::step::ON_BYTES;
use crate::lower::unit::{Input, Unit};
use crate::ops::bytes::{ByteRange, LANES, words_of_rows};
use crate::ops::concat::Concat;
use crate::ops::operator::{Argument, Lowered, Operator};
use crate::ops::pool::Pool;
use crate::ops::quantization::Rounding;
use crate::ops::quantize::Quantize;
use crate::ops::quantized_pool::{QuantizedPool, QuantizedPooling};
use crate::ops::view::Reshape;
use std::sync::Arc;

/// The extents of the words of a tensor of bytes.
pub(super) fn of_words(extents: &[usize]) -> Result<Dims> {
    let mut packed = extents.to_vec();
    if let Some(last) = packed.last_mut() {
        *last = last.div_ceil(LANES);
    }
    Dims::new(&packed)
}

impl Pass<'_, '_> {
    /// The type of a value.
    fn of_type(&self, value: Value) -> Result<TensorType> {
        Ok(TensorType { dtype: self.network.dtype(value), dims: self.network.dims(value)? })
    }

    /// Adds a unit before the one that is looked at, and returns what it writes.
    pub(super) fn add(
        &mut self,
        name: &str,
        operator: impl Operator,
        inputs: &[(Operand, Value)],
    ) -> Result<Value> {
        let operator: Arc<dyn Operator> = Arc::new(operator);
        let mut arguments = Vec::with_capacity(inputs.len());
        for &(operand, value) in inputs {
            let TensorType { dtype, dims } = self.of_type(value)?;
            arguments.push(Argument { operand, dims, dtype });
        }
        let graph = self.network.graph;
        let lowered = graph.lower(&*operator, &arguments, Precision::F32);
        match lowered.map_err(|error| error.at_node(name))? {
            Lowered::View(view) => {
                let Some(&(_, of)) = inputs.first() else {
                    return Err(Error::Internal(format!("{name:?} views nothing")));
                };
                let dtype = self.network.dtype(of);
                Ok(self.network.add_view(TensorType { dtype, dims: view.dims }, of, view.offset))
            }
            Lowered::Op(op) => {
                let (dims, types) = graph.results(&*operator, &arguments, &*op);
                let (Some(&dims), Some(&dtype)) = (dims.first(), types.first()) else {
                    return Err(Error::Internal(format!("{name:?} has no result")));
                };
                let output = self.network.add_value_of(TensorType { dtype, dims });
                let given = |&(operand, value): &(Operand, Value)| {
                    let constant = self.network.constant(value).cloned();
                    (operand, constant.map_or(Input::Value(value), |own| Input::Constant(own, Some(value))))
                };
                let inputs = inputs.iter().map(given).collect();
                let unit = Unit::of_arguments(name.to_owned(), operator, (inputs, arguments), vec![output]);
                self.added.push((self.at, unit));
                Ok(output)
            }
        }
    }

    pub(super) fn constant(&mut self, tensor: HostTensor) -> Value {
        self.network.add_constant(tensor)
    }

    /// Bytes of the dimensions of `x`, of numbers on a grid.
    pub(super) fn rounded(&mut self, name: &str, x: Value, scale: f32, range: ByteRange) -> Result<Bytes> {
        let channels = self.network.dims(x)?.extents().last().copied().unwrap_or(1);
        let value = self.add(name, Quantize { scale: Bits(scale), range }, &[(Operand::Src, x)])?;
        Ok(Bytes { value, channels })
    }

    /// Bytes that are known.
    pub(super) fn known_bytes(&mut self, extents: &[usize], bytes: &[u8], zero: u8) -> Result<Bytes> {
        let channels = extents.last().copied().unwrap_or(1);
        let words = words_of_rows(bytes, channels, zero);
        let value = self.constant(HostTensor::of::<u32>(of_words(extents)?, words)?);
        Ok(Bytes { value, channels })
    }

    /// The extents of bytes.
    pub(super) fn extents(&self, bytes: Bytes) -> Result<Vec<usize>> {
        let mut extents = self.network.dims(bytes.value)?.extents().to_vec();
        if let Some(last) = extents.last_mut() {
            *last = bytes.channels;
        }
        Ok(extents)
    }

    /// Bytes in other extents, in their order; nothing if that would cut words of four bytes.
    pub(super) fn reshaped(&mut self, bytes: Bytes, extents: &[usize]) -> Result<Option<Bytes>> {
        if self.extents(bytes)? == extents {
            return Ok(Some(bytes));
        }
        let channels = extents.last().copied().unwrap_or(1);
        let whole = bytes.channels.is_multiple_of(LANES) && channels.is_multiple_of(LANES);
        if extents.is_empty() || bytes.channels != channels && !whole {
            return Ok(None);
        }
        let target = of_words(extents)?.extents().iter().map(|&extent| Dim::Fixed(extent)).collect();
        let value = self.add("bytes", Reshape { target }, &[(Operand::Src, bytes.value)])?;
        Ok(Some(Bytes { value, channels }))
    }

    /// Bytes in the extents of `x`, whose elements they are.
    pub(super) fn seen_as(&mut self, bytes: Bytes, x: Value) -> Result<Option<Bytes>> {
        let extents = self.network.dims(x)?.extents().to_vec();
        self.reshaped(bytes, &extents)
    }

    /// The bytes of a quantized value, rounded from its numbers where no op of bytes makes them; nothing if it has no axis.
    pub(super) fn bytes_of(&mut self, own: Quantized) -> Result<Option<Bytes>> {
        let Quantized { value, grid } = own;
        if let Some(bytes) = self.bytes_of_ops(own)? {
            return Ok(Some(bytes));
        }
        if self.network.dims(value)?.rank() == 0 {
            return Ok(None);
        }
        let bytes = match self.integers(value) {
            Some(q) => self.bytes_of_integers(q, value, grid.offset)?,
            None => match self.root(value).filter(|&root| root != value) {
                Some(root) => {
                    let root = self.bytes_of(Quantized { value: root, grid })?;
                    match root.map(|bytes| self.seen_as(bytes, value)).transpose()?.flatten() {
                        Some(bytes) => bytes,
                        None => self.rounded_value(own)?,
                    }
                }
                None => self.rounded_value(own)?,
            },
        };
        self.bytes.insert(value, bytes);
        Ok(Some(bytes))
    }

    /// The bytes that the numbers of a value are rounded to.
    fn rounded_value(&mut self, own: Quantized) -> Result<Bytes> {
        let name = format!("{}{ON_BYTES}", self.network.value_name(own.value));
        self.rounded(&name, own.value, own.grid.scale, ByteRange::all(own.grid.zero))
    }

    /// The integers whose numbers `value` is.
    fn integers(&self, value: Value) -> Option<Value> {
        match linear(self.network.units().get(self.network.writer(value)?)?)? {
            (Linear::Dequantize(_), q) => Some(q),
            (Linear::Quantize(..), _) => None,
        }
    }

    /// The bytes of a quantized value, if ops of bytes make them and no words are cut.
    pub(super) fn bytes_of_ops(&mut self, own: Quantized) -> Result<Option<Bytes>> {
        let Quantized { value, grid } = own;
        if let Some(&known) = self.bytes.get(&value) {
            return Ok(Some(known));
        }
        let bytes = match self.root(value).filter(|&root| root != value) {
            Some(root) => match self.bytes_of_ops(Quantized { value: root, grid })? {
                Some(bytes) => self.seen_as(bytes, value)?,
                None => None,
            },
            None => self.bytes_of_root(own)?,
        };
        if let Some(bytes) = bytes {
            self.bytes.insert(value, bytes);
        }
        Ok(bytes)
    }

    /// The bytes of a value that shows no other one, if an op of bytes makes them.
    fn bytes_of_root(&mut self, own: Quantized) -> Result<Option<Bytes>> {
        let Quantized { value, grid } = own;
        let Some(unit) = self.network.writer(value).and_then(|place| self.network.units().get(place)) else {
            return Ok(None);
        };
        let unit = unit.clone();
        if let Some((Linear::Dequantize(_), q)) = linear(&unit) {
            return Ok(self.bytes.get(&q).copied());
        }
        if (self.alone)(&unit.name) {
            return Ok(None);
        }
        let reads: Vec<Value> = unit.reads().collect();
        if let (Some(&Pool { window, stride, padding, .. }), [x]) = (values::operator(&unit), &reads[..]) {
            let (pooling, range) = (QuantizedPooling::Max, ByteRange::all(grid.zero));
            let options = QuantizedPool { pooling, window, stride, padding, range };
            return self.pooled(&format!("{}{ON_BYTES}", unit.name), Quantized { value: *x, grid }, options);
        }
        if let Some(&Concat { axis }) = values::operator(&unit) {
            let mut parts = Vec::with_capacity(reads.len());
            for x in reads {
                let Some(x) = self.bytes_of(Quantized { value: x, grid })? else { return Ok(None) };
                parts.push(x);
            }
            return self.joined(&format!("{}{ON_BYTES}", unit.name), &parts, axis);
        }
        Ok(None)
    }

    /// The bytes of integers of 8 bits in f32, whose numbers are `value`; `offset` is added to them.
    fn bytes_of_integers(&mut self, q: Value, value: Value, offset: i32) -> Result<Bytes> {
        if let Some(&known) = self.bytes.get(&q) {
            return Ok(known);
        }
        let named = if self.network.writer(q).is_some() { q } else { value };
        let name = format!("{}{ON_BYTES}", self.network.value_name(named));
        let unit = self.network.writer(q).and_then(|place| self.network.units().get(place));
        let bytes = match unit.and_then(linear) {
            Some((Linear::Quantize(own, Rounding::Even | Rounding::EvenOfReciprocal), x)) => {
                let zero = (own.zero + offset).clamp(0, 255) as u8;
                self.rounded(&name, x, own.scale.0, ByteRange::all(zero))?
            }
            _ => self.rounded(&name, q, 1.0, ByteRange::all(offset as u8))?,
        };
        self.bytes.insert(q, bytes);
        Ok(bytes)
    }

    /// Bytes one behind the other; nothing if words would be cut.
    fn joined(&mut self, name: &str, parts: &[Bytes], axis: isize) -> Result<Option<Bytes>> {
        let Some((first, _)) = parts.split_first() else { return Ok(None) };
        let rank = self.network.dims(first.value)?.rank();
        let is_last = axis == -1 || axis + 1 == rank as isize;
        let cut = |part: &Bytes| !part.channels.is_multiple_of(LANES);
        if is_last && parts.iter().rev().skip(1).any(cut) {
            return Ok(None);
        }
        let channels = if is_last { parts.iter().map(|part| part.channels).sum() } else { first.channels };
        let inputs = parts.iter().enumerate().map(|(place, part)| (Operand::Arg(place as u8), part.value));
        let value = self.add(name, Concat { axis }, &inputs.collect::<Vec<_>>())?;
        Ok(Some(Bytes { value, channels }))
    }

    /// The integers that bytes are from the one that stands for 0, in f32.
    pub(super) fn whole_numbers(&mut self, name: &str, bytes: Bytes, grid: Grid) -> Result<Value> {
        let Bytes { value, channels } = bytes;
        let operator = crate::ops::dequantize::Dequantize { scale: Bits(1.0), zero: grid.zero, channels };
        self.add(name, operator, &[(Operand::Src, value)])
    }
}
