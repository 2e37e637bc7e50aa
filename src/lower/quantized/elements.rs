//! Functions of each element of quantized values.

use super::bytes::of_words;
use super::values::operator;
use super::{Bytes, Grid, Linear, Pass, Quantized, products};
use crate::emit::{Bits, Operand};
use crate::error::Result;
use crate::graph::Value;
use crate::host::HostTensor;
use crate::lower::unit::Input;
use crate::ops::bytes::words_of_rows;
use crate::ops::elementwise::{Elementwise, Function, Source};
use crate::ops::operator::Operator;
use crate::ops::quantization::Rounding;
use crate::ops::quantized_binary::{QuantizedBinary, QuantizedFunction};
use crate::ops::quantized_lookup::QuantizedLookup;
use std::collections::HashMap;

/// The most units of functions between a quantized value and the integers that they are rounded to.
const MOST_UNITS: usize = 32;

/// An operand of a function of two.
enum Side {
    Value(Quantized),
    /// A constant: its extents and bytes.
    Known(Vec<usize>, Vec<u8>, Grid),
}

impl Side {
    fn grid(&self) -> Grid {
        match self {
            Side::Value(own) => own.grid,
            Side::Known(_, _, grid) => *grid,
        }
    }
}

/// Whether operands of these extents fit as ops of bytes take them: the same extents, or one row for all or for each batch.
fn fits(a: &[usize], b: &[usize]) -> bool {
    let elements = |extents: &[usize]| extents.iter().product::<usize>();
    let last = |extents: &[usize]| extents.last().copied().unwrap_or(1);
    let batch = a.first().copied().unwrap_or(1);
    let one_each = b.len() == a.len() && b.first() == Some(&batch);
    a == b || last(a) == last(b) && (elements(b) == last(b) || one_each && elements(b) == batch * last(b))
}

/// A sum, a difference or a product of tensors on the first two grids, on the third one.
fn combination([a, b, y]: [Grid; 3], function: Function) -> Option<QuantizedFunction> {
    let [of_a, of_b] = [a.scale / y.scale, b.scale / y.scale];
    let sum =
        |ratios: [f32; 2]| QuantizedBinary::adds(ratios).then_some(QuantizedFunction::Add(ratios.map(Bits)));
    match function {
        Function::Add => sum([of_a, of_b]),
        Function::Sub => sum([of_a, -of_b]),
        Function::Mul => Some(QuantizedFunction::Mul(Bits(a.scale * b.scale / y.scale))),
        _ => None,
    }
}

impl Pass<'_, '_> {
    /// The bytes of a sum, a difference or a product, to which `x` is rounded.
    pub(super) fn of_two(&mut self, name: &str, x: Value, grid: Grid) -> Result<Option<Bytes>> {
        let Some((y, bounds)) = self.within_bounds(x) else { return Ok(None) };
        let Some(unit) = self.writer(y).cloned() else { return Ok(None) };
        let Some([step]) = operator::<Elementwise>(&unit).map(|own| own.program().steps()) else {
            return Ok(None);
        };
        if (self.alone)(&unit.name) || !matches!(step.function, Function::Add | Function::Sub | Function::Mul)
        {
            return Ok(None);
        }
        let side = |source: &Source| {
            let Source::Input(place) = *source else { return None };
            match unit.input(Operand::Arg(place)).ok()? {
                Input::Value(value) => self.quantization(*value).map(Side::Value),
                Input::Constant(tensor, _) => known(tensor),
            }
        };
        let (function, sides) = (step.function, step.arguments.iter().map(side).collect::<Option<Vec<_>>>());
        let Some([a, b]) = sides.and_then(|sides| <[Side; 2]>::try_from(sides).ok()) else { return Ok(None) };
        let to = (grid, bounds);
        let Some(output) = unit.outputs.first() else { return Ok(None) };
        let extents = self.network.dims(*output)?.extents().to_vec();
        match (a, b) {
            (Side::Value(a), Side::Known(_, bytes, other)) if bytes.len() == 1 => {
                self.with_number(name, a, (bytes[0], other), (function, false), to, &extents)
            }
            (Side::Known(_, bytes, other), Side::Value(b)) if bytes.len() == 1 => {
                self.with_number(name, b, (bytes[0], other), (function, true), to, &extents)
            }
            (Side::Known(..), Side::Known(..)) => Ok(None),
            (a, b) => self.combined(name, [a, b], function, to, &extents),
        }
    }

    fn combined(
        &mut self,
        name: &str,
        [a, b]: [Side; 2],
        function: Function,
        (grid, bounds): (Grid, [f32; 2]),
        extents: &[usize],
    ) -> Result<Option<Bytes>> {
        let own = |pass: &Self, side: &Side| -> Result<Vec<usize>> {
            Ok(match side {
                Side::Value(own) => pass.network.dims(own.value)?.extents().to_vec(),
                Side::Known(extents, ..) => extents.clone(),
            })
        };
        let (of_a, of_b) = (own(self, &a)?, own(self, &b)?);
        let elements = |extents: &[usize]| extents.iter().product::<usize>();
        if elements(&of_a) < elements(&of_b) && function != Function::Sub {
            return self.combined(name, [b, a], function, (grid, bounds), extents);
        }
        let grids = [a.grid(), b.grid(), grid];
        let Some(function) = combination(grids, function) else { return Ok(None) };
        if of_a != extents || of_b.len() > of_a.len() || !fits(&of_a, &of_b) {
            return Ok(None);
        }
        let zeros = [a.grid().zero, b.grid().zero];
        let mut inputs = Vec::with_capacity(2);
        for (place, side) in [a, b].into_iter().enumerate() {
            let bytes = match side {
                Side::Value(own) => match self.bytes_of(own)? {
                    Some(bytes) => bytes,
                    None => return Ok(None),
                },
                Side::Known(extents, bytes, grid) => self.known_bytes(&extents, &bytes, grid.zero)?,
            };
            inputs.push((Operand::Arg(place as u8), bytes.value));
        }
        let options = QuantizedBinary { function, zeros, range: grid.range(bounds) };
        let value = self.add(name, options, &inputs)?;
        Ok(Some(Bytes { value, channels: extents.last().copied().unwrap_or(1) }))
    }

    /// A sum, a difference or a product with one number: a table.
    fn with_number(
        &mut self,
        name: &str,
        x: Quantized,
        (number, other): (u8, Grid),
        (function, number_first): (Function, bool),
        (grid, bounds): (Grid, [f32; 2]),
        extents: &[usize],
    ) -> Result<Option<Bytes>> {
        if self.network.dims(x.value)?.extents() != extents {
            return Ok(None);
        }
        let (grids, zeros) = match number_first {
            false => ([x.grid, other, grid], [x.grid.zero, other.zero]),
            true => ([other, x.grid, grid], [other.zero, x.grid.zero]),
        };
        let Some(function) = combination(grids, function) else { return Ok(None) };
        let options = QuantizedBinary { function, zeros, range: grid.range(bounds) };
        let of =
            |byte: u8| if number_first { options.byte(number, byte) } else { options.byte(byte, number) };
        match (0..=u8::MAX).map(of).collect::<Option<Vec<u8>>>() {
            Some(table) => self.lookup(name, x, &table),
            None => Ok(None),
        }
    }

    fn lookup(&mut self, name: &str, x: Quantized, table: &[u8]) -> Result<Option<Bytes>> {
        let Some(bytes) = self.bytes_of(x)? else { return Ok(None) };
        let words = HostTensor::of::<u32>(of_words(&[table.len()])?, words_of_rows(table, table.len(), 0))?;
        let table = self.constant(words);
        let value =
            self.add(name, QuantizedLookup, &[(Operand::Src, bytes.value), (Operand::Arg(0), table)])?;
        Ok(Some(Bytes { value, ..bytes }))
    }

    /// The bytes that the unit which is looked at rounds `x` to, if `x` is a function of each element of one quantized value.
    pub(super) fn looked_up(&mut self, name: &str, x: Value, grid: Grid) -> Result<Option<Bytes>> {
        let Some((source, arithmetic)) = self.only_source(x) else { return Ok(None) };
        // A table gives the same integers everywhere. Arithmetic does so without one, and joins what is around it: it is worth a
        // table where there are bytes already.
        if arithmetic && self.bytes_of_ops(source)?.is_none() {
            return Ok(None);
        }
        let units = self.network.units();
        let Some(rounding) = units.get(self.at).and_then(operator::<Elementwise>) else { return Ok(None) };
        let of = |byte: u8| {
            let number = self.function(x, source.value, source.grid.number(byte), &mut HashMap::new())?;
            Some(match Operator::linear(rounding) {
                Some(Linear::Quantize(_, Rounding::Even | Rounding::Up | Rounding::Away)) => {
                    let q = rounding.program().of_number(number);
                    if q.is_nan() { grid.zero } else { (q as i32 + grid.offset).clamp(0, 255) as u8 }
                }
                _ => grid.nearest(number),
            })
        };
        let Some(table) = (0..=u8::MAX).map(of).collect::<Option<Vec<u8>>>() else { return Ok(None) };
        let Some(bytes) = self.lookup(name, source, &table)? else { return Ok(None) };
        self.seen_as(bytes, x)
    }

    /// The quantized value, if there is one alone, that `x` is a function of, element by element; and whether
    /// that function is arithmetic alone.
    fn only_source(&self, x: Value) -> Option<(Quantized, bool)> {
        let (mut open, mut known, mut source): (Vec<Value>, Vec<Value>, Option<Quantized>) =
            (vec![x], Vec::new(), None);
        let elements = self.network.dims(x).ok()?.elements();
        let mut arithmetic = true;
        while let Some(value) = open.pop() {
            let root = self.root(value)?;
            if self.network.dims(root).ok()?.elements() != elements {
                return None;
            }
            if let Some(own) = self.quantization(root) {
                if source.is_some_and(|source| source.value != own.value) {
                    return None;
                }
                source = Some(own);
                continue;
            }
            if known.contains(&root) {
                continue;
            }
            known.push(root);
            let unit = self.network.units().get(self.network.writer(root)?)?;
            let own = operator::<Elementwise>(unit);
            let own = own.filter(|_| known.len() <= MOST_UNITS && !(self.alone)(&unit.name))?;
            arithmetic &= own.program().steps().iter().all(|step| is_arithmetic(step.function));
            for (_, input) in &unit.inputs {
                match input {
                    Input::Value(value) => open.push(*value),
                    Input::Constant(tensor, _) if tensor.dims().elements() == 1 => {}
                    Input::Constant(..) => return None,
                }
            }
        }
        Some((source?, arithmetic))
    }

    /// What an element of `x` is where that of the source is `number`.
    fn function(&self, x: Value, source: Value, number: f32, known: &mut HashMap<Value, f32>) -> Option<f32> {
        let root = self.root(x)?;
        if root == source {
            return Some(number);
        }
        if let Some(&known) = known.get(&root) {
            return Some(known);
        }
        let unit = self.network.units().get(self.network.writer(root)?)?;
        let program = operator::<Elementwise>(unit)?.program();
        let mut inputs = vec![0.0; program.inputs()];
        for (operand, input) in &unit.inputs {
            let Operand::Arg(place) = *operand else { return None };
            let value = match input {
                Input::Value(value) => self.function(*value, source, number, known)?,
                Input::Constant(tensor, _) => tensor.to_nhwc().first().copied()?,
            };
            *inputs.get_mut(usize::from(place))? = value;
        }
        let result = program.of_numbers(&inputs);
        known.insert(root, result);
        Some(result)
    }
}

/// Whether devices compute a function to the bit, or to its last one: arithmetic, and what is chosen.
fn is_arithmetic(function: Function) -> bool {
    use Function::{
        Abs, Add, Clamp, Div, Maximum, Minimum, Mul, Neg, Reciprocal, Relu, Relu6, ReluN1To1, Rsqrt, Square,
        SquaredDifference, Sub,
    };
    let sums = matches!(function, Add | Sub | Mul | Neg | Square | SquaredDifference);
    let quotients = matches!(function, Div | Reciprocal | Rsqrt);
    sums || quotients || matches!(function, Abs | Clamp | Maximum | Minimum | Relu | Relu6 | ReluN1To1)
}

/// A constant as bytes, if it is one of integers of 8 bits times a scale.
fn known(tensor: &HostTensor) -> Option<Side> {
    let scales = tensor.scales().filter(|own| own.values.len() == 1)?;
    let values = products::integers(tensor)?;
    let (low, high) = (*values.iter().min()?, *values.iter().max()?);
    let (least, most) = (-low.min(0), 255 - high.max(0));
    let zero = u8::try_from(128.max(least).min(most)).ok().filter(|_| least <= most)?;
    let bytes = values.iter().map(|value| u8::try_from(value + i32::from(zero)).ok());
    let bytes = bytes.collect::<Option<Vec<u8>>>()?;
    let grid = Grid { scale: *scales.values.first()?, zero, offset: 0 };
    Some(Side::Known(tensor.dims().extents().to_vec(), bytes, grid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_fits_all_and_each_batch() {
        assert!(fits(&[2, 3, 4], &[4]) && fits(&[2, 3, 4], &[2, 1, 4]) && fits(&[2, 3], &[2, 3]));
        assert!(!fits(&[2, 3, 4], &[3, 4]) && !fits(&[2, 3, 4], &[3, 1, 4]) && !fits(&[2, 3], &[1]));
    }
}
