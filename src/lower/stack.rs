//! Units of one input as one: their constants stacked, the input read once.
//!
//! `[y_1 y_2 ..] = x [w_1 w_2 ..]`: the heads of a network have few channels each, and four small
//! kernels with a change of layout each leave a large GPU idle for eight dispatches. Stacked are:
//!
//! | the units' outputs | where they lie |
//! |---|---|
//! | only leave the network, so that nothing needs a single head as a feature map | one conversion writes each output's rows |
//! | are a pixel each, and stay in the network | in pieces of the stacked pixel, each where a binding may begin |

use super::network::Network;
use super::unit::{Input, Unit};
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::lower::mistakes::planted;
use crate::ops::convert::MOST_PARTS;
use crate::ops::{Op, Role};
use std::sync::Arc;

/// Units that can be stacked, by their places, and their ops.
type Group = (Vec<usize>, Vec<Arc<dyn Op>>);

/// Channels between the places of a pixel where bindings may begin, which is at multiples of `alignment` bytes.
pub(crate) fn multiple(precision: Precision, alignment: u64) -> usize {
    let dtype = if precision == Precision::Auto { DType::F16 } else { precision.storage() };
    (alignment as usize / dtype.bytes()).next_multiple_of(4).max(4)
}

/// Stacks what can be; units that `alone` names are left out. A binding may begin at a channel of a pixel that is
/// a multiple of `multiple`, itself a multiple of 4.
pub(super) fn stack(network: &mut Network<'_>, alone: &dyn Fn(&str) -> bool, multiple: usize) -> Result<()> {
    stack_those(network, alone, &can_be_stacked, [1, MOST_PARTS])?;
    stack_those(network, alone, &is_pixel, [multiple, usize::MAX])
}

/// Stacks those units that `is` holds for, at most so many, each part from a multiple of so many channels on.
fn stack_those(
    network: &mut Network<'_>,
    alone: &dyn Fn(&str) -> bool,
    is: &dyn Fn(&Network<'_>, &Unit) -> bool,
    [multiple, most]: [usize; 2],
) -> Result<()> {
    let mut groups: Vec<Group> = Vec::new();
    for (index, unit) in network.units().iter().enumerate() {
        if alone(&unit.name) || !is(network, unit) {
            continue;
        }
        let op = unit.op(network.graph, Precision::F32)?;
        let group = groups.iter_mut().find(|(members, ops)| {
            let with = || ops.iter().chain([&op]).map(|op| &**op).collect::<Vec<&dyn Op>>();
            members.len() < most
                && network.units()[members[0]].reads().eq(unit.reads())
                && ops[0].stack(&with(), multiple).is_some()
        });
        match group {
            Some((members, ops)) => {
                members.push(index);
                ops.push(op);
            }
            None => groups.push((vec![index], vec![op])),
        }
    }
    groups.retain(|(members, _)| members.len() > 1);
    let mut stacks = Vec::with_capacity(groups.len());
    for (members, ops) in groups {
        let parts: Vec<Unit> = members.iter().map(|&member| network.units()[member].clone()).collect();
        let inputs = inputs(&parts, &ops, multiple)?;
        stacks.push((members, Unit::stacked(parts, inputs, multiple)));
    }
    // A stack runs in its first part's place: what it reads is there already.
    let mut units = Vec::new();
    for (index, unit) in network.take_units().into_iter().enumerate() {
        match stacks.iter().find(|(members, _)| members.contains(&index)) {
            Some((members, stack)) if members[0] == index => units.push(stack.clone()),
            Some(_) => {}
            None => units.push(unit),
        }
    }
    network.set_units(units);
    Ok(())
}

/// Whether its only output only leaves the network, and it reads one value of a run.
fn can_be_stacked(network: &Network<'_>, unit: &Unit) -> bool {
    let &[output] = &unit.outputs[..] else { return false };
    let shown = network.resolve(output).of != output;
    let is_output = network.graph.outputs().contains(&output);
    let leaves_alone = is_output
        && !shown
        && network.readers(output).next().is_none()
        && network.graph.outputs().iter().filter(|&&value| network.resolve(value).of == output).count() == 1;
    leaves_alone && unit.reads().count() == 1
}

/// Whether its only output is one pixel of whole slices, which stays in the network, and it reads one value of a
/// run.
fn is_pixel(network: &Network<'_>, unit: &Unit) -> bool {
    let &[output] = &unit.outputs[..] else { return false };
    let pixel = network.dims(output).is_ok_and(|dims| {
        let shape = dims.shape();
        shape.n * shape.h * shape.w == 1 && shape.c.is_multiple_of(4)
    });
    let stays = network.resolve(output).of == output && !network.leaves(output);
    pixel && stays && unit.operator().is_some() && unit.reads().count() == 1
}

/// The shared input, and each constant of the parts one behind the other.
fn inputs(parts: &[Unit], ops: &[Arc<dyn Op>], multiple: usize) -> Result<Vec<(Operand, Input)>> {
    let views: Vec<&dyn Op> = ops.iter().map(|op| &**op).collect();
    let whole = views.first().and_then(|first| first.stack(&views, multiple));
    let whole = whole.ok_or_else(|| Error::Internal("a stack of ops that cannot be stacked".to_owned()))?;
    let mut inputs = Vec::new();
    for info in whole.operands() {
        match info.role {
            Role::Input => inputs.push((info.operand, parts[0].input(info.operand)?.clone())),
            Role::Constant => {
                let channels =
                    |op: &dyn Op| crate::ops::outputs(op).map(|info| info.shape.c).sum::<usize>().max(1);
                let each = info.elements() / channels(&*whole);
                let mut elements: Vec<f32> = Vec::with_capacity(info.elements());
                let order: Vec<&Unit> = if planted("stack_order") {
                    parts.iter().rev().collect()
                } else {
                    parts.iter().collect()
                };
                for (part, op) in order.into_iter().zip(ops) {
                    let end = elements.len() + each * channels(&**op).next_multiple_of(multiple);
                    // A part without a bias adds zero to each of its channels.
                    if let Ok(Input::Constant(tensor, _)) = part.input(info.operand) {
                        elements.extend(tensor.to_nhwc().iter());
                    }
                    elements.resize(end, 0.0);
                }
                inputs.push((info.operand, Input::Constant(HostTensor::new(info.shape, elements)?, None)));
            }
            Role::Output | Role::Update => {}
        }
    }
    Ok(inputs)
}
