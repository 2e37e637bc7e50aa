//! Nodes of values whose axes are stored in the order of the file.

use super::builder::Builder;
use crate::dims::Dim;
use crate::emit::Bits;
use crate::graph::{Term, Value};
use crate::host::HostTensor;
use crate::model::constant::{dims_of, elements_of};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;
use crate::ops::remap::{AxisRange, PadMode};

impl Builder {
    pub(crate) fn each(&mut self, part: &str, function: Function, terms: &[Term]) -> Result<Value, Reason> {
        self.add(part, |graph, name| graph.elementwise(name, function, terms))
    }

    pub(crate) fn constant(
        &mut self,
        part: &str,
        extents: &[usize],
        values: impl IntoIterator<Item = f32>,
    ) -> Result<Value, Reason> {
        // Before there are any: an extent may be that of a feature map.
        self.budget.spend(elements_of(extents)?)?;
        let values: Vec<f32> = values.into_iter().collect();
        let tensor = HostTensor::new(dims_of(extents)?, values)?;
        self.add(part, |graph, name| Ok(graph.constant(name, tensor)))
    }

    pub(crate) fn reshape(&mut self, part: &str, x: Value, extents: &[usize]) -> Result<Value, Reason> {
        let target: Vec<Dim> = extents.iter().map(|&extent| Dim::Fixed(extent)).collect();
        self.add(part, |graph, name| graph.reshape(name, x, &target))
    }

    /// The elements `begin..end` of an axis.
    pub(crate) fn slice(
        &mut self,
        part: &str,
        x: Value,
        axis: usize,
        [begin, end]: [usize; 2],
    ) -> Result<Value, Reason> {
        let mut ranges = vec![AxisRange::ALL; self.dims(x)?.rank()];
        if let Some(range) = ranges.get_mut(axis) {
            *range = AxisRange::new(begin as isize, end as isize);
        }
        self.add(part, |graph, name| graph.strided_slice(name, x, &ranges))
    }

    pub(crate) fn transpose(&mut self, part: &str, x: Value, order: &[usize]) -> Result<Value, Reason> {
        self.add(part, |graph, name| graph.transpose(name, x, order))
    }

    /// `x` with `count` elements of one value more behind those of an axis.
    pub(crate) fn extended(
        &mut self,
        part: &str,
        x: Value,
        axis: usize,
        count: usize,
        value: f32,
    ) -> Result<Value, Reason> {
        let before = vec![0; self.dims(x)?.rank()];
        let mut after = before.clone();
        if let Some(after) = after.get_mut(axis) {
            *after = count;
        }
        let mode = PadMode::Constant(Bits(value));
        self.add(part, |graph, name| graph.pad(name, x, &before, &after, mode))
    }

    pub(crate) fn concat(&mut self, part: &str, values: &[Value], axis: isize) -> Result<Value, Reason> {
        self.add(part, |graph, name| graph.concat(name, values, axis))
    }

    pub(crate) fn gather(
        &mut self,
        part: &str,
        x: Value,
        indices: Value,
        axis: isize,
    ) -> Result<Value, Reason> {
        self.add(part, |graph, name| graph.gather(name, x, indices, axis, 0))
    }

    pub(crate) fn reduce(
        &mut self,
        part: &str,
        x: Value,
        reduction: Reduction,
        axis: isize,
        keeps: bool,
    ) -> Result<Value, Reason> {
        self.add(part, |graph, name| graph.reduce(name, x, reduction, &[axis], keeps))
    }
}
