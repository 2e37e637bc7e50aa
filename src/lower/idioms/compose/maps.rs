//! Nests beside units that have feature maps: they read and write slices of four channels, where else a step between them
//! would change the form of a value, and elements from wherever these begin, where else a step would copy them.

use super::{Nested, OnGpu};
use crate::dims::Dims;
use crate::dtype::DType;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::{TensorType, Value};
use crate::layout::{Form, Layout};
use crate::lower::halves::{forms, has_maps_alone, has_rows_alone, op_on};
use crate::lower::unit::Input;
use crate::ops::OperandInfo;
use crate::ops::loops::OperandSet;
use crate::shape::Shape;
use std::collections::BTreeMap;

/// How a unit has feature maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// In slices: it has no other kernels, or is among units that have none.
    Slices,
    /// In slices or in rows, all of them alike.
    Either,
    /// It is a nest, and takes each as it is.
    Nest,
    Rows,
}

/// A unit that reads or writes a value.
#[derive(Debug, Clone, Copy)]
struct End {
    unit: usize,
    /// The value that it reads or writes: one that holds the elements, or a view.
    shown: Value,
    /// The extents in slices and the type of the elements, if the unit can have it in slices.
    map: Option<(Shape, DType)>,
}

/// Who reads and writes the elements of each value.
type Ends = BTreeMap<Value, Vec<End>>;

impl OnGpu<'_, '_, '_> {
    /// Has nests read and write slices of four channels, and elements from wherever they begin, where that saves steps.
    pub(super) fn take_maps(&mut self) -> Result<()> {
        let (mut sides, ends) = self.sides()?;
        self.settle(&mut sides, &ends);
        let mut in_slices = BTreeMap::new();
        for (&value, ends) in &ends {
            if let Some(shape) = self.slices_of(value, ends, &sides)? {
                in_slices.insert(value, shape);
            }
        }
        for (place, side) in sides.into_iter().enumerate() {
            if side == Side::Nest {
                self.take_maps_of(place, &mut in_slices)?;
            }
        }
        Ok(())
    }

    /// How each unit has feature maps, and who reads and writes what.
    fn sides(&self) -> Result<(Vec<Side>, Ends)> {
        let network = &*self.network;
        let (mut sides, mut ends) = (Vec::with_capacity(network.units().len()), Ends::new());
        for (place, unit) in network.units().iter().enumerate() {
            // A host has rows, and a gap nothing.
            if unit.outputs.is_empty() || unit.host.is_some() {
                sides.push(Side::Rows);
                for shown in unit.reads().chain(unit.outputs.iter().copied()) {
                    let end = End { unit: place, shown, map: None };
                    ends.entry(network.resolve(shown).of).or_default().push(end);
                }
                continue;
            }
            let op = op_on(network.graph, unit, self.precision, Layout::C4, self.limits)?;
            let nested = self.nested.get(place).is_some_and(Option::is_some);
            sides.push(match self.composed.get(place) {
                Some(true) => Side::Nest,
                _ if has_maps_alone(&*op, self.limits) => Side::Slices,
                _ if !has_rows_alone(&*op, self.limits) => Side::Either,
                _ if nested => Side::Nest,
                _ => Side::Rows,
            });
            let forms = forms(&*op, Layout::C4, self.limits).unwrap_or_default();
            let infos = op.operands();
            let map = |operand: Operand| {
                forms.iter().find(|(own, form)| *own == operand && *form == Form::C4)?;
                let info = infos.iter().find(|info| info.operand == operand)?;
                Some((info.map, op.precision().storage()))
            };
            let read =
                unit.inputs.iter().filter_map(|(operand, input)| Some((input.value()?, map(*operand))));
            let infos: Vec<OperandInfo> = crate::ops::outputs(&*op).collect();
            let written = unit.outputs.iter().enumerate().map(|(order, &value)| {
                let own = infos.get(order).filter(|_| unit.parts().is_empty());
                (value, own.and_then(|info| map(info.operand)))
            });
            for (shown, map) in read.chain(written) {
                ends.entry(network.resolve(shown).of).or_default().push(End { unit: place, shown, map });
            }
        }
        Ok((sides, ends))
    }

    /// Whether a value comes from outside or leaves the network, and is in rows there.
    fn is_outside(&self, value: Value) -> bool {
        self.network.writer(value).is_none() || self.network.leaves(value)
    }

    /// Decides on the units that could have either: those beside slices have slices, but for nests of which an operand is in
    /// rows, which take each as it is.
    fn settle(&self, sides: &mut [Side], ends: &Ends) {
        let is_nest = |unit: usize| self.nested.get(unit).is_some_and(Option::is_some);
        let beside_slices = |sides: &mut [Side], also: &dyn Fn(usize) -> bool| loop {
            let mut changed = false;
            for ends in ends.values() {
                if !ends.iter().any(|end| sides[end.unit] == Side::Slices && end.map.is_some()) {
                    continue;
                }
                for end in ends.iter().filter(|end| end.map.is_some() && also(end.unit)) {
                    if sides[end.unit] == Side::Either {
                        sides[end.unit] = Side::Slices;
                        changed = true;
                    }
                }
            }
            if !changed {
                return;
            }
        };
        beside_slices(sides, &|unit| !is_nest(unit));
        loop {
            let mut changed = false;
            for (&value, ends) in ends {
                let rows =
                    |end: &End| end.map.is_none() || matches!(sides[end.unit], Side::Nest | Side::Rows);
                if !self.is_outside(value) && !ends.iter().any(rows) {
                    continue;
                }
                for end in ends {
                    if sides[end.unit] == Side::Either && is_nest(end.unit) {
                        sides[end.unit] = Side::Nest;
                        changed = true;
                    }
                }
            }
            if !changed {
                break;
            }
        }
        beside_slices(sides, &|_| true);
    }

    /// The extents of a value that is in slices for all that read and write it, and that a nest reads or writes.
    fn slices_of(&self, value: Value, ends: &[End], sides: &[Side]) -> Result<Option<Shape>> {
        let has = |side: Side| ends.iter().any(|end| sides[end.unit] == side);
        let open = has(Side::Rows) || has(Side::Either);
        if self.is_outside(value) || open || !has(Side::Slices) || !has(Side::Nest) {
            return Ok(None);
        }
        let dims = self.network.dims(value)?;
        let of_slices = || ends.iter().filter(|end| sides[end.unit] == Side::Slices);
        let Some((shape, dtype)) = of_slices().find_map(|end| end.map) else { return Ok(None) };
        // A pixel of whole slices is its channels in order, as a row is.
        if shape.h * shape.w == 1 && shape.c.is_multiple_of(4) {
            return Ok(None);
        }
        for end in of_slices() {
            let whole = self.network.resolve(end.shown).offset == 0
                && self.network.dims(end.shown)?.shape() == shape
                && shape.elements() == dims.elements();
            if end.map != Some((shape, dtype)) || !whole {
                return Ok(None);
            }
        }
        let writer = self.network.writer(value);
        if writer.is_some_and(|writer| sides[writer] == Side::Slices) && dims.shape() != shape {
            return Ok(None);
        }
        let halves = dtype == DType::F16;
        let stored_so = |end: &End| {
            let Some(own) = self.nested.get(end.unit).and_then(Option::as_ref) else { return false };
            own.precision.storage() == dtype && own.has_in_halves(value).all(|own| own == halves)
        };
        let nests_do = ends.iter().filter(|end| sides[end.unit] == Side::Nest).all(stored_so);
        Ok((nests_do && (!halves || self.limits.has_half_rows())).then_some(shape))
    }

    /// Has unit `place`, which is a nest, take operands as they are, if that takes less time than the steps that it saves.
    fn take_maps_of(&mut self, place: usize, in_slices: &mut BTreeMap<Value, Shape>) -> Result<()> {
        let (Some(own), unit) = (self.nested[place].clone(), &self.network.units()[place]) else {
            return Ok(());
        };
        let (mut sources, mut maps) = (Vec::with_capacity(own.sources.len()), OperandSet::NONE);
        for (order, (input, dims)) in own.sources.iter().enumerate() {
            sources.push(match input.value().map(|value| self.network.resolve(value).of) {
                Some(value) => {
                    if in_slices.contains_key(&value) {
                        maps.sources |= 1 << order;
                    }
                    (Input::Value(value), self.network.dims(value)?)
                }
                None => (input.clone(), *dims),
            });
        }
        let mut targets: Vec<Dims> = own.nest.targets().collect();
        for (order, (target, output)) in targets.iter_mut().zip(&own.outputs).enumerate() {
            // Of results beside the first a nest writes whole slices alone.
            let whole = |shape: &&Shape| order == 0 || shape.c.is_multiple_of(4);
            if let Some(shape) = in_slices.get(output).filter(whole) {
                maps.results |= 1 << order;
                *target = Dims::new(&[shape.n, shape.h, shape.w, shape.c])?;
            }
        }
        let copied = if self.composed[place] { 0 } else { self.copies(place, &own) };
        let taken = (maps.sources.count_ones() + maps.results.count_ones()) as usize;
        let saved = if !self.composed[place] && self.has_either(place)? {
            // All of its operands could be in slices, or all in rows.
            taken.min(sources.iter().filter(|(input, _)| input.value().is_some()).count() + 1 - taken)
        } else {
            taken
        };
        if saved + copied == 0 {
            return Ok(());
        }
        let name = unit.name.clone();
        let all: Vec<Dims> = sources.iter().map(|(_, dims)| *dims).collect();
        let Ok(nest) = own.nest.with_extents(&all, &targets) else { return Ok(()) };
        let Ok(stored) = nest.in_maps(maps) else { return Ok(()) };
        let after = self.times.of(&stored, self.precision);
        if after > own.time + (saved + copied) as f64 * self.times.launch() {
            return Ok(());
        }
        // A map in other extents is another value, of which the first one is a view.
        let (mut outputs, mut shown) = (own.outputs.clone(), Vec::new());
        for (order, (output, &target)) in outputs.iter_mut().zip(&targets).enumerate() {
            let in_slices = maps.results & (1 << order) != 0;
            if in_slices && self.network.dims(*output)?.shape() != target.shape() {
                let dtype = self.network.dtype(*output);
                let written = self.network.add_value_of(TensorType { dtype, dims: target });
                shown.push((*output, written));
                *output = written;
            }
        }
        let mut own = Nested { nest, sources, outputs, ..own };
        self.name_constants(&mut own);
        let Ok(unit) = own.unit(name, maps, self.times) else { return Ok(()) };
        self.network.replace(place, unit);
        for (output, written) in shown {
            self.network.show(output, written);
            if let Some(&shape) = in_slices.get(&output) {
                in_slices.insert(written, shape);
            }
        }
        self.nested[place] = Some(own);
        Ok(())
    }

    /// Whether a unit, which is no composition, has kernels of slices and of rows.
    fn has_either(&self, place: usize) -> Result<bool> {
        let (network, limits) = (&*self.network, self.limits);
        let op = op_on(network.graph, &network.units()[place], self.precision, Layout::C4, limits)?;
        Ok(!has_rows_alone(&*op, limits) && op.kernels().serve(Layout::Nhwc, limits))
    }

    /// Values that a step would copy for a unit, since they begin where no binding can.
    fn copies(&self, place: usize, own: &Nested) -> usize {
        let unit = &self.network.units()[place];
        let offsets = unit.inputs.iter().filter_map(|(_, input)| {
            let value = input.value()?;
            let alias = self.network.resolve(value);
            let halves = own.has_in_halves(alias.of).next().unwrap_or_default();
            Some(alias.offset * if halves { 2 } else { 4 })
        });
        let alignment = self.limits.binding_alignment.max(1);
        offsets.filter(|&bytes| !(bytes as u64).is_multiple_of(alignment)).count()
    }
}

impl Nested {
    /// For each operand that is `value`, whether it is in halves.
    fn has_in_halves(&self, value: Value) -> impl Iterator<Item = bool> + '_ {
        let read =
            self.sources.iter().enumerate().filter(move |(_, (input, _))| input.value() == Some(value));
        let read: Vec<bool> = read.map(|(place, _)| self.halves.sources & (1 << place) != 0).collect();
        let results = self.outputs.iter().enumerate().filter(move |(_, output)| **output == value);
        read.into_iter().chain(results.map(|(place, _)| self.halves.results & (1 << place) != 0))
    }
}
