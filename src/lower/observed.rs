//! What a calibration asks about a network.

use super::prepare::network;
use super::savings::saves;
use crate::dtype::Precision;
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::options::SessionOptions;

/// What a calibration asks about a network: what runs as one step.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    pub(crate) name: String,
    /// What it reads and writes.
    pub(crate) reads: Vec<Value>,
    pub(crate) writes: Vec<Value>,
    /// Whether it may be in f16.
    pub(crate) halves: bool,
    /// What f16 saves there, in bytes that could be moved meanwhile.
    pub(crate) saves: f64,
}

/// What runs of `graph` with `options` on a device whose bindings begin at multiples of `alignment` bytes.
pub(crate) fn observed(graph: &Graph, options: &SessionOptions, alignment: u64) -> Result<Vec<Observed>> {
    let graph = &*graph.on_device()?;
    let network = network(graph, options, alignment)?;
    let each = network.units().iter().map(|unit| {
        let op = unit.op(graph, Precision::F16Storage)?;
        Ok(Observed {
            name: unit.name.clone(),
            reads: unit.reads().map(|value| network.resolve(value).of).collect(),
            writes: unit.outputs.clone(),
            halves: op.halves()
                && !options.precisions.contains_key(&unit.name)
                && !options.on_cpu.contains(&unit.name),
            saves: saves(&*op),
        })
    });
    each.collect()
}
