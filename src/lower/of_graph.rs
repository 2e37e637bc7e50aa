//! From a graph to its program: the passes, in order.

use super::builder::Builder;
use super::choose::ChangeTimes;
use super::choosing::{Choosing, known_limits};
use super::known::CompiledKernels;
use super::prepare::{base, prepared};
use super::program::Program;
use super::unit::Unit;
use crate::device::DeviceInfo;
use crate::error::Result;
use crate::graph::Graph;
use crate::options::{Rewrite, SessionOptions};
use crate::tune::key::DeviceKey;
use std::collections::HashMap;

impl Program {
    /// The whole of `graph` on a device; `changes` measures changes of layout, where they are asked for, and `known` are
    /// kernels that are compiled for other extents of the graph.
    pub(crate) fn of(
        graph: &Graph,
        asked: &SessionOptions,
        info: &DeviceInfo,
        changes: &ChangeTimes<'_>,
        known: Option<&CompiledKernels>,
    ) -> Result<Self> {
        Self::built(graph, asked, info, (changes, known), &mut |_, _| Ok(()))
    }

    /// [`Program::of`], which tells `after` of each unit behind its steps.
    pub(super) fn built(
        graph: &Graph,
        asked: &SessionOptions,
        info: &DeviceInfo,
        (changes, known): (&ChangeTimes<'_>, Option<&CompiledKernels>),
        after: &mut dyn FnMut(&mut Builder<'_, '_>, &Unit) -> Result<()>,
    ) -> Result<Self> {
        let device = DeviceKey::of(info);
        let graph = &*graph.on_device()?;
        let options = &*base(asked);
        let limits = known_limits(options, &device, &info.limits);
        let choosing = Choosing { options, device: &device, limits: &limits, known };
        let mut network = prepared(graph, asked, &choosing)?;
        network.halve_states(options.precision, &limits)?;
        let kernels = choosing.choose(&network, changes)?;
        let mut builder = Builder::new(&network, options.precision, &info.limits, known);
        for &input in graph.inputs() {
            builder.store(input, builder.rows(input)?, None);
        }
        builder.store_states()?;
        let mut joins = match options.without_rewrites.contains(&Rewrite::Concatenations) {
            true => HashMap::new(),
            false => builder.place_joins(&kernels)?,
        };
        for (index, (unit, kernel)) in network.units().iter().zip(kernels).enumerate() {
            let built = match joins.remove(&index) {
                Some(join) => builder.join(unit, join),
                None if unit.host.is_some() => builder.host(unit, kernel),
                None if unit.parts().is_empty() => builder.step(unit, kernel),
                None => builder.stack(unit, kernel),
            };
            let built = built.and_then(|()| after(&mut builder, unit));
            built.map_err(|error| error.at_node(&unit.name))?;
        }
        builder.finish()
    }
}
