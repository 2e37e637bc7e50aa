//! Functions of each element, comparisons and casts.

use super::constant::{Constant, Integers};
use super::import::{Import, Op};
use super::names::{self, element};
use super::rounding::in_256ths;
use super::slots::Input;
use super::spectra;
use crate::dims::Dim;
use crate::host::HostTensor;
use crate::model::build::{
    Arg, Builder, Kind, Mapped, Operand, angle_of, changes, computed, converted, of_integers,
};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::integer::IntegerFunction;

/// A function of as many inputs as it takes.
pub(super) fn of<'a>(import: &mut Import<'a>, op: &Op<'a>, function: Function) -> Result<(), Reason> {
    op.check(&[function.arity()], 1)?;
    let args = args(import, op, function.arity())?;
    composed(import, op, activation(op)?, |build| computed(build, function, &args))
}

/// The first inputs as arguments.
fn args<'a>(import: &mut Import<'a>, op: &Op<'a>, count: usize) -> Result<Vec<Arg>, Reason> {
    let known = |import: &mut Import<'a>| -> Result<bool, Reason> {
        for index in 0..count {
            if let Input::Value(_) = import.input(op, index)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let all_known = known(import)?;
    (0..count)
        .map(|index| {
            let operand = import.operand(op, index)?;
            Ok(match operand {
                // A constant of many elements is a value of the graph, which others of its readers share.
                Operand::Constant(constant, kind) if !all_known && constant.elements() != 1 => {
                    let value = import.value(op, index)?;
                    Operand::Value(Mapped::plain(value, constant.extents().len(), kind)).into()
                }
                own => own.into(),
            })
        })
        .collect()
}

/// Output 0 as what `make` makes, and the function after it.
pub(super) fn composed<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    after: Option<Function>,
    make: impl FnOnce(&mut Builder) -> Result<Operand, Reason>,
) -> Result<(), Reason> {
    let build = import.begin(op, 0)?;
    let result = match after {
        None => make(build)?,
        Some(function) => {
            let sum = build.within("sum", make)?;
            build.apply("", function, &[sum.into()])?
        }
    };
    import.put(op, 0, result)
}

/// `LEAKY_RELU`: the slope is an option.
pub(super) fn leaky_relu<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let alpha = op.table.leaky_relu().map_or(0.0, |table| table.alpha());
    if !alpha.is_finite() {
        return refused!("found alpha {alpha}, wanted a finite number");
    }
    let slopes = import.steps_of_bytes(op)?.and_then(|[from, to]| {
        let factor = from.scale / to.scale;
        let [above, below] = [in_256ths(factor)?, in_256ths(factor * alpha)?];
        Some([above, below].map(|slope| slope / (256.0 * factor)))
    });
    let Some([above, below]) = slopes else { return number(import, op, Function::LeakyRelu, alpha) };
    let x = import.value(op, 0)?;
    let parts = import.begin(op, 0)?;
    let bent = parts.each("bent", Function::LeakyRelu, &[x.into(), (below / above).into()])?;
    let value = parts.each("", Function::Mul, &[bent.into(), above.into()])?;
    import.write(op, 0, value)
}

/// `RELU_0_TO_1`: `min(max(x, 0), 1)`.
pub(super) fn relu_0_to_1<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let x = import.value(op, 0)?;
    super::operands::node(import, op, |import, name| {
        import.build.graph.elementwise(name, Function::Clamp, &[x.into(), 0.0.into(), 1.0.into()])
    })
}

/// `SELECT`: as `SELECT_V2`, but a condition of one axis chooses along the first.
pub(super) fn select<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[3], 1)?;
    let rank_of = |import: &mut Import<'a>, index| match import.input(op, index)? {
        Input::Value(value) => Ok::<usize, Reason>(import.dims(value)?.rank()),
        Input::Constant(constant) => Ok(constant.extents().len()),
    };
    let (own, rank) = (rank_of(import, 0)?, rank_of(import, 1)?);
    if own != 1 || rank < 2 {
        return of(import, op, Function::Select);
    }
    let (condition, x, other) = (import.value(op, 0)?, import.value(op, 1)?, import.value(op, 2)?);
    let name = import.name(op, 0)?;
    let part = import.part_name(&name, "condition")?;
    let mut target = vec![Dim::Fixed(1); rank];
    target[0] = Dim::Rest;
    let graph = &mut import.build.graph;
    let condition = graph.reshape(&part, condition, &target)?;
    let value = graph.elementwise(&name, Function::Select, &[condition.into(), x.into(), other.into()]);
    let value = value?;
    import.write(op, 0, value)
}

/// `GELU`: with `tanh` where the options say so.
pub(super) fn gelu<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let approximate = op.table.gelu().is_some_and(|table| table.approximate());
    of(import, op, if approximate { Function::GeluTanh } else { Function::Gelu })
}

/// `ATAN2`: the angle of a point; inputs are `y` and `x`.
pub(super) fn angle<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let (y, x) = (import.shared(op, 0)?, import.shared(op, 1)?);
    let angle = angle_of(import.begin(op, 0)?, y.into(), x.into())?;
    import.put(op, 0, angle)
}

/// A function of the bits of integers.
pub(super) fn integers<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    function: IntegerFunction,
) -> Result<(), Reason> {
    op.check(&[function.arity()], 1)?;
    let mut args =
        (0..function.arity()).map(|index| import.operand(op, index)).collect::<Result<Vec<_>, Reason>>()?;
    let build = import.begin(op, 0)?;
    if let (IntegerFunction::ShiftRight, [_, places]) = (function, &mut args[..]) {
        // By less than no places is by none.
        let none = Operand::integers(Vec::new(), vec![0]).of_kind(places.kind());
        *places =
            build.within("places", |b| of_integers(b, IntegerFunction::Maximum, &[places.clone(), none]))?;
    }
    let result = of_integers(build, function, &args)?;
    import.put(op, 0, result)
}

/// `ADD_N`: the sum of any number of values.
pub(super) fn add_n<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    if op.outputs.len() != 1 || op.inputs.is_empty() {
        return refused!(
            "found {} inputs and {} outputs, wanted some and 1",
            op.inputs.len(),
            op.outputs.len()
        );
    }
    let name = import.name(op, 0)?;
    let mut sum = import.value(op, 0)?;
    for index in 1..op.inputs.len() {
        let term = import.value(op, index)?;
        let part =
            if index + 1 == op.inputs.len() { name.clone() } else { import.part_name(&name, "sum")? };
        let terms = [sum.into(), term.into()];
        sum = import.build.graph.elementwise(&part, Function::Add, &terms)?;
    }
    import.write(op, 0, sum)
}

/// `ZEROS_LIKE`: a constant.
pub(super) fn zeros_like<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let extents = super::shapes::extents(import, op)?;
    let zero = if super::shapes::is_float(import, op) {
        Constant::Floats(HostTensor::vector(vec![0.0])?)
    } else {
        Constant::Integers(Integers::vector(vec![0]))
    };
    let zeros = zero.strided(extents, &mut import.build.budget, 0, &[])?;
    import.write_constant(op, 0, zeros)
}

/// `CAST`: to an integer towards zero, to a boolean whether it is not 0; a float is a float.
pub(super) fn cast<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let to = import.kind(op.output(0)?)?;
    if let Input::Value(value) = import.input(op, 0)?
        && import.imaginary.contains_key(&value)
    {
        let position = import.tensors.position(op.output(0)?)?;
        // Of a complex value the real part is taken.
        return match import.tensors.tensor(position)?.element_type() {
            element::COMPLEX64 => import.write(op, 0, value),
            _ if to.is_float() => spectra::part(import, op, false),
            other => refused!(
                "found a complex value to be {}, wanted a float or COMPLEX64",
                names::element_type(other)
            ),
        };
    }
    let x = import.operand(op, 0)?;
    let keeps = matches!(x, Operand::Value(_)) && !changes(x.kind(), to);
    let bounds = to.range().filter(|_| x.kind().is_float() && to.narrow().is_some());
    let result = match bounds {
        _ if keeps => x,
        Some(bounds) => nearest(import.begin(op, 0)?, x, to, bounds)?,
        None => converted(import.begin(op, 0)?, x, to)?,
    };
    import.put(op, 0, result)
}

/// Floats as integers of at most 16 bits: those that these do not hold are the nearest that they do, as in LiteRT 2.3.
fn nearest(b: &mut Builder, x: Operand, to: Kind, [low, high]: [i64; 2]) -> Result<Operand, Reason> {
    let terms = [x.into(), (low as f32).into(), (high as f32).into()];
    match b.apply("bounded", Function::Clamp, &terms)? {
        constant @ Operand::Constant(..) => converted(b, constant, to),
        value => Ok(b.apply("", Function::Truncate, &[value.into()])?.of_kind(to)),
    }
}

/// A function of input 0 and a number.
pub(super) fn number<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    function: Function,
    number: f32,
) -> Result<(), Reason> {
    let x = import.value(op, 0)?;
    let name = import.name(op, 0)?;
    let value = import.build.graph.elementwise(&name, function, &[x.into(), number.into()]);
    import.write(op, 0, value?)
}

/// The activation that the options of an operator have, if it is one of those that may.
pub(super) fn activation(op: &Op<'_>) -> Result<Option<Function>, Reason> {
    let code = match op.name.as_str() {
        "ADD" => op.table.add().map(|table| table.activation()),
        "SUB" => op.table.sub().map(|table| table.activation()),
        "MUL" => op.table.mul().map(|table| table.activation()),
        "DIV" => op.table.div().map(|table| table.activation()),
        _ => None,
    };
    names::fused(code.unwrap_or(0))
}
