//! Depthwise convolutions whose maps lie in rows, where else steps would bring them into slices of four channels and back: the
//! result of a product, or some of its columns.

use super::OnGpu;
use super::nested::{found, is_free};
use super::own_input::without_its_input;
use super::products::{Neighbour, OperandPlace};
use crate::dims::Dims;
use crate::dtype::DType;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Value;
use crate::layout::Layout;
use crate::lower::halves::{has_maps_alone, has_rows_alone, op_on};
use crate::lower::mistakes::planted;
use crate::lower::step::TOGETHER;
use crate::lower::unit::{Input, Unit};
use crate::ops::Op;
use crate::ops::depthwise::{DepthwiseInRows, DepthwiseOp, RowPlace};
use crate::ops::loops::Matrices;
use std::sync::Arc;

/// Whose values a unit has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Has {
    /// Rows alone, and it is no nest.
    Rows,
    /// Slices of four channels alone.
    Slices,
    /// Either.
    Both,
}

impl OnGpu<'_, '_, '_> {
    /// Has depthwise convolutions read and write rows, where that saves steps.
    pub(super) fn place_convolutions(&mut self) -> Result<()> {
        for place in 0..self.nested.len() {
            if let Some((unit, gone)) = self.in_rows(place)? {
                self.network.replace(place, unit.clone());
                if let Some(gone) = gone {
                    self.network.merge(gone, place, unit);
                    self.nested[gone] = None;
                }
            }
        }
        Ok(())
    }

    /// Puts concatenations within their readers that units would have joined without a step, had they slices, where these have rows
    /// now.
    pub(super) fn give_joins(&mut self) -> Result<()> {
        for place in 0..self.nested.len() {
            let unit = &self.network.units()[place];
            if self.nested[place].is_some() || unit.outputs.is_empty() || (self.alone)(&unit.name) {
                continue;
            }
            let op = op_on(self.network.graph, unit, self.precision, Layout::C4, self.limits)?;
            let in_layout = |writer: usize, layout: Layout| {
                let has = self.has(writer)?;
                Ok(has != if layout == Layout::C4 { Has::Rows } else { Has::Slices })
            };
            let Some(own) = found(self.network, unit, &*op)?.filter(|own| self.times.runs(&own.nest)) else {
                continue;
            };
            if !is_free(self.network, unit, &*op, &self.nested, self.limits, &in_layout)? {
                let (times, precision) = (self.times, self.precision);
                self.nested[place] = Some(own.timed(times, precision));
                self.give_to_readers(place, false)?;
            }
        }
        Ok(())
    }

    /// What a unit has.
    fn has(&self, place: usize) -> Result<Has> {
        let (network, unit) = (&*self.network, &self.network.units()[place]);
        if self.nested.get(place).is_some_and(Option::is_some) {
            return Ok(Has::Both);
        }
        if unit.host.is_some() || unit.outputs.is_empty() {
            return Ok(Has::Rows);
        }
        let op = op_on(network.graph, unit, self.precision, Layout::C4, self.limits)?;
        Ok(match () {
            () if has_rows_alone(&*op, self.limits) => Has::Rows,
            () if has_maps_alone(&*op, self.limits) => Has::Slices,
            () => Has::Both,
        })
    }

    /// Whether one of the units that read `value` has this, but for unit `place`.
    fn is_read_by(&self, value: Value, place: usize, has: Has) -> Result<bool> {
        for reader in self.network.readers(value).filter(|&reader| reader != place) {
            if self.has(reader)? == has {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Unit `place` with its maps in rows, if it is a depthwise convolution and that saves steps; and the unit whose place it
    /// takes.
    fn in_rows(&self, place: usize) -> Result<Option<(Unit, Option<usize>)>> {
        let (network, unit) = (&*self.network, &self.network.units()[place]);
        let &[output] = &unit.outputs[..] else { return Ok(None) };
        if unit.host.is_some() || !unit.parts().is_empty() || (self.alone)(&unit.name) {
            return Ok(None);
        }
        let without = without_its_input(network, unit)?;
        let unit = without.as_ref().unwrap_or(unit);
        let op = op_on(network.graph, unit, self.precision, Layout::C4, self.limits)?;
        let Some(&op) = op.as_any().downcast_ref::<DepthwiseOp>() else { return Ok(None) };
        let input = op.convolution().input;
        let Ok(Some(source)) = unit.input(Operand::Src).map(Input::value) else { return Ok(None) };
        let halves = op.precision().storage() == DType::F16;
        if op.convolution().rows.is_some() || (halves && !self.limits.has_half_rows()) {
            return Ok(None);
        }
        let of = Matrices { batch: input.n, rows: input.h * input.w, columns: input.c, transposed: false };
        let root = network.resolve(source);
        let residual = unit.input(Operand::Residual).ok().and_then(Input::value);
        let residual = residual.map(|value| network.resolve(value));
        // What is added too is there.
        let found = match residual {
            Some(residual) if residual.of == root.of => {
                let (value, index) = (root.of, of.from(root.offset));
                Some(OperandPlace { value, index, neighbour: Neighbour::Stays })
            }
            _ => self.read(place, source, of, halves)?,
        };
        let Some(OperandPlace { value, index, neighbour }) = found else { return Ok(None) };
        if let Some(residual) = residual
            && (residual.offset != 0 || !self.is_of_rows(residual.of)?)
        {
            return Ok(None);
        }
        let Some(strides) = index.regular(1) else { return Ok(None) };
        let at = RowPlace {
            elements: network.dims(value)?.elements(),
            first: if planted("loops_place") { 0 } else { strides.first },
            image: strides.outer,
            pixel: strides.row,
        };
        let Ok(op) = op.in_rows(at) else { return Ok(None) };
        if !self.is_of_rows(value)? || self.is_read_by(output, place, Has::Slices)? {
            return Ok(None);
        }
        let (gone, before) = match neighbour {
            Neighbour::Goes(unit) => (Some(unit), true),
            // A nest writes slices as it writes rows, unless another unit wants rows, or more than the map.
            _ => {
                let part = at.elements != input.elements();
                (None, part || self.is_written_in_rows(value)? || self.is_read_by(value, place, Has::Rows)?)
            }
        };
        let behind = network.leaves(output) || self.is_read_by(output, place, Has::Rows)?;
        if !before && !behind {
            return Ok(None);
        }
        let mut inputs: Vec<(Operand, Input, Dims)> = Vec::new();
        for (operand, input, dims) in unit.given() {
            inputs.push(match operand {
                Operand::Src => (operand, Input::Value(value), network.dims(value)?),
                _ => (operand, input.clone(), dims),
            });
        }
        let Ok(operator) = DepthwiseInRows::new(op, network.dims(output)?) else { return Ok(None) };
        let mut names = vec![place];
        names.extend(gone);
        crate::sorted::sort(&mut names, Ord::cmp);
        let names: Vec<&str> = names.iter().map(|&unit| network.units()[unit].name.as_str()).collect();
        let mut new = Unit::of_node(names.join(TOGETHER), Arc::new(operator), inputs, vec![output]);
        new.precision = unit.precision.clone();
        Ok(Some((new, gone)))
    }

    /// Whether `value` comes from outside, or from a unit that writes rows and is no nest.
    fn is_written_in_rows(&self, value: Value) -> Result<bool> {
        match self.network.writer(value) {
            Some(writer) => Ok(self.has(writer)? == Has::Rows),
            None => Ok(true),
        }
    }
}
