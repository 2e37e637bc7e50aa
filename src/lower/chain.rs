//! A function of each element as a part of what it follows: in the epilogue of a convolution, a matrix product
//! or a pooling where that has a place for it, or as more steps of another one.
//!
//! | the reader | what it follows | together |
//! |---|---|---|
//! | an activation | an op that has none | the op with the activation |
//! | a PReLU with a constant slope per channel | the same | the same |
//! | an activation | an op that has none, and adds a residual | the op with the activation behind the sum |
//! | `x + y`, of one shape | an op with a place for a residual | the op, `y` being its residual |
//! | any function | a function of each element | one program |
//! | `x * s`, a constant for each channel | a product with a constant and nothing behind it yet | the product with the constant times `s` |
//! | `x + b`, a constant for each channel | an op with a place for a bias, and nothing behind it yet | the op with the bias |
//!
//! The reader must be the only one, and what lies between must not leave the network. What comes of it runs in
//! the reader's place: all that it reads is there by then. The reader may see the result in other dimensions, with the
//! same channels (`seen.rs`).

use super::function_dims::seen_as;
use super::network::Network;
use super::rewrites::Rewrites;
use super::unit::{Input, Unit};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Activation, Operand};
use crate::error::Result;
use crate::graph::Value;
use crate::host::HostTensor;
use crate::lower::mistakes::planted;
use crate::ops::elementwise::{Elementwise, Function, Program, Source, Step};
use crate::ops::gemm::Gemm;
use crate::ops::operator::Operator;
use crate::options::Rewrite;
use std::any::Any;
use std::sync::Arc;

/// Joins what can be.
pub(super) fn join(network: &mut Network<'_>, rewrites: &Rewrites<'_>) -> Result<()> {
    let activations: (Rewrite, Rule) = (Rewrite::Activations, activated);
    // A place in an epilogue first: it costs nothing. A chain may be an activation that was written out.
    let rules: [(Rewrite, Rule); 9] = [
        (Rewrite::Biases, biased),
        (Rewrite::Scales, scaled),
        activations,
        (Rewrite::Residuals, residual),
        activations,
        (Rewrite::Functions, chained),
        activations,
        (Rewrite::Residuals, residual),
        activations,
    ];
    for (_, rule) in rules.into_iter().filter(|(rewrite, _)| rewrites.has(*rewrite)) {
        for index in 0..network.units().len() {
            if let Some(MergedUnit { reader, unit, seen }) = joined(network, index, rewrites.alone, rule)? {
                let mut unit = match seen {
                    Some(dims) => network.shown(unit, dims)?,
                    None => unit,
                };
                // What kernels read as it is, and not packed, is a value.
                for (operand, input) in &mut unit.inputs {
                    if let (Operand::B, Input::Constant(tensor, value @ None)) = (*operand, input) {
                        *value = Some(network.add_constant(tensor.clone()));
                    }
                }
                network.merge(index, reader, unit);
            }
        }
        network.close_gaps();
    }
    Ok(())
}

/// What two units became.
struct MergedUnit {
    /// The second one's place.
    reader: usize,
    unit: Unit,
    /// The dimensions of the first one's result, if the second sees it in others.
    seen: Option<Dims>,
}

/// Two units, and what lies between: what the first writes and only the second reads.
struct Pair<'a> {
    first: &'a Unit,
    second: &'a Unit,
    /// The second one's program.
    program: &'a Program,
    between: Value,
    /// Which input of the program it is.
    place: usize,
    /// Its dimensions.
    dims: Dims,
    /// The dimensions of the second's result; `None` if it has several results.
    result: Option<Dims>,
}

/// A way to make one unit of two.
type Rule = fn(&Network<'_>, &Pair<'_>) -> Result<Option<Unit>>;

/// What unit `index` and its only reader are together by `rule`.
fn joined(
    network: &Network<'_>,
    index: usize,
    alone: &dyn Fn(&str) -> bool,
    rule: Rule,
) -> Result<Option<MergedUnit>> {
    let first = &network.units()[index];
    let &[between] = &first.outputs[..] else { return Ok(None) };
    let mut readers = network.readers(between);
    let (Some(reader), None) = (readers.next(), readers.next()) else { return Ok(None) };
    let second = &network.units()[reader];
    let Some(program) = second.operator().and_then(Operator::program) else { return Ok(None) };
    let once = second.reads().filter(|&read| network.resolve(read).of == between).count() == 1;
    let shows = |input: &Input| input.value().is_some_and(|value| network.resolve(value).of == between);
    let place = second.inputs.iter().position(|(_, input)| shows(input));
    let (true, Some(place)) =
        (once && in_order(second) && (planted("leaves") || !network.leaves(between)), place)
    else {
        return Ok(None);
    };
    if alone(&first.name) || alone(&second.name) || first.operator().is_none() {
        return Ok(None);
    }
    let dims = network.dims(between)?;
    let directly = second.inputs.get(place).is_some_and(|(_, input)| input.value() == Some(between));
    let found = if directly {
        let result = match second.outputs[..] {
            [output] => Some(network.dims(output)?),
            _ => None,
        };
        rule(network, &Pair { first, second, program, between, place, dims, result })?
    } else {
        match seen_as(network, second, place, between)? {
            Some(second) => {
                let pair = Pair { first, second: &second, program, between, place, dims, result: Some(dims) };
                rule(network, &pair)?
            }
            None => None,
        }
    };
    // Whether there is such an op may depend on the shapes.
    let found = found.filter(|unit| unit.op(network.graph, Precision::F32).is_ok());
    Ok(found.map(|unit| MergedUnit { reader, unit, seen: (!directly).then_some(dims) }))
}

/// Whether the inputs of a function of each element are in the order of its program's.
fn in_order(unit: &Unit) -> bool {
    unit.inputs.iter().enumerate().all(|(place, (operand, _))| *operand == Operand::Arg(place as u8))
}

impl Pair<'_> {
    /// The first with another operator and perhaps an input more, in the second one's place.
    fn as_first(&self, operator: Arc<dyn Operator>, more: Option<(Operand, Input, Dims)>) -> Unit {
        let mut given = self.first.given();
        given.extend(more);
        Unit::of_node(self.name(), operator, given, self.second.outputs.clone())
    }

    fn name(&self) -> String {
        format!("{} + {}", self.first.name, self.second.name)
    }

    /// Whether the second one's result has the extents of what lies between.
    fn keeps_extents(&self) -> bool {
        self.result.is_some_and(|result| result.extents() == self.dims.extents())
    }

    /// The other of two inputs of the second, with its dimensions.
    fn other(&self) -> Option<(Input, Dims)> {
        let given = self.second.given();
        let mut others = given.into_iter().enumerate().filter(|(place, _)| *place != self.place);
        match (others.next(), others.next()) {
            (Some((_, (_, input, dims))), None) => Some((input, dims)),
            _ => None,
        }
    }
}

/// The activation that the only step of `program` is, if its argument is the input at `place`.
fn activation(program: &Program, place: usize) -> Option<Activation> {
    let step = match program.steps() {
        [step] => step,
        [gate, product] => return silu(gate, product, Source::Input(place as u8)),
        _ => return None,
    };
    if step.arguments.first() != Some(&Source::Input(place as u8)) {
        return None;
    }
    Some(match (step.function, step.arguments.get(1)) {
        (Function::Relu, _) => Activation::Relu,
        (Function::Relu6, _) => Activation::Relu6,
        (Function::Sigmoid, _) => Activation::Sigmoid,
        (Function::Tanh, _) => Activation::Tanh,
        (Function::HardSwish, _) => Activation::HardSwish,
        (Function::HardSigmoid, _) => Activation::HardSigmoid,
        (Function::Gelu, _) => Activation::Gelu,
        (Function::GeluTanh, _) => Activation::GeluTanh,
        (Function::LeakyRelu | Function::PRelu, Some(Source::Number(slope))) if slope.0.is_finite() => {
            Activation::LeakyRelu(*slope)
        }
        (Function::LeakyRelu | Function::PRelu, Some(Source::Input(_))) => Activation::PRelu,
        _ => return None,
    })
}

/// `x` times its sigmoid.
fn silu(gate: &Step, product: &Step, x: Source) -> Option<Activation> {
    let gated = [[x, Source::Step(0)], [Source::Step(0), x]];
    let found = gate.function == Function::Sigmoid
        && gate.arguments == [x]
        && product.function == Function::Mul
        && gated.iter().any(|arguments| product.arguments == arguments);
    found.then_some(Activation::Silu)
}

/// What the second adds to what lies between, or multiplies it with, if that `function` is all it does.
fn operand(pair: &Pair<'_>, function: Function) -> Option<(Input, Dims)> {
    let [step] = pair.program.steps() else { return None };
    let alone = step.function == function
        && step.arguments.iter().all(|argument| matches!(argument, Source::Input(_)))
        && step.arguments.first() != step.arguments.get(1);
    pair.other().filter(|_| alone)
}

/// Whether a constant of `dims` has a number for each channel of what lies between.
fn is_per_channel(pair: &Pair<'_>, dims: Dims) -> bool {
    let channels = pair.dims.extents().last().copied();
    let along = dims.extents().last().copied() == channels || planted("epilogue_channels");
    along && channels == Some(dims.elements()) && pair.keeps_extents()
}

/// An op with what is added to each channel of its result.
fn biased(_: &Network<'_>, pair: &Pair<'_>) -> Result<Option<Unit>> {
    let Some((Input::Constant(tensor, value), dims)) = operand(pair, Function::Add) else { return Ok(None) };
    let Some(operator) = pair.first.shared_operator().filter(|operator| operator.adds_bias()) else {
        return Ok(None);
    };
    let taken = [Operand::Bias, Operand::Residual].iter().any(|&operand| pair.first.input(operand).is_ok());
    // What has an activation has no place for another one.
    let active = operator.with_activation(Activation::Relu).is_none();
    if !is_per_channel(pair, dims) || taken || active {
        return Ok(None);
    }
    let own = Dims::new(&[dims.elements()])?;
    let bias = (Operand::Bias, Input::Constant(tensor.reshaped(own)?, value), own);
    Ok(Some(pair.as_first(operator, Some(bias).filter(|_| !planted("bias")))))
}

/// A product with a constant, with what its columns are multiplied with: `(A B + b) s = A (B s) + b s`.
fn scaled(_: &Network<'_>, pair: &Pair<'_>) -> Result<Option<Unit>> {
    let Some((Input::Constant(scales, _), dims)) = operand(pair, Function::Mul) else { return Ok(None) };
    let Some(operator) = pair.first.shared_operator() else { return Ok(None) };
    let Some(gemm) = (&*operator as &dyn Any).downcast_ref::<Gemm>() else { return Ok(None) };
    let free = gemm.activation == Activation::None && pair.first.input(Operand::Residual).is_err();
    if !free || !is_per_channel(pair, dims) {
        return Ok(None);
    }
    let (scales, mut given) = (scales.to_nhwc(), pair.first.given());
    for (operand, input, dims) in &mut given {
        // Of `B` stored transposed, a row belongs to a column of the result.
        let row = match operand {
            Operand::B if gemm.transpose_b != planted("scale_axis") => {
                dims.extents().last().copied().unwrap_or(1)
            }
            Operand::B | Operand::Bias => 1,
            _ => continue,
        };
        let Input::Constant(tensor, _) = &*input else { return Ok(None) };
        let values = tensor.to_nhwc();
        let scale = values.iter().enumerate().map(|(index, &value)| {
            let scale = scales.get(index / row % scales.len().max(1)).copied().unwrap_or(1.0);
            let scaled = value * scale;
            let zero = scaled == 0.0 && (value == 0.0 || scale == 0.0);
            (scaled.is_normal() || zero).then_some(scaled)
        });
        let Some(scaled) = scale.collect::<Option<Vec<f32>>>() else { return Ok(None) };
        *input = Input::Constant(HostTensor::new(*dims, scaled)?, None);
    }
    Ok(Some(Unit::of_node(pair.name(), operator, given, pair.second.outputs.clone())))
}

/// An op with the activation that follows it.
fn activated(_: &Network<'_>, pair: &Pair<'_>) -> Result<Option<Unit>> {
    let Some(activation) = activation(pair.program, pair.place) else { return Ok(None) };
    let activation = if planted("activation") { Activation::Relu } else { activation };
    if !pair.keeps_extents() {
        return Ok(None);
    }
    let slope = match (activation, pair.other()) {
        (Activation::PRelu, Some((Input::Constant(tensor, value), dims))) => {
            // One for each channel, and the same for all pixels.
            if dims.shape().c != dims.elements() || dims.shape().c != pair.dims.shape().c {
                return Ok(None);
            }
            Some((Operand::Slope, Input::Constant(tensor, value), dims))
        }
        (Activation::PRelu, _) => return Ok(None),
        _ => None,
    };
    let last = pair.first.input(Operand::Residual).is_ok();
    let operator = pair.first.operator().and_then(|operator| match last {
        true => operator.with_activation_last(activation),
        false => operator.with_activation(activation),
    });
    Ok(operator.map(|operator| pair.as_first(operator, slope)))
}

/// An op that adds what is added to its result.
fn residual(network: &Network<'_>, pair: &Pair<'_>) -> Result<Option<Unit>> {
    let Some((input, dims)) = operand(pair, Function::Add) else { return Ok(None) };
    if dims.extents() != pair.dims.extents() || !pair.keeps_extents() {
        return Ok(None);
    }
    // Of two ops that could, the later one: the other's result is there by then.
    if let Some(other) = input.value()
        && network.writer(other) > network.writer(pair.between)
        && adds_alone(network, other)
    {
        return Ok(None);
    }
    let Some(operator) = pair.first.shared_operator() else { return Ok(None) };
    let adds = if operator.adds_residual() { Some(operator) } else { operator.with_residual() };
    let Some(operator) = adds else { return Ok(None) };
    let free = pair.first.input(Operand::Residual).is_err();
    let more = Some((Operand::Residual, input, dims)).filter(|_| !planted("residual"));
    Ok(free.then(|| pair.as_first(operator, more)))
}

/// Whether the op that writes `value`, which one unit reads, has a free place for a residual.
fn adds_alone(network: &Network<'_>, value: Value) -> bool {
    let Some(unit) = network.writer(value).map(|writer| &network.units()[writer]) else { return false };
    network.readers(value).count() == 1
        && !network.leaves(value)
        && unit.input(Operand::Residual).is_err()
        && unit.operator().is_some_and(Operator::adds_residual)
}

/// Two functions of each element as one.
fn chained(_: &Network<'_>, pair: &Pair<'_>) -> Result<Option<Unit>> {
    let Some(first) = pair.first.operator().and_then(Operator::program) else { return Ok(None) };
    // Of larger results the first one's elements would be computed again.
    if !in_order(pair.first) || !pair.keeps_extents() {
        return Ok(None);
    }
    let (mut given, own) = (pair.first.given(), pair.second.given());
    let value = |input: &Input| match input {
        Input::Value(value) | Input::Constant(_, Some(value)) => Some(*value),
        Input::Constant(_, None) => None,
    };
    let shared = |place: usize| {
        let wanted = own.get(place).and_then(|(_, input, _)| value(input))?;
        given.iter().position(|(_, input, _)| value(input) == Some(wanted))
    };
    // Too long, or of too many inputs: they stay two.
    let Ok((program, places)) = pair.program.after(first, pair.place, &shared) else { return Ok(None) };
    for (place, (_, input, dims)) in places.iter().zip(own) {
        if let Some(place) = place.filter(|&place| place >= given.len()) {
            given.push((Operand::Arg(place as u8), input, dims));
        }
    }
    let program = program.recognised().unwrap_or(program);
    if planted("functions_arguments") && given.len() > 1 {
        let last = given.len() - 1;
        let (first, other) = (given[0].1.clone(), given[last].1.clone());
        (given[0].1, given[last].1) = (other, first);
    }
    let operator = Arc::new(Elementwise::new(program));
    Ok(Some(Unit::of_node(pair.name(), operator, given, pair.second.outputs.clone())))
}
