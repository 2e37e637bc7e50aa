//! Operands as values of the graph: in another order of axes, of another type, in other dimensions, joined.

use super::builder::{Builder, Wanted};
use super::constants::{floats, joined};
use super::kind::Kind;
use super::operand::{Mapped, Operand, is_plain, stored};
use crate::dims::{Dim, Dims};
use crate::emit::Bits;
use crate::graph::Value;
use crate::host::HostTensor;
use crate::model::constant::{Constant, Integers, dims_of, elements_of, strides};
use crate::model::reason::Reason;
use crate::ops::softmax::Softmax;
use std::sync::Arc;

/// Whole numbers up to this one are floats too.
const MOST_EXACT: i64 = 1 << 24;

/// Integers as a tensor of their type.
fn whole(integers: &Integers, kind: Kind) -> Result<HostTensor, Reason> {
    let Integers { dims, values } = integers;
    let dims = dims_of(dims)?;
    Ok(match kind {
        Kind::I32 => HostTensor::of(dims, values.iter().map(|&value| value as i32).collect::<Vec<_>>()),
        Kind::U32 => HostTensor::of(dims, values.iter().map(|&value| value as u32).collect::<Vec<_>>()),
        _ => HostTensor::of(dims, Arc::clone(values)),
    }?)
}

impl Builder {
    /// The extents of a value as it is stored.
    pub(crate) fn dims(&self, value: Value) -> Result<Dims, Reason> {
        self.graph.dims(value).map_err(Reason::from)
    }

    /// The extents of a tensor.
    pub(crate) fn extents(&self, mapped: &Mapped) -> Result<Vec<usize>, Reason> {
        let dims = self.dims(mapped.value)?;
        let mut extents = vec![1; dims.rank()];
        for (&axis, &extent) in mapped.order.iter().zip(dims.extents()) {
            if let Some(place) = extents.get_mut(axis) {
                *place = extent;
            }
        }
        Ok(extents)
    }

    /// The value with its axes stored in another order.
    pub(crate) fn in_order(&mut self, mapped: &Mapped, order: &[usize]) -> Result<Value, Reason> {
        if mapped.order == order {
            return Ok(mapped.value);
        }
        let permutation: Vec<usize> = order.iter().map(|&axis| mapped.place(axis)).collect();
        let key = (mapped.value, permutation);
        if let Some(&known) = self.moved.get(&key) {
            return Ok(known);
        }
        if is_plain(order)
            && let Some(value) = self.reshaped_in_file_order(mapped)?
        {
            self.moved.insert(key, value);
            return Ok(value);
        }
        let extents = self.dims(mapped.value)?;
        let large: Vec<usize> =
            key.1.iter().copied().filter(|&axis| extents.extents().get(axis) != Some(&1)).collect();
        if large.windows(2).any(|pair| pair[0] > pair[1]) {
            self.transposes += 1;
        }
        let name = self.part("order")?;
        let value = self.graph.transpose(&name, mapped.value, &key.1)?;
        self.moved.insert(key, value);
        Ok(value)
    }

    /// The value with its axes in the order of the file.
    pub(crate) fn logical(&mut self, mapped: &Mapped) -> Result<Value, Reason> {
        if mapped.is_plain() {
            return Ok(mapped.value);
        }
        let order: Vec<usize> = (0..mapped.rank()).collect();
        self.in_order(mapped, &order)
    }

    /// A constant as the elements of a value that is stored in this order.
    pub(crate) fn constant_in_order(
        &mut self,
        constant: &Constant,
        order: &[usize],
    ) -> Result<Constant, Reason> {
        if is_plain(order) {
            return Ok(constant.clone());
        }
        let moved = self.elements_in_order(constant, order)?;
        Ok(match (constant, moved) {
            (Constant::Floats(from), Constant::Floats(to)) => {
                let axis = |axis: usize| order.iter().position(|&own| own == axis);
                let scales = from.scales().and_then(|own| Some((own.values.clone(), axis(own.axis)?)));
                Constant::Floats(match scales {
                    Some((values, axis)) => to.with_scales(values, axis),
                    None => to,
                })
            }
            (_, moved) => moved,
        })
    }

    fn elements_in_order(&mut self, constant: &Constant, order: &[usize]) -> Result<Constant, Reason> {
        let extents = constant.extents();
        let target = stored(&extents, order);
        if let (Constant::Floats(tensor), &[rows, columns], [1, 0]) = (constant, &extents[..], order) {
            // Weights of dense layers are many.
            self.budget.spend(rows.saturating_mul(columns).saturating_mul(8))?;
            let elements = tensor.to_nhwc();
            let values = (0..columns)
                .flat_map(|column| elements.iter().skip(column).step_by(columns).copied())
                .collect();
            return floats(&target, values);
        }
        let own = strides(&extents);
        let steps: Vec<isize> =
            order.iter().map(|&axis| own.get(axis).map_or(0, |&step| step as isize)).collect();
        constant.strided(target, &mut self.budget, 0, &steps)
    }

    /// Refuses integers that no float is.
    pub(crate) fn check_exact(&self, constant: &Constant, kind: Kind) -> Result<(), Reason> {
        let Constant::Integers(integers) = constant else { return Ok(()) };
        let beyond = integers.values.iter().find(|value| {
            value.unsigned_abs() > MOST_EXACT.unsigned_abs()
                && (**value as f32) as i128 != i128::from(**value)
        });
        match beyond {
            Some(value) => refused!("found {value} of {kind:?}, wanted an integer that f32 holds"),
            None => Ok(()),
        }
    }

    /// What an operand is as a value: a constant becomes one of the graph.
    pub(crate) fn mapped(&mut self, operand: Operand) -> Result<Mapped, Reason> {
        match operand {
            Operand::Value(mapped) => Ok(mapped),
            Operand::Constant(constant, kind) => self.uploaded("constant", constant, kind),
        }
    }

    /// A constant as a tensor of its type: integers of 32 and 64 bits are what they are, all else is floats.
    pub(crate) fn tensor(&mut self, constant: &Constant, kind: Kind) -> Result<HostTensor, Reason> {
        match constant {
            Constant::Integers(integers) if kind.is_wide() => {
                self.budget.spend(8 * integers.values.len())?;
                whole(integers, kind)
            }
            constant => constant.floats(&mut self.budget),
        }
    }

    /// A value as its type keeps it: what an operator computed of integers in f32 becomes integers.
    pub(crate) fn typed(&mut self, mapped: Mapped) -> Result<Mapped, Reason> {
        let (own, wanted) = (self.graph.tensor_type(mapped.value)?.dtype, mapped.kind.dtype());
        if own.word() == wanted.word() {
            return Ok(mapped);
        }
        let key = (mapped.value, wanted);
        let value = match self.cast.get(&key) {
            Some(&known) => known,
            None => {
                let name = self.part("typed")?;
                let value = self.graph.cast(&name, mapped.value, wanted)?;
                self.cast.insert(key, value);
                value
            }
        };
        Ok(Mapped { value, ..mapped })
    }

    /// A constant as a value of the graph, under a name that begins so.
    pub(crate) fn uploaded(&mut self, name: &str, constant: Constant, kind: Kind) -> Result<Mapped, Reason> {
        if kind.is_handle() {
            return refused!("found a sequence or nothing, wanted a tensor");
        }
        if !kind.is_wide() {
            self.check_exact(&constant, kind)?;
        }
        let tensor = self.tensor(&constant, kind)?;
        let label = self.unique(name)?;
        let value = self.graph.constant(&label, tensor);
        Ok(Mapped::plain(value, constant.extents().len(), kind))
    }

    pub(crate) fn shape(&self, slot: &Operand) -> Result<Vec<usize>, Reason> {
        match slot {
            Operand::Value(mapped) => self.extents(mapped),
            Operand::Constant(constant, _) => Ok(constant.extents()),
        }
    }

    /// An operand in other dimensions.
    pub(crate) fn with_extents(
        &mut self,
        part: &str,
        slot: Operand,
        extents: &[usize],
    ) -> Result<Operand, Reason> {
        Ok(match slot {
            Operand::Constant(constant, kind) => Operand::Constant(constant.reshaped(extents)?, kind),
            Operand::Value(mapped) => {
                let value = self.logical(&mapped)?;
                let value = self.reshaped(part, value, extents)?;
                Operand::Value(Mapped::plain(value, extents.len(), mapped.kind))
            }
        })
    }

    /// An operand with its axes in another order: axis `i` of the result is axis `permutation[i]`.
    pub(crate) fn transposed(&mut self, slot: Operand, permutation: &[usize]) -> Result<Operand, Reason> {
        Ok(match slot {
            Operand::Constant(constant, kind) => {
                Operand::Constant(self.constant_in_order(&constant, permutation)?, kind)
            }
            Operand::Value(mapped) => {
                let place = |axis: &usize| permutation.iter().position(|own| own == axis);
                let order = mapped.order.iter().filter_map(place).collect();
                Operand::Value(Mapped { order, ..mapped })
            }
        })
    }

    /// Operands one behind the other along an axis. What has no elements adds none.
    pub(crate) fn joined(&mut self, part: &str, slots: Vec<Operand>, axis: usize) -> Result<Operand, Reason> {
        let kind = slots.first().map_or(Kind::F32, Operand::kind);
        let is_there = |slot: &Operand| !matches!(slot, Operand::Constant(own, _) if own.elements() == 0);
        let mut slots = slots;
        if slots.iter().any(is_there) {
            slots.retain(is_there);
        }
        if slots.len() == 1
            && let Some(only) = slots.pop()
        {
            return Ok(only.of_kind(kind));
        }
        let constants: Option<Vec<Constant>> = slots
            .iter()
            .map(|slot| match slot {
                Operand::Constant(constant, _) => Some(constant.clone()),
                Operand::Value(_) => None,
            })
            .collect();
        if let Some(constants) = constants {
            return Ok(Operand::Constant(joined(self, &constants, axis)?, kind));
        }
        let mut all = Vec::with_capacity(slots.len());
        for slot in slots {
            all.push(self.mapped(slot)?);
        }
        // In the order in which all are stored, or else in the file's.
        for own in &mut all {
            *own = self.typed(own.clone())?;
        }
        let Some(first) = all.first().cloned() else { return refused!("found nothing to be joined") };
        let order = match all.iter().all(|own| own.order == first.order) {
            true => first.order,
            false => (0..first.rank()).collect(),
        };
        let mut values = Vec::with_capacity(all.len());
        for own in &all {
            values.push(self.in_order(own, &order)?);
        }
        let along = order.iter().position(|&own| own == axis).unwrap_or(axis) as isize;
        let value = self.add(part, |graph, name| graph.concat(name, &values, along))?;
        Ok(Operand::Value(Mapped { value, order, kind }))
    }

    /// The softmax along the last axis.
    pub(crate) fn softmax(&mut self, part: &str, slot: Operand) -> Result<Operand, Reason> {
        let mapped = self.mapped(slot)?;
        let axis = mapped.place(mapped.rank().saturating_sub(1)) as isize;
        let options = Softmax { axis, log: false, beta: Bits(1.0) };
        let value = self.add(part, |graph, name| graph.softmax(name, mapped.value, options))?;
        Ok(Operand::Value(Mapped { value, ..mapped }))
    }

    /// A constant f32 tensor of `extents` whose elements all are `number`.
    pub(crate) fn filled(&mut self, extents: &[usize], number: f32) -> Result<Operand, Reason> {
        let count = elements_of(extents)?;
        self.budget.spend(count.saturating_mul(2 * size_of::<f32>()))?;
        Ok(Operand::Constant(floats(extents, vec![number; count])?, Kind::F32))
    }

    /// The numbers `0..count` along axis `axis` of a tensor of rank `rank`.
    pub(crate) fn counted(&mut self, count: usize, axis: usize, rank: usize) -> Result<Operand, Reason> {
        self.budget.spend(count.saturating_mul(2 * size_of::<i64>()))?;
        let mut extents = vec![1; rank];
        if let Some(extent) = extents.get_mut(axis) {
            *extent = count;
        }
        Ok(Operand::integers(extents, (0..count as i64).collect()))
    }

    /// A value in other dimensions.
    pub(crate) fn reshaped(&mut self, part: &str, value: Value, extents: &[usize]) -> Result<Value, Reason> {
        if self.dims(value)?.extents() == extents && !part.is_empty() {
            return Ok(value);
        }
        let target: Vec<Dim> = extents.iter().map(|&extent| Dim::Fixed(extent)).collect();
        self.add(part, |graph, name| graph.reshape(name, value, &target))
    }

    /// A value in other dimensions, the first of which is what is left: a batch may become another one.
    pub(crate) fn with_rest(&mut self, part: &str, value: Value, behind: &[usize]) -> Result<Value, Reason> {
        let own = self.dims(value)?;
        if own.extents().get(1..) == Some(behind) && !part.is_empty() {
            return Ok(value);
        }
        // Of no elements it is not known how many are left.
        let first = match behind.contains(&0) {
            true => Dim::Fixed(own.extents().first().copied().unwrap_or(1)),
            false => Dim::Rest,
        };
        let behind = behind.iter().map(|&extent| Dim::Fixed(extent));
        let target: Vec<Dim> = std::iter::once(first).chain(behind).collect();
        self.add(part, |graph, name| graph.reshape(name, value, &target))
    }

    /// A value in other dimensions, the first of which may become another one with the batch, where there are elements.
    pub(crate) fn with_leading(
        &mut self,
        part: &str,
        value: Value,
        target: &[usize],
    ) -> Result<Value, Reason> {
        match target.split_first() {
            Some((_, behind)) if !target.contains(&0) => self.with_rest(part, value, behind),
            _ => self.reshaped(part, value, target),
        }
    }

    /// An operand as a value once for all that read it; a constant has the name of a part.
    pub(crate) fn kept(&mut self, part: &str, operand: Operand) -> Result<Operand, Reason> {
        match operand {
            Operand::Constant(constant, kind) => {
                let name = format!("{}/{part}", self.current);
                self.uploaded(&name, constant, kind).map(Operand::Value)
            }
            value => Ok(value),
        }
    }

    /// The list of floats that a constant is.
    pub(crate) fn known_list(&mut self, operand: &Operand) -> Result<Vec<f32>, Reason> {
        match operand {
            Operand::Constant(constant, _) if constant.elements() == 0 => Ok(Vec::new()),
            Operand::Constant(constant, _) => Ok(constant.floats(&mut self.budget)?.to_nhwc().into_owned()),
            Operand::Value(mapped) => {
                self.wanted.set(Wanted::Value(mapped.value));
                refused!("found a value computed at each run, wanted a constant")
            }
        }
    }
}
