//! What units are as nests, and units of nests.

use super::Times;
use super::sources::SharedSources;
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Value;
use crate::layout::Layout;
use crate::limits::Limits;
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::unit::{Assigned, Input, Unit};
use crate::ops::loops::{Loops, Nest, OpNest, OperandSet, SourceAt};
use crate::ops::{Choice, Op};
use std::any::Any;
use std::sync::Arc;

/// A unit that is a nest.
#[derive(Debug, Clone)]
pub(super) struct Nested {
    pub(super) nest: Nest,
    /// What each source is given.
    pub(super) sources: Vec<(Input, Dims)>,
    /// What each result is: a unit writes the first as its last.
    pub(super) outputs: Vec<Value>,
    pub(super) halves: OperandSet,
    /// What it computes in: halves are stored where one of those that it is made of stores them.
    pub(super) precision: Precision,
    /// Why, if that is not what the session asks for.
    pub(super) assigned: Option<Assigned>,
    pub(super) time: f64,
}

/// What `unit`, whose op is `op`, is as a nest of the values that hold the elements which it reads.
pub(super) fn found(network: &Network<'_>, unit: &Unit, op: &dyn Op) -> Result<Option<Nested>> {
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
    let in_halves = op.precision().storage() == DType::F16;
    // Several operands may be parts of one value.
    let (mut shared, mut from) = (SharedSources::default(), Vec::with_capacity(operands.len()));
    for (order, operand) in operands.iter().enumerate() {
        let Some((_, input, dims)) = given.iter().find(|(own, ..)| own == operand) else { return Ok(None) };
        let (mut source, mut first) = ((input.clone(), *dims), 0);
        if let Some(alias) = input.value().map(|value| network.resolve(value)) {
            first = if planted("loops_offset") { 0 } else { alias.offset * nest.elements_of_word(order) };
            source = (Input::Value(alias.of), network.dims(alias.of)?);
        }
        let half = in_halves && stored.sources & (1 << order.min(31)) != 0;
        from.push(SourceAt { place: shared.place_of(source.0, source.1, half), first });
    }
    let SharedSources { sources, halves } = shared;
    let halves = OperandSet { sources: halves, results: if in_halves { stored.results & 1 } else { 0 } };
    let all: Vec<Dims> = sources.iter().map(|(_, dims)| *dims).collect();
    let Ok(nest) = nest.with_sources(&all, &from) else { return Ok(None) };
    let (assigned, outputs) = (unit.precision.clone(), vec![output]);
    Ok(Some(Nested { nest, sources, outputs, halves, precision: op.precision(), assigned, time: 0.0 }))
}

/// A unit as an operator that computes a nest.
pub(super) struct NestOf {
    pub(super) nest: Loops,
    /// What each of its sources is given.
    pub(super) sources: Vec<(Input, Dims)>,
}

/// What `unit`, whose op is `op`, is as an operator that computes a nest.
pub(super) fn nest_of(network: &Network<'_>, unit: &Unit, op: &dyn Op) -> Result<Option<NestOf>> {
    if let Some(nest) = unit.operator().and_then(|own| (own as &dyn Any).downcast_ref::<Loops>()) {
        let sources = unit.given().into_iter().map(|(_, input, dims)| (input, dims)).collect();
        return Ok(Some(NestOf { nest: nest.clone(), sources }));
    }
    let Some(nested) = found(network, unit, op)? else { return Ok(None) };
    let nest = Loops::new(nested.nest, nested.halves, OperandSet::NONE).ok();
    Ok(nest.map(|nest| NestOf { nest, sources: nested.sources }))
}

/// Has each constant that a kernel reads in the place of what it computes be a value: others may have packed it.
pub(super) fn name_reads(network: &mut Network<'_>, unit: &mut Unit) {
    let is_read = |operand: Operand| matches!(operand, Operand::Read(_));
    for (_, input) in unit.inputs.iter_mut().filter(|(operand, _)| is_read(*operand)) {
        if let Input::Constant(tensor, None) = input {
            *input = Input::Constant(tensor.clone(), Some(network.add_constant(tensor.clone())));
        }
    }
}

/// Whether `unit` is a concatenation without a step: units that are no nests write its parts where they belong, in a layout that
/// `has` says that they have.
pub(super) fn is_free(
    network: &Network<'_>,
    unit: &Unit,
    op: &dyn Op,
    nested: &[Option<Nested>],
    limits: &Limits,
    has: &dyn Fn(usize, Layout) -> Result<bool>,
) -> Result<bool> {
    let kernels = op.kernels();
    let space = kernels.space(limits);
    let joins = |layout: Layout| {
        let serving = space.iter().find(|(kernel, _)| kernel.serves(layout));
        serving.is_some_and(|(kernel, tile)| {
            kernel.joins(&Choice::new(kernel.name(), *tile, [1; 3]).with_layout(layout)).is_some()
        })
    };
    let layouts: Vec<Layout> =
        [Layout::C4, Layout::Nhwc].into_iter().filter(|&layout| joins(layout)).collect();
    if layouts.is_empty() {
        return Ok(false);
    }
    let mut writers = Vec::with_capacity(unit.inputs.len());
    let is_part =
        |value: Value| unit.reads().any(|part| network.resolve(part).of == network.resolve(value).of);
    for (_, input) in &unit.inputs {
        let Some(value) = input.value() else { return Ok(false) };
        let alias = network.resolve(value);
        let all = network.dims(alias.of)?.elements() == network.dims(value)?.elements();
        let whole = all && !network.leaves(alias.of);
        match network.writer(alias.of).filter(|&writer| whole && matches!(nested.get(writer), Some(None))) {
            // No kernel writes a piece of what it reads another piece of.
            Some(writer) if !network.units()[writer].reads().any(is_part) => writers.push(writer),
            _ => return Ok(false),
        }
    }
    for layout in layouts {
        let mut all = true;
        for &writer in &writers {
            all = all && has(writer, layout)?;
        }
        if all {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Nested {
    /// The unit's nest as it runs, and how long it takes.
    pub(super) fn timed(self, times: Times, precision: Precision) -> Self {
        let nest = times.simplified(self.nest);
        let time = times.of(&nest, precision);
        Nested { nest, time, ..self }
    }

    /// The unit of this name that computes it, with the operands of `maps` in slices of four channels.
    pub(super) fn unit(&self, name: String, maps: OperandSet, times: Times) -> Result<Unit> {
        let operator = Arc::new(match times {
            Times::Gpu(_) => Loops::new(self.nest.clone(), self.halves, maps)?,
            Times::Cpu => Loops::on_cpu(self.nest.clone()),
        });
        let given = self.sources.iter().enumerate();
        let inputs = given.map(|(place, (input, dims))| (Operand::Arg(place as u8), input.clone(), *dims));
        let outputs = self.outputs.iter().rev().copied().collect();
        let mut unit = Unit::of_node(name, operator, inputs.collect(), outputs);
        unit.precision = self.assigned.clone();
        Ok(unit)
    }
}
