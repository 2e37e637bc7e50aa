//! Two products that read one input, and the function of their results that alone reads them, as one product of both's
//! columns and a gated linear unit: `f(x W_g, x W_u)`, as in the feed-forward layers of transformers. A product of twice
//! the columns keeps a device busier, and is one launch less.
//!
//! The weights are floats, as they are or transposed, or quantized. A function of the two halves of a product's rows, which
//! a network takes apart itself, is a gated linear unit too.

use super::factors::remap;
use super::joined::{end_to_end, side_by_side, vectors};
use super::{Finder, Replacement};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Activation, Operand};
use crate::error::Result;
use crate::graph::Value;
use crate::host::HostTensor;
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::unit::{Input, Unit};
use crate::ops::elementwise::{Function, Program, Source, Step};
use crate::ops::gemm::Gemm;
use crate::ops::glu::Glu;
use crate::ops::operator::Operator;
use crate::ops::quantized_gemm::QuantizedGemm;
use std::any::Any;
use std::sync::Arc;

/// Joins what can be; units that `alone` names stay as they are.
pub(in crate::lower) fn gated_products(
    network: &mut Network<'_>,
    alone: &dyn Fn(&str) -> bool,
) -> Result<()> {
    let mut index = 0;
    while index < network.units().len() {
        let finder = Finder { network, alone };
        let found = match (finder.sides(index), finder.halves(index)) {
            (Some(sides), _) => joined(network, index, sides)?,
            (None, Some(halves)) => of_halves(network, index, halves)?,
            (None, None) => None,
        };
        match found {
            Some(found) => index = found.replace(network),
            None => index += 1,
        }
    }
    Ok(())
}

/// A function of the halves of rows.
struct Halves {
    program: Program,
    /// The rows.
    x: Value,
    /// The units that take them apart.
    slices: [usize; 2],
}

/// The product of an input with constants.
pub(super) struct Side {
    pub(super) index: usize,
    pub(super) operator: Arc<dyn Operator>,
    pub(super) activation: Activation,
    /// What it reads, and its constants.
    given: Vec<(Operand, Input, Dims)>,
    pub(super) output: Dims,
}

impl Side {
    fn find(&self, wanted: Operand) -> Option<&(Operand, Input, Dims)> {
        self.given.iter().find(|(operand, ..)| *operand == wanted)
    }

    fn constant(&self, wanted: Operand) -> Option<&HostTensor> {
        match self.find(wanted) {
            Some((_, Input::Constant(tensor, _), _)) => Some(tensor),
            _ => None,
        }
    }

    /// Whether `other` is a product of the same kind, with constants of the same kinds; one of both may have a bias alone.
    pub(super) fn is_like(&self, other: &Side) -> bool {
        let has_all = |one: &Side, other: &Side| {
            one.given.iter().all(|(operand, ..)| *operand == Operand::Bias || other.find(*operand).is_some())
        };
        self.operator.same(&*other.operator) && has_all(self, other) && has_all(other, self)
    }

    /// The input and its dimensions.
    pub(super) fn source(&self) -> Option<(Operand, Value, Dims)> {
        let all =
            self.given.iter().filter_map(|(operand, input, dims)| Some((*operand, input.value()?, *dims)));
        let all: Vec<_> = all.collect();
        match all[..] {
            [one] => Some(one),
            _ => None,
        }
    }
}

/// `program` of what `activation` makes of input `place`.
fn behind(program: &Program, place: u8, activation: Activation) -> Option<Program> {
    let x = Source::Input(0);
    let one = |function: Function, arguments: &[Source]| Step { function, arguments: arguments.to_vec() };
    let steps = match activation {
        Activation::None => return Some(program.clone()),
        Activation::Relu => vec![one(Function::Relu, &[x])],
        Activation::Relu6 => vec![one(Function::Relu6, &[x])],
        Activation::LeakyRelu(slope) => vec![one(Function::LeakyRelu, &[x, Source::Number(slope)])],
        Activation::Sigmoid => vec![one(Function::Sigmoid, &[x])],
        Activation::Tanh => vec![one(Function::Tanh, &[x])],
        Activation::HardSwish => vec![one(Function::HardSwish, &[x])],
        Activation::HardSigmoid => vec![one(Function::HardSigmoid, &[x])],
        Activation::Gelu => vec![one(Function::Gelu, &[x])],
        Activation::GeluTanh => vec![one(Function::GeluTanh, &[x])],
        Activation::Silu => vec![one(Function::Sigmoid, &[x]), one(Function::Mul, &[x, Source::Step(0)])],
        _ => return None,
    };
    let first = Program::new(steps).ok()?;
    let (program, _) = program.after(&first, usize::from(place), &|_| None).ok()?;
    // What was input `place` is now the first one.
    if place == 1 { swapped(&program) } else { Some(program) }
}

/// `program` with its two inputs in the other order.
fn swapped(program: &Program) -> Option<Program> {
    let other = |source: &Source| match *source {
        Source::Input(input) if input < 2 => Source::Input(1 - input),
        source => source,
    };
    let steps = program
        .steps()
        .iter()
        .map(|step| Step { function: step.function, arguments: step.arguments.iter().map(other).collect() });
    Program::new(steps.collect()).ok()
}

impl Finder<'_, '_> {
    /// The two products whose results unit `index` alone reads, and the function that it is of them.
    fn sides(&self, index: usize) -> Option<(Program, [Side; 2])> {
        let unit = self.network.units().get(index)?;
        let &[output] = &unit.outputs[..] else { return None };
        let mut program = unit.operator()?.program()?.clone();
        let given = unit.given();
        let dims = self.network.dims(output).ok()?;
        let [(_, Input::Value(a), of_a), (_, Input::Value(b), of_b)] = given[..] else { return None };
        let flat =
            given.iter().enumerate().all(|(place, (operand, ..))| *operand == Operand::Arg(place as u8));
        let same = of_a.extents() == dims.extents() && of_b.extents() == dims.extents();
        let once = self.network.resolve(a).of != self.network.resolve(b).of;
        if !once || !flat || !same || program.inputs() != 2 {
            return None;
        }
        let sides = [self.side(a)?, self.side(b)?];
        for (place, side) in sides.iter().enumerate() {
            let activation = if planted("gated_activation") { Activation::None } else { side.activation };
            program = behind(&program, place as u8, activation)?;
        }
        let [first, second] = &sides;
        let alike = (self.read_alike(first, second) || planted("gated_input"))
            && first.is_like(second)
            && first.output.extents() == second.output.extents()
            && first.output.elements() == dims.elements()
            && first.output.extents().last() == dims.extents().last()
            && first.given.iter().all(|(operand, _, dims)| {
                let other = second.find(*operand).map(|(_, _, dims)| dims.extents());
                *operand == Operand::Bias || other == Some(dims.extents())
            });
        let closed = self.closed_but_views(&[first.index, second.index, index], output);
        (alike && closed).then_some((program, sides))
    }

    /// The rows whose halves two units take apart for unit `index` alone, and the function that it is of them.
    fn halves(&self, index: usize) -> Option<Halves> {
        let unit = self.network.units().get(index)?;
        let &[output] = &unit.outputs[..] else { return None };
        let program = unit.operator()?.program()?.clone();
        let given = unit.given();
        let dims = self.network.dims(output).ok()?;
        let [(Operand::Arg(0), Input::Value(a), of_a), (Operand::Arg(1), Input::Value(b), of_b)] = given[..]
        else {
            return None;
        };
        let same = of_a.extents() == dims.extents() && of_b.extents() == dims.extents();
        let n = dims.extents().last().copied().filter(|_| same && program.inputs() == 2)?;
        let half = |value: Value| {
            let at = self.network.writer(value)?;
            let slice = &self.network.units()[at];
            let (first, parts) = remap(self.network, slice)?.strided()?;
            let x = slice.input(Operand::Src).ok()?.value()?;
            let rows = dims.elements() / n;
            (parts == [(rows, 2 * n), (n, 1)]).then_some((at, x, first))
        };
        let ((one, x, first), (other, y, second)) = (half(a)?, half(b)?);
        let place = |value: Value| {
            let alias = self.network.resolve(value);
            (alias.of, alias.offset)
        };
        // Rows as products have them: others are maps, whose channels are taken apart where they lie.
        let writer = self.network.writer(place(x).0)?;
        let rows = (self.network.units()[writer].operator()? as &dyn Any).is::<Gemm>();
        let program = match [first, second] {
            [0, second] if second == n => program,
            [first, 0] if first == n && planted("gated_halves") => program,
            [first, 0] if first == n => swapped(&program)?,
            _ => return None,
        };
        let whole = self.network.dims(x).ok()?.elements() == 2 * dims.elements() && place(x) == place(y);
        let closed = self.closed(&[one, other, index], output);
        (rows && whole && closed).then_some(Halves { program, x, slices: [one, other] })
    }

    /// Whether two products read one input: views of one value in the same dimensions are one.
    pub(super) fn read_alike(&self, one: &Side, other: &Side) -> bool {
        let source = |side: &Side| {
            let (operand, value, dims) = side.source()?;
            let alias = self.network.resolve(value);
            Some((operand, alias.of, alias.offset, dims))
        };
        source(one) == source(other)
    }

    /// The product that writes `value`, without its activation.
    pub(super) fn side(&self, value: Value) -> Option<Side> {
        let alias = self.network.resolve(value);
        let index = self.network.writer(alias.of)?;
        let unit = &self.network.units()[index];
        let any = unit.operator()? as &dyn Any;
        let (operator, activation, known): (Arc<dyn Operator>, _, &[Operand]) =
            if let Some(gemm) = any.downcast_ref::<Gemm>() {
                let plain = Gemm { transpose_b: gemm.transpose_b, ..Gemm::default() };
                let activation = gemm.activation;
                (*gemm == Gemm { activation, ..plain }).then_some(())?;
                (Arc::new(plain), activation, &[Operand::B, Operand::Bias])
            } else {
                let product = any.downcast_ref::<QuantizedGemm>()?;
                let plain = QuantizedGemm { activation: Activation::None, ..*product };
                let constants = &[Operand::Weights, Operand::Scales, Operand::Zeros, Operand::Bias];
                (Arc::new(plain), product.activation, constants)
            };
        let given = unit.given();
        // Nothing but the input is a value, and nothing else is known.
        let plain = given.iter().all(|(operand, input, dims)| match operand {
            Operand::A | Operand::Src => input.value().is_some() && dims.rank() > 1,
            Operand::B => input.value().is_none() && dims.rank() == 2,
            operand => input.value().is_none() && known.contains(operand),
        });
        let output = self.network.dims(alias.of).ok()?;
        (plain && alias.offset == 0).then_some(Side { index, operator, activation, given, output })
    }
}

/// The constants of products of one input as those of one product, whose columns are theirs side by side: of matrices of columns
/// side by side, else one behind the other. An operand that one of the products lacks is left out, but for a bias, which is zeros there.
pub(super) fn constants(network: &mut Network<'_>, sides: &[Side]) -> Result<Vec<(Operand, Input, Dims)>> {
    let mut inputs = Vec::new();
    for operand in [Operand::B, Operand::Weights, Operand::Scales, Operand::Zeros, Operand::Bias] {
        if let Some(tensor) = constant(network, sides, operand)? {
            let dims = tensor.dims();
            // What kernels read as it is, and not packed, is a value.
            let value = (operand != Operand::Bias).then(|| network.add_constant(tensor.clone()));
            inputs.push((operand, Input::Constant(tensor, value), dims));
        }
    }
    Ok(inputs)
}

/// What `operand` of all sides is as one.
fn constant(network: &Network<'_>, sides: &[Side], operand: Operand) -> Result<Option<HostTensor>> {
    let derived = network.graph.derived();
    let own: Vec<Option<&HostTensor>> = sides.iter().map(|side| side.constant(operand)).collect();
    if operand == Operand::Bias {
        let columns = sides.iter().map(|side| side.output.extents().last().copied().unwrap_or(1));
        return vectors(derived, &own.into_iter().zip(columns).collect::<Vec<_>>());
    }
    let Some(own) = own.into_iter().collect::<Option<Vec<&HostTensor>>>() else { return Ok(None) };
    let plain = sides.first().and_then(|side| (&*side.operator as &dyn Any).downcast_ref::<Gemm>());
    let across = operand == Operand::B && plain.is_some_and(|gemm| !gemm.transpose_b);
    let whole = if across { side_by_side(derived, &own) } else { end_to_end(derived, &own) };
    whole.map(Some)
}

/// `dims` with twice as many elements in a row.
fn doubled(dims: Dims) -> Result<Dims> {
    let mut extents = dims.extents().to_vec();
    if let Some(last) = extents.last_mut() {
        *last *= 2;
    }
    Dims::new(&extents)
}

/// The gated linear unit in the place of unit `index`, of the rows that `x` shows.
fn unit(network: &mut Network<'_>, index: usize, program: Program, x: Value) -> Result<Option<Unit>> {
    let (name, outputs) = (network.units()[index].name.clone(), network.units()[index].outputs.clone());
    let &[output] = &outputs[..] else { return Ok(None) };
    let seen = doubled(network.dims(output)?)?;
    let shown = network.add_value(seen);
    network.show(shown, x);
    let given = vec![(Operand::Src, Input::Value(shown), seen)];
    let unit = Unit::of_node(name, Arc::new(Glu(program)), given, outputs);
    Ok(unit.op(network.graph, Precision::F32).is_ok().then_some(unit))
}

/// What takes the place of a function of the halves of rows, and of what takes them apart.
fn of_halves(network: &mut Network<'_>, index: usize, halves: Halves) -> Result<Option<Replacement>> {
    let Halves { program, x, slices: [one, other] } = halves;
    let unit = unit(network, index, program, x)?;
    Ok(unit.map(|unit| Replacement { old: vec![one, other, index], new: vec![unit] }))
}

/// What takes the place of two products and the function `program` of their results in unit `index`.
fn joined(
    network: &mut Network<'_>,
    index: usize,
    (program, sides): (Program, [Side; 2]),
) -> Result<Option<Replacement>> {
    let [first, second] = &sides;
    let dims = doubled(first.output)?;
    let Some((operand, x, of_x)) = first.source() else { return Ok(None) };
    let mut inputs = vec![(operand, Input::Value(x), of_x)];
    inputs.extend(constants(network, &sides)?);
    let name = |at: usize| network.units()[at].name.clone();
    let product = format!("{} + {}", name(first.index), name(second.index));
    let value = network.add_value(dims);
    let product = Unit::of_node(product, Arc::clone(&first.operator), inputs, vec![value]);
    let works = product.op(network.graph, Precision::F32).is_ok();
    let gate = if works { unit(network, index, program, value)? } else { None };
    let old = vec![first.index, second.index, index];
    Ok(gate.map(|gate| Replacement { old, new: vec![product, gate] }))
}
