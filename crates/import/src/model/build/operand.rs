//! What an operator reads and writes: a value of the graph, or a constant.
//!
//! ONNX has channels before height and width, our maps have them last. A value carries the order in which it is
//! stored, so that a chain of convolutions, poolings and functions of each element moves nothing: only what needs
//! the order of the file (a reshape that joins axes which lie apart, an output) does.

use super::kind::Kind;
use crate::graph::Value;
use crate::model::constant::{Constant, Integers};

/// What a tensor of a file stands for.
#[derive(Debug, Clone)]
pub(crate) enum Operand {
    /// A value of the graph.
    Value(Mapped),
    /// Known while the file is read.
    Constant(Constant, Kind),
}

/// A value of the graph with its axes: axis `i` of the value is axis `order[i]` of the tensor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mapped {
    pub(crate) value: Value,
    pub(crate) order: Vec<usize>,
    pub(crate) kind: Kind,
}

impl Mapped {
    /// A value whose axes are stored in the order of the file.
    pub(crate) fn plain(value: Value, rank: usize, kind: Kind) -> Self {
        Mapped { value, order: (0..rank).collect(), kind }
    }

    pub(crate) fn is_plain(&self) -> bool {
        is_plain(&self.order)
    }

    /// Where an axis of the tensor is stored.
    pub(crate) fn place(&self, axis: usize) -> usize {
        self.order.iter().position(|&own| own == axis).unwrap_or(axis)
    }

    pub(crate) fn rank(&self) -> usize {
        self.order.len()
    }
}

impl Operand {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Operand::Value(mapped) => mapped.kind,
            Operand::Constant(_, kind) => *kind,
        }
    }

    /// The operand with element type `kind`; its elements are not converted.
    pub(crate) fn of_kind(self, kind: Kind) -> Self {
        match self {
            Operand::Value(mapped) => Operand::Value(Mapped { kind, ..mapped }),
            Operand::Constant(constant, _) => Operand::Constant(constant, kind),
        }
    }

    /// A tensor without elements.
    pub(crate) fn nothing(extents: Vec<usize>, kind: Kind) -> Self {
        Operand::Constant(Constant::Integers(Integers::new(extents, Vec::new())), kind)
    }

    /// Integers that are known.
    pub(crate) fn integers(dims: Vec<usize>, values: Vec<i64>) -> Self {
        Operand::Constant(Constant::Integers(Integers::new(dims, values)), Kind::I64)
    }
}

pub(crate) fn is_plain(order: &[usize]) -> bool {
    order.iter().enumerate().all(|(place, &axis)| place == axis)
}

/// Batch, height, width, channels, of a tensor with channels after the batch.
pub(crate) fn channels_last(rank: usize) -> Vec<usize> {
    match rank {
        0..=2 => (0..rank).collect(),
        _ => [0].into_iter().chain(2..rank).chain([1]).collect(),
    }
}

/// The order without some axes, those that are left numbered anew.
pub(crate) fn without(order: &[usize], removed: &[usize]) -> Vec<usize> {
    let kept = order.iter().filter(|axis| !removed.contains(axis));
    kept.map(|&axis| axis - removed.iter().filter(|&&other| other < axis).count()).collect()
}

/// What is at each axis of a tensor, for each stored axis.
pub(crate) fn stored<T: Copy>(logical: &[T], order: &[usize]) -> Vec<T> {
    order.iter().filter_map(|&axis| logical.get(axis).copied()).collect()
}
