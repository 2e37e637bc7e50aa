//! The layout of the units that compute in several: the one for all of them together with which the fewest
//! bytes are moved.
//!
//! A convolution reads and writes feature maps in slices of four channels, a matrix product rows, and inputs
//! and outputs of a network are rows. Elementwise ops, pooling, concatenation and their like take either. A
//! value that is wanted in another form than its writer's costs a conversion: a dispatch that reads and writes
//! it. The cheapest assignment is a minimum cut ([`cheapest`]), over estimates alone: a unit costs the bytes
//! that it reads and writes (maps of few channels have unused lanes), a dispatch [`DISPATCH`] more.

use super::choose::Choosing;
use super::unit::Network;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Value;
use crate::layout::{Form, Layout};
use crate::ops::{Choice, Op, OperandInfo};
use crate::pick::network::{Edge, cheapest};
use crate::tune::work_group::untuned_in;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The layouts, in the order of [`cheapest`].
const LAYOUTS: [Layout; 2] = [Layout::C4, Layout::Nhwc];

/// What a dispatch costs beside what it moves, in bytes that could be moved meanwhile: a launch of 2 to 50 us
/// at 1000 to 10 GB/s.
const DISPATCH: u64 = 1 << 19;

/// The layout of each unit of `network`; C4 for those whose operands have one form each.
pub(super) fn layouts(network: &Network<'_>, choosing: &Choosing<'_>) -> Result<Vec<Layout>> {
    let mut sides = Sides::default();
    let mut ops: Vec<Arc<dyn Op>> = Vec::with_capacity(network.units().len());
    for unit in network.units() {
        let op = unit.op(network.graph, choosing.options.precision)?;
        match unit.host {
            Some(_) => sides.add_rows(),
            None => sides.add(&*op, choosing),
        }
        ops.push(op);
    }
    if !sides.times.iter().any(|times| times.iter().all(Option::is_some)) {
        return Ok(sides.given);
    }
    // Two more nodes stand for what reads or writes maps and rows and has no other layout.
    let fixed = [sides.times.len(), sides.times.len() + 1];
    let mut times = sides.times.clone();
    times.extend([[Some(Duration::ZERO), None], [None, Some(Duration::ZERO)]]);
    let mut values: HashMap<Value, Readers> = HashMap::new();
    let states = network.graph.states();
    for input in network.graph.inputs().iter().copied().chain(states.iter().map(|state| state.value)) {
        values.entry(input).or_default().producer = Some(fixed[1]);
    }
    for (index, (unit, op)) in network.units().iter().zip(&ops).enumerate() {
        let node = |operand| sides.node(index, &**op, operand, fixed);
        for (operand, input) in &unit.inputs {
            let Some(value) = input.value() else { continue };
            let base = network.resolve(value);
            // What shows elements of a value in other extents reads rows.
            let same = base.offset == 0 && network.dims(value)?.shape() == network.dims(base.of)?.shape();
            let reader = if same { node(*operand) } else { fixed[1] };
            values.entry(base.of).or_default().consumers.push(reader);
        }
        for (info, &value) in crate::ops::outputs(&**op).zip(&unit.outputs) {
            let writer = if unit.parts().is_empty() { node(info.operand) } else { fixed[1] };
            values.entry(value).or_default().producer = Some(writer);
        }
    }
    let next = states.iter().filter_map(|state| state.next);
    for output in network.graph.outputs().iter().copied().chain(next) {
        values.entry(network.resolve(output).of).or_default().consumers.push(fixed[1]);
    }
    let mut edges = Vec::with_capacity(values.len());
    for (value, Readers { producer, consumers }) in values {
        let Some(producer) = producer else { continue };
        let shape = network.dims(value)?.shape();
        let storage = choosing.options.precision.storage().bytes();
        let both = 4 * shape.elements() + Layout::C4.elements(&shape) * storage;
        let change = cost(both as u64 + DISPATCH);
        edges.push(Edge { producer, consumers, change: [change; 2] });
    }
    let chosen = cheapest(&times, &edges);
    let layout = |(given, (times, &side)): (&Layout, (&Times, &usize))| {
        if times.iter().all(Option::is_some) { LAYOUTS[side] } else { *given }
    };
    Ok(sides.given.iter().zip(sides.times.iter().zip(&chosen)).map(layout).collect())
}

/// Bytes as a time: a nanosecond for each.
const fn cost(bytes: u64) -> Duration {
    Duration::from_nanos(bytes)
}

/// What a unit costs in each of [`LAYOUTS`], where it can run.
type Times = [Option<Duration>; 2];

/// Who writes a value and who reads it.
#[derive(Debug, Default)]
struct Readers {
    producer: Option<usize>,
    consumers: Vec<usize>,
}

/// The layouts that units can have.
#[derive(Debug, Default)]
struct Sides {
    times: Vec<Times>,
    choices: Vec<[Option<Choice>; 2]>,
    /// The layout of a unit that has one.
    given: Vec<Layout>,
    /// Units whose values are rows, in ascending order.
    hosts: Vec<usize>,
}

impl Sides {
    fn add(&mut self, op: &dyn Op, choosing: &Choosing<'_>) {
        let kernels = op.kernels();
        let offers = |layout| kernels.serve(layout, choosing.limits);
        let mut choices = [None; 2];
        if offers(Layout::Nhwc) {
            choices = LAYOUTS.map(|layout| {
                let work_group = choosing.options.work_group;
                offers(layout).then(|| untuned_in(op, work_group, layout, choosing.limits).ok()).flatten()
            });
        } else if let Some(&(kernel, tile)) = kernels.space(choosing.limits).first() {
            // Its forms are the same in any choice.
            choices[0] = Some(Choice::new(kernel.name(), tile, [1; 3]));
        }
        self.times.push(choices.map(|choice| choice.map(|choice| cost(moved(op, &choice)))));
        let rows = choices[0].is_none() && choices[1].is_some();
        self.given.push(if rows { Layout::Nhwc } else { Layout::C4 });
        self.choices.push(choices);
    }

    /// A unit that reads and writes rows.
    fn add_rows(&mut self) {
        self.times.push([None, Some(Duration::ZERO)]);
        self.given.push(Layout::Nhwc);
        self.choices.push([None; 2]);
        self.hosts.push(self.times.len() - 1);
    }

    /// The node that stands for an operand of unit `index`: itself, or the fixed one of the operand's form
    /// where that does not follow the unit's layout.
    fn node(&self, index: usize, op: &dyn Op, operand: Operand, fixed: [usize; 2]) -> usize {
        if self.hosts.binary_search(&index).is_ok() {
            return fixed[1];
        }
        let form = |choice: Choice| op.kernel(choice.variant).ok()?.form(operand, &choice);
        let forms = self.choices[index].map(|choice| choice.and_then(form));
        match forms {
            [Some(Form::C4), Some(Form::Rows)] => index,
            [Some(Form::Rows), _] | [None, Some(Form::Rows)] => fixed[1],
            _ => fixed[0],
        }
    }
}

/// Bytes that `choice` reads and writes, if each operand is read once: by an op that moves elements and computes
/// nothing no more of them than it writes.
fn moved(op: &dyn Op, choice: &Choice) -> u64 {
    let kernel = op.kernel(choice.variant).ok();
    let bytes = |info: &OperandInfo| match kernel.as_ref().and_then(|own| own.form(info.operand, choice)) {
        None => 0,
        Some(Form::Rows) => 4 * info.elements(),
        Some(form) => info.stored_elements(form) * op.precision().storage().bytes(),
    };
    let written: usize = crate::ops::outputs(op).map(|info| bytes(&info)).sum();
    let most = if op.flops() == 0 { written } else { usize::MAX };
    op.operands().iter().map(|info| bytes(info).min(most)).sum::<usize>() as u64
}
