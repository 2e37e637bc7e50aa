//! Puts a function of each element into the kernel that writes these elements: that of a convolution, a product, a pooling or a
//! resize, which calls the function with each value before it stores the result.
//!
//! `y[.., c] = f(x[.., c], v[c], z[.., c], ...)`, where `x` is what the unit before gives, `v` are constants, one number for all
//! elements or one for each channel, and `z` are values of the same extents. Epilogues have a place for a few functions of this
//! kind (`lower/chain.rs`). This pass takes all others. It runs last: earlier passes recognise convolutions and products by
//! their options and would not recognise one with a function behind it.

use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Bits, Operand};
use crate::error::Result;
use crate::host::HostTensor;
use crate::limits::Limits;
use crate::lower::function_dims::seen_as;
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::step::TOGETHER;
use crate::lower::unit::{Input, Unit};
use crate::ops::elementwise::{Program, Source, Step};
use crate::ops::followed::Followed;
use crate::ops::operator::Operator;
use crate::ops::{BoundKernel, Op};
use std::borrow::Cow;
use std::sync::Arc;

/// Puts functions of each element into the kernels of what they follow, for a device of these `limits`; units that `alone` names
/// stay as they are.
pub(crate) fn follow(
    network: &mut Network<'_>,
    alone: &dyn Fn(&str) -> bool,
    precision: Precision,
    limits: &Limits,
) -> Result<()> {
    for place in 0..network.units().len() {
        let Some(found) = followed(network, place, alone, precision, limits)? else { continue };
        let FollowedUnit { reader, unit, seen } = found;
        let own = unit.precision.clone();
        let mut unit = match seen {
            Some(dims) => network.shown(unit, dims)?,
            None => unit,
        };
        unit.precision = own;
        network.merge(place, reader, unit);
    }
    network.close_gaps();
    Ok(())
}

/// A unit and the function behind it as one.
struct FollowedUnit {
    /// The place of the function.
    reader: usize,
    unit: Unit,
    /// The dimensions of the unit's result, if the function sees it in others.
    seen: Option<Dims>,
}

/// Returns the only unit that reads the result of unit `place`: its place, the unit in the dimensions of that result, and
/// whether it reads the value itself rather than a view of it.
fn reader<'n>(network: &'n Network<'_>, place: usize) -> Result<Option<(usize, Cow<'n, Unit>, bool)>> {
    let &[between] = &network.units()[place].outputs[..] else { return Ok(None) };
    let mut readers = network.readers(between);
    let (Some(reader), None) = (readers.next(), readers.next()) else { return Ok(None) };
    let unit = &network.units()[reader];
    let shows = |input: &Input| input.value().is_some_and(|value| network.resolve(value).of == between);
    let (Some(at), 1, &[output]) = (
        unit.inputs.iter().position(|(_, input)| shows(input)),
        unit.inputs.iter().filter(|(_, input)| shows(input)).count(),
        &unit.outputs[..],
    ) else {
        return Ok(None);
    };
    if unit.inputs[at].1.value() == Some(between) {
        let alike = network.dims(between)?.extents() == network.dims(output)?.extents();
        return Ok(alike.then_some((reader, Cow::Borrowed(unit), true)));
    }
    Ok(seen_as(network, unit, at, between)?.map(|unit| (reader, Cow::Owned(unit), false)))
}

/// Unit `place` and its only reader as one, if that is such a function.
fn followed(
    network: &Network<'_>,
    place: usize,
    alone: &dyn Fn(&str) -> bool,
    precision: Precision,
    limits: &Limits,
) -> Result<Option<FollowedUnit>> {
    let first = &network.units()[place];
    let (&[between], Some(operator)) = (&first.outputs[..], first.shared_operator()) else { return Ok(None) };
    let Some((reader, second, directly)) = reader(network, place)? else { return Ok(None) };
    let Some(program) = second.operator().and_then(Operator::program) else { return Ok(None) };
    let assigned = |unit: &Unit| unit.precision.as_ref().map(|own| own.precision);
    if alone(&first.name)
        || alone(&second.name)
        || first.host.is_some()
        || network.units()[reader].host.is_some()
        || network.leaves(between)
        || assigned(first) != assigned(&network.units()[reader])
    {
        return Ok(None);
    }
    let dims = network.dims(between)?;
    let channels = dims.extents().last().copied().unwrap_or(1);
    // What each input of the program becomes: numbers of channels come before elements.
    let inputs = second.given();
    let is_vector =
        |input: &Input, own: Dims| matches!(input, Input::Constant(..)) && is_of_channels(own, channels);
    let count = inputs.iter().filter(|(_, input, own)| own.elements() > 1 && is_vector(input, *own)).count();
    let before = if planted("functions_behind_order") { 0 } else { count };
    let (mut sources, mut vectors, mut elements) = (Vec::new(), Vec::new(), Vec::new());
    for (order, (operand, input, own)) in inputs.into_iter().enumerate() {
        if operand != Operand::Arg(order as u8) {
            return Ok(None);
        }
        sources.push(match input {
            Input::Value(value) if value == between => Source::Input(0),
            Input::Constant(tensor, _) if own.elements() == 1 => {
                Source::Number(Bits(tensor.to_nhwc().first().copied().unwrap_or_default()))
            }
            Input::Constant(tensor, value) if is_of_channels(own, channels) => {
                vectors.push((tensor, value));
                Source::Input(vectors.len() as u8)
            }
            Input::Value(_) if own.extents() == dims.extents() && is_float(network, &input) => {
                elements.push((input, own));
                Source::Input((before + elements.len()) as u8)
            }
            _ => return Ok(None),
        });
    }
    let Ok(program) = with_sources(program, &sources) else { return Ok(None) };
    let mut given = first.given();
    let vector = Dims::new(&[channels])?;
    // Numbers of channels are packed as a bias is, where there are weights.
    let has_weights = given.iter().any(|(operand, ..)| *operand != Operand::Src);
    if count > 0 && has_weights && !operator.adds_bias() {
        return Ok(None);
    }
    if count > 0 && has_weights && given.iter().all(|(operand, ..)| *operand != Operand::Bias) {
        let zeros = HostTensor::new(vector, vec![0.0; channels])?;
        given.push((Operand::Bias, Input::Constant(zeros, None), vector));
    }
    for (order, (tensor, value)) in vectors.into_iter().enumerate() {
        let input = Input::Constant(tensor.reshaped(vector)?, value);
        given.push((Operand::Arg(order as u8 + 1), input, vector));
    }
    for (order, (input, own)) in elements.into_iter().enumerate() {
        given.push((Operand::Arg((count + order) as u8 + 1), input, own));
    }
    let name = format!("{}{TOGETHER}{}", first.name, second.name);
    let operator = Arc::new(Followed::new(operator, program, count));
    let mut unit = Unit::of_node(name, operator, given, second.outputs.clone());
    unit.precision = first.precision.clone();
    let Ok(both) = unit.op(network.graph, precision) else { return Ok(None) };
    let own = first.op(network.graph, precision)?;
    let seen = (!directly).then_some(dims);
    Ok((kernel(&*both, limits) == kernel(&*own, limits)).then_some(FollowedUnit { reader, unit, seen }))
}

/// Whether an input is a value of floats.
fn is_float(network: &Network<'_>, input: &Input) -> bool {
    input.value().is_some_and(|value| network.dtype(value).is_float())
}

/// Whether a constant of `dims` has a number for each channel.
fn is_of_channels(dims: Dims, channels: usize) -> bool {
    dims.elements() == channels
        && (dims.extents().last() == Some(&channels) || planted("functions_behind_channels"))
}

/// The kernel that an untuned session takes first: not every kernel calls functions.
fn kernel(op: &dyn Op, limits: &Limits) -> Option<&'static str> {
    let kernels = op.kernels();
    let space = kernels.space(limits);
    let mut untuned = space.iter().filter(|(kernel, _)| kernel.untuned(limits));
    untuned.next().or(space.first()).map(|(kernel, _)| BoundKernel::name(*kernel))
}

/// The program with these in the place of its inputs.
fn with_sources(program: &Program, sources: &[Source]) -> Result<Program> {
    let instead = |source: &Source| match *source {
        Source::Input(input) => sources.get(usize::from(input)).copied().unwrap_or(*source),
        other => other,
    };
    let steps = program.steps().iter().map(|step| Step {
        function: step.function,
        arguments: step.arguments.iter().map(instead).collect(),
    });
    Program::new(steps.collect())
}
