//! A map weighted by what two 1x1 convolutions make of a pixel, as one unit.
//!
//! `x * f(w g(v p + d) + b)`, and `+ z`. Four dispatches of which three compute next to nothing become two; but
//! each work-group computes what lies between the convolutions again, so that their weights must be few.

use super::{Finder, Found};
use crate::dims::Dims;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Value;
use crate::lower::unit::{Input, Network, Unit};
use crate::ops::elementwise::{Function, Program, Source};
use crate::ops::gate::Gate;
use crate::ops::pointwise::Pointwise;
use std::any::Any;
use std::sync::Arc;

/// The most bytes of weights that all work-groups together may read: what a second-level cache gives while two
/// dispatches are started.
const MOST_READ: usize = 8 << 20;

/// Pixels of a work-group, at least.
const PIXELS: usize = 256;

/// Joins what can be; units that `alone` names stay as they are.
pub(in crate::lower) fn gates(network: &mut Network<'_>, alone: &dyn Fn(&str) -> bool) -> Result<()> {
    let mut index = 0;
    while index < network.units().len() {
        let finder = Finder { network, alone };
        match finder.gate(index) {
            Some(found) => index = found.replace(network),
            None => index += 1,
        }
    }
    Ok(())
}

/// A 1x1 convolution, and what it is given.
struct Sum {
    index: usize,
    options: Pointwise,
    src: (Value, Dims),
    weights: (Input, Dims),
    bias: Option<(Input, Dims)>,
}

/// The two factors of a product, and what is added to it: inputs of `program`, which is nothing else.
fn product(program: &Program) -> Option<([u8; 2], Option<u8>)> {
    let (first, rest) = program.steps().split_first()?;
    let &[Source::Input(a), Source::Input(b)] = &first.arguments[..] else { return None };
    if first.function != Function::Mul {
        return None;
    }
    match rest {
        [] => Some(([a, b], None)),
        [sum] if sum.function == Function::Add => match sum.arguments[..] {
            [Source::Step(0), Source::Input(z)] | [Source::Input(z), Source::Step(0)] => {
                Some(([a, b], Some(z)))
            }
            _ => None,
        },
        _ => None,
    }
}

impl Finder<'_, '_> {
    /// What ends as a weighted map in unit `index`.
    fn gate(&self, index: usize) -> Option<Found> {
        let unit = self.network.units().get(index)?;
        let &[output] = &unit.outputs[..] else { return None };
        let ([a, b], added) = product(unit.operator()?.program()?)?;
        let given = unit.given();
        let input = |place: u8| {
            let found = given.iter().find(|(operand, ..)| *operand == Operand::Arg(place));
            found.map(|(_, input, dims)| (input.clone(), *dims))
        };
        let dims = self.network.dims(output).ok()?;
        let added = added.map(input);
        let whole = |dims_of: &Dims| dims_of.rank() == 4 && dims_of.extents() == dims.extents();
        let added = match added {
            Some(found) => Some(found.filter(|(_, dims)| whole(dims))?),
            None => None,
        };
        for (map, factor) in [(a, b), (b, a)] {
            let (Some(map), Some((factor, _))) = (input(map).filter(|(_, dims)| whole(dims)), input(factor))
            else {
                continue;
            };
            let Some(second) = factor.value().and_then(|factor| self.sum(factor)) else { continue };
            let Some(first) = self.sum(second.src.0) else { continue };
            let (pixel, shape) = (first.src.1.shape(), dims.shape());
            let one = pixel.n == shape.n && pixel.h * pixel.w == 1 && shape.h * shape.w > 1;
            let old = vec![first.index, second.index, index];
            let groups = shape.n * shape.slices() * (shape.h * shape.w).div_ceil(PIXELS);
            let weights = first.weights.1.elements() + 4 * second.src.1.shape().c;
            let read = groups.saturating_mul(4 * weights);
            if !one || read > MOST_READ || !self.closed(&old, output) {
                continue;
            }
            let names = [first.index, second.index, index].map(|at| self.network.units()[at].name.as_str());
            let operator = Gate { first: first.options, second: second.options };
            let mut inputs = vec![
                (Operand::Src, Input::Value(first.src.0), first.src.1),
                (Operand::Window, first.weights.0, first.weights.1),
                (Operand::Weights, second.weights.0, second.weights.1),
                (Operand::Arg(0), map.0, map.1),
            ];
            let more = [
                (Operand::WindowBias, first.bias),
                (Operand::Bias, second.bias),
                (Operand::Residual, added.clone()),
            ];
            inputs.extend(
                more.into_iter()
                    .filter_map(|(operand, given)| given.map(|(input, dims)| (operand, input, dims))),
            );
            let new = Unit::of_node(names.join(" + "), Arc::new(operator), inputs, vec![output]);
            return Some(Found { old, new: vec![new] });
        }
        None
    }

    /// The 1x1 convolution that writes `value`, if it has constant weights and is no more than that.
    fn sum(&self, value: Value) -> Option<Sum> {
        let index = self.network.writer(value)?;
        let unit = &self.network.units()[index];
        let options = *(unit.operator()? as &dyn Any).downcast_ref::<Pointwise>()?;
        let given = unit.given();
        let all = [Operand::Src, Operand::Weights, Operand::Bias];
        if given.iter().any(|(operand, ..)| !all.contains(operand)) {
            return None;
        }
        let find = |wanted: Operand| {
            let found = given.iter().find(|(operand, ..)| *operand == wanted);
            found.map(|(_, input, dims)| (input.clone(), *dims))
        };
        let constant = |(input, _): &(Input, Dims)| input.value().is_none();
        let (src, dims) = find(Operand::Src)?;
        let weights = find(Operand::Weights).filter(constant)?;
        let bias = find(Operand::Bias);
        if bias.as_ref().is_some_and(|bias| !constant(bias)) {
            return None;
        }
        Some(Sum { index, options, src: (src.value()?, dims), weights, bias })
    }
}
