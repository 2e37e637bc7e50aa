//! A function of each element that sees another op's result in other dimensions, as PyTorch writes a dense layer: the
//! product of two matrices, its result as `batch x tokens x channels`, and there the bias and the sum with what came
//! before. To join the two, what the function reads and writes is seen in the dimensions of the op's result.

use super::network::Network;
use super::unit::{Input, Unit};
use crate::dims::Dims;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Value;
use crate::host::HostTensor;

/// Unit `second`, a function of each element whose input at `place` shows `between`, in the dimensions of that. Nothing,
/// if what it shows is a part, or has other channels, or if another input has no such dimensions.
pub(super) fn seen_as(
    network: &Network<'_>,
    second: &Unit,
    place: usize,
    between: Value,
) -> Result<Option<Unit>> {
    let (&[output], Some(operator)) = (&second.outputs[..], second.shared_operator()) else {
        return Ok(None);
    };
    let dims = network.dims(between)?;
    let given = second.given();
    let Some((_, Input::Value(view), own)) = given.get(place).cloned() else { return Ok(None) };
    let whole = network.resolve(view).offset == 0 && own.elements() == dims.elements();
    let last = |dims: &Dims| dims.extents().last().copied();
    if !whole || last(&own) != last(&dims) || network.dims(output)?.extents() != own.extents() {
        return Ok(None);
    }
    let mut inputs = Vec::with_capacity(given.len());
    for (index, (operand, input, found)) in given.into_iter().enumerate() {
        let seen = match input {
            Input::Value(_) if index == place => Some((Input::Value(between), dims)),
            Input::Value(value) => (found.extents() == own.extents()).then_some((Input::Value(value), dims)),
            Input::Constant(tensor, value) => constant(tensor, found, [&own, &dims])?
                .map(|(tensor, dims)| (Input::Constant(tensor, value), dims)),
        };
        let Some((input, dims)) = seen else { return Ok(None) };
        inputs.push((operand, input, dims));
    }
    Ok(Some(Unit::of_node(second.name.clone(), operator, inputs, second.outputs.clone())))
}

/// A constant of `found` that goes with elements of `own`, for the same ones in `dims`: it is one number, one for each
/// channel, or one for each element.
fn constant(tensor: HostTensor, found: Dims, [own, dims]: [&Dims; 2]) -> Result<Option<(HostTensor, Dims)>> {
    let channels = dims.extents().last().copied();
    let seen = if found.elements() == 1
        || (found.extents().last().copied() == channels && channels == Some(found.elements()))
    {
        Dims::new(&[found.elements()])?
    } else if found.extents() == own.extents() {
        *dims
    } else {
        return Ok(None);
    };
    Ok(Some((tensor.reshaped(seen)?, seen)))
}

impl Network<'_> {
    /// `unit`, which was made of one that [`seen_as`] gives: what it reads and writes in other dimensions than those of
    /// the graph's values is so in values of its own, which show the same elements.
    pub(super) fn shown(&mut self, unit: Unit, dims: Dims) -> Result<Unit> {
        let mut inputs: Vec<(Operand, Input, Dims)> = unit.given();
        for (_, input, seen) in &mut inputs {
            if let Input::Value(value) = input
                && self.dims(*value)?.extents() != seen.extents()
            {
                let own = self.add_value(*seen);
                self.show(own, *value);
                *value = own;
            }
        }
        let (Some(operator), &[output]) = (unit.shared_operator(), &unit.outputs[..]) else {
            return Ok(unit);
        };
        let own = self.add_value(dims);
        self.show(output, own);
        Ok(Unit::of_node(unit.name, operator, inputs, vec![own]))
    }
}
