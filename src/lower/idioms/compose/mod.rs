//! Units that are nests of loops, with those that read what they write as one: moves, functions of each element, reductions,
//! softmax and normalisations of rows.
//!
//! A unit goes into all units that read its result, or into one of them, which then writes that result beside its own, if
//! together they take less time by the estimate of nests: a launch and what is written and read in between are saved, and what
//! several readers compute each for itself is paid. Units along the same axes that do not read each other become one that writes
//! the results of both. No pattern is named:
//! whatever nests two units are, their composition is one, or they stay apart. Then nests beside convolutions and the like
//! read and write feature maps as those have them (`maps`).

mod convolutions;
mod maps;
mod nested;
mod own_input;
mod parts;
mod product_rows;
mod products;
mod prologues;
mod sources;
mod times;

use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::error::Result;
use crate::graph::Value;
use crate::limits::machine::Machine;
use crate::limits::{Family, Limits};
use crate::lower::network::Network;
use crate::lower::step::TOGETHER;
use crate::lower::unit::Input;
use crate::ops::loops::{Nest, OperandSet, ReadFrom, Sources};
use nested::{Nested, found, is_free};
pub(super) use parts::reduction_in_parts;
pub(crate) use product_rows::reduce_rows;
pub(crate) use prologues::precede;
use sources::SharedSources;
use std::ops::{Deref, DerefMut};
use times::Times;

/// How much more of a launch it has to save that all readers compute a value for themselves than that the first one keeps it.
const ALL_RATHER_THAN_FIRST: f64 = 0.25;

/// How many units two that become one may be apart.
const NEAR: usize = 16;

/// The part of its time that a composition has to save.
const LEAST_SAVED: f64 = 0.02;

/// The units of a network, of which some become one.
struct Composing<'a, 'n, 'g> {
    network: &'n mut Network<'g>,
    alone: &'a dyn Fn(&str) -> bool,
    precision: Precision,
    times: Times,
    /// What each unit is, as a nest.
    nested: Vec<Option<Nested>>,
    /// Whether each is a composition.
    composed: Vec<bool>,
}

/// What becomes of units on a GPU, where ops beside nests read and write at places and in slices too.
struct OnGpu<'a, 'n, 'g> {
    composing: Composing<'a, 'n, 'g>,
    limits: &'a Limits,
}

impl<'a, 'n, 'g> Deref for OnGpu<'a, 'n, 'g> {
    type Target = Composing<'a, 'n, 'g>;

    fn deref(&self) -> &Self::Target {
        &self.composing
    }
}

impl DerefMut for OnGpu<'_, '_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.composing
    }
}

/// The limits that estimates are made for: drivers that run kernels on a CPU are taken to be a GPU of no known family.
fn estimated(limits: &Limits) -> Limits {
    let family = if limits.family == Family::CpuDriver { Family::Unknown } else { limits.family };
    Limits { family, ..limits.clone() }
}

/// Puts units into their readers, for a device of these `limits`; those that `alone` names stay as they are.
pub(crate) fn compose(
    network: &mut Network<'_>,
    alone: &dyn Fn(&str) -> bool,
    precision: Precision,
    limits: &Limits,
) -> Result<()> {
    let device = estimated(limits);
    let Some(machine) = Machine::of(&device) else { return Ok(()) };
    let mut composing = Composing::of(network, alone, precision, Times::Gpu(machine));
    composing.find_nests(Some(limits))?;
    composing.give_all()?;
    let mut on_gpu = OnGpu { composing, limits };
    on_gpu.place_products()?;
    on_gpu.place_convolutions()?;
    on_gpu.give_joins()?;
    on_gpu.join_neighbours()?;
    on_gpu.take_maps()?;
    on_gpu.network.close_gaps();
    Ok(())
}

/// Puts units into their readers, for the CPU; those that `alone` names stay as they are.
pub(crate) fn compose_on_cpu(network: &mut Network<'_>, alone: &dyn Fn(&str) -> bool) -> Result<()> {
    let mut composing = Composing::of(network, alone, Precision::F32, Times::Cpu);
    composing.find_nests(None)?;
    composing.give_all()?;
    composing.join_neighbours()?;
    composing.network.close_gaps();
    Ok(())
}

/// Units that become new nests, each with its own, and the time that these save together.
struct Saving {
    units: Vec<(usize, Nested)>,
    time: f64,
}

impl Saving {
    /// What `units` save, which take so many time together today; nothing if that is too little.
    fn of(units: Vec<(usize, Nested)>, before: f64) -> Option<Self> {
        let after: f64 = units.iter().map(|(_, own)| own.time).sum();
        (after <= before * (1.0 - LEAST_SAVED)).then_some(Saving { units, time: before - after })
    }
}

impl<'a, 'n, 'g> Composing<'a, 'n, 'g> {
    fn of(
        network: &'n mut Network<'g>,
        alone: &'a dyn Fn(&str) -> bool,
        precision: Precision,
        times: Times,
    ) -> Self {
        let composed = vec![false; network.units().len()];
        Composing { network, alone, precision, times, nested: Vec::new(), composed }
    }

    /// Finds what each unit is as a nest that runs here, but for concatenations that take no step on a device of these limits.
    fn find_nests(&mut self, limits: Option<&Limits>) -> Result<()> {
        for unit in self.network.units() {
            let op = unit.op(self.network.graph, self.precision)?;
            let mut own = found(self.network, unit, &*op)?;
            own = own.filter(|own| !(self.alone)(&unit.name) && self.times.runs(&own.nest));
            if let (true, Some(limits)) = (own.is_some(), limits)
                && is_free(self.network, unit, &*op, &self.nested, limits, &|_, _| Ok(true))?
            {
                own = None;
            }
            self.nested.push(own.map(|own| own.timed(self.times, self.precision)));
        }
        Ok(())
    }

    /// Puts each unit within its readers where that takes less time.
    fn give_all(&mut self) -> Result<()> {
        for several in [false, true, false] {
            for place in 0..self.nested.len() {
                self.give_to_readers(place, several)?;
            }
        }
        Ok(())
    }

    /// Unit `place` within each of its readers, or within the first one, which then writes its results as well, if that is
    /// possible and takes less time: whichever saves more. Results that `several` read wait until what one alone reads, and
    /// moves, which nobody computes, are within their readers: several readers are often one in the end.
    fn give_to_readers(&mut self, place: usize, several: bool) -> Result<()> {
        let Some(writer) = &self.nested[place] else { return Ok(()) };
        let reads_it = |unit: usize| self.nested[unit].is_some();
        if !writer.outputs.iter().any(|&output| self.network.readers(output).any(reads_it)) {
            return Ok(());
        }
        let writer = writer.clone();
        let (all, mut kept) = (self.within_all(place, &writer)?, None);
        if several {
            kept = self.within_one(place, &writer)?;
        } else if all.as_ref().is_some_and(|all| all.units.len() > 1) && !writer.nest.is_move() {
            return Ok(());
        }
        // What several compute for themselves also binds more operands, of which there are few.
        let more = ALL_RATHER_THAN_FIRST * self.times.launch();
        match (all, kept) {
            (Some(all), kept) if kept.as_ref().is_none_or(|(_, kept)| all.time > kept.time + more) => {
                self.replace(place, all)
            }
            (_, Some((gap, kept))) => self.replace(gap, kept),
            _ => Ok(()),
        }
    }

    /// Unit `place` within each of its readers.
    fn within_all(&mut self, place: usize, writer: &Nested) -> Result<Option<Saving>> {
        let &[output] = &writer.outputs[..] else { return Ok(None) };
        let readers: Vec<usize> = self.network.readers(output).collect();
        if self.network.leaves(output) || readers.is_empty() {
            return Ok(None);
        }
        let (mut before, mut units) = (writer.time, Vec::with_capacity(readers.len()));
        for &reader in &readers {
            let Some(own) = self.free(place, reader) else { return Ok(None) };
            let Some(both) = self.both(writer, &own, false)? else { return Ok(None) };
            before += own.time;
            units.push((reader, both));
        }
        Ok(Saving::of(units, before))
    }

    /// Unit `place` and the first nest that reads its result as one, which keeps its results for others; and the unit that is no
    /// more.
    fn within_one(&mut self, place: usize, writer: &Nested) -> Result<Option<(usize, Saving)>> {
        let Some(&output) = writer.outputs.first() else { return Ok(None) };
        let Some(reader) = self.network.readers(output).find(|&reader| self.nested[reader].is_some()) else {
            return Ok(None);
        };
        let Some(own) = self.free(place, reader) else { return Ok(None) };
        // It reads one result alone, and whoever else reads results comes behind the one that writes them.
        let reads = |value: Value| own.sources.iter().any(|(input, _)| input.value() == Some(value));
        if writer.outputs.iter().skip(1).any(|&value| reads(value)) {
            return Ok(None);
        }
        let behind = |&value: &Value| self.network.readers(value).all(|other| other >= reader);
        let (gap, stays) = match writer.outputs.iter().all(behind) {
            true => (place, reader),
            false if self.is_known_before(place, writer, &own) => (reader, place),
            false => return Ok(None),
        };
        let before = writer.time + own.time;
        let Some(both) = self.both(writer, &own, true)? else { return Ok(None) };
        Ok(Saving::of(vec![(stays, both)], before).map(|saving| (gap, saving)))
    }

    /// Whether everything that `reader` reads but for the result of `writer`, which is unit `place`, is there before that unit.
    fn is_known_before(&self, place: usize, writer: &Nested, reader: &Nested) -> bool {
        reader.sources.iter().filter_map(|(input, _)| input.value()).all(|value| {
            let known = self.network.writer(value).is_none_or(|other| other < place);
            writer.outputs.first() == Some(&value) || known
        })
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
            let Ok(unit) = both.unit(names.join(TOGETHER), OperandSet::NONE, self.times) else {
                return Ok(());
            };
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
                // Those along the same axes have as many elements.
                let elements =
                    |unit: usize| self.nested[unit].as_ref().map(|own| own.nest.target().elements());
                if elements(first).is_none() || elements(first) != elements(last) {
                    continue;
                }
                let (Some(one), Some(other)) = (self.nested[first].clone(), self.free(first, last)) else {
                    continue;
                };
                let before = one.time + other.time;
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
        let both = Nested { nest, sources, outputs, halves, precision, assigned, time: 0.0 };
        both.timed(self.times, self.precision)
    }
}
