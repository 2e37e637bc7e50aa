//! What operators made of several others do with tensors, constants and values alike.

use super::import::{Import, Slot};
use super::kind::Kind;
use super::order::Mapped;
use crate::emit::Bits;
use crate::model::constant::{Constant, Integers, elements_of};
use crate::model::reason::Reason;
use crate::ops::softmax::Softmax;

impl Slot {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Slot::Value(mapped) => mapped.kind,
            Slot::Constant(_, kind) => *kind,
        }
    }

    /// The same elements as another type.
    pub(super) fn of_kind(self, kind: Kind) -> Self {
        match self {
            Slot::Value(mapped) => Slot::Value(Mapped { kind, ..mapped }),
            Slot::Constant(constant, _) => Slot::Constant(constant, kind),
        }
    }

    /// Integers that are known.
    pub(super) fn integers(dims: Vec<usize>, values: Vec<i64>) -> Self {
        Slot::Constant(Constant::Integers(Integers::new(dims, values)), Kind::I64)
    }
}

impl Import<'_> {
    pub(super) fn slot_extents(&self, slot: &Slot) -> Result<Vec<usize>, Reason> {
        match slot {
            Slot::Value(mapped) => self.extents(mapped),
            Slot::Constant(constant, _) => Ok(constant.extents()),
        }
    }

    /// A slot in other dimensions.
    pub(super) fn slot_reshaped(
        &mut self,
        part: &str,
        slot: Slot,
        extents: &[usize],
    ) -> Result<Slot, Reason> {
        Ok(match slot {
            Slot::Constant(constant, kind) => Slot::Constant(constant.reshaped(extents)?, kind),
            Slot::Value(mapped) => {
                let value = self.logical(&mapped)?;
                let value = self.reshaped(part, value, extents)?;
                Slot::Value(Mapped::plain(value, extents.len(), mapped.kind))
            }
        })
    }

    /// A slot with its axes in another order: axis `i` of the result is axis `permutation[i]`.
    pub(super) fn slot_transposed(&mut self, slot: Slot, permutation: &[usize]) -> Result<Slot, Reason> {
        Ok(match slot {
            Slot::Constant(constant, kind) => {
                Slot::Constant(self.constant_in_order(&constant, permutation)?, kind)
            }
            Slot::Value(mapped) => {
                let place = |axis: &usize| permutation.iter().position(|own| own == axis);
                let order = mapped.order.iter().filter_map(place).collect();
                Slot::Value(Mapped { order, ..mapped })
            }
        })
    }

    /// Slots one behind the other along an axis.
    pub(super) fn slots_joined(&mut self, part: &str, slots: Vec<Slot>, axis: usize) -> Result<Slot, Reason> {
        let kind = slots.first().map_or(Kind::F32, Slot::kind);
        let constants: Option<Vec<Constant>> = slots
            .iter()
            .map(|slot| match slot {
                Slot::Constant(constant, _) => Some(constant.clone()),
                Slot::Value(_) => None,
            })
            .collect();
        if let Some(constants) = constants {
            return Ok(Slot::Constant(super::moves::joined(self, &constants, axis)?, kind));
        }
        let mut values = Vec::with_capacity(slots.len());
        for slot in slots {
            let mapped = self.mapped_slot(slot, None)?;
            values.push(self.logical(&mapped)?);
        }
        let value = self.add(part, |graph, name| graph.concat(name, &values, axis as isize))?;
        let rank = self.dims(value)?.rank();
        Ok(Slot::Value(Mapped::plain(value, rank, kind)))
    }

    /// The softmax along the last axis.
    pub(super) fn slot_softmax(&mut self, part: &str, slot: Slot) -> Result<Slot, Reason> {
        let mapped = self.mapped_slot(slot, None)?;
        let axis = mapped.place(mapped.rank().saturating_sub(1)) as isize;
        let options = Softmax { axis, log: false, beta: Bits(1.0) };
        let value = self.add(part, |graph, name| graph.softmax(name, mapped.value, options))?;
        Ok(Slot::Value(Mapped { value, ..mapped }))
    }

    /// The same number everywhere.
    pub(super) fn filled(&mut self, extents: &[usize], number: f32) -> Result<Slot, Reason> {
        let count = elements_of(extents)?;
        self.budget.spend(count.saturating_mul(2 * size_of::<f32>()))?;
        Ok(Slot::Constant(super::tensors::floats(extents, vec![number; count])?, Kind::F32))
    }

    /// The numbers `0..count` along axis `axis` of a tensor of rank `rank`.
    pub(super) fn counted(&mut self, count: usize, axis: usize, rank: usize) -> Result<Slot, Reason> {
        self.budget.spend(count.saturating_mul(2 * size_of::<i64>()))?;
        let mut extents = vec![1; rank];
        if let Some(extent) = extents.get_mut(axis) {
            *extent = count;
        }
        Ok(Slot::integers(extents, (0..count as i64).collect()))
    }
}
