//! Units that the CPU computes in a program of a device: what no GPU runs, what has constants that are too large for
//! the device to bind, and what the caller names.
//!
//! They read and write rows. A session downloads what they read and uploads what they write, between two recordings
//! of the device's steps.

use super::builder::Builder;
use super::kernel::Kernel;
use super::network::Network;
use super::step::{HostSource, Step, Work};
use super::unit::{Input, Unit};
use crate::emit::Operand;
use crate::error::Result;
use crate::limits::Limits;
use crate::ops::{Op, Purpose, Role};
use crate::options::SessionOptions;
use std::sync::Arc;

/// Notes which units of `network` the CPU computes, and why.
pub(super) fn assign(network: &mut Network<'_>, options: &SessionOptions, limits: &Limits) -> Result<()> {
    let graph = network.graph;
    for unit in network.units_mut() {
        let by_hand = options.on_cpu.contains(&unit.name).then(|| "by hand".to_owned());
        let op = unit.op(graph, options.precision)?;
        let obstacle = || op.obstacle(Purpose::Device).map(str::to_owned);
        let single = unit.parts().is_empty() && !options.choices.contains_key(&unit.name);
        let known = |operand| matches!(unit.input(operand), Ok(Input::Constant(..)));
        let large =
            || too_large(&*op, &known, limits).filter(|_| single && op.obstacle(Purpose::Cpu).is_none());
        let why = by_hand.or_else(obstacle).or_else(large);
        unit.host = why.map(|why| format!("on the CPU: {why}"));
    }
    Ok(())
}

/// Why the device cannot bind a constant of `op`, if it cannot: an operand that is `known`.
fn too_large(op: &dyn Op, known: &dyn Fn(Operand) -> bool, limits: &Limits) -> Option<String> {
    let constants = op.operands().into_iter().filter(|info| known(info.operand));
    let sizes =
        constants.map(|info| (info.operand, (info.elements() * op.precision().storage().bytes()) as u64));
    let (operand, bytes) = sizes.max_by_key(|(_, bytes)| *bytes)?;
    let most = limits.max_binding;
    (bytes > most)
        .then(|| format!("its {} take {bytes} bytes, and the device binds at most {most}", operand.name()))
}

impl Builder<'_, '_> {
    /// The step of a unit that the CPU computes, and before it the conversions of what it reads.
    pub(super) fn host(&mut self, unit: &Unit, kernel: Kernel) -> Result<()> {
        let from = kernel.why();
        let Kernel { op, by, .. } = kernel;
        let kernel = Arc::from(op.cpu(&unit.constants(&*op)?)?);
        let mut reads = Vec::new();
        for info in op.operands().into_iter().filter(|info| info.role == Role::Input) {
            let source = match unit.input(info.operand)? {
                Input::Value(value) => HostSource::Stored(self.read(*value, self.rows(*value)?)?),
                Input::Constant(tensor, _) => HostSource::Constant(tensor.clone().into_words()?),
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
            by,
            from,
            choice: None,
            unit: None,
            work: Work::Host { kernel, reads, writes },
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::ops::pointwise::{Pointwise, PointwiseOp};
    use crate::shape::Shape;

    #[test]
    fn constants_are_too_large_from_what_a_device_binds_on() {
        let (input, weights) = (Shape::nhwc(1, 1, 1, 64), Shape::nhwc(32, 1, 1, 64));
        let of = |precision| {
            let options = Pointwise::default();
            PointwiseOp::new(input, weights, &options, true, false, precision).expect("shapes")
        };
        let is_weights = |operand| operand == Operand::Weights;
        let limits = |bytes: u64| Limits { max_binding: bytes, ..Limits::webgpu() };
        assert_eq!(too_large(&of(Precision::F32), &is_weights, &limits(4 * 32 * 64)), None);
        let why = too_large(&of(Precision::F32), &is_weights, &limits(4 * 32 * 64 - 1)).expect("too large");
        assert!(why.contains("8192 bytes") && why.contains("at most 8191"), "{why}");
        assert_eq!(too_large(&of(Precision::F16Storage), &is_weights, &limits(2 * 32 * 64)), None);
    }
}
