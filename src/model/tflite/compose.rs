//! An operator as several nodes.

use super::constant::{dims_of, elements_of};
use super::import::{Import, Op};
use crate::dims::Dim;
use crate::graph::{Extras, Right, Term, Value};
use crate::host::HostTensor;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::gemm::Gemm;
use crate::ops::reduce::Reduction;
use crate::ops::remap::AxisRange;

/// Adds the nodes of one operator. A node is named after the output and its part; the part "" is the output.
pub(super) struct Compose<'i, 'a> {
    pub(super) import: &'i mut Import<'a>,
    name: String,
}

impl<'a> Import<'a> {
    /// Nodes for output `index`.
    pub(super) fn compose(&mut self, op: &Op<'a>, index: usize) -> Result<Compose<'_, 'a>, Reason> {
        let name = self.name(op, index)?;
        Ok(Compose { import: self, name })
    }
}

impl<'a> Compose<'_, 'a> {
    /// Nodes of another name.
    pub(super) fn named<'i>(import: &'i mut Import<'a>, name: &str) -> Compose<'i, 'a> {
        Compose { import, name: name.to_owned() }
    }

    pub(super) fn name(&mut self, part: &str) -> Result<String, Reason> {
        if part.is_empty() { Ok(self.name.clone()) } else { self.import.part_name(&self.name, part) }
    }

    pub(super) fn extents(&self, value: Value) -> Result<Vec<usize>, Reason> {
        Ok(self.import.dims(value)?.extents().to_vec())
    }

    pub(super) fn each(&mut self, part: &str, function: Function, terms: &[Term]) -> Result<Value, Reason> {
        let name = self.name(part)?;
        self.import.graph.elementwise(&name, function, terms).map_err(Reason::from)
    }

    pub(super) fn constant(
        &mut self,
        part: &str,
        extents: &[usize],
        values: impl IntoIterator<Item = f32>,
    ) -> Result<Value, Reason> {
        // Before there are any: an extent may be that of a feature map.
        self.import.budget.spend(elements_of(extents)?)?;
        let name = self.name(part)?;
        let values: Vec<f32> = values.into_iter().collect();
        let tensor = HostTensor::new(dims_of(extents)?, values)?;
        Ok(self.import.graph.constant(&name, tensor))
    }

    pub(super) fn reshape(&mut self, part: &str, x: Value, extents: &[usize]) -> Result<Value, Reason> {
        let name = self.name(part)?;
        let target: Vec<Dim> = extents.iter().map(|&extent| Dim::Fixed(extent)).collect();
        self.import.graph.reshape(&name, x, &target).map_err(Reason::from)
    }

    /// The elements `begin..end` of an axis.
    pub(super) fn slice(
        &mut self,
        part: &str,
        x: Value,
        axis: usize,
        [begin, end]: [usize; 2],
    ) -> Result<Value, Reason> {
        let mut ranges = vec![AxisRange::ALL; self.import.dims(x)?.rank()];
        if let Some(range) = ranges.get_mut(axis) {
            *range = AxisRange::new(begin as isize, end as isize);
        }
        let name = self.name(part)?;
        self.import.graph.strided_slice(&name, x, &ranges).map_err(Reason::from)
    }

    pub(super) fn transpose(&mut self, part: &str, x: Value, order: &[usize]) -> Result<Value, Reason> {
        let name = self.name(part)?;
        self.import.graph.transpose(&name, x, order).map_err(Reason::from)
    }

    /// `x` with `count` elements of one value more behind those of an axis.
    pub(super) fn extended(
        &mut self,
        part: &str,
        x: Value,
        axis: usize,
        count: usize,
        value: f32,
    ) -> Result<Value, Reason> {
        let rank = self.import.dims(x)?.rank();
        let mut after = vec![0; rank];
        if let Some(after) = after.get_mut(axis) {
            *after = count;
        }
        let mode = crate::ops::remap::PadMode::Constant(crate::emit::Bits(value));
        let name = self.name(part)?;
        self.import.graph.pad(&name, x, &vec![0; rank], &after, mode).map_err(Reason::from)
    }

    pub(super) fn concat(&mut self, part: &str, values: &[Value], axis: isize) -> Result<Value, Reason> {
        let name = self.name(part)?;
        self.import.graph.concat(&name, values, axis).map_err(Reason::from)
    }

    pub(super) fn gather(
        &mut self,
        part: &str,
        x: Value,
        indices: Value,
        axis: isize,
    ) -> Result<Value, Reason> {
        let name = self.name(part)?;
        self.import.graph.gather(&name, x, indices, axis, 0).map_err(Reason::from)
    }

    pub(super) fn reduce(
        &mut self,
        part: &str,
        x: Value,
        reduction: Reduction,
        axis: isize,
        keeps: bool,
    ) -> Result<Value, Reason> {
        let name = self.name(part)?;
        self.import.graph.reduce(&name, x, reduction, &[axis], keeps).map_err(Reason::from)
    }

    /// The product of two matrices, the right one as it is or transposed, with more on top.
    pub(super) fn product(
        &mut self,
        part: &str,
        a: Value,
        b: Right,
        transpose_b: bool,
        extras: Extras,
    ) -> Result<Value, Reason> {
        let name = self.name(part)?;
        let options = Gemm { transpose_b, ..Gemm::default() };
        self.import.graph.gemm(&name, a, b, extras, options).map_err(Reason::from)
    }
}
