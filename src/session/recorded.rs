//! What a run on a device is recorded of, and the recording, which a plan makes again when it is given other buffers for
//! its values.

#[cfg(any(feature = "wgpu", feature = "opencl"))]
use super::bound::Bindings;
use super::memory::DeviceMemory;
use super::resources::{Resources, dispatches};
use super::segment_plan::SegmentPlan;
use super::segments::Segments;
use super::shared::Shared;
use crate::device::{Device, Pipeline, Slice};
use crate::error::Result;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
use crate::lower::Wiring;
use crate::lower::{Part, Program};

/// A run that is recorded.
#[derive(Debug)]
pub(super) struct RecordedRun {
    pub(super) segments: Segments,
    /// Where each input is written; nowhere if it has no elements.
    pub(super) inputs: Vec<Option<Slice>>,
    /// The buffers that the outputs lie in: what a run reads.
    pub(super) reads: Vec<Slice>,
    /// Nothing, if the CPU computes a step.
    #[cfg(any(feature = "wgpu", feature = "opencl"))]
    pub(super) bindings: Option<Bindings>,
}

/// What a run is recorded of with other buffers for its values.
#[derive(Debug)]
pub(super) struct RunParts {
    /// Without constants.
    pub(super) program: Program,
    /// Where the outputs lie.
    pub(super) reads: Vec<Part>,
    pub(super) memory: DeviceMemory,
    pub(super) kernels: Vec<Pipeline>,
    /// Those buffers are here while it has them.
    pub(super) resources: Resources,
}

impl RunParts {
    pub(super) fn record(&self, device: &dyn Device) -> Result<RecordedRun> {
        let RunParts { program, resources, .. } = self;
        let steps = dispatches(&program.steps, &self.kernels, resources)?;
        let segments = Segments::new(device, SegmentPlan::of(program)?, resources, &steps)?;
        let slice = |part: &Part| resources.slice(part);
        let input = |part: &Part| (part.bytes > 0).then(|| slice(part)).transpose();
        #[cfg(any(feature = "wgpu", feature = "opencl"))]
        let bindings = Wiring::new(program).map(|wiring| Bindings::new(wiring, steps, resources.clone()));
        Ok(RecordedRun {
            segments,
            inputs: program.inputs.iter().map(input).collect::<Result<_>>()?,
            reads: self.reads.iter().map(slice).collect::<Result<_>>()?,
            #[cfg(any(feature = "wgpu", feature = "opencl"))]
            bindings,
        })
    }

    /// Takes the buffers that plans share, and records a run in them.
    pub(super) fn take_buffers(&mut self, device: &dyn Device, shared: &Shared) -> Result<RecordedRun> {
        let slots = shared.slots.take(device, &self.memory.plan.buffers)?;
        self.resources.take_slots(&self.memory, slots);
        self.record(device)
    }

    /// Lets go of these buffers, if others are given in their place now.
    pub(super) fn leave_buffers(&mut self, shared: &Shared) -> bool {
        let leaves = !shared.slots.are(self.resources.slots());
        if leaves {
            self.resources.leave_slots(&self.memory);
        }
        leaves
    }
}
