//! Units that are nests of loops, with those that read what they write as one: moves, functions of each element, reductions,
//! softmax and normalisations of rows.
//!
//! A unit goes into all units that read its result, or into the first one, which then writes that result beside its own, if
//! together they take less time by the estimate of nests: a launch and what is written and read in between are saved, and what
//! several readers compute each for itself is paid. Units along the same axes that do not read each other become one that writes
//! the results of both. No pattern is named:
//! whatever nests two units are, their composition is one, or they stay apart. Then nests beside convolutions and the like
//! read and write feature maps as those have them (`maps`).

mod convolutions;
mod maps;
mod products;
mod sources;

use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Value;
use crate::layout::Layout;
use crate::limits::machine::Machine;
use crate::limits::{Family, Limits};
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::step::TOGETHER;
use crate::lower::unit::{Assigned, Input, Unit};
use crate::ops::loops::{Loops, Nest, OpNest, OperandSet, ReadFrom, SourceAt, Sources};
use crate::ops::{Choice, Op};
use sources::SharedSources;
use std::sync::Arc;

/// How much more of a launch it has to save that all readers compute a value for themselves than that the first one keeps it.
const ALL_RATHER_THAN_FIRST: f64 = 0.25;

/// How many units two that become one may be apart.
const NEAR: usize = 16;

/// The part of its time that a composition has to save.
const LEAST_SAVED: f64 = 0.02;

/// A unit that is a nest.
#[derive(Debug, Clone)]
struct Nested {
    nest: Nest,
    /// What each source is given.
    sources: Vec<(Input, Dims)>,
    /// What each result is: a unit writes the first as its last.
    outputs: Vec<Value>,
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
        let own = found(network, unit, &*op)?.filter(|_| !alone(&unit.name));
        let own = if own.is_some() && is_free(network, unit, &*op, &nested, limits)? { None } else { own };
        nested.push(own.map(|own| own.timed(&machine, precision)));
    }
    let composed = vec![false; count];
    let mut composing = Composing { network, alone, precision, machine, limits, nested, composed };
    for several in [false, true, false] {
        for place in 0..count {
            composing.give_to_readers(place, several)?;
        }
    }
    composing.place_products()?;
    composing.place_convolutions()?;
    composing.join_neighbours()?;
    composing.take_maps()?;
    composing.network.close_gaps();
    Ok(())
}

/// What `unit`, whose op is `op`, is as a nest of the values that hold the elements which it reads.
fn found(network: &Network<'_>, unit: &Unit, op: &dyn Op) -> Result<Option<Nested>> {
    let (&[output], true) = (&unit.outputs[..], unit.parts().is_empty()) else { return Ok(None) };
    // Whole numbers of fewer bits have no halves, and bytes are packed.
    let known = |value: Value| {
        let dtype = network.dtype(value);
        matches!(dtype, DType::F32 | DType::F16 | DType::Bool | DType::I32 | DType::U32 | DType::I64)
    };
    if unit.host.is_some() || !unit.reads().chain([output]).all(known) {
        return Ok(None);
    }
    let Some(OpNest { nest, operands, halves: stored }) = op.nest() else { return Ok(None) };
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
        let all = (1u32 << operands.len().min(31)) - 1;
        halves = OperandSet { sources: stored.sources & all, results: stored.results & 1 };
    }
    let (assigned, outputs) = (unit.precision.clone(), vec![output]);
    Ok(Some(Nested { nest, sources, outputs, halves, precision: op.precision(), assigned, clocks: 0.0 }))
}

/// Whether `unit` is a concatenation without a step: units that are no nests write its parts where they belong.
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
    fn unit(&self, name: String, maps: OperandSet) -> Result<Unit> {
        let operator = Arc::new(Loops::new(self.nest.clone(), self.halves, maps)?);
        let given = self.sources.iter().enumerate();
        let inputs = given.map(|(place, (input, dims))| (Operand::Arg(place as u8), input.clone(), *dims));
        let outputs = self.outputs.iter().rev().copied().collect();
        let mut unit = Unit::of_node(name, operator, inputs.collect(), outputs);
        unit.precision = self.assigned.clone();
        Ok(unit)
    }
}

/// Units that become new nests, each with its own, and the clocks that these save together.
struct Saving {
    units: Vec<(usize, Nested)>,
    clocks: f64,
}

impl Saving {
    /// What `units` save, which take so many clocks together today; nothing if that is too little.
    fn of(units: Vec<(usize, Nested)>, before: f64) -> Option<Self> {
        let after: f64 = units.iter().map(|(_, own)| own.clocks).sum();
        (after <= before * (1.0 - LEAST_SAVED)).then_some(Saving { units, clocks: before - after })
    }
}

impl Composing<'_, '_, '_> {
    /// Unit `place` within each of its readers, or within the first one, which then writes its results as well, if that is
    /// possible and takes less time: whichever saves more. Results that `several` read wait until what one alone reads, and
    /// moves, which nobody computes, are within their readers: several readers are often one in the end.
    fn give_to_readers(&mut self, place: usize, several: bool) -> Result<()> {
        let Some(writer) = self.nested[place].clone() else { return Ok(()) };
        let (all, mut first) = (self.within_all(place, &writer)?, None);
        if several {
            first = self.within_first(place, &writer)?;
        } else if all.as_ref().is_some_and(|all| all.units.len() > 1) && !writer.nest.is_move() {
            return Ok(());
        }
        // What several compute for themselves also binds more operands, of which there are few.
        let more = ALL_RATHER_THAN_FIRST * self.machine.launch;
        let best = match (all, first) {
            (Some(all), Some(first)) => Some(if all.clocks > first.clocks + more { all } else { first }),
            (all, first) => all.or(first),
        };
        match best {
            Some(saving) => self.replace(place, saving),
            None => Ok(()),
        }
    }

    /// Unit `place` within each of its readers.
    fn within_all(&mut self, place: usize, writer: &Nested) -> Result<Option<Saving>> {
        let &[output] = &writer.outputs[..] else { return Ok(None) };
        let readers: Vec<usize> = self.network.readers(output).collect();
        if self.network.leaves(output) || readers.is_empty() {
            return Ok(None);
        }
        let (mut before, mut units) = (writer.clocks, Vec::with_capacity(readers.len()));
        for &reader in &readers {
            let Some(own) = self.free(place, reader) else { return Ok(None) };
            let Some(both) = self.both(writer, &own, false)? else { return Ok(None) };
            before += own.clocks;
            units.push((reader, both));
        }
        Ok(Saving::of(units, before))
    }

    /// Unit `place` within its first reader, which keeps its results for others.
    fn within_first(&mut self, place: usize, writer: &Nested) -> Result<Option<Saving>> {
        let Some(&output) = writer.outputs.first() else { return Ok(None) };
        let first = |value: Value| self.network.readers(value).next();
        let Some(reader) = first(output) else { return Ok(None) };
        // Whoever else reads a result comes behind the one that writes it.
        let others = writer.outputs.iter().skip(1).filter_map(|&value| first(value));
        if others.into_iter().any(|other| other <= reader) {
            return Ok(None);
        }
        let Some(own) = self.free(place, reader) else { return Ok(None) };
        let before = writer.clocks + own.clocks;
        Ok(self.both(writer, &own, true)?.and_then(|both| Saving::of(vec![(reader, both)], before)))
    }

    /// The nest of unit `other`, if neither it nor unit `place` is to stay alone.
    fn free(&self, place: usize, other: usize) -> Option<Nested> {
        // A step of several nodes may be named too.
        let named = |unit: usize| (self.alone)(&self.network.units()[unit].name);
        if named(place) || named(other) { None } else { self.nested[other].clone() }
    }

    /// Puts nests of several units in the place of these and of unit `place`.
    fn replace(&mut self, place: usize, saving: Saving) -> Result<()> {
        let mut units = Vec::with_capacity(saving.units.len());
        for (other, both) in saving.units {
            let (first, last) = (place.min(other), place.max(other));
            let names = [first, last].map(|unit| self.network.units()[unit].name.as_str());
            // One that has too many scalars stays apart.
            let Ok(unit) = both.unit(names.join(TOGETHER), OperandSet::NONE) else { return Ok(()) };
            units.push((other, both, unit));
        }
        let last = units.len().saturating_sub(1);
        for (order, (other, both, unit)) in units.into_iter().enumerate() {
            self.nested[other] = Some(both);
            self.composed[other] = true;
            if order == last {
                self.network.merge(place, other, unit);
                self.nested[place] = None;
            } else {
                self.network.replace(other, unit);
            }
        }
        Ok(())
    }

    /// Units along the same axes that do not read each other as one, where that takes less time.
    fn join_neighbours(&mut self) -> Result<()> {
        for last in 0..self.nested.len() {
            for first in last.saturating_sub(NEAR)..last {
                let (Some(one), Some(other)) = (self.nested[first].clone(), self.free(first, last)) else {
                    continue;
                };
                let before = one.clocks + other.clocks;
                // Whatever reads a result of the first one comes behind the second one, or what the second one reads is there
                // before the first one.
                let reads = |unit: usize| {
                    one.outputs.iter().any(|&value| self.network.readers(value).any(|reader| reader <= unit))
                };
                let known = |(input, _): &(Input, Dims)| {
                    let writer = input.value().and_then(|value| self.network.writer(value));
                    writer.is_none_or(|writer| writer < first)
                };
                let (gap, place) = match (reads(last), other.sources.iter().all(known)) {
                    (false, _) => (first, last),
                    (true, true) => (last, first),
                    (true, false) => continue,
                };
                let Some(both) = self.beside(&one, &other)? else { continue };
                if let Some(saving) = Saving::of(vec![(place, both)], before) {
                    self.replace(gap, saving)?;
                    if place == first {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Has each constant of a nest be a value, which its kernel reads: other kernels of a unit may have packed it.
    fn name_constants(&mut self, own: &mut Nested) {
        for (input, _) in &mut own.sources {
            if let Input::Constant(tensor, None) = input {
                *input = Input::Constant(tensor.clone(), Some(self.network.add_constant(tensor.clone())));
            }
        }
    }

    /// What `reader` is with `writer` within it; if it `keeps` what that writes, with its results behind the reader's.
    fn both(&mut self, writer: &Nested, reader: &Nested, keeps: bool) -> Result<Option<Nested>> {
        let Some(&output) = writer.outputs.first() else { return Ok(None) };
        let (mut all, mut from) = (SharedSources::default(), Vec::new());
        for (place, source) in reader.sources.iter().enumerate() {
            from.push(if source.0.value() == Some(output) {
                ReadFrom::Written(0)
            } else {
                ReadFrom::Source(all.add(self.network, source, reader.halves.sources & (1 << place) != 0))
            });
        }
        let of_writer = all.add_all(self.network, writer);
        let dims: Vec<Dims> = all.sources.iter().map(|(_, dims)| *dims).collect();
        let sources = Sources { all: &dims, reader: &from, writer: &of_writer, keeps };
        let Ok(nest) = reader.nest.after(&writer.nest, &sources) else { return Ok(None) };
        let kept = if keeps { Some(writer) } else { None };
        Ok(Some(self.together(nest, all, [reader, writer], kept)))
    }

    /// Two nests along the same axes as one.
    fn beside(&mut self, one: &Nested, other: &Nested) -> Result<Option<Nested>> {
        let mut all = SharedSources::default();
        let of_one = all.add_all(self.network, one);
        let of_other = all.add_all(self.network, other);
        let dims: Vec<Dims> = all.sources.iter().map(|(_, dims)| *dims).collect();
        let Ok(first) = one.nest.with_sources(&dims, &of_one) else { return Ok(None) };
        let Ok(nest) = first.beside(&other.nest, &dims, &of_other) else { return Ok(None) };
        Ok(Some(self.together(nest, all, [one, other], Some(other))))
    }

    /// The nest of two units: it writes what the first does, and then what `also` does.
    fn together(&self, nest: Nest, all: SharedSources, of: [&Nested; 2], also: Option<&Nested>) -> Nested {
        let [first, second] = of;
        let (nest, kept) = nest.without_unread();
        let halved =
            |all: u32, bits: u32, new: usize, old: usize| all | (((bits >> old.min(31)) & 1) << new.min(31));
        let mut halves = OperandSet { sources: 0, results: first.halves.results };
        for (new, &old) in kept.iter().enumerate() {
            halves.sources = halved(halves.sources, all.halves, new, old);
        }
        let mut outputs = first.outputs.clone();
        for (place, &value) in also.iter().flat_map(|own| own.outputs.iter().enumerate()) {
            let bits = also.map_or(0, |own| own.halves.results);
            halves.results = halved(halves.results, bits, outputs.len(), place);
            outputs.push(value);
        }
        let sources = kept.iter().filter_map(|&old| all.sources.get(old).cloned()).collect();
        // Operands of what is stored in f32 stay so beside others.
        let narrow = [first, second].into_iter().find(|own| own.precision.storage() == DType::F16);
        let from = narrow.unwrap_or(first);
        let (precision, assigned) = (from.precision, from.assigned.clone());
        let both = Nested { nest, sources, outputs, halves, precision, assigned, clocks: 0.0 };
        both.timed(&self.machine, self.precision)
    }
}
