//! A session on a GPU: the graph is lowered, memory planned, and the run recorded once.

#[cfg(any(feature = "wgpu", feature = "opencl"))]
use super::bound::{Bindings, Bound, PortBuffer};
use super::build::Teller;
use super::memory::{DeviceMemory, Release};
use super::profile::{MemoryUse, NodeTime, Profile};
use super::resources::{allocate, dispatches, kernels};
use super::segments::{Segment, SegmentPlan, Segments};
use super::spare::Spare;
#[cfg(not(target_family = "wasm"))]
use super::stages::StageTimes;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
use super::{Port, picture::Shown};
#[cfg(not(target_family = "wasm"))]
use crate::clock::Instant;
use crate::context::Engine;
#[cfg(not(target_family = "wasm"))]
use crate::device::Pending;
#[cfg(not(target_family = "wasm"))]
use crate::device::copy::copy;
use crate::device::{Recording, Slice, Wait};
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::host::HostTensor;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
use crate::lower::Wiring;
use crate::lower::{Part, Program, Step, Work};
use crate::options::SessionOptions;
use crate::shape::Shape;
use crate::task::{both, offload};
use std::borrow::Cow;
use std::sync::Arc;

/// Where an output lies on the device, and in what a run reads.
#[derive(Debug, Clone)]
pub(super) struct Output {
    slice: Slice,
    read: usize,
    offset: usize,
}

/// A run under way.
#[cfg(not(target_family = "wasm"))]
#[derive(Debug)]
pub(super) struct DeviceFlight(pub(super) Box<dyn Pending>);

/// The outputs' bytes in the buffers that a run has read.
fn parts<'a>(outputs: &[Output], read: &[&'a [u8]]) -> Result<Vec<&'a [u8]>> {
    let part = |output: &Output| {
        let end = output.offset + output.slice.bytes as usize;
        read.get(output.read)?.get(output.offset..end)
    };
    outputs
        .iter()
        .map(|output| part(output).ok_or_else(|| Error::Internal(format!("a run did not read {output:?}"))))
        .collect()
}

/// The outputs' elements, from the buffers that a run has read.
fn take_apart(outputs: &[Output], spare: &Spare, read: &[&[u8]]) -> Result<Vec<Arc<[f32]>>> {
    Ok(parts(outputs, read)?.into_iter().map(|bytes| spare.elements(bytes)).collect())
}

/// Copies the outputs' elements, from the buffers that a run has read.
#[cfg(not(target_family = "wasm"))]
pub(super) fn copy_apart(outputs: &[Output], read: &[&[u8]], targets: &mut [&mut [f32]]) -> Result<()> {
    let parts = parts(outputs, read)?;
    let lengths = |found: usize, target: &[f32]| found == size_of_val(target);
    if parts.len() != targets.len() || !parts.iter().zip(&*targets).all(|(p, t)| lengths(p.len(), t)) {
        return Err(Error::Internal("outputs of other lengths than their ports".to_owned()));
    }
    for (part, target) in parts.into_iter().zip(targets) {
        copy(bytemuck::cast_slice_mut(target), part);
    }
    Ok(())
}

/// What `take` makes of what `run` shows.
#[cfg(not(target_family = "wasm"))]
pub(super) fn taken<T>(
    run: impl FnOnce(&mut dyn FnMut(&[&[u8]])) -> Result<()>,
    mut take: impl FnMut(&[&[u8]]) -> Result<T>,
) -> Result<T> {
    let mut taken = Err(Error::Internal("a run showed nothing".to_owned()));
    run(&mut |read| taken = take(read))?;
    taken
}

/// [`take_apart`] of buffers that were copied.
fn take_copies_apart(outputs: &[Output], spare: &Spare, read: &[Vec<u8>]) -> Result<Vec<Arc<[f32]>>> {
    take_apart(outputs, spare, &read.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// A network made ready to run on a GPU.
#[derive(Debug)]
pub(super) struct DeviceSession {
    pub(super) engine: Engine,
    pub(super) segments: Segments,
    pub(super) inputs: Vec<Slice>,
    /// The states, and what they are at first.
    states: Vec<(Slice, HostTensor)>,
    pub(super) outputs: Arc<[Output]>,
    /// The buffers that the outputs lie in: what a run reads.
    pub(super) reads: Vec<Slice>,
    spare: Spare,
    memory: MemoryUse,
    /// The kernel of each step, by the step's name.
    kernels: Vec<(String, String)>,
    /// Nothing, if the CPU computes a step.
    #[cfg(any(feature = "wgpu", feature = "opencl"))]
    bindings: Option<Bindings>,
    /// Last, so that all else is dropped before.
    _release: Release,
}

pub(super) fn lowered(engine: &Engine, graph: &Graph, options: &SessionOptions) -> Result<Program> {
    let device = engine.device()?;
    #[cfg(not(target_family = "wasm"))]
    let changes = |shape: Shape| crate::lower::change_times(device, shape, options.precision);
    #[cfg(target_family = "wasm")]
    let changes =
        |_: Shape| Err(Error::unsupported("feature maps in images", "WebGPU's kernels take buffers"));
    Program::of(graph, options, device.info(), &changes)
}

/// The kernel of each step, by the step's name.
fn chosen(program: &Program) -> Vec<(String, String)> {
    let kernel = |step: &Step| match &step.work {
        Work::Device { launch, .. } => launch.spec.label(),
        Work::Host { .. } => String::new(),
    };
    program.steps.iter().map(|step| (step.name.clone(), kernel(step))).collect()
}

impl DeviceSession {
    pub(super) async fn build(
        engine: Engine,
        graph: &Graph,
        options: &SessionOptions,
        teller: &Teller<'_>,
    ) -> Result<Self> {
        let program = lowered(&engine, graph, options)?;
        Self::of(engine, &program, teller).await
    }

    /// Takes the kernels that the record has now; the names of the steps that have others than before.
    pub(super) async fn refresh(
        &mut self,
        graph: &Graph,
        options: &SessionOptions,
        wait: Wait,
    ) -> Result<Vec<String>> {
        let program = lowered(&self.engine, graph, options)?;
        if chosen(&program) == self.kernels {
            return Ok(Vec::new());
        }
        let next = Self::of(self.engine.clone(), &program, &Teller::new(&|_| {})).await?;
        let device = self.engine.device()?;
        for ((old, _), (new, _)) in self.states.iter().zip(&next.states) {
            device.write(new, &wait.read(device, old).await?)?;
        }
        let changed = next.kernels.iter().filter(|kernel| !self.kernels.contains(kernel));
        let changed = changed.map(|(name, _)| name.clone()).collect();
        *self = next;
        Ok(changed)
    }

    async fn of(engine: Engine, program: &Program, teller: &Teller<'_>) -> Result<Self> {
        let device = engine.device()?;
        // A browser compiles kernels while constants are packed here.
        let segments = SegmentPlan::of(program)?;
        let memory = DeviceMemory::of(program, &segments);
        let allocated = allocate(device, program, &memory, teller);
        let (resources, kernels) = both(allocated, kernels(device, program, teller)).await?;
        if !program.setup.is_empty() {
            let setup = dispatches(&program.setup, kernels.setup, &resources)?;
            device.submit(&device.record(&setup)?)?;
        }
        let slice = |part: &Part| resources.slice(part);
        let mut reads: Vec<Slice> = Vec::new();
        let mut outputs: Vec<Output> = Vec::with_capacity(program.outputs.len());
        for (index, part) in program.outputs.iter().enumerate() {
            let earlier = program.outputs[..index].iter().position(|earlier| earlier.stored == part.stored);
            let read = match earlier.and_then(|earlier| outputs.get(earlier)) {
                Some(Output { read, .. }) => *read,
                None => {
                    reads.push(resources.slice(&program.whole(part.stored))?);
                    reads.len() - 1
                }
            };
            outputs.push(Output { slice: slice(part)?, read, offset: part.offset as usize });
        }
        let state = |(part, initial): &(Part, HostTensor)| Ok((resources.slice(part)?, initial.clone()));
        let steps = dispatches(&program.steps, kernels.steps, &resources)?;
        let segments = Segments::new(device, segments, &resources, &steps)?;
        let states = program.states.iter().map(state).collect::<Result<_>>()?;
        let inputs = program.inputs.iter().map(slice).collect::<Result<_>>()?;
        let memory = resources.memory;
        #[cfg(any(feature = "wgpu", feature = "opencl"))]
        let bindings = Wiring::new(program).map(|wiring| Bindings::new(wiring, steps, resources));
        let session = DeviceSession {
            states,
            inputs,
            spare: Spare::new(outputs.len()),
            outputs: outputs.into(),
            reads,
            memory,
            kernels: chosen(program),
            #[cfg(any(feature = "wgpu", feature = "opencl"))]
            bindings,
            segments,
            _release: Release(engine.clone()),
            engine,
        };
        session.reset()?;
        session.engine.device()?.settled().await?;
        Ok(session)
    }

    /// Gives the states what they are in the first run.
    pub(super) fn reset(&self) -> Result<()> {
        let device = self.engine.device()?;
        self.states
            .iter()
            .try_for_each(|(slice, initial)| device.write(slice, bytemuck::cast_slice(&initial.to_nhwc())))
    }

    pub(super) fn steps(&self) -> Vec<NodeTime> {
        self.segments.steps()
    }

    pub(super) fn memory(&self) -> MemoryUse {
        self.memory
    }

    fn writes<'a>(&'a self, inputs: &'a [Cow<'_, [f32]>]) -> Vec<(&'a Slice, &'a [u8])> {
        self.inputs.iter().zip(inputs).map(|(slice, data)| (slice, bytemuck::cast_slice(data))).collect()
    }

    /// What a segment writes: the inputs, if it is the first, and results of the CPU.
    fn writes_of<'a>(
        &'a self,
        segment: &'a Segment,
        inputs: &'a [Cow<'_, [f32]>],
        results: &'a [Vec<f32>],
    ) -> Vec<(&'a Slice, &'a [u8])> {
        let mut writes = if segment.is_first { self.writes(inputs) } else { Vec::new() };
        writes.extend(segment.writes(results));
        writes
    }

    /// Runs what is before the last segment, and gives the CPU's results.
    #[cfg(not(target_family = "wasm"))]
    fn lead(&self, inputs: &[Cow<'_, [f32]>]) -> Result<Vec<Vec<f32>>> {
        let mut results = Vec::new();
        for segment in self.segments.lead() {
            let reads: Vec<&Slice> = segment.reads.iter().collect();
            let writes = self.writes_of(segment, inputs, &results);
            let read = self.engine.device()?.run(&writes, &segment.recording, &reads)?;
            segment.host.run(inputs, &read, &mut results)?;
        }
        Ok(results)
    }

    #[cfg(not(target_family = "wasm"))]
    pub(super) fn run(&mut self, inputs: &[Cow<'_, [f32]>]) -> Result<Vec<Arc<[f32]>>> {
        let results = self.lead(inputs)?;
        let (reads, last): (Vec<&Slice>, _) = (self.reads.iter().collect(), self.segments.last());
        let (device, writes) = (self.engine.device()?, self.writes_of(last, inputs, &results));
        let run = |see: &mut dyn FnMut(&[&[u8]])| device.run_and_see(&writes, &last.recording, &reads, see);
        taken(run, |read| take_apart(&self.outputs, &self.spare, read))
    }

    /// [`DeviceSession::run`] with the outputs in the caller's memory.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn run_into(&mut self, inputs: &[Cow<'_, [f32]>], targets: &mut [&mut [f32]]) -> Result<()> {
        let results = self.lead(inputs)?;
        let (reads, last): (Vec<&Slice>, _) = (self.reads.iter().collect(), self.segments.last());
        let (device, writes) = (self.engine.device()?, self.writes_of(last, inputs, &results));
        let run = |see: &mut dyn FnMut(&[&[u8]])| device.run_and_see(&writes, &last.recording, &reads, see);
        taken(run, |read| copy_apart(&self.outputs, read, targets))
    }

    #[cfg(not(target_family = "wasm"))]
    pub(super) fn run_in_stages(
        &mut self,
        inputs: &[Cow<'_, [f32]>],
    ) -> Result<(Vec<Arc<[f32]>>, StageTimes)> {
        let device = self.engine.device()?;
        let mut clock = Instant::now();
        let mut lap = || std::mem::replace(&mut clock, Instant::now()).elapsed();
        for (slice, bytes) in self.writes(inputs) {
            device.write(slice, bytes)?;
        }
        device.wait()?;
        let upload = lap();
        let mut results = Vec::new();
        for segment in self.segments.lead() {
            let read = segment.submit(device, &results)?;
            segment.host.run(inputs, &read, &mut results)?;
        }
        self.segments.last().submit(device, &results)?;
        device.wait()?;
        let network = lap();
        let read: Vec<Vec<u8>> = self.reads.iter().map(|slice| device.read(slice)).collect::<Result<_>>()?;
        let download = lap();
        Ok((take_copies_apart(&self.outputs, &self.spare, &read)?, StageTimes { upload, network, download }))
    }

    /// A run up to the wait for its last segment.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn start(&mut self, inputs: &[Cow<'_, [f32]>]) -> Result<DeviceFlight> {
        let results = self.lead(inputs)?;
        let (reads, last): (Vec<&Slice>, _) = (self.reads.iter().collect(), self.segments.last());
        let writes = self.writes_of(last, inputs, &results);
        self.engine.device()?.start(&writes, &last.recording, &reads).map(DeviceFlight)
    }

    /// The wait for a run of this session.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn finish(&self, flight: DeviceFlight) -> Result<Vec<Arc<[f32]>>> {
        taken(|see| flight.0.finish_and_see(see), |read| take_apart(&self.outputs, &self.spare, read))
    }

    pub(super) async fn run_async(&mut self, inputs: &[Cow<'_, [f32]>]) -> Result<Vec<Arc<[f32]>>> {
        let (mut results, mut given) = (Vec::new(), Vec::new());
        if !self.segments.lead().is_empty() {
            given = inputs.iter().map(|input| Cow::<'static, [f32]>::Owned(input.to_vec())).collect();
        }
        for segment in self.segments.lead() {
            let writes = self.writes_of(segment, inputs, &results);
            let read = self.awaited(&writes, &segment.recording, &segment.reads).await?;
            let host = Arc::clone(&segment.host);
            let work = move || {
                host.run(&given, &read, &mut results)?;
                Ok((given, results))
            };
            (given, results) = offload(work)?.await?;
        }
        let last = self.segments.last();
        let writes = self.writes_of(last, inputs, &results);
        let read = self.awaited(&writes, &last.recording, &self.reads).await?;
        take_copies_apart(&self.outputs, &self.spare, &read)
    }

    /// One submission, awaited.
    async fn awaited(
        &self,
        writes: &[(&Slice, &[u8])],
        recording: &Recording,
        reads: &[Slice],
    ) -> Result<Vec<Vec<u8>>> {
        let reads: Vec<&Slice> = reads.iter().collect();
        self.engine.device()?.run_async(writes, recording, &reads).await
    }

    pub(super) async fn profile(&mut self, inputs: &[Cow<'_, [f32]>], wait: Wait) -> Result<Profile> {
        let device = self.engine.device()?;
        for (slice, bytes) in self.writes(inputs) {
            device.write(slice, bytes)?;
        }
        let mut results = Vec::new();
        let mut nodes = Vec::new();
        for segment in self.segments.all() {
            nodes.extend(segment.profile(device, wait, inputs, &mut results).await?);
        }
        let clock = match (device.info().api, self.segments.lead().is_empty()) {
            ("OpenCL", true) => "profiling events",
            ("OpenCL", false) => "profiling events, the host clock for the CPU",
            (_, true) => "GPU timestamps",
            (_, false) => "GPU timestamps, the host clock for the CPU",
        };
        Ok(Profile { clock, nodes })
    }
}

/// With an application's buffers.
#[cfg(any(feature = "wgpu", feature = "opencl"))]
impl DeviceSession {
    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What a binding's offset must be a multiple of.
    pub(super) fn alignment(&self) -> Result<u64> {
        Ok(self.engine.device()?.info().limits.binding_alignment.max(4))
    }

    /// What an application's buffers are bound by.
    pub(super) fn bindings(&self, what: &str) -> Result<&Bindings> {
        let on_cpu = || self.segments.on_cpu().unwrap_or_default();
        let reason =
            || format!("the CPU computes {}, which an application's queue cannot wait for", on_cpu());
        self.bindings.as_ref().ok_or_else(|| Error::unsupported(what, reason()))
    }

    /// The run with these buffers.
    pub(super) async fn bound(&mut self, buffers: Vec<PortBuffer>) -> Result<Arc<Bound>> {
        let missing = || Error::Internal("a session that binds no buffers".to_owned());
        let bindings = self.bindings.as_mut().ok_or_else(missing)?;
        bindings.bound(self.engine.device()?, buffers).await
    }

    /// The buffer of an input that is pictures, and the recording that fills it.
    pub(super) async fn pictures(
        &mut self,
        index: usize,
        port: &Port,
        shown: Shown,
    ) -> Result<(PortBuffer, Arc<Recording>)> {
        let missing = || Error::Internal("a session that binds no buffers".to_owned());
        let bindings = self.bindings.as_mut().ok_or_else(missing)?;
        bindings.pictures(self.engine.device()?, index, port, shown).await
    }

    pub(super) fn unbind(&mut self) {
        self.bindings.iter_mut().for_each(Bindings::clear);
    }
}
