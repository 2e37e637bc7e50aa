//! Units that the CPU computes in a program of a device: what no GPU runs, and what the caller names.
//!
//! They read and write rows. A session downloads what they read and uploads what they write, between two recordings
//! of the device's steps.

use super::choose::Kernel;
use super::program::Builder;
use super::step::{HostSource, Step, Work};
use super::unit::{Input, Network, Unit};
use crate::dtype::Precision;
use crate::error::Result;
use crate::ops::Role;
use crate::options::SessionOptions;
use std::sync::Arc;

/// Notes which units of `network` the CPU computes, and why.
pub(super) fn assign(network: &mut Network<'_>, options: &SessionOptions) -> Result<()> {
    let graph = network.graph;
    for unit in network.units_mut() {
        let by_hand = options.on_cpu.contains(&unit.name).then_some("by hand");
        let obstacle = unit.op(graph, Precision::F32)?.device_obstacle();
        unit.host = by_hand.or(obstacle).map(|why| format!("on the CPU: {why}"));
    }
    Ok(())
}

impl Builder<'_, '_> {
    /// The step of a unit that the CPU computes, and before it the conversions of what it reads.
    pub(super) fn host(&mut self, unit: &Unit, Kernel { op, from, .. }: Kernel) -> Result<()> {
        let kernel = Arc::from(op.cpu(&unit.constants(&*op))?);
        let mut reads = Vec::new();
        for info in op.operands().into_iter().filter(|info| info.role == Role::Input) {
            let source = match unit.input(info.operand)? {
                Input::Value(value) => HostSource::Stored(self.read(*value, self.rows(*value)?)?),
                Input::Constant(tensor, _) => HostSource::Constant(tensor.shared_nhwc()),
            };
            reads.push((info.operand, source));
        }
        let mut writes = Vec::new();
        for (info, &value) in crate::ops::outputs(&*op).zip(&unit.outputs) {
            writes.push((info.operand, self.store(value, self.rows(value)?, None)));
        }
        self.program.steps.push(Step {
            name: unit.name.clone(),
            op: op.name(),
            flops: op.flops(),
            inserted: false,
            from,
            work: Work::Host { kernel, reads, writes },
        });
        Ok(())
    }
}
