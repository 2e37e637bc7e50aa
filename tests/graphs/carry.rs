//! How far the errors of a node's inputs carry to its result: a rule for each op.
//!
//! | ops | rule |
//! |---|---|
//! | sums of products | the same sum of the factors' magnitudes and errors, inside the activation |
//! | elementwise | intervals of the program's steps |
//! | moves, resize | what the op makes of the errors |
//! | softmax | powers are off by a factor of `exp(2 beta e)` at most |
//! | normalisation | of the mean, of the variance and of the root, as in its oracle |
//! | maximum, minimum, the largest `k` | the largest error among the elements |
//! | indices and truth | exact where no error changes an order or a zero; unknown elsewhere |

use crate::oracle::{Given, Known, own};
use diptych::{Function, Operand, Reduce, Reduction, Softmax, nn::Normalize};
use diptych_kernels::ops::elementwise::Step as ProgramStep;
use diptych_kernels::ops::operator::{Arguments, Lowered, Operator};
use diptych_kernels::ops::{Answer, Op, Operands, Reference, Sum};
use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The result `reference` of a node, with the errors of its inputs.
pub(crate) fn on(given: &Given<'_>, reference: Reference) -> Result<Known, String> {
    let bounds = || own(&reference, given.precision);
    let with = |carried: Vec<f64>| {
        let errors = bounds().into_iter().zip(carried).map(|(own, carried)| own + carried);
        Ok(Known::rounded(reference.value(), errors))
    };
    let exact = given.known.iter().all(Known::is_exact);
    let finite = given.known.iter().flat_map(|known| &known.value).all(|value| value.is_finite());
    match given.op.name() {
        "suppress" if !finite => unknown(&reference),
        "elementwise" => elementwise(given, &reference),
        _ if exact => Ok(Known::rounded(reference.value(), bounds())),
        "conv2d" | "depthwise" | "pointwise" | "transposed_conv2d" | "gemm" | "quantized_gemm" | "cumsum" => {
            linear(given, reference)
        }
        "pool" => match reference {
            Reference::Sum(_) => linear(given, reference),
            Reference::Bounded { .. } => with(of_errors(given, &*given.op)?),
        },
        "reduce" => match reduction(given) {
            Reduction::Sum | Reduction::Mean => linear(given, reference),
            Reduction::Max | Reduction::Min => with(of_errors(given, &*largest(given)?)?),
            Reduction::Product => product(given, &reference),
            _ => with(truth(given)?),
        },
        "remap" | "concat" | "resize" => with(moved(given)?),
        "gather" => with(gathered(given)?),
        "softmax" => softmax(given, &reference),
        "normalize" => normalized(given, &reference),
        "arg" | "top_k" => ordered(given, &reference),
        // What is not exact may be anything.
        _ => unknown(&reference),
    }
}

fn unknown(reference: &Reference) -> Result<Known, String> {
    Ok(Known::rounded(reference.value(), vec![f64::INFINITY; reference.value().len()]))
}

/// The op's oracle of other operands: its magnitudes, if it is a sum, else its values.
fn magnitudes(op: &dyn Op, operands: &Operands<'_>) -> Result<Vec<f64>, String> {
    Ok(match op.reference(operands, Answer::Exact).map_err(|error| error.to_string())? {
        Reference::Sum(Sum { magnitude, .. }) => magnitude,
        Reference::Bounded { value, .. } => value,
    })
}

/// The operands, those of `instead` replaced, biases and residuals zero.
fn replaced<'a>(given: &'a Given<'_>, instead: &BTreeMap<Operand, Vec<f32>>) -> Operands<'a> {
    let mut operands = given.operands();
    for (operand, values) in &mut operands {
        if matches!(operand, Operand::Bias | Operand::Residual) {
            *values = Cow::Owned(vec![0.0; values.len()]);
        }
        if let Some(instead) = instead.get(operand) {
            *values = Cow::Owned(instead.clone());
        }
    }
    operands
}

fn linear(given: &Given<'_>, reference: Reference) -> Result<Known, String> {
    let Reference::Sum(mut sum) = reference else {
        return Err(format!("the oracle of {} gives no sum", given.node.name()));
    };
    let factors = [Operand::Src, Operand::A, Operand::B];
    let moving: Vec<_> =
        factors.iter().filter_map(|&operand| Some((operand, given.get(operand)?.1))).collect();
    let mut carried = vec![0.0; sum.value.len()];
    // One factor's error times the others' magnitudes, errors included for those that follow.
    for (place, (operand, known)) in moving.iter().enumerate().filter(|(_, (_, known))| !known.is_exact()) {
        let mut instead = BTreeMap::from([(*operand, known.errors())]);
        for (later, (other, known)) in moving.iter().enumerate().filter(|(later, _)| *later != place) {
            let values = if later > place { known.largest() } else { known.value.clone() };
            instead.insert(*other, values);
        }
        let of_one = magnitudes(&*given.op, &replaced(given, &instead))?;
        carried.iter_mut().zip(of_one).for_each(|(sum, one)| *sum += one);
    }
    let residual = given.get(Operand::Residual).map(|(_, known)| known.error.clone()).unwrap_or_default();
    if sum.residual_first {
        carried.iter_mut().zip(&residual).for_each(|(sum, one)| *sum += one);
    }
    let was = std::mem::replace(&mut sum.carried, carried);
    sum.carried.iter_mut().zip(was).for_each(|(sum, was)| *sum += was);
    let after =
        |at: usize| if sum.residual_first { 0.0 } else { residual.get(at).copied().unwrap_or_default() };
    // The sum with the residual rounds once more, and the store.
    let error = |at: usize| sum.tolerance(at, given.precision) + 1.01 * after(at);
    Ok(Known::rounded(&sum.value, (0..sum.value.len()).map(error)))
}

/// What `op` makes of the errors of `Src`.
fn of_errors(given: &Given<'_>, op: &dyn Op) -> Result<Vec<f64>, String> {
    let errors = given.get(Operand::Src).map(|(_, known)| known.errors()).unwrap_or_default();
    magnitudes(op, &BTreeMap::from([(Operand::Src, Cow::Owned(errors))]))
}

fn elementwise(given: &Given<'_>, reference: &Reference) -> Result<Known, String> {
    let program = given.node.operator().program().ok_or("no program")?;
    let output = given.op.operands().pop().ok_or("no output")?.shape.elements();
    let mut target: Vec<usize> = Vec::new();
    for argument in &given.arguments {
        let extents = argument.dims.extents();
        let missing = extents.len().saturating_sub(target.len());
        target.splice(0..0, vec![1; missing]);
        let own = target.len() - extents.len();
        target[own..].iter_mut().zip(extents).for_each(|(all, one)| *all = (*all).max(*one));
    }
    // A maximum of what is none is none.
    let choice = |step: &ProgramStep| matches!(step.function, Function::Maximum | Function::Minimum);
    let stays = matches!(program.steps(), [step] if choice(step));
    let mut errors = Vec::with_capacity(output);
    for at in 0..output {
        let each = given.arguments.iter().zip(&given.known).map(|(argument, known)| {
            let (mut rest, mut place, mut stride) = (at, 0, 1);
            let own = argument.dims.extents().iter().rev().map(Some).chain(std::iter::repeat(None));
            for (extent, own) in target.iter().rev().zip(own) {
                let index = rest % extent;
                rest /= extent;
                if let Some(own) = own {
                    place += if *own == 1 { 0 } else { index * stride };
                    stride *= own;
                }
            }
            let (value, error) = (f64::from(known.value[place]), known.error[place]);
            // A NaN of which nothing is known may be a number.
            if value.is_nan() && error > 0.0 {
                return [0.0, f64::NEG_INFINITY, f64::INFINITY];
            }
            [value, value - error, value + error]
        });
        let inputs: Vec<[f64; 3]> = each.collect();
        // Nothing is known of one, or it is none.
        if inputs.iter().flatten().any(|end| !end.is_finite()) {
            let surely = inputs.iter().any(|ends| ends.iter().all(|end| end.is_nan()));
            errors.push(if stays && surely { 0.0 } else { f64::INFINITY });
            continue;
        }
        let [value, low, high] = program.enclose(&inputs, given.precision);
        let exact = low == high && low == value;
        errors.push(if !value.is_finite() {
            f64::INFINITY
        } else if exact {
            0.0
        } else {
            (high - value).abs().max((value - low).abs())
        });
    }
    Ok(Known::rounded(reference.value(), errors))
}

fn reduction(given: &Given<'_>) -> Reduction {
    let operator: &dyn Any = given.node.operator();
    let of_pool = || match operator.downcast_ref::<diptych::Pool>().map(|pool| pool.pooling) {
        Some(diptych::Pooling::Max) => Reduction::Max,
        _ => Reduction::Mean,
    };
    operator.downcast_ref::<Reduce>().map_or_else(of_pool, |reduce| reduce.reduction)
}

/// The maxima of what the node reduces.
fn largest(given: &Given<'_>) -> Result<std::sync::Arc<dyn Op>, String> {
    let operator: &dyn Any = given.node.operator();
    let (axes, keep_dims) = match operator.downcast_ref::<Reduce>() {
        Some(reduce) => (reduce.axes.clone(), reduce.keep_dims),
        None => (vec![1, 2], true),
    };
    let maxima = Reduce { reduction: Reduction::Max, axes, keep_dims };
    let arguments = Arguments { inputs: &given.arguments, dimensions: &BTreeMap::new(), narrow: false };
    match maxima.lower(arguments, diptych::Precision::F32).map_err(|error| error.to_string())? {
        Lowered::Op(op) => Ok(op),
        _ => Err("a reduction of nothing".to_owned()),
    }
}

fn product(given: &Given<'_>, reference: &Reference) -> Result<Known, String> {
    let known = given.get(Operand::Src).ok_or("no source")?.1;
    let of = |values: Vec<f32>| {
        let operands = BTreeMap::from([(Operand::Src, Cow::Owned(values))]);
        given.op.reference(&operands, Answer::Exact).map_err(|error| error.to_string())
    };
    let [least, most] = [of(known.value.iter().map(|value| value.abs()).collect())?, of(known.largest())?];
    let error = |at: usize| most.value()[at] - least.value()[at] + most.tolerance(at, given.precision);
    Ok(Known::rounded(reference.value(), (0..reference.value().len()).map(error)))
}

/// 1 where something that may be zero or not takes part.
fn truth(given: &Given<'_>) -> Result<Vec<f64>, String> {
    let known = given.get(Operand::Src).ok_or("no source")?.1;
    let unsure = known.value.iter().zip(&known.error);
    let unsure = unsure.map(|(value, error)| {
        if error.is_infinite() || *error > 0.0 && f64::from(value.abs()) <= *error { 1.0 } else { 0.0 }
    });
    let unsure: Vec<f32> = unsure.collect();
    if reduction_is_view(given) {
        return Ok(unsure.into_iter().map(f64::from).collect());
    }
    let operands = BTreeMap::from([(Operand::Src, Cow::Owned(unsure))]);
    magnitudes(&*largest(given)?, &operands)
}

/// Whether it reduces axes of one element.
fn reduction_is_view(given: &Given<'_>) -> bool {
    let elements = |known: &Known| known.value.len();
    let output = given.op.operands().pop().map_or(0, |output| output.shape.elements());
    given.known.first().map(elements) == Some(output)
}

/// Of what is linear in its inputs, but for constants that it adds.
fn moved(given: &Given<'_>) -> Result<Vec<f64>, String> {
    let of = |values: &dyn Fn(&Known) -> Vec<f32>| {
        let each = given.arguments.iter().zip(&given.known);
        let operands = each.map(|(argument, known)| (argument.operand, Cow::Owned(values(known)))).collect();
        given.op.reference(&operands, Answer::Exact).map_err(|error| error.to_string())
    };
    let errors = of(&Known::errors)?;
    let constants = of(&|known| vec![0.0; known.value.len()])?;
    // What rounds, rounds the error as well.
    let one = |at: usize| {
        (errors.value()[at] - constants.value()[at]).abs() + errors.tolerance(at, given.precision)
    };
    Ok((0..errors.value().len()).map(one).collect())
}

fn gathered(given: &Given<'_>) -> Result<Vec<f64>, String> {
    let (_, source) = given.get(Operand::Src).ok_or("no source")?;
    let (_, indices) = given.get(Operand::Arg(0)).ok_or("no indices")?;
    let decided = |(value, error): (&f32, &f64)| {
        let (low, high) = (f64::from(*value) - error, f64::from(*value) + error);
        *error == 0.0 || low.floor() == high.floor()
    };
    let operands = BTreeMap::from([
        (Operand::Src, Cow::Owned(source.errors())),
        (Operand::Arg(0), Cow::Borrowed(indices.value.as_slice())),
    ]);
    let errors = magnitudes(&*given.op, &operands)?;
    if indices.value.iter().zip(&indices.error).all(decided) {
        return Ok(errors);
    }
    Ok(vec![f64::INFINITY; errors.len()])
}

/// The places of the elements along `axes`, for each place along the others.
fn lines(extents: &[usize], axes: &[usize]) -> Vec<Vec<usize>> {
    let mut lines: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
    for at in 0..extents.iter().product() {
        let (mut rest, mut key) = (at, Vec::new());
        for (axis, extent) in extents.iter().enumerate().rev() {
            if !axes.contains(&axis) {
                key.push(rest % extent);
            }
            rest /= extent;
        }
        lines.entry(key).or_default().push(at);
    }
    lines.into_values().collect()
}

fn axis_of(axis: isize, rank: usize) -> usize {
    if axis < 0 { (axis + rank as isize) as usize } else { axis as usize }
}

fn softmax(given: &Given<'_>, reference: &Reference) -> Result<Known, String> {
    let operator: &dyn Any = given.node.operator();
    let options = operator.downcast_ref::<Softmax>().ok_or("no softmax")?;
    let (argument, known) = given.get(Operand::Src).ok_or("no source")?;
    let extents = argument.dims.extents();
    let mut errors = own(reference, given.precision);
    for line in lines(extents, &[axis_of(options.axis, extents.len())]) {
        let most = line.iter().fold(0.0, |most: f64, &at| most.max(known.error[at]));
        let moved = 2.0 * f64::from(options.beta.0) * most;
        for at in line {
            // Its own error grows with the exponents.
            let own = errors[at] * (1.0 + 2.0 * moved) * moved.exp();
            let carried = if options.log { moved } else { reference.value()[at] * moved.exp_m1() };
            errors[at] = own + carried;
        }
    }
    Ok(Known::rounded(reference.value(), errors))
}

fn normalized(given: &Given<'_>, reference: &Reference) -> Result<Known, String> {
    let operator: &dyn Any = given.node.operator();
    let options = operator.downcast_ref::<Normalize>().ok_or("no normalisation")?;
    let (argument, known) = given.get(Operand::Src).ok_or("no source")?;
    let extents = argument.dims.extents();
    let axes: Vec<usize> = options.axes.iter().map(|&axis| axis_of(axis, extents.len())).collect();
    let channels = extents.last().copied().unwrap_or(1);
    let scale = given.get(Operand::Weights).map(|(_, known)| known.value.clone());
    let epsilon = f64::from(options.epsilon.0);
    let mut errors = own(reference, given.precision);
    for line in lines(extents, &axes) {
        let count = line.len() as f64;
        let x = |at: usize| f64::from(known.value[at]);
        // A mean that is not subtracted is as one of 0.
        let weight = if options.centred { 1.0 / count } else { 0.0 };
        let mean = line.iter().map(|&at| x(at)).sum::<f64>() * weight;
        let of_mean = line.iter().map(|&at| known.error[at]).sum::<f64>() * weight;
        let squares = |off: &dyn Fn(usize) -> f64| line.iter().map(|&at| off(at)).sum::<f64>() / count;
        let variance = squares(&|at| (x(at) - mean).powi(2));
        let of_variance = squares(&|at| {
            let off = known.error[at] + of_mean;
            2.0 * (x(at) - mean).abs() * off + off * off
        });
        let root = |variance: f64| 1.0 / (variance.max(0.0) + epsilon).sqrt();
        let (most, factor, least) =
            (root(variance - of_variance), root(variance), root(variance + of_variance));
        let of_factor = (most - factor).max(factor - least);
        for at in line {
            let scale = scale.as_ref().map_or(1.0, |scale| f64::from(scale[at % channels]).abs());
            let off = known.error[at] + of_mean;
            let carried = off * most + (x(at) - mean).abs() * of_factor;
            // Its own error is of the root to the third power at most, and of the differences.
            let grown = (most / factor).powi(3) * (1.0 + off / ((x(at) - mean).abs() + epsilon.sqrt()));
            errors[at] = errors[at] * grown + carried * scale;
        }
    }
    Ok(Known::rounded(reference.value(), errors))
}

/// Indices of the largest elements, and these elements.
fn ordered(given: &Given<'_>, reference: &Reference) -> Result<Known, String> {
    let operator: &dyn Any = given.node.operator();
    let (argument, known) = given.get(Operand::Src).ok_or("no source")?;
    let extents = argument.dims.extents();
    let last = extents.len().saturating_sub(1);
    let (axis, indices) = match operator.downcast_ref::<diptych::nn::ArgReduce>() {
        Some(options) => (axis_of(options.axis, extents.len()), true),
        None => (last, operator.downcast_ref::<diptych::nn::TopK>().is_some_and(|options| options.indices)),
    };
    // Results of a line follow each other, or are one.
    let lines = lines(extents, &[axis]);
    let mut places: Vec<(usize, Vec<usize>)> = lines.into_iter().map(|line| (line[0], line)).collect();
    places.sort();
    let each = reference.value().len() / places.len().max(1);
    let mut errors = Vec::new();
    for (_, line) in places {
        let most = line.iter().fold(0.0, |most: f64, &at| most.max(known.error[at]));
        let overlap = |a: usize, b: usize| {
            let both = known.error[a] + known.error[b];
            let near = || f64::from((known.value[a] - known.value[b]).abs()) <= both;
            both.is_infinite() || both > 0.0 && near()
        };
        let unsure = line.iter().any(|&a| line.iter().any(|&b| a != b && overlap(a, b)));
        let error = if !indices {
            most
        } else if unsure {
            f64::INFINITY
        } else {
            0.0
        };
        errors.extend(vec![error; each]);
    }
    Ok(Known::rounded(reference.value(), errors))
}
