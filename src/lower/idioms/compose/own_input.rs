//! Depthwise convolutions to which their own input is added: `w * x + x = (w + d) * x`, where `d` is 1 in the middle of each window
//! and 0 elsewhere. Positional encodings of vision transformers are written so.
//!
//! It is for maps that begin within a value, which a kernel reads where they are, but adds from a buffer of their own. In halves a
//! weight of 1 more is rounded as the sum would be.

use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Activation, Operand};
use crate::error::Result;
use crate::host::HostTensor;
use crate::lower::mistakes::planted;
use crate::lower::network::Network;
use crate::lower::unit::{Input, Unit};
use crate::ops::depthwise::{Depthwise, DepthwiseOp};
use std::any::Any;

/// `unit` without a residual, if it is a depthwise convolution that adds its own input, which begins within another value.
pub(super) fn without_its_input(network: &Network<'_>, unit: &Unit) -> Result<Option<Unit>> {
    let depthwise = unit.operator().and_then(|own| (own as &dyn Any).downcast_ref::<Depthwise>());
    let shown = |operand: Operand| {
        let value = unit.input(operand).ok().and_then(Input::value)?;
        Some(network.resolve(value))
    };
    let alike = shown(Operand::Src).zip(shown(Operand::Residual));
    let within =
        alike.is_some_and(|(own, added)| (own.of, own.offset) == (added.of, added.offset) && own.offset != 0);
    let (Some(operator), true) = (unit.shared_operator(), within) else { return Ok(None) };
    if depthwise.is_none_or(|own| own.activation != Activation::None) {
        return Ok(None);
    }
    let op = unit.op(network.graph, Precision::F32)?;
    let Some(op) = op.as_any().downcast_ref::<DepthwiseOp>() else { return Ok(None) };
    let windows = op.convolution();
    let middle = [0, 1].map(|axis| windows.kernel[axis] / 2);
    let centred = [0, 1].iter().all(|&axis| {
        windows.kernel[axis] % 2 == 1 && windows.before[axis] == middle[axis] * windows.dilation[axis]
    });
    if windows.stride != [1, 1] || windows.input != windows.output || !centred {
        return Ok(None);
    }
    let (channels, width) = (windows.input.c, windows.kernel[1]);
    let first = if planted("loops_own_input") { 0 } else { (middle[0] * width + middle[1]) * channels };
    let mut given: Vec<(Operand, Input, Dims)> = unit.given();
    given.retain(|(operand, ..)| *operand != Operand::Residual);
    for (operand, input, dims) in &mut given {
        if *operand != Operand::Weights {
            continue;
        }
        let Input::Constant(weights, _) = &*input else { return Ok(None) };
        let more = network.graph.derived().joined("with its input", &[weights], |_, parts| {
            let mut values = parts.first().copied().unwrap_or_default().to_vec();
            values.iter_mut().skip(first).take(channels).for_each(|value| *value += 1.0);
            HostTensor::new(*dims, values)
        })?;
        *input = Input::Constant(more, None);
    }
    let mut new = Unit::of_node(unit.name.clone(), operator, given, unit.outputs.clone());
    new.precision = unit.precision.clone();
    Ok(Some(new))
}
