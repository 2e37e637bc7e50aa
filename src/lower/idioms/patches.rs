//! Convolutions whose windows touch without overlapping, over few channels, as two units: the elements of each window
//! as the channels of one pixel, and a 1x1 convolution of these. Vision transformers begin with one, of 16 x 16 pixels of
//! a picture: too many terms for the kernels of few channels, and the others would fill the lanes of a slice with zeros.
//! What the CPU computes stays one.

use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::host::HostTensor;
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::unit::{Input, Unit};
use crate::ops::conv2d::{Conv2d, Conv2dOp, MAX_UNROLLED};
use crate::ops::pointwise::Pointwise;
use crate::ops::remap::SpaceToDepth;
use crate::shape::Shape;
use std::any::Any;
use std::sync::Arc;

/// The most channels, those of one slice.
const FEW_CHANNELS: usize = 4;

/// Makes two units of each such convolution, but for those that `alone` names.
pub(in crate::lower) fn split_patches(network: &mut Network<'_>, alone: &dyn Fn(&str) -> bool) -> Result<()> {
    let mut units = Vec::new();
    for unit in network.take_units() {
        let stays = alone(&unit.name) || unit.host.is_some();
        let patches = if stays { None } else { patches(network, &unit) };
        match patches.map(|(options, op)| two(network, &unit, options, &op)) {
            Some(Some(two)) => units.extend(two),
            _ => units.push(unit),
        }
    }
    network.set_units(units);
    Ok(())
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
    let found = apart
        && height == width
        && problem.dilation == [1, 1]
        && problem.groups == 1
        && problem.input.c <= FEW_CHANNELS
        // With fewer, the kernels for few channels keep all that they read in registers.
        && problem.terms() > MAX_UNROLLED;
    found.then_some((options, op))
}

/// `unit`, which is `op`, as two; `None` if its weights are no constant.
fn two(network: &mut Network<'_>, unit: &Unit, options: Conv2d, op: &Conv2dOp) -> Option<[Unit; 2]> {
    let problem = &op.0;
    let (terms, output) = (problem.terms(), problem.output);
    let mut given = unit.given();
    let src = given.iter().position(|(operand, ..)| *operand == Operand::Src)?;
    let src = given.remove(src);
    let weights = given.iter_mut().find(|(operand, ..)| *operand == Operand::Weights)?;
    let Input::Constant(tensor, value) = &weights.1 else { return None };
    let flat = Dims::from(Shape::nhwc(output.c, 1, 1, terms));
    // The order of a window's weights is that of its elements: rows, columns, channels.
    let mut words = tensor.clone().into_words().ok()?;
    if planted("patches_order") {
        words = words.iter().rev().copied().collect();
    }
    let tensor = HostTensor::new(flat, words).ok()?;
    *weights = (Operand::Weights, Input::Constant(tensor, *value), flat);
    let pixels = Dims::from(Shape::nhwc(output.n, output.h, output.w, terms));
    let between = network.add_value(pixels);
    given.push((Operand::Src, Input::Value(between), pixels));
    let name = format!("{} (patches)", unit.name);
    let moved = Arc::new(SpaceToDepth { block: problem.kernel[0] });
    let sum = Arc::new(Pointwise { activation: options.activation });
    let two = [
        Unit::of_node(name, moved, vec![src], vec![between]),
        Unit::of_node(unit.name.clone(), sum, given, unit.outputs.clone()),
    ];
    two.iter().all(|part| part.op(network.graph, Precision::F32).is_ok()).then_some(two)
}
