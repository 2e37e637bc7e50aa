//! Tensors of 8-bit integers as bytes: what operators on bytes read and write.

use super::import::{Import, Op};
use super::names::element;
use super::slots::{Border, Slot};
use crate::graph::Value;
use crate::model::build::{self, Around, ByteWeights, Bytes, Grid, Kind, Mapped, Operand, surrounded};
use crate::model::reason::Reason;

impl<'a> Import<'a> {
    /// The grid of a tensor of 8-bit integers with one scale.
    pub(super) fn grid(&self, position: usize) -> Result<Option<Grid>, Reason> {
        let offset = match self.tensors.tensor(position)?.element_type() {
            element::INT8 => 128,
            element::UINT8 => 0,
            _ => return Ok(None),
        };
        if self.tensors.scales(position)?.len() != 1 {
            return Ok(None);
        }
        let Some(steps) = self.tensors.steps(position)? else { return Ok(None) };
        let invertible = (1.0 / steps.scale).is_finite();
        let zero = u8::try_from(steps.zero + offset).ok().filter(|_| invertible);
        Ok(zero.map(|zero| Grid { scale: steps.scale, zero }))
    }

    /// The grid of an input or output of an operator.
    pub(super) fn grid_of(&self, tensor: i32) -> Result<Option<Grid>, Reason> {
        self.grid(self.tensors.position(tensor)?)
    }

    /// Input `index`, which is no constant, as bytes; `None` if it does not consist of them.
    pub(super) fn bytes(&mut self, op: &Op<'a>, index: usize) -> Result<Option<Bytes>, Reason> {
        let position = self.tensors.position(op.input(index)?)?;
        if matches!(self.slots.get(position), Some(Slot::Bordered(_))) {
            self.resolved(position)?;
        }
        if let Some(known) = self.frame.bytes.get(&position) {
            return Ok(Some(known.clone()));
        }
        let Some(grid) = self.grid(position)? else { return Ok(None) };
        let Some(&Slot::Value(value)) = self.slots.get(position) else { return Ok(None) };
        if self.dims(value)?.rank() == 0 {
            return Ok(None);
        }
        let bytes = self.part(position, |import, part| import.named(part).bytes_made("", value, grid))?;
        self.frame.bytes.insert(position, bytes.clone());
        Ok(Some(bytes))
    }

    /// What `add` adds under a name of a part of the operator that writes a tensor.
    fn part<T>(
        &mut self,
        position: usize,
        add: impl FnOnce(&mut Self, &str) -> Result<T, Reason>,
    ) -> Result<T, Reason> {
        let outer = self.build.current.clone();
        let base = match self.tensors.name(position) {
            "" => format!("tensor_{position}"),
            name => name.to_owned(),
        };
        let name = self.part_name(&format!("{}{base}", self.frame.scope), "bytes")?;
        let added = add(self, &name)?;
        self.build.current = outer;
        Ok(added)
    }

    /// The builder, with a part of output 0 as what the names of nodes begin with.
    pub(super) fn begin_bytes<T>(
        &mut self,
        op: &Op<'a>,
        add: impl FnOnce(&mut build::Builder) -> Result<T, Reason>,
    ) -> Result<T, Reason> {
        let position = self.tensors.position(op.output(0)?)?;
        self.check_unwritten(position)?;
        self.part(position, |import, name| add(import.named(name)))
    }

    /// Notes that output 0 is these bytes.
    pub(super) fn put_bytes(&mut self, op: &Op<'a>, bytes: Option<Bytes>) -> Result<bool, Reason> {
        let Some(bytes) = bytes else { return Ok(false) };
        let position = self.tensors.position(op.output(0)?)?;
        self.frame.bytes.insert(position, bytes);
        self.set(position, Slot::Bytes);
        Ok(true)
    }

    /// Makes a tensor of bytes, with what lies around them, a value of floats: that of the tensor's name.
    pub(super) fn floats_of_bytes(
        &mut self,
        position: usize,
        border: Option<Border>,
    ) -> Result<Value, Reason> {
        let bytes = self.frame.bytes.get(&position).cloned();
        let bytes = bytes.ok_or_else(|| format!("{}: found no bytes", self.tensors.describe(position)))?;
        let name = self.unique_name(position)?;
        let outer = self.build.current.clone();
        let value = match border {
            None => self.named(&name).bytes_as_floats("", &bytes)?,
            Some([height, width]) => {
                self.frame.bytes.remove(&position);
                let b = self.named(&name);
                let inner = b.bytes_as_floats("inner", &bytes)?;
                let inner = Operand::Value(Mapped::plain(inner, 4, Kind::F32));
                let around = [(0, 0), height, width, (0, 0)];
                let whole = surrounded(b, inner, &around, Around::Number(0.0))?;
                b.mapped(whole)?.value
            }
        };
        self.build.current = outer;
        self.set(position, Slot::Value(value));
        Ok(value)
    }

    /// The integers of a constant as the file stores them: of 8 bits with zero points of 0, or of 32 bits.
    pub(super) fn stored_integers(&mut self, op: &Op<'a>, index: usize) -> Result<Option<Vec<i64>>, Reason> {
        let position = self.tensors.position(op.input(index)?)?;
        if !matches!(self.slots.get(position), Some(Slot::Untouched)) {
            return Ok(None);
        }
        self.frame.tensors.centred_integers(position, &mut self.build.budget)
    }

    /// Weights of four axes, and the bias at input 2.
    pub(super) fn byte_weights(
        &mut self,
        op: &Op<'a>,
        extents: [usize; 4],
        outputs: usize,
    ) -> Result<Option<ByteWeights>, Reason> {
        let Some(values) = self.stored_integers(op, 1)? else { return Ok(None) };
        let values: Option<Vec<i8>> = values.into_iter().map(|value| i8::try_from(value).ok()).collect();
        let bias = if op.has(2) {
            let Some(bias) = self.stored_integers(op, 2)? else { return Ok(None) };
            let bias: Option<Vec<i32>> = bias.into_iter().map(|value| i32::try_from(value).ok()).collect();
            let Some(bias) = bias.filter(|bias| bias.len() == outputs) else { return Ok(None) };
            Some(bias)
        } else {
            None
        };
        let scales = self.tensors.scales(self.tensors.position(op.input(1)?)?)?;
        self.build.budget.spend(4 * scales.len())?;
        let elements = extents.iter().product::<usize>();
        let fits = [1, outputs].contains(&scales.len());
        let values = values.filter(|values| fits && values.len() == elements);
        Ok(values.map(|values| ByteWeights { values, extents, scales, bias }))
    }
}

impl<'a> Import<'a> {
    /// Input 0 as bytes, or what is within the border that a `PAD` gave it, and that border.
    pub(super) fn bordered_bytes(&mut self, op: &Op<'a>) -> Result<Option<(Bytes, Option<Border>)>, Reason> {
        let position = self.tensors.position(op.input(0)?)?;
        if let (Some(Slot::Bordered(border)), Some(bytes)) =
            (self.slots.get(position), self.frame.bytes.get(&position))
        {
            return Ok(Some((bytes.clone(), Some(*border))));
        }
        Ok(self.bytes(op, 0)?.map(|bytes| (bytes, None)))
    }
}
