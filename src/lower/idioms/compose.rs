//! Units that are nests of loops, with those that read what they write as one: moves, functions of each element, reductions,
//! softmax and normalisations of rows.
//!
//! A unit goes into all units that read its result, if together they take less time by the estimate of nests: a launch and what
//! is written and read in between are saved, and what several readers compute each for itself is paid. No pattern is named:
//! whatever nests two units are, their composition is one, or they stay apart.

use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Value;
use crate::layout::{Form, Layout};
use crate::limits::machine::Machine;
use crate::limits::{Family, Limits};
use crate::lower::halves::{forms, has_maps_alone};
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::step::TOGETHER;
use crate::lower::unit::{Assigned, Input, Unit};
use crate::ops::Op;
use crate::ops::loops::{Halves, Loops, Nest, ReadFrom, Sources};
use std::sync::Arc;

/// The part of its time that a composition has to save.
const LEAST_SAVED: f64 = 0.02;

/// A unit that is a nest.
#[derive(Debug, Clone)]
struct Nested {
    nest: Nest,
    /// What each source is given.
    sources: Vec<(Input, Dims)>,
    halves: Halves,
    /// What it computes in: halves are stored where one of those that it is made of stores them.
    precision: Precision,
    /// Why, if that is not what the session asks for.
    assigned: Option<Assigned>,
    clocks: f64,
}

/// What passes know of the device.
struct Composing<'a, 'n, 'g> {
    network: &'n mut Network<'g>,
    alone: &'a dyn Fn(&str) -> bool,
    precision: Precision,
    machine: Machine,
    /// What each unit is, as a nest.
    nested: Vec<Option<Nested>>,
    /// Whether each unit reads and writes feature maps alone.
    of_maps: Vec<bool>,
}

/// Puts units into their readers; those that `alone` names stay as they are.
pub(crate) fn compose(
    network: &mut Network<'_>,
    alone: &dyn Fn(&str) -> bool,
    precision: Precision,
    limits: &Limits,
) -> Result<()> {
    let device = match limits.family {
        // Drivers that run kernels on a CPU are taken to be a GPU of no known family.
        Family::CpuDriver => Limits { family: Family::Unknown, ..limits.clone() },
        _ => limits.clone(),
    };
    let Some(machine) = Machine::of(&device) else { return Ok(()) };
    let count = network.units().len();
    let (mut nested, mut of_maps) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for index in 0..count {
        let unit = &network.units()[index];
        let op = unit.op(network.graph, precision)?;
        of_maps.push(has_maps_alone(&*op, limits));
        let own = found(network, unit, &*op, limits).filter(|_| !alone(&unit.name));
        nested.push(own.map(|own| own.timed(&machine, precision)));
    }
    let mut composing = Composing { network, alone, precision, machine, nested, of_maps };
    for place in 0..count {
        composing.give_to_readers(place)?;
    }
    composing.network.close_gaps();
    Ok(())
}

/// What `unit`, whose op is `op`, is as a nest.
fn found(network: &Network<'_>, unit: &Unit, op: &dyn Op, limits: &Limits) -> Option<Nested> {
    let (&[output], true) = (&unit.outputs[..], unit.parts().is_empty()) else { return None };
    let float = |value: Value| matches!(network.dtype(value), DType::F32 | DType::F16 | DType::Bool);
    if unit.host.is_some() || !unit.reads().chain([output]).all(float) {
        return None;
    }
    let (nest, operands) = op.nest()?;
    let given = unit.given();
    let source = |operand: &Operand| {
        let (_, input, dims) = given.iter().find(|(own, ..)| own == operand)?;
        Some((input.clone(), *dims))
    };
    let sources = operands.iter().map(source).collect::<Option<Vec<_>>>()?;
    let mut halves = Halves { sources: 0, result: false };
    if op.precision().storage() == DType::F16 {
        let stored = forms(op, Layout::Nhwc, limits).or_else(|| forms(op, Layout::C4, limits))?;
        let wide = |operand: Operand| stored.iter().all(|(own, form)| *own != operand || *form == Form::Rows);
        for (place, &operand) in operands.iter().enumerate() {
            if !wide(operand) {
                halves.sources |= 1 << place;
            }
        }
        halves.result = !wide(Operand::Dst);
    }
    let assigned = unit.precision.clone();
    Some(Nested { nest, sources, halves, precision: op.precision(), assigned, clocks: 0.0 })
}

impl Nested {
    fn timed(self, machine: &Machine, precision: Precision) -> Self {
        let clocks = self.nest.clocks(machine, precision.storage().bytes());
        Nested { clocks, ..self }
    }

    fn unit(&self, name: String, outputs: Vec<Value>) -> Result<Unit> {
        let operator = Arc::new(Loops::new(self.nest.clone(), self.halves)?);
        let given = self.sources.iter().enumerate();
        let inputs = given.map(|(place, (input, dims))| (Operand::Arg(place as u8), input.clone(), *dims));
        let mut unit = Unit::of_node(name, operator, inputs.collect(), outputs);
        unit.precision = self.assigned.clone();
        Ok(unit)
    }
}

impl Composing<'_, '_, '_> {
    /// Unit `place` within each of its readers, if that is possible and takes less time.
    fn give_to_readers(&mut self, place: usize) -> Result<()> {
        let Some(writer) = self.nested[place].clone() else { return Ok(()) };
        let unit = &self.network.units()[place];
        let (&[output], name) = (&unit.outputs[..], unit.name.clone()) else { return Ok(()) };
        let readers: Vec<usize> = self.network.readers(output).collect();
        if self.network.leaves(output) || readers.is_empty() {
            return Ok(());
        }
        let (mut before, mut after) = (writer.clocks, 0.0);
        let mut composed = Vec::with_capacity(readers.len());
        for &reader in &readers {
            // A step of several nodes may be named too.
            let alone = (self.alone)(&name) || (self.alone)(&self.network.units()[reader].name);
            let (Some(own), false) = (self.nested[reader].clone(), alone) else { return Ok(()) };
            let Some(both) = self.both(output, &writer, &own)? else { return Ok(()) };
            before += own.clocks;
            after += both.clocks;
            composed.push((reader, both));
        }
        after += self.conversions(place, &readers) as f64 * self.machine.launch;
        if after > before * (1.0 - LEAST_SAVED) {
            return Ok(());
        }
        let mut units = Vec::with_capacity(composed.len());
        for (reader, both) in composed {
            let old = &self.network.units()[reader];
            let name = format!("{name}{TOGETHER}{}", old.name);
            // One that has too many scalars stays apart.
            let Ok(unit) = both.unit(name, old.outputs.clone()) else { return Ok(()) };
            units.push((reader, both, unit));
        }
        let last = units.len() - 1;
        for (order, (reader, both, unit)) in units.into_iter().enumerate() {
            self.nested[reader] = Some(both);
            if order == last {
                self.network.merge(place, reader, unit);
                self.nested[place] = None;
            } else {
                self.network.replace(reader, unit);
            }
        }
        Ok(())
    }

    /// Values between these units and others that have feature maps alone: each is converted to rows or from them.
    fn conversions(&self, place: usize, readers: &[usize]) -> usize {
        let network = &*self.network;
        let is_of_maps = |unit: usize| self.of_maps.get(unit).is_some_and(|of_maps| *of_maps);
        let mut values: Vec<Value> = Vec::new();
        for &index in readers.iter().chain([&place]) {
            let unit = &network.units()[index];
            let read = unit.reads().map(|value| network.resolve(value).of);
            let read = read.filter(|&value| network.writer(value).is_some_and(is_of_maps));
            let written =
                unit.outputs.iter().copied().filter(|&value| network.readers(value).any(is_of_maps));
            values.extend(read.chain(written));
        }
        crate::sorted::sort(&mut values, |a, b| a.index().cmp(&b.index()));
        values.dedup();
        values.len()
    }

    /// What `reader` is with `writer`, which writes `output`, within it.
    fn both(&mut self, output: Value, writer: &Nested, reader: &Nested) -> Result<Option<Nested>> {
        let (mut all, mut halves, mut from): (Vec<(Input, Dims)>, u32, Vec<ReadFrom>) =
            (Vec::new(), 0, Vec::new());
        let mut add = |network: &mut Network<'_>, (input, dims): &(Input, Dims), half: bool| {
            let input = match input {
                Input::Constant(tensor, None) => {
                    Input::Constant(tensor.clone(), Some(network.add_constant(tensor.clone())))
                }
                known => known.clone(),
            };
            let value = |input: &Input| match input {
                Input::Value(value) | Input::Constant(_, Some(value)) => Some(*value),
                Input::Constant(_, None) => None,
            };
            let known = all.iter().position(|(own, _)| value(own).is_some() && value(own) == value(&input));
            let place = known.unwrap_or_else(|| {
                all.push((input, *dims));
                halves |= u32::from(half) << (all.len() - 1).min(31);
                all.len() - 1
            });
            // What one of them reads in f32 is read so.
            if !half {
                halves &= !(1 << place.min(31));
            }
            place
        };
        for (place, source) in reader.sources.iter().enumerate() {
            let shown = source.0.value().map(|value| self.network.resolve(value));
            from.push(match shown {
                Some(alias) if alias.of == output => {
                    ReadFrom::Written(if planted("loops_offset") { 0 } else { alias.offset })
                }
                _ => ReadFrom::Source(add(self.network, source, reader.halves.sources & (1 << place) != 0)),
            });
        }
        let mut of_writer = Vec::with_capacity(writer.sources.len());
        for (place, source) in writer.sources.iter().enumerate() {
            of_writer.push(add(self.network, source, writer.halves.sources & (1 << place) != 0));
        }
        let dims: Vec<Dims> = all.iter().map(|(_, dims)| *dims).collect();
        let sources = Sources { all: &dims, reader: &from, writer: &of_writer };
        let Ok(nest) = reader.nest.after(&writer.nest, &sources) else { return Ok(None) };
        let halves = Halves { sources: halves, result: reader.halves.result };
        let (nest, kept) = nest.without_unread();
        let halves = Halves {
            sources: kept
                .iter()
                .enumerate()
                .fold(0, |all, (new, &old)| all | ((halves.sources >> old) & 1) << new),
            ..halves
        };
        let sources = kept.iter().filter_map(|&old| all.get(old).cloned()).collect();
        // Operands of what is stored in f32 stay so beside others.
        let narrow = [reader, writer].into_iter().find(|own| own.precision.storage() == DType::F16);
        let from = narrow.unwrap_or(reader);
        let (precision, assigned) = (from.precision, from.assigned.clone());
        let both = Nested { nest, sources, halves, precision, assigned, clocks: 0.0 };
        Ok(Some(both.timed(&self.machine, self.precision)))
    }
}
