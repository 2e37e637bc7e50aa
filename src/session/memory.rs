//! The memory that a session takes, worked out before any of it is asked for.

use super::profile::MemoryUse;
use super::segment_plan::SegmentPlan;
use crate::context::Engine;
use crate::error::Result;
use crate::lower::{self, Lifetime, MemoryPlan, Network, Program, Stored, least, plan};
use crate::{graph::Value, lower::Input};
use std::collections::HashSet;

/// The memory of a program on a device.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    /// The values that share buffers.
    pub(super) shared: Vec<Stored>,
    /// Their buffers, the largest first.
    pub(super) plan: MemoryPlan,
    /// What is known before constants are packed.
    memory: MemoryUse,
}

/// Whether a value lies in a buffer only while a run is under way, where it may not share that with others of the run: an
/// input or an output.
fn is_port(program: &Program, stored: Stored) -> bool {
    let value = &program.stored[stored];
    let is_state = program.states.iter().any(|(part, _)| part.stored == stored);
    value.pinned && !value.is_constant && value.image.is_none() && !is_state && !value.scratch
}

impl DeviceMemory {
    /// `pooled`: sessions for other extents use the same buffers. Then inputs and outputs lie in them, too, each in one of
    /// its own, and they do not count.
    pub(super) fn of(program: &Program, segments: &SegmentPlan, pooled: bool) -> Self {
        let mut lifetimes = program.lifetimes();
        let is_in =
            |stored: &Stored| !program.stored[*stored].pinned || (pooled && is_port(program, *stored));
        let (shared, own): (Vec<Stored>, Vec<Stored>) = (0..program.stored.len()).partition(is_in);
        for &stored in shared.iter().filter(|&&stored| program.stored[stored].pinned) {
            lifetimes[stored] = Lifetime { first: 0, last: program.steps.len(), ..lifetimes[stored] };
        }
        let shared_lifetimes: Vec<_> = shared.iter().map(|&stored| lifetimes[stored]).collect();
        let plan = plan(&shared_lifetimes);
        let bytes = |is_constant: bool| {
            let own = own.iter().map(|&stored| &program.stored[stored]);
            own.filter(|stored| stored.is_constant == is_constant).map(|stored| stored.bytes).sum::<u64>()
        };
        let values = program.stored.iter().filter(|stored| !stored.is_constant);
        let buffers: u64 = plan.buffers.iter().sum();
        let memory = MemoryUse {
            planned: if pooled { 0 } else { buffers } + bytes(false),
            unshared: values.map(|stored| stored.bytes).sum(),
            least: least(&shared_lifetimes) + bytes(false),
            constants: bytes(true),
            downloads: segments.downloads(),
            uploads: segments.uploads(),
        };
        DeviceMemory { shared, plan, memory }
    }

    /// All of it, with so many bytes of packed constants.
    pub(super) fn with_packed(&self, bytes: u64) -> MemoryUse {
        MemoryUse { constants: self.memory.constants + bytes, ..self.memory }
    }

    /// What a session of `program` would take. Its constants are packed one after the other to know how long they are.
    pub(super) fn planned(program: &Program) -> Result<MemoryUse> {
        let memory = DeviceMemory::of(program, &SegmentPlan::of(program)?, false);
        Ok(memory.with_packed(lower::packed_bytes(&program.constants, program.constant_alignment())?))
    }
}

/// Dropped behind a session's buffers, has their memory freed.
#[derive(Debug)]
pub(super) struct Release(pub(super) Engine);

impl Drop for Release {
    fn drop(&mut self) {
        if let Ok(device) = self.0.device() {
            device.release();
        }
    }
}

/// The memory of a network on the CPU.
#[derive(Debug)]
pub(super) struct CpuMemory {
    /// The values that share buffers.
    pub(super) values: Vec<Value>,
    /// Their buffers.
    pub(super) plan: MemoryPlan,
    pub(super) memory: MemoryUse,
    /// Places and bytes of the constants.
    pub(super) constants: Vec<(usize, u64)>,
}

impl CpuMemory {
    pub(super) fn of(network: &Network<'_>) -> Result<Self> {
        let lifetimes = lifetimes(network)?;
        let (values, spans): (Vec<Value>, Vec<Lifetime>) = lifetimes.into_iter().unzip();
        let plan = plan(&spans);
        let inputs = network.units().iter().flat_map(|unit| &unit.inputs);
        let mut counted = HashSet::new();
        let constants = inputs.filter_map(|(_, input)| match input {
            Input::Constant(tensor, _) if counted.insert(tensor.place()) => {
                let bytes = 4 * (tensor.dims().elements() * tensor.dtype().word().words()) as u64;
                Some((tensor.place().0, bytes))
            }
            Input::Constant(..) | Input::Value(_) => None,
        });
        let constants: Vec<(usize, u64)> = constants.collect();
        let memory = MemoryUse {
            planned: plan.buffers.iter().sum(),
            unshared: spans.iter().map(|lifetime| lifetime.bytes).sum(),
            least: least(&spans),
            constants: constants.iter().map(|(_, bytes)| bytes).sum(),
            ..MemoryUse::default()
        };
        Ok(CpuMemory { values, plan, memory, constants })
    }
}

/// From the unit that writes a value to the last that reads it; outputs live to the end.
fn lifetimes(network: &Network<'_>) -> Result<Vec<(Value, Lifetime)>> {
    let end = network.units().len();
    let mut lifetimes = Vec::new();
    for (step, unit) in network.units().iter().enumerate() {
        // What changes a state has no buffer.
        if network.in_place(unit)?.is_some() {
            continue;
        }
        for &value in &unit.outputs {
            let last = network.readers(value).last().unwrap_or(step);
            let last = if network.leaves(value) { end } else { last };
            let bytes = 4 * (network.dims(value)?.elements() * network.word(value).words()) as u64;
            lifetimes.push((value, Lifetime { bytes, first: step, last }));
        }
    }
    Ok(lifetimes)
}
