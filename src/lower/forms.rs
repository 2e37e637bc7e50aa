//! The layout of the units that compute in several: the one for all of them together with which the fewest
//! bytes are moved.
//!
//! A convolution reads and writes feature maps in slices of four channels, a matrix product rows, and inputs
//! and outputs of a network are rows. Elementwise ops, pooling, concatenation and their like take either. A
//! value that is wanted in another form than its writer's costs a conversion: a dispatch that reads and writes
//! it. Between rows, what halves do not hold is computed in rows of f32 and not in maps of halves. The cheapest
//! assignment is a minimum cut ([`cheapest`]), over estimates alone: a unit costs the bytes that it reads and
//! writes (maps of few channels have unused lanes), a dispatch [`DISPATCH`] more.

use super::choosing::Choosing;
use super::network::Network;
use super::stored_as::{of_rows, same_bytes};
use super::unit::Input;
use crate::dtype::DType;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Value;
use crate::layout::{Form, Layout};
use crate::ops::{Choice, Op, OperandInfo};
use crate::pick::network::{Edge, cheapest};
use crate::shape::Shape;
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
    let mut ops: Vec<[Arc<dyn Op>; 2]> = Vec::with_capacity(network.units().len());
    for unit in network.units() {
        let maps = choosing.op_in(network.graph, unit, Layout::C4)?;
        let rows = match maps.precision().storage() {
            DType::F16 => choosing.op_in(network.graph, unit, Layout::Nhwc)?,
            _ => Arc::clone(&maps),
        };
        let own = [maps, rows];
        match unit.host {
            Some(_) => sides.add_rows(),
            None => sides.add(&own, choosing),
        }
        ops.push(own);
    }
    if !sides.times.iter().any(|times| times.iter().all(Option::is_some)) {
        return Ok(sides.given);
    }
    // Two more nodes stand for what reads or writes maps and rows and has no other layout.
    let fixed = [sides.times.len(), sides.times.len() + 1];
    let rows = LayoutNode { node: fixed[1], rows: Form::Rows };
    let storage = choosing.options.precision.storage();
    let mut values: HashMap<Value, Readers> = HashMap::new();
    // What it costs a unit to read in slices what it sees in other extents than those that were written.
    let mut views = Vec::new();
    let states = network.graph.states();
    for input in network.graph.inputs().iter().copied().chain(states.iter().map(|state| state.value)) {
        let form = if network.is_half_state(input) { Form::HalfRows } else { Form::Rows };
        values.entry(input).or_default().producer = Some(LayoutNode { rows: form, ..rows });
    }
    for (index, (unit, own)) in network.units().iter().zip(&ops).enumerate() {
        let from_rows = |(_, input): &(Operand, Input)| match input.value() {
            None => true,
            Some(value) => {
                let writer = values.get(&network.resolve(value).of).and_then(|readers| readers.producer);
                writer.is_some_and(|writer| sides.is_of_rows(writer.node, fixed))
            }
        };
        if sides.has_wide_rows(index, own) && unit.inputs.iter().all(from_rows) {
            sides.keep_in_rows(index);
        }
        let end = |operand| sides.end(index, own, operand, fixed);
        for (operand, input) in &unit.inputs {
            let Some(value) = input.value() else { continue };
            let base = network.resolve(value);
            // What shows elements of a value in other extents reads rows.
            let same = base.offset == 0 && network.dims(value)?.shape() == network.dims(base.of)?.shape();
            let own = end(*operand);
            let reader = if same { own } else { LayoutNode { node: fixed[1], ..own } };
            if !same {
                views.push((own.node, changes(network.dims(value)?.shape(), own.rows, storage)[1]));
            }
            values.entry(base.of).or_default().consumers.push(reader);
        }
        for (info, &value) in crate::ops::outputs(&*own[0]).zip(&unit.outputs) {
            let writer = if unit.parts().is_empty() { end(info.operand) } else { rows };
            values.entry(value).or_default().producer = Some(writer);
        }
    }
    let next = states.iter().filter_map(|state| state.next);
    for output in network.graph.outputs().iter().copied().chain(next) {
        let form = if network.is_half_state(output) { Form::HalfRows } else { Form::Rows };
        let consumers = &mut values.entry(network.resolve(output).of).or_default().consumers;
        consumers.push(LayoutNode { rows: form, ..rows });
    }
    let mut edges = Vec::with_capacity(values.len());
    for (value, Readers { producer, consumers }) in values {
        let Some(producer) = producer else { continue };
        // What has other rows than the writer and no other form has them made in any case.
        let (open, maps) = (|end: &LayoutNode| end.node < fixed[0], |end: &LayoutNode| end.node == fixed[0]);
        let same = |end: &&LayoutNode| {
            let either = maps(end) || maps(&producer) || (open(end) && open(&producer));
            either || end.rows == producer.rows
        };
        let consumers = consumers.iter().filter(same).map(|end| end.node).collect();
        let shape = network.dims(value)?.shape();
        // What leaves the network is written in a form of its own.
        let change = match network.leaves(value) {
            true => [conversion(shape, producer.rows, storage); 2],
            false => changes(shape, producer.rows, storage),
        };
        edges.push(Edge { producer: producer.node, consumers, change });
    }
    let mut times = sides.times.clone();
    for (node, change) in views {
        if let Some([Some(maps), _]) = times.get_mut(node) {
            *maps += change;
        }
    }
    times.extend([[Some(Duration::ZERO), None], [None, Some(Duration::ZERO)]]);
    let chosen = cheapest(&times, &edges);
    let layout = |(given, (times, &side)): (&Layout, (&Times, &usize))| {
        if times.iter().all(Option::is_some) { LAYOUTS[side] } else { *given }
    };
    Ok(sides.given.iter().zip(sides.times.iter().zip(&chosen)).map(layout).collect())
}

/// What it costs to change a value of `shape` from slices to rows, and back: nothing where its bytes stay.
fn changes(shape: Shape, rows: Form, storage: DType) -> [Duration; 2] {
    let kinds = [(Form::C4, shape, storage), (rows, shape, of_rows(rows))];
    [[0, 1], [1, 0]].map(|[from, to]| match same_bytes(&kinds[from], &kinds[to]) {
        true => Duration::ZERO,
        false => conversion(shape, rows, storage),
    })
}

/// What a step costs that changes a value of `shape` from slices to rows, or back.
fn conversion(shape: Shape, rows: Form, storage: DType) -> Duration {
    let both = shape.elements() * of_rows(rows).bytes() + Layout::C4.elements(&shape) * storage.bytes();
    cost(both as u64 + DISPATCH)
}

/// Bytes as a time: a nanosecond for each.
const fn cost(bytes: u64) -> Duration {
    Duration::from_nanos(bytes)
}

/// What a unit costs in each of [`LAYOUTS`], where it can run.
type Times = [Option<Duration>; 2];

/// Who reads or writes a value: the node that stands for it, and of which rows it is where it is of rows.
#[derive(Debug, Clone, Copy)]
struct LayoutNode {
    node: usize,
    rows: Form,
}

/// Who writes a value and who reads it.
#[derive(Debug, Default)]
struct Readers {
    producer: Option<LayoutNode>,
    consumers: Vec<LayoutNode>,
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
    /// A unit with its op in each of [`LAYOUTS`].
    fn add(&mut self, ops: &[Arc<dyn Op>; 2], choosing: &Choosing<'_>) {
        let [maps, rows] = ops;
        let offers = |op: &dyn Op, layout| op.kernels().serve(layout, choosing.limits);
        let mut choices = [None; 2];
        if offers(&**rows, Layout::Nhwc) {
            let work_group = choosing.options.work_group;
            let of = |op: &dyn Op, layout| {
                let choice = || untuned_in(op, work_group, layout, choosing.limits).ok();
                offers(op, layout).then(choice).flatten()
            };
            choices = [of(&**maps, LAYOUTS[0]), of(&**rows, LAYOUTS[1])];
        } else if let Some(&(kernel, tile)) = maps.kernels().space(choosing.limits).first() {
            // Its forms are the same in any choice.
            choices[0] = Some(Choice::new(kernel.name(), tile, [1; 3]));
        }
        let cost = |(choice, op): (&Option<Choice>, &Arc<dyn Op>)| {
            choice.as_ref().map(|choice| cost(moved(&**op, choice)))
        };
        self.times.push([cost((&choices[0], maps)), cost((&choices[1], rows))]);
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

    /// Whether a unit may have maps of halves, and rows of f32 because halves do not hold what it reads or writes.
    fn has_wide_rows(&self, index: usize, [maps, rows]: &[Arc<dyn Op>; 2]) -> bool {
        let [Some(_), Some(choice)] = self.choices[index] else { return false };
        let Ok(kernel) = rows.kernel(choice.variant) else { return false };
        let wide = |info: &OperandInfo| kernel.form(info.operand, &choice) == Some(Form::Rows);
        maps.precision().storage() == DType::F16 && rows.operands().iter().any(wide)
    }

    /// Whether a node has no other form than rows.
    fn is_of_rows(&self, node: usize, fixed: [usize; 2]) -> bool {
        node == fixed[1] || self.choices.get(node).is_some_and(|choices| choices[0].is_none())
    }

    /// Leaves a unit its rows alone.
    fn keep_in_rows(&mut self, index: usize) {
        (self.times[index][0], self.choices[index][0]) = (None, None);
        self.given[index] = Layout::Nhwc;
    }

    /// Who reads or writes an operand of unit `index`: itself, or the fixed node of the operand's form where that
    /// does not follow the unit's layout.
    fn end(&self, index: usize, ops: &[Arc<dyn Op>; 2], operand: Operand, fixed: [usize; 2]) -> LayoutNode {
        let rows = LayoutNode { node: fixed[1], rows: Form::Rows };
        if self.hosts.binary_search(&index).is_ok() {
            return rows;
        }
        let form = |op: &dyn Op, choice: Option<Choice>| {
            let choice = choice?;
            op.kernel(choice.variant).ok()?.form(operand, &choice)
        };
        let [maps, lines] = &self.choices[index];
        match [form(&*ops[0], *maps), form(&*ops[1], *lines)] {
            [Some(Form::C4), Some(rows)] if rows.is_rows() => LayoutNode { node: index, rows },
            [Some(form), _] | [None, Some(form)] if form.is_rows() => LayoutNode { rows: form, ..rows },
            _ => LayoutNode { node: fixed[0], ..rows },
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
        Some(Form::HalfRows) => 2 * info.elements(),
        Some(form) => info.stored_elements(form) * op.precision().storage().bytes(),
    };
    let written: usize = crate::ops::outputs(op).map(|info| bytes(&info)).sum();
    let most = if op.flops() == 0 { written } else { usize::MAX };
    op.operands().iter().map(|info| bytes(info).min(most)).sum::<usize>() as u64
}
