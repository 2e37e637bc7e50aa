//! Units of one input as one: their constants stacked, the input read once.
//!
//! `[y_1 y_2 ..] = x [w_1 w_2 ..]`: the heads of a network have few channels each, and four small
//! kernels with a change of layout each leave a large GPU idle for eight dispatches. Stacked are
//! units whose outputs only leave the network, so that nothing needs a single head as a feature
//! map; one conversion then writes each output's rows.

use super::unit::{Input, Network, Unit};
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::ops::convert::MOST_PARTS;
use crate::ops::{Op, Role};
use std::sync::Arc;

/// Units that can be stacked, by their places, and their ops.
type Group = (Vec<usize>, Vec<Arc<dyn Op>>);

/// Stacks what can be; units that `alone` names are left out.
pub(crate) fn stack(network: &mut Network<'_>, alone: &dyn Fn(&str) -> bool) -> Result<()> {
    let mut groups: Vec<Group> = Vec::new();
    for (index, unit) in network.units().iter().enumerate() {
        if alone(&unit.name) || !can_be_stacked(network, unit) {
            continue;
        }
        let op = unit.op(network.graph, Precision::F32)?;
        let group = groups.iter_mut().find(|(members, ops)| {
            let read = |unit: &Unit| unit.reads().collect::<Vec<_>>();
            let with: Vec<&dyn Op> = ops.iter().chain([&op]).map(|op| &**op).collect();
            let same_input = read(&network.units()[members[0]]) == read(unit);
            members.len() < MOST_PARTS && same_input && with[0].stack(&with).is_some()
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
        let inputs = inputs(&parts, &ops)?;
        stacks.push((members, Unit::stacked(parts, inputs)));
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

/// The shared input, and each constant of the parts one behind the other.
fn inputs(parts: &[Unit], ops: &[Arc<dyn Op>]) -> Result<Vec<(Operand, Input)>> {
    let views: Vec<&dyn Op> = ops.iter().map(|op| &**op).collect();
    let whole = views.first().and_then(|first| first.stack(&views));
    let whole = whole.ok_or_else(|| Error::Internal("a stack of ops that cannot be stacked".to_owned()))?;
    let mut inputs = Vec::new();
    for info in whole.operands() {
        match info.role {
            Role::Input => inputs.push((info.operand, parts[0].input(info.operand)?.clone())),
            Role::Constant => {
                let mut elements: Vec<f32> = Vec::with_capacity(info.elements());
                for (part, op) in parts.iter().zip(ops) {
                    match part.input(info.operand) {
                        Ok(Input::Constant(tensor, _)) => elements.extend(tensor.to_nhwc().iter()),
                        // A part without a bias adds zero to each of its channels.
                        _ => {
                            let channels: usize = crate::ops::outputs(&**op).map(|info| info.shape.c).sum();
                            elements.resize(elements.len() + channels, 0.0);
                        }
                    }
                }
                inputs.push((info.operand, Input::Constant(HostTensor::new(info.shape, elements)?, None)));
            }
            Role::Output | Role::Update => {}
        }
    }
    Ok(inputs)
}
