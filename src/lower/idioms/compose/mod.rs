//! Units that are nests of loops, with those that read what they write as one: moves, functions of each element, reductions,
//! softmax and normalisations of rows.
//!
//! A unit goes into all units that read its result, if together they take less time by the estimate of nests: a launch and what
//! is written and read in between are saved, and what several readers compute each for itself is paid. No pattern is named:
//! whatever nests two units are, their composition is one, or they stay apart. Then nests beside convolutions and the like
//! read and write feature maps as those have them (`maps`).

mod maps;

use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Value;
use crate::layout::{Form, Layout};
use crate::limits::machine::Machine;
use crate::limits::{Family, Limits};
use crate::lower::halves::forms;
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::step::TOGETHER;
use crate::lower::unit::{Assigned, Input, Unit};
use crate::ops::loops::{Loops, Nest, OperandSet, ReadFrom, SourceAt, Sources};
use crate::ops::{Choice, Op};
use std::sync::Arc;

/// The part of its time that a composition has to save.
const LEAST_SAVED: f64 = 0.02;

/// A unit that is a nest.
#[derive(Debug, Clone)]
struct Nested {
    nest: Nest,
    /// What each source is given.
    sources: Vec<(Input, Dims)>,
    halves: OperandSet,
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
    limits: &'a Limits,
    /// What each unit is, as a nest.
    nested: Vec<Option<Nested>>,
    /// Whether each is a composition.
    composed: Vec<bool>,
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
    let mut nested = Vec::with_capacity(count);
    for index in 0..count {
        let unit = &network.units()[index];
        let op = unit.op(network.graph, precision)?;
        let own = found(network, unit, &*op, limits)?.filter(|_| !alone(&unit.name));
        let own = if own.is_some() && is_free(network, unit, &*op, &nested, limits)? { None } else { own };
        nested.push(own.map(|own| own.timed(&machine, precision)));
    }
    let composed = vec![false; count];
    let mut composing = Composing { network, alone, precision, machine, limits, nested, composed };
    for place in 0..count {
        composing.give_to_readers(place)?;
    }
    composing.take_maps()?;
    composing.network.close_gaps();
    Ok(())
}

/// What `unit`, whose op is `op`, is as a nest of the values that hold the elements which it reads.
fn found(network: &Network<'_>, unit: &Unit, op: &dyn Op, limits: &Limits) -> Result<Option<Nested>> {
    let (&[output], true) = (&unit.outputs[..], unit.parts().is_empty()) else { return Ok(None) };
    let float = |value: Value| matches!(network.dtype(value), DType::F32 | DType::F16 | DType::Bool);
    if unit.host.is_some() || !unit.reads().chain([output]).all(float) {
        return Ok(None);
    }
    let Some((nest, operands)) = op.nest() else { return Ok(None) };
    let given = unit.given();
    let (mut sources, mut from) = (Vec::with_capacity(operands.len()), Vec::with_capacity(operands.len()));
    for (place, operand) in operands.iter().enumerate() {
        let Some((_, input, dims)) = given.iter().find(|(own, ..)| own == operand) else { return Ok(None) };
        let mut first = 0;
        sources.push(match input.value().map(|value| network.resolve(value)) {
            Some(alias) => {
                first = if planted("loops_offset") { 0 } else { alias.offset };
                (Input::Value(alias.of), network.dims(alias.of)?)
            }
            None => (input.clone(), *dims),
        });
        from.push(SourceAt { place, first });
    }
    let all: Vec<Dims> = sources.iter().map(|(_, dims)| *dims).collect();
    let Ok(nest) = nest.with_sources(&all, &from) else { return Ok(None) };
    let mut halves = OperandSet::NONE;
    if op.precision().storage() == DType::F16 {
        let stored = forms(op, Layout::Nhwc, limits).or_else(|| forms(op, Layout::C4, limits));
        let Some(stored) = stored else { return Ok(None) };
        let wide = |operand: Operand| stored.iter().all(|(own, form)| *own != operand || *form == Form::Rows);
        for (place, &operand) in operands.iter().enumerate() {
            if !wide(operand) {
                halves.sources |= 1 << place;
            }
        }
        halves.result = !wide(Operand::Dst);
    }
    let assigned = unit.precision.clone();
    Ok(Some(Nested { nest, sources, halves, precision: op.precision(), assigned, clocks: 0.0 }))
}

/// Whether `unit` joins values that others than nests write where they belong in the result, so that it needs no step.
fn is_free(
    network: &Network<'_>,
    unit: &Unit,
    op: &dyn Op,
    nested: &[Option<Nested>],
    limits: &Limits,
) -> Result<bool> {
    let kernels = op.kernels();
    let space = kernels.space(limits);
    let joins = |layout: Layout| {
        let serving = space.iter().find(|(kernel, _)| kernel.serves(layout));
        serving.is_some_and(|(kernel, tile)| {
            kernel.joins(&Choice::new(kernel.name(), *tile, [1; 3]).with_layout(layout)).is_some()
        })
    };
    if !joins(Layout::C4) && !joins(Layout::Nhwc) {
        return Ok(false);
    }
    for (_, input) in &unit.inputs {
        let Some(alias) = input.value().map(|value| network.resolve(value)) else { return Ok(false) };
        let whole = alias.offset == 0 && !network.leaves(alias.of);
        let by_others =
            network.writer(alias.of).is_some_and(|writer| matches!(nested.get(writer), Some(None)));
        if !whole || !by_others {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Nested {
    fn timed(self, machine: &Machine, precision: Precision) -> Self {
        let clocks = self.nest.clocks(machine, precision.storage().bytes());
        Nested { clocks, ..self }
    }

    /// The unit of this name that computes it, with the operands of `maps` in slices of four channels.
    fn unit(&self, name: String, outputs: Vec<Value>, maps: OperandSet) -> Result<Unit> {
        let operator = Arc::new(Loops::new(self.nest.clone(), self.halves, maps)?);
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
        if after > before * (1.0 - LEAST_SAVED) {
            return Ok(());
        }
        let mut units = Vec::with_capacity(composed.len());
        for (reader, both) in composed {
            let old = &self.network.units()[reader];
            let name = format!("{name}{TOGETHER}{}", old.name);
            // One that has too many scalars stays apart.
            let Ok(unit) = both.unit(name, old.outputs.clone(), OperandSet::NONE) else { return Ok(()) };
            units.push((reader, both, unit));
        }
        let last = units.len() - 1;
        for (order, (reader, both, unit)) in units.into_iter().enumerate() {
            self.nested[reader] = Some(both);
            self.composed[reader] = true;
            if order == last {
                self.network.merge(place, reader, unit);
                self.nested[place] = None;
            } else {
                self.network.replace(reader, unit);
            }
        }
        Ok(())
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
            from.push(if source.0.value() == Some(output) {
                ReadFrom::Written(0)
            } else {
                let place = add(self.network, source, reader.halves.sources & (1 << place) != 0);
                ReadFrom::Source(SourceAt::whole(place))
            });
        }
        let mut of_writer = Vec::with_capacity(writer.sources.len());
        for (place, source) in writer.sources.iter().enumerate() {
            let place = add(self.network, source, writer.halves.sources & (1 << place) != 0);
            of_writer.push(SourceAt::whole(place));
        }
        let dims: Vec<Dims> = all.iter().map(|(_, dims)| *dims).collect();
        let sources = Sources { all: &dims, reader: &from, writer: &of_writer };
        let Ok(nest) = reader.nest.after(&writer.nest, &sources) else { return Ok(None) };
        let halves = OperandSet { sources: halves, result: reader.halves.result };
        let (nest, kept) = nest.without_unread();
        let halves = OperandSet {
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
