//! Convolutions whose windows touch without overlapping as two units: the elements of each window as a row, or as the channels of
//! one pixel, and a product of these. Vision transformers begin with one, of 16 x 16 pixels of a picture: too many terms for the
//! kernels of few channels, and the others would fill the lanes of a slice with zeros. Between their stages, and before keys and
//! values, they have others of what was written in rows: a product reads these as they are, and the move is part of the unit
//! before it. What the CPU computes stays one.

use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Derived;
use crate::host::HostTensor;
use crate::limits::Limits;
use crate::lower::halves::has_maps_alone;
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::unit::{Input, Unit};
use crate::ops::conv2d::{Conv2d, Conv2dOp, MAX_UNROLLED};
use crate::ops::depthwise::Depthwise;
use crate::ops::gemm::Gemm;
use crate::ops::normalize::Normalize;
use crate::ops::operator::Operator;
use crate::ops::pointwise::Pointwise;
use crate::ops::remap::SpaceToDepth;
use crate::shape::Shape;
use crate::word;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most channels, those of one slice.
const FEW_CHANNELS: usize = 4;

/// What a convolution becomes behind the move of its windows' elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Product {
    /// A product of rows.
    OfRows,
    /// A 1x1 convolution.
    OfPixels,
}

/// Makes two units of each such convolution, but for those that `alone` names.
pub(in crate::lower) fn split_patches(network: &mut Network<'_>, alone: &dyn Fn(&str) -> bool) -> Result<()> {
    let mut split = BTreeMap::new();
    for (index, unit) in network.units().iter().enumerate() {
        if alone(&unit.name) || unit.host.is_some() {
            continue;
        }
        if let Some((options, op)) = patches(network, unit)
            && let Some(product) = product(network, unit, &op)
        {
            split.insert(index, (options, op, product));
        }
    }
    let mut units = Vec::new();
    for (index, unit) in network.take_units().into_iter().enumerate() {
        let two = split.get(&index).map(|(options, op, product)| two(network, &unit, *options, op, *product));
        match two {
            Some(Some(two)) => units.extend(two),
            _ => units.push(unit),
        }
    }
    network.set_units(units);
    Ok(())
}

/// Whether `unit` has kernels of maps in slices of four channels alone; a depthwise convolution reads rows too.
fn has_maps(network: &Network<'_>, unit: &Unit) -> bool {
    let is_depthwise = unit.operator().is_some_and(|operator| (operator as &dyn Any).is::<Depthwise>());
    let op = unit.op(network.graph, Precision::F32);
    !is_depthwise && op.is_ok_and(|op| has_maps_alone(&*op, &Limits::webgpu()))
}

/// Whether `unit` writes rows: a product, or a normalisation.
fn has_rows(unit: &Unit) -> bool {
    let Some(any) = unit.operator().map(|operator| operator as &dyn Any) else { return false };
    any.is::<Gemm>() || any.is::<Normalize>()
}

/// What such a convolution becomes behind the move, if it is to be two units.
fn product(network: &Network<'_>, unit: &Unit, op: &Conv2dOp) -> Option<Product> {
    let problem = &op.0;
    let &[output] = &unit.outputs[..] else { return None };
    let Ok(Input::Value(source)) = unit.input(Operand::Src) else { return None };
    let given = unit.given();
    let is_plain =
        given.iter().all(|(operand, ..)| matches!(operand, Operand::Src | Operand::Weights | Operand::Bias));
    let read_in_rows = || !network.readers(output).any(|reader| has_maps(network, &network.units()[reader]));
    let of_rows = is_plain && !network.leaves(output) && read_in_rows();
    // With fewer terms, the kernels for few channels keep all that they read in registers.
    if problem.input.c <= FEW_CHANNELS {
        let product = if of_rows { Product::OfRows } else { Product::OfPixels };
        return (problem.terms() > MAX_UNROLLED).then_some(product);
    }
    let writer = network.writer(network.resolve(*source).of)?;
    (of_rows && has_rows(&network.units()[writer])).then_some(Product::OfRows)
}

/// The convolution that `unit` is, if its windows are the squares that a map consists of.
fn patches(network: &Network<'_>, unit: &Unit) -> Option<(Conv2d, Conv2dOp)> {
    let options = *(unit.operator()? as &dyn Any).downcast_ref::<Conv2d>()?;
    let op = unit.op(network.graph, Precision::F32).ok()?;
    let op = *op.as_any().downcast_ref::<Conv2dOp>()?;
    let problem = &op.0;
    let [height, width] = problem.kernel;
    let covers = problem.output.h * height == problem.input.h && problem.output.w * width == problem.input.w;
    let apart = problem.stride == problem.kernel && problem.before == [0, 0] && covers;
    let found = apart && height == width && problem.dilation == [1, 1] && problem.groups == 1;
    found.then_some((options, op))
}

/// `unit`, which is `op`, as two; `None` if its weights are no constant, or are stored in another order.
fn two(
    network: &mut Network<'_>,
    unit: &Unit,
    options: Conv2d,
    op: &Conv2dOp,
    product: Product,
) -> Option<[Unit; 2]> {
    let problem = &op.0;
    let (terms, output) = (problem.terms(), problem.output);
    let mut given = unit.given();
    let src = given.iter().position(|(operand, ..)| *operand == Operand::Src)?;
    let src = given.remove(src);
    let weights = given.iter_mut().find(|(operand, ..)| *operand == Operand::Weights)?;
    let Input::Constant(tensor, value) = &weights.1 else { return None };
    // The order of a window's weights is that of its elements: rows, columns, channels.
    let pixels = Dims::from(Shape::nhwc(output.n, output.h, output.w, terms));
    let between = network.add_value(pixels);
    let (sum, outputs): (Arc<dyn Operator>, _) = match product {
        Product::OfPixels => {
            let flat = Dims::from(Shape::nhwc(output.c, 1, 1, terms));
            let mut tensor = tensor.clone().reshaped(flat).ok()?;
            if planted("patches_order") {
                tensor =
                    HostTensor::new(flat, tensor.to_nhwc().iter().rev().copied().collect::<Vec<_>>()).ok()?;
            }
            *weights = (Operand::Weights, Input::Constant(tensor, *value), flat);
            given.push((Operand::Src, Input::Value(between), pixels));
            (Arc::new(Pointwise { activation: options.activation }), unit.outputs.clone())
        }
        Product::OfRows => {
            let columns = columns(network.graph.derived(), tensor, [output.c, terms]).ok()?;
            let (rows, dims) = (output.n * output.h * output.w, columns.dims());
            let value = network.add_constant(columns.clone());
            *weights = (Operand::B, Input::Constant(columns, Some(value)), dims);
            given.push((Operand::A, Input::Value(between), Dims::new(&[rows, terms]).ok()?));
            let written = network.add_value(Dims::new(&[rows, output.c]).ok()?);
            (Arc::new(Gemm { activation: options.activation, ..Gemm::default() }), vec![written])
        }
    };
    let moved = Arc::new(SpaceToDepth { block: problem.kernel[0] });
    let name = format!("{} (patches)", unit.name);
    let mut own = Unit::of_node(unit.name.clone(), sum, given, outputs);
    own.precision = unit.precision.clone();
    let two = [Unit::of_node(name, moved, vec![src], vec![between]), own];
    if two.iter().any(|part| part.op(network.graph, Precision::F32).is_err()) {
        return None;
    }
    for (&shown, &written) in unit.outputs.iter().zip(&two[1].outputs).filter(|(one, other)| one != other) {
        network.show(shown, written);
    }
    Some(two)
}

/// Weights `oc terms` as the matrix `terms oc`, whose columns are those of the output channels.
fn columns(derived: &Derived, weights: &HostTensor, [channels, terms]: [usize; 2]) -> Result<HostTensor> {
    let dims = Dims::new(&[terms, channels])?;
    derived.joined("columns of windows", &[weights], |dtype, parts| {
        let (each, words) = (dtype.word().words(), parts.concat());
        let mut moved = Vec::with_capacity(words.len());
        for place in 0..terms * channels {
            let (term, channel) = (place / channels, place % channels);
            let term = if planted("patches_order") { terms - 1 - term } else { term };
            let at = (channel * terms + term) * each;
            moved.extend_from_slice(words.get(at..at + each).unwrap_or_default());
        }
        word::to_tensor(dims, dtype, dtype.word(), &moved)
    })
}
