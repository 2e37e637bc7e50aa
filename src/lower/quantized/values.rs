//! Which values are quantized, and what is around them.

use super::{Grid, Linear, Pass, Quantized, linear};
use crate::emit::{Activation, Operand};
use crate::graph::Value;
use crate::lower::network::Network;
use crate::lower::unit::{Input, Unit};
use crate::ops::concat::Concat;
use crate::ops::elementwise::{Elementwise, Function, Source};
use crate::ops::pool::{Pool, Pooling};
use crate::ops::remap::{Pad, PadMode};
use std::any::Any;
use std::collections::HashMap;

/// The most units that only move elements, one behind the other: what looks for bytes goes back through them.
const DEEPEST: usize = 16;

/// Operators whose results are elements of their first input.
const MOVES: [&str; 11] = [
    "batch_to_space",
    "broadcast_to",
    "depth_to_space",
    "gather",
    "remap",
    "reverse",
    "space_to_batch",
    "space_to_depth",
    "strided_slice",
    "tile",
    "transpose",
];

/// The operator of a unit, if it is one of this type.
pub(super) fn operator<T: Any>(unit: &Unit) -> Option<&T> {
    let operator: &dyn Any = unit.operator()?;
    operator.downcast_ref()
}

/// The numbers that a value's elements are, and how many units only moved them since they were computed from integers.
pub(super) type Depth = (Grid, usize);

/// The quantized values that the units of a network write.
pub(super) fn grids(network: &Network<'_>) -> HashMap<Value, Depth> {
    let mut grids: HashMap<Value, Depth> = HashMap::new();
    for unit in network.units() {
        let &[output] = &unit.outputs[..] else { continue };
        let own = match linear(unit) {
            Some((Linear::Dequantize(own), _)) => Grid::of(own).map(|grid| (grid, 0)),
            _ => {
                let of = |value: Value| grids.get(&network.resolve(value).of).copied();
                moved(unit, &of).filter(|(_, depth)| *depth < DEEPEST)
            }
        };
        grids.extend(own.map(|own| (output, own)));
    }
    grids
}

/// What a unit writes that moves elements of quantized values, or chooses among them; `of` says which values are quantized.
fn moved(unit: &Unit, of: &dyn Fn(Value) -> Option<Depth>) -> Option<Depth> {
    let reads: Option<Vec<Depth>> = match operator::<Concat>(unit) {
        Some(_) => unit.inputs.iter().map(|(_, input)| of(input.value()?)).collect(),
        None => unit.inputs.first().and_then(|(_, input)| of(input.value()?)).map(|first| vec![first]),
    };
    let reads = reads?;
    let (grid, _) = *reads.first()?;
    let is_move = if let Some(Pool { pooling, activation, .. }) = operator(unit) {
        (pooling, activation) == (&Pooling::Max, &Activation::None)
    } else if let Some(Pad { mode, .. }) = operator(unit) {
        // The number 0 is one of the grid.
        !matches!(mode, PadMode::Constant(number) if number.0 != 0.0)
    } else {
        operator::<Concat>(unit).is_some() || MOVES.contains(&unit.operator()?.name())
    };
    let deepest = reads.iter().map(|(_, depth)| *depth).max()?;
    (is_move && reads.iter().all(|(own, _)| *own == grid)).then_some((grid, deepest + 1))
}

impl Pass<'_, '_> {
    /// The unit that writes the elements which a value shows, all of them.
    pub(super) fn writer(&self, value: Value) -> Option<&Unit> {
        let root = self.root(value)?;
        self.network.units().get(self.network.writer(root)?)
    }

    /// The value whose elements a value shows, all of them and in their order.
    pub(super) fn root(&self, value: Value) -> Option<Value> {
        let alias = self.network.resolve(value);
        let elements = |value: Value| Some(self.network.dims(value).ok()?.elements());
        (alias.offset == 0 && elements(alias.of)? == elements(value)?).then_some(alias.of)
    }

    /// Whether `value` is read once, within the network.
    pub(super) fn is_read_once(&self, value: Value) -> bool {
        self.root(value)
            .is_some_and(|root| !self.network.leaves(root) && self.network.readers(root).count() == 1)
    }

    /// The numbers that a value's elements are, if it is quantized.
    pub(super) fn quantization(&self, value: Value) -> Option<Quantized> {
        let (grid, _) = self.grids.get(&self.network.resolve(value).of)?;
        Some(Quantized { value, grid: *grid })
    }

    /// The unit that computes `x`, without the bounds behind it: what it writes, and the bounds.
    pub(super) fn within_bounds(&self, x: Value) -> Option<(Value, [f32; 2])> {
        let unit = self.writer(x)?;
        let Some(bounds) = operator::<Elementwise>(unit).and_then(bounds_of) else {
            return Some((x, [f32::NEG_INFINITY, f32::INFINITY]));
        };
        let (Input::Value(inner), &[output]) = (unit.input(Operand::Arg(0)).ok()?, &unit.outputs[..]) else {
            return None;
        };
        let same = self.network.dims(*inner).ok()?.elements() == self.network.dims(output).ok()?.elements();
        (same && !(self.alone)(&unit.name) && self.is_read_once(x)).then_some((*inner, bounds))
    }
}

/// The bounds that a function of each element is, if it is nothing else.
fn bounds_of(operator: &Elementwise) -> Option<[f32; 2]> {
    let [step] = operator.program().steps() else { return None };
    match (step.function, &step.arguments[..]) {
        (Function::Relu, [Source::Input(0)]) => Some([0.0, f32::INFINITY]),
        (Function::Relu6, [Source::Input(0)]) => Some([0.0, 6.0]),
        (Function::ReluN1To1, [Source::Input(0)]) => Some([-1.0, 1.0]),
        (Function::Clamp, [Source::Input(0), Source::Number(low), Source::Number(high)])
            if low.0 <= high.0 =>
        {
            Some([low.0, high.0])
        }
        _ => None,
    }
}

/// The bounds of an activation, if it is one of bounds or none.
pub(super) fn activation_bounds(activation: Activation) -> Option<[f32; 2]> {
    match activation {
        Activation::None => Some([f32::NEG_INFINITY, f32::INFINITY]),
        Activation::Relu => Some([0.0, f32::INFINITY]),
        Activation::Relu6 => Some([0.0, 6.0]),
        _ => None,
    }
}

/// The bounds that two are one after the other.
pub(super) fn both([low, high]: [f32; 2], [least, most]: [f32; 2]) -> [f32; 2] {
    [low.max(least).min(most), high.min(most).max(least)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_one_after_the_other_are_those_of_both() {
        assert_eq!(both([0.0, 6.0], [-1.0, 1.0]), [0.0, 1.0]);
        assert_eq!(both([-1.0, 1.0], [2.0, 3.0]), [2.0, 2.0]);
    }
}
