//! Has kernels compute what they read: a nest that gives each element by itself, and that one product of few rows or one update of
//! a state alone reads, becomes a part of the reader's kernel, which calls it where it would load four elements.
//!
//! Such kernels load each element once, or wait for other operands meanwhile, so that a launch is saved, and what is written and
//! read in between. Products of many rows take as long or longer: each work-group computes all that it loads, and loads nothing ahead. On an H200 the 3 to 13 steps that six networks had less there changed their time by .96 to 1.02. This runs
//! behind all passes that recognise products by their options.

use super::nested::{NestOf, name_reads, nest_of};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Value;
use crate::layout::Layout;
use crate::limits::Limits;
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::step::TOGETHER;
use crate::lower::unit::{Input, Unit};
use crate::ops::loops::Loops;
use crate::ops::prologue::Prologue;
use crate::ops::{BoundKernel, Choice, Op};
use crate::tune::work_group::{WorkGroup, untuned_in};
use std::sync::Arc;

/// Puts nests into the kernels of what reads them, for a device of these `limits`; units that `alone` names stay as they are.
pub(crate) fn precede(
    network: &mut Network<'_>,
    alone: &dyn Fn(&str) -> bool,
    precision: Precision,
    limits: &Limits,
) -> Result<()> {
    let preceding = Preceding { alone, precision, limits };
    for place in 0..network.units().len() {
        if let Some((reader, mut unit)) = preceding.preceded(network, place)? {
            name_reads(network, &mut unit);
            network.merge(place, reader, unit);
        }
    }
    network.close_gaps();
    Ok(())
}

struct Preceding<'a> {
    alone: &'a dyn Fn(&str) -> bool,
    precision: Precision,
    limits: &'a Limits,
}

/// A nest, and what each of its sources is given.
struct Given {
    nest: Loops,
    inputs: Vec<(Operand, Input, Dims)>,
}

/// What `unit` is as a nest.
fn given(network: &Network<'_>, unit: &Unit, op: &dyn Op) -> Result<Option<Given>> {
    let Some(NestOf { nest, sources }) = nest_of(network, unit, op)? else { return Ok(None) };
    let read = |place: usize| Operand::Read((place ^ usize::from(planted("prologues_order"))) as u8);
    let inputs = sources.into_iter().enumerate().map(|(place, (input, dims))| (read(place), input, dims));
    Ok(Some(Given { nest, inputs: inputs.collect() }))
}

/// The only unit that reads the result of unit `place`, all of it as one operand of these dimensions.
fn reader(network: &Network<'_>, place: usize) -> Result<Option<(usize, Operand, Dims)>> {
    let &[between] = &network.units()[place].outputs[..] else { return Ok(None) };
    let mut readers = network.readers(between);
    let (Some(reader), None) = (readers.next(), readers.next()) else { return Ok(None) };
    let shows = |value: Value| network.resolve(value).of == between;
    let own = network.units()[reader].given().into_iter();
    let mut reads = own.filter(|(_, input, _)| input.value().is_some_and(shows));
    let (Some((operand, input, dims)), None) = (reads.next(), reads.next()) else { return Ok(None) };
    let whole = input.value().is_some_and(|value| network.resolve(value).offset == 0)
        && dims.elements() == network.dims(between)?.elements();
    Ok(whole.then_some((reader, operand, dims)))
}

impl Preceding<'_> {
    /// Unit `place` and its only reader as one, with the place of the reader, if the reader's kernel can compute it.
    fn preceded(&self, network: &Network<'_>, place: usize) -> Result<Option<(usize, Unit)>> {
        let first = &network.units()[place];
        let Some((reader, operand, dims)) = reader(network, place)? else { return Ok(None) };
        let second = &network.units()[reader];
        let Some(operator) = second.shared_operator() else { return Ok(None) };
        let assigned = |unit: &Unit| unit.precision.as_ref().map(|own| own.precision);
        if (self.alone)(&first.name)
            || (self.alone)(&second.name)
            || first.host.is_some()
            || second.host.is_some()
            || network.leaves(first.outputs[0])
            || assigned(first) != assigned(second)
        {
            return Ok(None);
        }
        let own = second.op(network.graph, self.precision)?;
        // Most units are none whose kernels can: a choice takes longer to find.
        let can = |kernel: &dyn BoundKernel| kernel.takes_prologue(operand, &kernel.choice([1; 3], [1; 3]));
        if !own.kernels().iter().any(can) {
            return Ok(None);
        }
        let op = first.op(network.graph, self.precision)?;
        let Some(Given { nest, inputs }) = given(network, first, &*op)? else { return Ok(None) };
        let others = second.given().into_iter().filter(|(own, ..)| *own != operand);
        let all: Vec<(Operand, Input, Dims)> = inputs.into_iter().chain(others).collect();
        let name = format!("{}{TOGETHER}{}", first.name, second.name);
        let operator = Arc::new(Prologue::new(operator, operand, dims, nest));
        let mut unit = Unit::of_node(name, operator, all, second.outputs.clone());
        unit.precision = second.precision.clone();
        let Ok(both) = unit.op(network.graph, self.precision) else { return Ok(None) };
        let Some(choice) = self.choice(&*own) else { return Ok(None) };
        let takes = own.kernel(choice.variant)?.takes_prologue(operand, &choice);
        Ok((takes && self.choice(&*both) == Some(choice)).then_some((reader, unit)))
    }

    /// What a session that measured nothing runs.
    fn choice(&self, op: &dyn Op) -> Option<Choice> {
        untuned_in(op, WorkGroup::Table, Layout::Nhwc, self.limits)
            .or_else(|_| untuned_in(op, WorkGroup::Table, Layout::C4, self.limits))
            .ok()
    }
}
