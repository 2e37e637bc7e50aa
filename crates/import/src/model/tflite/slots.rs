//! What tensors stand for while their network is read.

use super::constant::{Constant, Integers, ranged};
use super::tensors::Budget;
use crate::graph::Value;
use crate::model::build::Operand;
use crate::model::reason::Reason;
use std::sync::Arc;

/// What a tensor of the file stands for so far.
#[derive(Debug, Clone)]
pub(super) enum Slot {
    /// No operator has written it; it may be a constant of the file.
    Untouched,
    /// A value of the graph.
    Value(Value),
    /// Known while the file is read.
    Constant(Constant),
    /// Parts of values and constants, not joined yet.
    Joined(Arc<Joined>),
    /// A list of tensors.
    List(Arc<List>),
    /// A variable, by its index.
    Variable(usize),
    /// What a dilated convolution computes of one phase; nothing else reads it.
    Fused,
}

/// A list of tensors.
#[derive(Debug, Clone, Default)]
pub(super) struct List {
    /// The elements that were set, by their places; `None` where none was.
    pub(super) items: Vec<Option<Operand>>,
    /// The extents of an element, as far as they are known; negative ones are open.
    pub(super) extents: Vec<i64>,
}

/// What an operator reads.
#[derive(Debug, Clone)]
pub(super) enum Input {
    Value(Value),
    Constant(Constant),
}

/// Who reads a tensor.
#[derive(Clone, Copy, Default)]
pub(super) struct Readers {
    pub(super) count: usize,
    pub(super) last: usize,
}

/// Parts one behind the other along an axis, which are joined only where something else than a part is read: the
/// elements that a loop has written so far.
#[derive(Debug, Clone)]
pub(super) struct Joined {
    pub(super) axis: usize,
    pub(super) extents: Vec<usize>,
    /// Each with its extent along the axis.
    pub(super) parts: Vec<(Input, usize)>,
}

impl Joined {
    /// The elements `begin..end` along the axis, if no value is cut.
    pub(super) fn cut(
        &self,
        begin: usize,
        end: usize,
        budget: &mut Budget,
    ) -> Result<Option<Joined>, Reason> {
        let (mut first, mut parts) = (0, Vec::new());
        for (part, extent) in &self.parts {
            let (low, high) = (begin.max(first), end.min(first + extent));
            if low < high {
                match part {
                    part if high - low == *extent => parts.push((part.clone(), *extent)),
                    Input::Constant(constant) => {
                        let own = constant.extents();
                        let mut target = own.clone();
                        target[self.axis] = high - low;
                        let begin = |axis| if axis == self.axis { low - first } else { 0 };
                        let ranges = (0..own.len()).map(|axis| (begin(axis), 1));
                        let (first, steps) = ranged(&own, ranges);
                        let cut = constant.strided(target, budget, first, &steps)?;
                        parts.push((Input::Constant(cut), high - low));
                    }
                    Input::Value(_) => return Ok(None),
                }
            }
            first += extent;
        }
        let mut extents = self.extents.clone();
        extents[self.axis] = end.saturating_sub(begin);
        Ok(Some(Joined { axis: self.axis, extents, parts }))
    }
}

/// A tensor of no elements.
pub(super) fn nothing(extents: Vec<usize>) -> Constant {
    Constant::Integers(Integers::new(extents, Vec::new()))
}

/// A variable of a file.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) name: String,
    /// What `CALL_ONCE` makes it.
    pub(super) initial: Option<Constant>,
    /// What it is by now in a run.
    pub(super) current: Option<Input>,
    /// What the run began with, if that was read.
    pub(super) state: Option<Value>,
}

/// A dilated convolution that a file has as one of several batches, the phases of the dilation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phases {
    pub(super) dilation: [usize; 2],
    /// Before and after height and width.
    pub(super) pads: [(i64, i64); 2],
    /// The operators that are one.
    pub(super) convolution: usize,
    pub(super) joins: usize,
}
