//! What each unit of a network computes and of what, for runs that are looked at unit by unit.

use super::alias::Alias;
use super::choosing::{Choosing, known_limits};
use super::network::Network;
use super::prepare::{base, prepared};
use super::rewrites::Rewrites;
use super::simplify::simplified;
use super::unit::{Input, Unit};
use crate::device::DeviceInfo;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::host::HostTensor;
use crate::ops::Op;
use crate::options::SessionOptions;
use crate::tune::key::DeviceKey;
use std::borrow::Cow;
use std::sync::Arc;

/// What an operand is given.
#[derive(Debug)]
pub(crate) enum ObservedOperand {
    /// A part of a value of the graph: what it shows, and its value of the graph.
    Value(Alias, Value),
    Constant(HostTensor),
    /// What another unit wrote that is made of a part of the same node.
    Inside,
}

/// A unit, or a part of one that is several stacked ones.
#[derive(Debug)]
pub(crate) struct ObservedUnit {
    /// The name of the step that runs it.
    pub(crate) name: String,
    pub(crate) op: Arc<dyn Op>,
    pub(crate) reads: Vec<(Operand, ObservedOperand)>,
    /// The values of the graph that it writes, in the order of the op's outputs.
    pub(crate) writes: Vec<Value>,
    /// The last of the op's outputs, if it is a value of the graph: what oracles compute.
    pub(crate) last: Option<Value>,
    /// The other outputs that are values of the graph.
    pub(crate) others: Vec<(Operand, Value)>,
}

/// The units of `graph` as the device runs them, or the CPU. One that writes no value of the graph is left out.
pub(crate) fn observed_units(
    graph: &Graph,
    asked: &SessionOptions,
    device: Option<&DeviceInfo>,
) -> Result<Vec<ObservedUnit>> {
    let options = &*base(asked);
    let graph = &*if device.is_some() { graph.on_device()? } else { Cow::Borrowed(graph) };
    let network = match device {
        Some(info) => {
            let device = DeviceKey::of(info);
            let limits = known_limits(options, &device, &info.limits);
            prepared(graph, asked, &Choosing { options, device: &device, limits: &limits, known: None })?
        }
        None => {
            let alone = |name: &str| options.choices.contains_key(name);
            simplified(graph, &Rewrites::of(options, &alone))?
        }
    };
    let asked = if device.is_some() { options.precision } else { Precision::F32 };
    let mut all = Vec::new();
    for unit in network.units() {
        let own = unit.precision.as_ref().map_or(asked, |own| own.precision);
        let precision = if unit.host.is_some() { Precision::F32 } else { own };
        match unit.parts() {
            [] => all.extend(one(&network, unit, &unit.name, precision)?),
            parts => {
                for part in parts {
                    all.extend(one(&network, part, &unit.name, precision)?);
                }
            }
        }
    }
    Ok(all)
}

fn one(network: &Network<'_>, unit: &Unit, name: &str, precision: Precision) -> Result<Option<ObservedUnit>> {
    let graph = network.graph;
    let reads = unit.inputs.iter().map(|(operand, input)| (*operand, given(network, input))).collect();
    let writes: Vec<Value> =
        unit.outputs.iter().copied().filter(|value| graph.info(*value).is_ok()).collect();
    if writes.is_empty() {
        return Ok(None);
    }
    let op = unit.op(graph, precision)?;
    let last = unit.outputs.last().copied().filter(|value| writes.contains(value));
    let outputs = crate::ops::outputs(&*op).map(|info| info.operand).zip(unit.outputs.iter().copied());
    let others = outputs.filter(|(_, value)| Some(*value) != last && writes.contains(value)).collect();
    Ok(Some(ObservedUnit { name: name.to_owned(), op, reads, writes, last, others }))
}

fn given(network: &Network<'_>, input: &Input) -> ObservedOperand {
    let value = match input {
        Input::Constant(tensor, _) => return ObservedOperand::Constant(tensor.clone()),
        Input::Value(value) => *value,
    };
    let alias = network.resolve(value);
    match network.constant(value) {
        Some(tensor) => ObservedOperand::Constant(tensor.clone()),
        None if network.graph.info(alias.of).is_ok() => ObservedOperand::Value(alias, value),
        None => ObservedOperand::Inside,
    }
}
