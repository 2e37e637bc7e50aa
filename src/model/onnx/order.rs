//! Values whose axes may be stored in another order than the file has them.
//!
//! ONNX has channels before height and width, our maps have them last. A value carries the order in which it is
//! stored, so that a chain of convolutions, poolings and functions of each element moves nothing: only what needs
//! the order of the file (a reshape, an output) does.

use super::import::{Import, Op, Slot};
use super::kind::Kind;
use crate::dims::Dims;
use crate::graph::Value;
use crate::model::constant::{Constant, strides};
use crate::model::reason::Reason;

/// A value of the graph with its axes: axis `i` of the value is axis `order[i]` of the tensor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mapped {
    pub(super) value: Value,
    pub(super) order: Vec<usize>,
    pub(super) kind: Kind,
}

impl Mapped {
    /// In the order of the file.
    pub(super) fn plain(value: Value, rank: usize, kind: Kind) -> Self {
        Mapped { value, order: (0..rank).collect(), kind }
    }

    pub(super) fn is_plain(&self) -> bool {
        is_plain(&self.order)
    }

    /// Where an axis of the tensor is stored.
    pub(super) fn place(&self, axis: usize) -> usize {
        self.order.iter().position(|&own| own == axis).unwrap_or(axis)
    }

    pub(super) fn rank(&self) -> usize {
        self.order.len()
    }
}

pub(super) fn is_plain(order: &[usize]) -> bool {
    order.iter().enumerate().all(|(place, &axis)| place == axis)
}

/// Batch, height, width, channels, of a tensor with channels after the batch.
pub(super) fn channels_last(rank: usize) -> Vec<usize> {
    match rank {
        0..=2 => (0..rank).collect(),
        _ => [0].into_iter().chain(2..rank).chain([1]).collect(),
    }
}

/// The order without some axes, those that are left numbered anew.
pub(super) fn without(order: &[usize], removed: &[usize]) -> Vec<usize> {
    let kept = order.iter().filter(|axis| !removed.contains(axis));
    kept.map(|&axis| axis - removed.iter().filter(|&&other| other < axis).count()).collect()
}

/// What is at each axis of a tensor, for each stored axis.
pub(super) fn stored<T: Copy>(logical: &[T], order: &[usize]) -> Vec<T> {
    order.iter().filter_map(|&axis| logical.get(axis).copied()).collect()
}

impl<'a> Import<'a> {
    /// The extents of a value as it is stored.
    pub(super) fn dims(&self, value: Value) -> Result<Dims, Reason> {
        self.graph.dims(value).map_err(Reason::from)
    }

    /// The extents of a tensor.
    pub(super) fn extents(&self, mapped: &Mapped) -> Result<Vec<usize>, Reason> {
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
    pub(super) fn in_order(&mut self, mapped: &Mapped, order: &[usize]) -> Result<Value, Reason> {
        if mapped.order == order {
            return Ok(mapped.value);
        }
        let permutation: Vec<usize> = order.iter().map(|&axis| mapped.place(axis)).collect();
        let key = (mapped.value, permutation);
        if let Some(&known) = self.moved.get(&key) {
            return Ok(known);
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
    pub(super) fn logical(&mut self, mapped: &Mapped) -> Result<Value, Reason> {
        if mapped.is_plain() {
            return Ok(mapped.value);
        }
        let order: Vec<usize> = (0..mapped.rank()).collect();
        self.in_order(mapped, &order)
    }

    /// A constant as the elements of a value that is stored in this order.
    pub(super) fn constant_in_order(
        &mut self,
        constant: &Constant,
        order: &[usize],
    ) -> Result<Constant, Reason> {
        if is_plain(order) {
            return Ok(constant.clone());
        }
        let extents = constant.extents();
        let target = stored(&extents, order);
        if let (Constant::Floats(tensor), &[rows, columns], [1, 0]) = (constant, &extents[..], order) {
            // Weights of dense layers are many.
            self.budget.spend(rows.saturating_mul(columns).saturating_mul(8))?;
            let elements = tensor.to_nhwc();
            let values = (0..columns)
                .flat_map(|column| elements.iter().skip(column).step_by(columns).copied())
                .collect();
            return super::tensors::floats(&target, values);
        }
        let own = strides(&extents);
        let steps: Vec<isize> =
            order.iter().map(|&axis| own.get(axis).map_or(0, |&step| step as isize)).collect();
        constant.strided(target, &mut self.budget, 0, &steps)
    }

    /// Input `index` as a value with channels last, and its kind.
    pub(super) fn map_input(&mut self, op: &Op<'a>, index: usize) -> Result<(Value, Kind), Reason> {
        let mapped = self.mapped(op, index)?;
        let order = channels_last(mapped.rank());
        Ok((self.in_order(&mapped, &order)?, mapped.kind))
    }

    /// What a slot stands for as a value: constants become values of the graph, once where they have a name.
    pub(super) fn mapped_slot(&mut self, slot: Slot, name: Option<&'a str>) -> Result<Mapped, Reason> {
        match slot {
            Slot::Value(mapped) => Ok(mapped),
            Slot::Constant(_, kind) if kind.is_handle() => {
                refused!("found a sequence or nothing, wanted a tensor")
            }
            Slot::Constant(constant, kind) => {
                let rank = constant.extents().len();
                if let Some(name) = name
                    && let Some(&known) = self.scopes.last().and_then(|scope| scope.uploaded.get(name))
                {
                    return Ok(Mapped::plain(known, rank, kind));
                }
                if constant.elements() == 0 {
                    return refused!("found a constant of {:?}, wanted elements", constant.extents());
                }
                self.check_exact(&constant, kind)?;
                let tensor = constant.floats(&mut self.budget)?;
                let label = self.unique(name.unwrap_or("constant"))?;
                let value = self.graph.constant(&label, tensor);
                if let (Some(name), Some(scope)) = (name, self.scopes.last_mut()) {
                    scope.uploaded.insert(name, value);
                }
                Ok(Mapped::plain(value, rank, kind))
            }
        }
    }
}
