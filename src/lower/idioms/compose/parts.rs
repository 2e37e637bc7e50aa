//! Reductions of few long rows as two units: of parts of the rows, and of what these give ([`Nest::in_parts`]).

use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::graph::Value;
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::unit::{Input, Unit};
use crate::ops::Op;
use crate::ops::loops::{InParts, Loops, Nest, OpNest, OperandSet};
use crate::ops::normalize::{Finished, Normalize, NormalizeOp};
use crate::ops::reduce::{Reduce, ReduceOp};
use std::any::Any;
use std::sync::Arc;

/// A nest, and how each of its operands is stored.
struct Stored {
    nest: Nest,
    sources: Vec<(Input, Dims)>,
    halves: OperandSet,
    maps: OperandSet,
}

/// `unit` as two, if it reduces few long rows.
pub(in crate::lower) fn reduction_in_parts(
    network: &mut Network<'_>,
    unit: &Unit,
    precision: Precision,
) -> Option<[Unit; 2]> {
    let mut stored = stored(network, unit, precision)?;
    let InParts { parts, whole } = stored.nest.in_parts()?;
    for (input, _) in &mut stored.sources {
        if let Input::Constant(tensor, None) = input {
            *input = Input::Constant(tensor.clone(), Some(network.add_constant(tensor.clone())));
        }
    }
    let mut between: Vec<(Value, Dims)> =
        parts.targets().map(|dims| (network.add_value(dims), dims)).collect();
    let outputs = between.iter().rev().map(|&(value, _)| value).collect();
    let name = format!("{} (parts)", unit.name);
    let first = stored.unit(name, parts, (&[], 0), outputs)?;
    if planted("parts_order") {
        between.reverse();
    }
    let results = OperandSet::ALL.results;
    let second = stored.unit(unit.name.clone(), whole, (&between, results), unit.outputs.clone())?;
    let mut two = [first, second];
    two.iter_mut().for_each(|part| part.precision.clone_from(&unit.precision));
    two.iter().all(|part| part.op(network.graph, Precision::F32).is_ok()).then_some(two)
}

/// What `unit` is as a nest with its operands as they are stored.
fn stored(network: &Network<'_>, unit: &Unit, precision: Precision) -> Option<Stored> {
    let given = unit.given();
    let source = |operand: &Operand| {
        let (_, input, dims) = given.iter().find(|(own, ..)| own == operand)?;
        Some((input.clone(), *dims))
    };
    if let Some(loops) = unit.operator().and_then(|own| (own as &dyn Any).downcast_ref::<Loops>()) {
        let (nest, [halves, maps]) = (loops.nest().clone(), loops.stored());
        let operands = (0..nest.sources().len()).map(|place| Operand::Arg(place as u8));
        let sources = operands.map(|own| source(&own)).collect::<Option<_>>()?;
        return Some(Stored { nest, sources, halves, maps });
    }
    let operator = unit.operator()? as &dyn Any;
    if !operator.is::<Normalize>() && !operator.is::<Finished>() && !operator.is::<Reduce>() {
        return None;
    }
    let op = unit.op(network.graph, precision).ok()?;
    let (OpNest { nest, operands, mut halves }, in_maps) = of_op(&*op)?;
    let mut maps = OperandSet::NONE;
    if in_maps {
        let input = |own: &Operand| !matches!(own, Operand::Weights | Operand::Bias);
        let inputs = operands.iter().enumerate().filter(|(_, own)| input(own));
        maps = OperandSet { sources: inputs.fold(0, |set, (place, _)| set | 1 << place), results: 1 };
        halves = maps;
    }
    if op.precision().storage() != DType::F16 {
        halves = OperandSet::NONE;
    }
    let sources = operands.iter().map(source).collect::<Option<_>>()?;
    Some(Stored { nest, sources, halves, maps })
}

/// A normalisation or a reduction that no composition has taken, as a nest, and whether of feature maps in slices.
fn of_op(op: &dyn Op) -> Option<(OpNest, bool)> {
    if let Some(op) = op.as_any().downcast_ref::<NormalizeOp>() {
        return Some((op.as_nest()?, op.is_over_pixels()));
    }
    // Of pixels there is a kernel whose last work-group puts parts together.
    op.as_any().downcast_ref::<ReduceOp>().filter(|op| !op.is_over_pixels())?;
    Some((op.nest()?, false))
}

impl Stored {
    /// The unit of this name that computes `nest` of its sources and `more` of them, whose `results` are stored as its own.
    fn unit(
        &self,
        name: String,
        nest: Nest,
        (more, results): (&[(Value, Dims)], u32),
        outputs: Vec<Value>,
    ) -> Option<Unit> {
        let (nest, kept) = nest.without_unread();
        let own = self.sources.len();
        let of = |set: OperandSet| {
            let has = |place: usize| place < own && set.sources & (1 << place) != 0;
            let sources = kept.iter().enumerate().filter(|(_, place)| has(**place));
            OperandSet {
                sources: sources.fold(0, |set, (place, _)| set | 1 << place),
                results: set.results & results,
            }
        };
        let operator = Loops::new(nest, of(self.halves), of(self.maps)).ok()?;
        let source = |(place, &from): (usize, &usize)| {
            let (input, dims) = match self.sources.get(from) {
                Some((input, dims)) => (input.clone(), *dims),
                None => more.get(from - own).map(|&(value, dims)| (Input::Value(value), dims))?,
            };
            Some((Operand::Arg(place as u8), input, dims))
        };
        let inputs = kept.iter().enumerate().map(source).collect::<Option<Vec<_>>>()?;
        Some(Unit::of_node(name, Arc::new(operator), inputs, outputs))
    }
}
