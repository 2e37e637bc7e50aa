//! Arguments bound once, dispatches encoded as often as wanted.

use super::prepared::ReadyRuns;
use super::{Owner, RawPipeline, WgpuDevice};
use crate::device::handle::{RawPipeline as AnyPipeline, RawRecording as AnyRecording};
use crate::device::{Dispatch, Recording, Resource, Slice};
use crate::emit::{Access, Binding};
use crate::error::{Error, Result};
use std::sync::Arc;

/// Dispatches with their bind groups.
#[derive(Debug, Clone)]
pub(crate) struct RawRecording(Arc<Recorded>);

#[derive(Debug)]
pub(super) struct Recorded {
    owner: Owner,
    pub(super) steps: Vec<Step>,
    /// Runs that are encoded ahead.
    pub(super) ready: ReadyRuns,
}

impl Recorded {
    /// Encodes all dispatches as one compute pass.
    pub(super) fn encode(&self, encoder: &mut wgpu::CommandEncoder) {
        let descriptor = wgpu::ComputePassDescriptor { label: Some("diptych"), timestamp_writes: None };
        let mut pass = encoder.begin_compute_pass(&descriptor);
        for step in &self.steps {
            step.encode(&mut pass);
        }
    }
}

/// One dispatch. Its bind group keeps the buffers alive.
#[derive(Debug)]
pub(super) struct Step {
    pipeline: wgpu::ComputePipeline,
    arguments: wgpu::BindGroup,
    groups: [u32; 3],
}

impl Step {
    pub(super) fn encode(&self, pass: &mut wgpu::ComputePass<'_>) {
        let [x, y, z] = self.groups;
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.arguments, &[]);
        pass.dispatch_workgroups(x, y, z);
    }
}

/// The parameters of all dispatches of a recording, as one uniform buffer.
struct Params {
    bytes: Vec<u8>,
    /// Where each dispatch's block begins; none if it has no parameters.
    offsets: Vec<Option<u64>>,
}

impl Params {
    fn new(dispatches: &[Dispatch], alignment: usize) -> Self {
        let mut bytes = Vec::new();
        let mut offsets = Vec::with_capacity(dispatches.len());
        for dispatch in dispatches {
            if dispatch.params.is_empty() {
                offsets.push(None);
                continue;
            }
            bytes.resize(bytes.len().next_multiple_of(alignment), 0);
            offsets.push(Some(bytes.len() as u64));
            bytes.extend(dispatch.params.iter().flat_map(|value| value.bytes()));
        }
        Params { bytes, offsets }
    }
}

impl WgpuDevice {
    pub(super) fn record_dispatches(&self, dispatches: &[Dispatch]) -> Result<Recording> {
        let pipelines = dispatches
            .iter()
            .map(|dispatch| {
                dispatch.check()?;
                let pipeline = self.raw_pipeline(dispatch)?;
                self.check_groups(dispatch)?;
                self.check_slices(dispatch)?;
                Ok(pipeline)
            })
            .collect::<Result<Vec<&RawPipeline>>>()?;

        let alignment = (self.inner.limits.min_uniform_buffer_offset_alignment as usize).max(256);
        let params = Params::new(dispatches, alignment);
        let steps = self.scoped("create_bind_group", || {
            let uniform = self.upload_params(&params.bytes);
            dispatches
                .iter()
                .zip(pipelines)
                .zip(&params.offsets)
                .map(|((dispatch, pipeline), offset)| {
                    let block = uniform.as_ref().zip(*offset);
                    Ok(Step {
                        pipeline: pipeline.pipeline.clone(),
                        arguments: self.bind(dispatch, &pipeline.layout, block)?,
                        groups: dispatch.groups,
                    })
                })
                .collect::<Result<Vec<Step>>>()
        })?;
        let recorded = Recorded { owner: self.inner.owner, steps, ready: ReadyRuns::default() };
        Ok(Recording {
            raw: AnyRecording::Wgpu(RawRecording(Arc::new(recorded))),
            labels: dispatches.iter().map(|dispatch| dispatch.pipeline.label.clone()).collect(),
        })
    }

    /// Encodes a recording as one compute pass, for an application that submits the encoder itself
    /// on the queue that this device was made with.
    ///
    /// Each dispatch sees the effects of those before it, and the pass those of all work before it
    /// on the queue. Writes and parameters queued so far are executed before the application's
    /// next submission.
    ///
    /// # Errors
    /// If the recording belongs to another device. wgpu reports a misuse of the encoder itself
    /// where the application finishes it.
    pub fn encode(&self, recording: &Recording, encoder: &mut wgpu::CommandEncoder) -> Result<()> {
        self.recorded(recording)?.encode(encoder);
        Ok(())
    }

    /// The steps of a recording, if it was made on this device.
    pub(super) fn recorded<'a>(&self, recording: &'a Recording) -> Result<&'a Recorded> {
        match &recording.raw {
            AnyRecording::Wgpu(RawRecording(recorded)) => {
                self.owned(recorded.owner, "recording").map(|()| recorded.as_ref())
            }
            #[cfg(feature = "opencl")]
            AnyRecording::OpenCl(_) => Err(crate::device::handle::foreign("recording", self.api())),
        }
    }

    fn raw_pipeline<'a>(&self, dispatch: &'a Dispatch) -> Result<&'a RawPipeline> {
        let what = format!("kernel {}", dispatch.pipeline.label);
        match &dispatch.pipeline.raw {
            AnyPipeline::Wgpu(pipeline) => self.owned(pipeline.owner, &what).map(|()| pipeline),
            #[cfg(feature = "opencl")]
            AnyPipeline::OpenCl(_) => Err(crate::device::handle::foreign(&what, self.api())),
        }
    }

    fn check_groups(&self, dispatch: &Dispatch) -> Result<()> {
        let limit = self.inner.limits.max_compute_workgroups_per_dimension;
        for (axis, &groups) in dispatch.groups.iter().enumerate() {
            if groups > limit {
                return Err(reject(
                    dispatch,
                    format!("{groups} work-groups along axis {axis}, the device allows {limit}"),
                ));
            }
        }
        Ok(())
    }

    /// Sizes, alignments and aliases of a dispatch's buffers.
    fn check_slices(&self, dispatch: &Dispatch) -> Result<()> {
        let limits = &self.inner.limits;
        let alignment = u64::from(limits.min_storage_buffer_offset_alignment);
        let bound: Vec<(&Binding, &Slice)> = bound(dispatch).collect();
        for (position, (binding, slice)) in bound.iter().enumerate() {
            let name = binding.operand.name();
            if slice.bytes > limits.max_storage_buffer_binding_size {
                let limit = limits.max_storage_buffer_binding_size;
                return Err(reject(
                    dispatch,
                    format!("{name} has {} bytes, the device binds at most {limit}", slice.bytes),
                ));
            }
            if !slice.offset.is_multiple_of(alignment) {
                return Err(reject(
                    dispatch,
                    format!("{name} begins at byte {}, wanted a multiple of {alignment}", slice.offset),
                ));
            }
            for (other, other_slice) in bound.iter().take(position) {
                if let Some(reason) = alias((binding, slice), (other, other_slice)) {
                    return Err(reject(dispatch, reason));
                }
            }
        }
        Ok(())
    }

    fn upload_params(&self, bytes: &[u8]) -> Option<wgpu::Buffer> {
        if bytes.is_empty() {
            return None;
        }
        let buffer = self.inner.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("diptych params"),
            size: bytes.len() as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        self.inner.counters.copy();
        self.inner.queue.write_buffer(&buffer, 0, bytes);
        Some(buffer)
    }

    /// The bind group of a dispatch, whose parameters begin at an offset of a uniform buffer.
    fn bind(
        &self,
        dispatch: &Dispatch,
        layout: &wgpu::BindGroupLayout,
        params: Option<(&wgpu::Buffer, u64)>,
    ) -> Result<wgpu::BindGroup> {
        let entry = |binding: usize, buffer, offset, bytes: u64| wgpu::BindGroupEntry {
            binding: binding as u32,
            resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                buffer,
                offset,
                size: std::num::NonZeroU64::new(bytes),
            }),
        };
        let mut entries = Vec::with_capacity(dispatch.resources.len() + 1);
        for (index, resource) in dispatch.resources.iter().enumerate() {
            entries.push(match resource {
                Resource::Buffer(slice) => {
                    // Whole words; allocations are padded so that this stays inside.
                    let bytes = slice.bytes.next_multiple_of(4);
                    entry(index, self.raw(&slice.buffer)?, slice.offset, bytes)
                }
                Resource::Image(image) => wgpu::BindGroupEntry {
                    binding: index as u32,
                    resource: wgpu::BindingResource::TextureView(self.raw_texture(image)?),
                },
            });
        }
        if let Some((buffer, offset)) = params {
            let bytes = dispatch.pipeline.interface.param_bytes() as u64;
            entries.push(entry(dispatch.resources.len(), buffer, offset, bytes));
        }
        let descriptor =
            wgpu::BindGroupDescriptor { label: Some(&dispatch.pipeline.label), layout, entries: &entries };
        Ok(self.inner.device.create_bind_group(&descriptor))
    }
}

/// The buffer arguments of a dispatch.
fn bound(dispatch: &Dispatch) -> impl Iterator<Item = (&Binding, &Slice)> {
    dispatch.pipeline.interface.bindings.iter().zip(&dispatch.resources).filter_map(|(binding, resource)| {
        match resource {
            Resource::Buffer(slice) => Some((binding, slice)),
            Resource::Image(_) => None,
        }
    })
}

/// Why two arguments cannot be bound together, if they cannot.
///
/// wgpu tracks whole buffers, so that reading one part and writing another in one dispatch is
/// refused however far apart they are. Two written parts may share a buffer if they do not overlap.
fn alias((binding, slice): (&Binding, &Slice), (other, other_slice): (&Binding, &Slice)) -> Option<String> {
    use crate::device::handle::RawBuffer;
    let same = match (&slice.buffer.raw, &other_slice.buffer.raw) {
        (RawBuffer::Wgpu(one), RawBuffer::Wgpu(two)) => one == two,
        #[cfg(feature = "opencl")]
        _ => false,
    };
    let reads = |binding: &Binding| binding.access == Access::Read;
    let names = || format!("{} and {}", other.operand.name(), binding.operand.name());
    if !same || (reads(binding) && reads(other)) {
        return None;
    }
    if reads(binding) != reads(other) {
        return Some(format!("{} are parts of one buffer, and only one of them is written", names()));
    }
    let overlap = slice.offset < other_slice.offset + other_slice.bytes
        && other_slice.offset < slice.offset + slice.bytes;
    overlap.then(|| format!("{} are both written and overlap in one buffer", names()))
}

fn reject(dispatch: &Dispatch, reason: String) -> Error {
    Error::Reject { kernel: dispatch.pipeline.label.clone(), reason }
}
