//! A session on a GPU: the graph is lowered, memory planned, and the run recorded once.

#[cfg(any(feature = "wgpu", feature = "opencl"))]
mod lent;
mod states;

use super::flight::{Launched, Layout, OutputPlace};
#[cfg(all(feature = "cpu", any(feature = "wgpu", feature = "opencl"), not(target_family = "wasm")))]
use super::frame::Uploads;
use super::input::{Input, whole};
use super::lowered::lowered;
use super::memory::{DeviceMemory, Release};
use super::output_memory::OutputMemory;
use super::profile::{self, MemoryUse, Profile, StageTimes};
use super::progress::Teller;
use super::recorded::{RecordedRun, RunParts};
use super::resources::{allocate, dispatches, kernels};
use super::run::{Next, Run};
use super::segment_plan::SegmentPlan;
use super::segments::Segment;
use super::shared::Shared;
use crate::alloc;
use crate::clock::Instant;
use crate::context::Engine;
use crate::device::{Readback, Slice, Wait};
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::host::HostTensor;
use crate::lower::{Part, Program, Step, Work};
use crate::options::SessionOptions;
use crate::task::{Awaited, both, offload};
use states::DeviceState;
use std::borrow::Cow;
use std::sync::Arc;

/// A network made ready to run on a GPU.
#[derive(Debug)]
pub(super) struct DeviceSession {
    engine: Engine,
    /// Nothing while others have the buffers for its values.
    ready: Option<RecordedRun>,
    /// What it is made of, if it lets others have them.
    made_of: Option<RunParts>,
    /// The states, and what they are at first.
    states: Vec<DeviceState>,
    /// Whether sessions for other extents have the same states.
    shares_states: bool,
    /// Which of them is the key of random numbers.
    key: Option<usize>,
    layout: Layout,
    memory: MemoryUse,
    /// The kernel of each step, by the step's name.
    kernels: Vec<(String, String)>,
    /// What inputs that are frames lie in.
    #[cfg(all(feature = "cpu", any(feature = "wgpu", feature = "opencl"), not(target_family = "wasm")))]
    uploads: Uploads,
    /// Last, so that all else is dropped before.
    _release: Release,
}

/// The kernel of each step, by the step's name.
fn chosen(program: &Program) -> Vec<(String, String)> {
    let kernel = |step: &Step| match &step.work {
        Work::Device { launch, .. } => launch.spec.label(),
        Work::Host { .. } => String::new(),
    };
    program.steps.iter().map(|step| (step.name.clone(), kernel(step))).collect()
}

/// The inputs as the CPU has made them for itself, if some are frames: the device is given the same numbers.
fn made<'a>(inputs: &[Input<'_>], given: &'a [Cow<'_, [f32]>]) -> Option<Vec<Input<'a>>> {
    let whole = |elements: &'a Cow<'_, [f32]>| Input::Whole(Cow::Borrowed(&**elements));
    inputs.iter().any(Input::is_frames).then(|| given.iter().map(whole).collect())
}

impl DeviceSession {
    pub(super) async fn build(
        engine: Engine,
        graph: &Graph,
        options: &SessionOptions,
        shared: Option<&Shared>,
        teller: &Teller<'_>,
    ) -> Result<Self> {
        let program = lowered(&engine, graph, options, shared.map(|shared| &shared.known))?;
        Self::of(engine, program, shared, teller).await
    }

    /// Takes the kernels that the record has now; the names of the steps that have others than before.
    pub(super) async fn refresh(
        &mut self,
        graph: &Graph,
        options: &SessionOptions,
        shared: Option<&Shared>,
        wait: Wait,
    ) -> Result<Vec<String>> {
        let program = lowered(&self.engine, graph, options, shared.map(|shared| &shared.known))?;
        if chosen(&program) == self.kernels {
            return Ok(Vec::new());
        }
        let next = Self::of(self.engine.clone(), program, shared, &Teller::new(&|_| {})).await?;
        next.follow(self, wait).await?;
        let changed = next.kernels.iter().filter(|kernel| !self.kernels.contains(kernel));
        let changed = changed.map(|(name, _)| name.clone()).collect();
        *self = next;
        Ok(changed)
    }

    pub(super) async fn of(
        engine: Engine,
        program: Program,
        shared: Option<&Shared>,
        teller: &Teller<'_>,
    ) -> Result<Self> {
        let device = engine.device()?;
        // A browser compiles kernels while constants are packed here.
        let memory = DeviceMemory::of(&program, &SegmentPlan::of(&program)?, shared.is_some());
        let allocated = allocate(device, &program, &memory, shared, teller);
        let known = shared.map(|shared| &shared.known);
        let (resources, kernels) = both(allocated, kernels(device, &program, known, teller)).await?;
        if !program.setup.is_empty() {
            let setup = dispatches(&program.setup, &kernels.setup, &resources)?;
            device.submit(&device.record(&setup)?)?;
        }
        let mut reads: Vec<Part> = Vec::new();
        let mut places: Vec<OutputPlace> = Vec::with_capacity(program.outputs.len());
        for (index, part) in program.outputs.iter().enumerate() {
            if part.bytes == 0 {
                places.push(OutputPlace { read: 0, offset: 0, bytes: 0 });
                continue;
            }
            let earlier = program.outputs[..index].iter().position(|earlier| earlier.stored == part.stored);
            let read = match earlier.and_then(|earlier| places.get(earlier)) {
                Some(OutputPlace { read, .. }) => *read,
                None => {
                    reads.push(program.whole(part.stored));
                    reads.len() - 1
                }
            };
            places.push(OutputPlace { read, offset: part.offset as usize, bytes: part.bytes as usize });
        }
        // Outputs of no elements lie in no buffer, but behind those that are read.
        let fixed: Vec<Vec<f32>> =
            places.iter().any(|place| place.bytes == 0).then(Vec::new).into_iter().collect();
        places.iter_mut().filter(|place| place.bytes == 0).for_each(|place| place.read = reads.len());
        let state = |(part, initial): &(Part, HostTensor)| {
            let halves = program.stored[part.stored].halves;
            Ok(DeviceState { slice: resources.slice(part)?, initial: initial.clone(), halves })
        };
        let states = program.states.iter().map(state).collect::<Result<_>>()?;
        let fresh: Vec<bool> =
            program.states.iter().map(|(part, _)| !resources.written.contains(&part.stored)).collect();
        let (count, words, key) = (places.len(), program.output_words.clone().into(), program.key);
        let (used, chosen) = (resources.memory, chosen(&program));
        let mut made_of = RunParts { program, reads, memory, kernels: kernels.steps, resources };
        let ready = made_of.record(device)?;
        made_of.program.let_go_of_constants();
        let session = DeviceSession {
            ready: Some(ready),
            made_of: shared.map(|_| made_of),
            states,
            shares_states: shared.is_some_and(Shared::keeps_states),
            key,
            layout: Layout {
                spare: shared
                    .map_or_else(|| Arc::new(OutputMemory::new(count)), |shared| shared.spare(count)),
                places: places.into(),
                words,
                fixed: fixed.into(),
            },
            memory: used,
            kernels: chosen,
            #[cfg(all(
                feature = "cpu",
                any(feature = "wgpu", feature = "opencl"),
                not(target_family = "wasm")
            ))]
            uploads: Uploads::default(),
            _release: Release(engine.clone()),
            engine,
        };
        // What another session has written stays.
        session.reset_those(&|index| fresh.get(index) == Some(&true))?;
        session.engine.device()?.settled().await?;
        Ok(session)
    }

    /// What a run needs.
    fn ready(&self) -> Result<&RecordedRun> {
        self.ready.as_ref().ok_or_else(|| Error::Internal("a run without buffers".to_owned()))
    }

    /// Takes the buffers for values that it shares with sessions for other extents, if it let go of them.
    pub(super) fn take_buffers(&mut self, shared: &Shared) -> Result<()> {
        if let (None, Some(made_of)) = (&self.ready, &mut self.made_of) {
            self.ready = Some(made_of.take_buffers(self.engine.device()?, shared)?);
        }
        Ok(())
    }

    /// Lets go of buffers for values in whose place others are given now.
    pub(super) fn leave_buffers(&mut self, shared: &Shared) {
        if self.made_of.as_mut().is_some_and(|made_of| made_of.leave_buffers(shared)) {
            self.ready = None;
            #[cfg(all(
                feature = "cpu",
                any(feature = "wgpu", feature = "opencl"),
                not(target_family = "wasm")
            ))]
            self.uploads.clear();
            self.engine.device().into_iter().for_each(|device| device.release());
        }
    }

    /// What is written of the inputs, each where it belongs.
    fn writes<'a>(&'a self, inputs: &'a [Input<'_>]) -> Result<Vec<Write<'a>>> {
        let mut writes = Vec::with_capacity(inputs.len());
        for (slice, input) in self.ready()?.inputs.iter().zip(inputs) {
            let Some(slice) = slice else { continue };
            match input {
                Input::Whole(elements) => writes.push((Cow::Borrowed(slice), bytemuck::cast_slice(elements))),
                Input::Parts(parts) => {
                    let mut at = slice.offset;
                    for part in parts {
                        let own = slice.buffer.slice(at, size_of_val(*part) as u64)?;
                        at += own.bytes;
                        writes.push((Cow::Owned(own), bytemuck::cast_slice(part)));
                    }
                }
                // They are uploaded and made before.
                #[cfg(all(feature = "cpu", not(target_family = "wasm")))]
                Input::Frames(..) => {}
            }
        }
        Ok(writes)
    }

    /// What a segment writes: the inputs, if it is the first, and results of the CPU.
    fn writes_of<'a>(
        &'a self,
        segment: &'a Segment,
        inputs: &'a [Input<'_>],
        results: &'a [Vec<f32>],
    ) -> Result<Vec<Write<'a>>> {
        let mut writes = if segment.is_first { self.writes(inputs)? } else { Vec::new() };
        writes.extend(segment.writes(results).map(|(slice, bytes)| (Cow::Borrowed(slice), bytes)));
        Ok(writes)
    }

    /// The inputs as the CPU reads them, if it reads any.
    fn for_cpu<'a>(&self, inputs: &'a [Input<'_>]) -> Result<Vec<Cow<'a, [f32]>>> {
        let ready = self.ready()?;
        if ready.segments.lead().is_empty() {
            return Ok(Vec::new());
        }
        let lengths: Vec<usize> = ready
            .inputs
            .iter()
            .map(|slice| slice.as_ref().map_or(0, |slice| (slice.bytes / 4) as usize))
            .collect();
        whole(inputs, &lengths)
    }

    /// Starts a segment.
    fn start(
        &self,
        segment: &Segment,
        inputs: &[Input<'_>],
        results: &[Vec<f32>],
        reads: &[Slice],
        next: Next,
    ) -> Result<Launched> {
        let writes = self.writes_of(segment, inputs, results)?;
        let writes: Vec<(&Slice, &[u8])> = writes.iter().map(|(slice, bytes)| (&**slice, *bytes)).collect();
        let (device, reads) = (self.engine.device()?, reads.iter().collect::<Vec<_>>());
        Ok(match next {
            Next::Waits => Launched::Done(device.run_in_place(&writes, &segment.recording, &reads)?),
            Next::GoesOn => Launched::Pending(device.start(&writes, &segment.recording, &reads)?),
        })
    }

    async fn launched(&self, inputs: &[Input<'_>]) -> Result<Launched> {
        let RecordedRun { segments, reads, .. } = self.ready()?;
        let mut results = Vec::new();
        let mut given = Vec::new();
        for input in self.for_cpu(inputs)? {
            given.push(Cow::<'static, [f32]>::Owned(alloc::copied(&input, "an input")?));
        }
        #[cfg(any(feature = "wgpu", feature = "opencl"))]
        if segments.lead().is_empty() {
            self.frames(inputs).await?;
        }
        for segment in segments.lead() {
            let own = made(inputs, &given);
            let inputs = own.as_deref().unwrap_or(inputs);
            let started = self.start(segment, inputs, &results, &segment.reads, Next::GoesOn)?;
            drop(own);
            let read = started.arrived().await?;
            let host = Arc::clone(&segment.host);
            let work = move || {
                host.run(&given, &read.parts(), &mut results)?;
                Ok((given, results))
            };
            (given, results) = offload(work)?.await?;
        }
        self.start(segments.last(), inputs, &results, reads, Next::GoesOn)
    }

    async fn staged(&self, inputs: &[Input<'_>], wait: Wait) -> Result<(Box<dyn Readback>, StageTimes)> {
        let device = self.engine.device()?;
        let RecordedRun { segments, reads, .. } = self.ready()?;
        let given = self.for_cpu(inputs)?;
        let mut clock = Instant::now();
        let mut lap = || std::mem::replace(&mut clock, Instant::now()).elapsed();
        self.writes(inputs)?.iter().try_for_each(|(slice, bytes)| device.write(slice, bytes))?;
        wait.wait(device).await?;
        let upload = lap();
        let mut results = Vec::new();
        for segment in segments.lead() {
            let read = segment.submit(device, wait, &results).await?;
            segment.host.run(&given, &read.parts(), &mut results)?;
        }
        segments.last().submit(device, wait, &results).await?;
        wait.wait(device).await?;
        let network = lap();
        let mut read = Vec::with_capacity(reads.len());
        for slice in reads {
            read.push(wait.read(device, slice).await?);
        }
        Ok((Box::new(read), StageTimes { upload, network, download: lap() }))
    }

    async fn profiled(&self, inputs: &[Input<'_>], wait: Wait) -> Result<Profile> {
        let device = self.engine.device()?;
        self.writes(inputs)?.iter().try_for_each(|(slice, bytes)| device.write(slice, bytes))?;
        let given = self.for_cpu(inputs)?;
        let mut results = Vec::new();
        let mut steps = Vec::new();
        let segments = &self.ready()?.segments;
        for segment in segments.all() {
            steps.extend(segment.profile(device, wait, &given, &mut results).await?);
        }
        let clock = match (device.info().api, segments.lead().is_empty()) {
            ("OpenCL", true) => "profiling events",
            ("OpenCL", false) => "profiling events, the host clock for the CPU",
            (_, true) => "GPU timestamps",
            (_, false) => "GPU timestamps, the host clock for the CPU",
        };
        Ok(Profile { clock, steps })
    }
}

/// Bytes, and where they belong.
type Write<'a> = (Cow<'a, Slice>, &'a [u8]);

impl Run for DeviceSession {
    fn steps(&self) -> Vec<profile::Step> {
        // The one that runs has its buffers.
        self.ready.as_ref().map_or_else(Vec::new, |ready| ready.segments.steps())
    }

    fn memory(&self) -> MemoryUse {
        self.memory
    }

    fn shared_values(&self) -> &[u64] {
        self.made_of.as_ref().map_or(&[], |made_of| &made_of.memory.plan.buffers)
    }

    fn reset(&self) -> Result<()> {
        self.reset_those(&|_| true)
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn launch(&self, inputs: &[Input<'_>], next: Next) -> Result<Launched> {
        #[cfg(all(feature = "cpu", any(feature = "wgpu", feature = "opencl"), not(target_family = "wasm")))]
        if self.ready()?.segments.lead().is_empty() && inputs.iter().any(Input::is_frames) {
            crate::task::block_on(self.frames(inputs))?;
        }
        let RecordedRun { segments, reads, .. } = self.ready()?;
        let (given, mut results) = (self.for_cpu(inputs)?, Vec::new());
        for segment in segments.lead() {
            let own = made(inputs, &given);
            let inputs = own.as_deref().unwrap_or(inputs);
            let read = self.start(segment, inputs, &results, &segment.reads, Next::Waits)?.waited()?;
            segment.host.run(&given, &read.parts(), &mut results)?;
        }
        self.start(segments.last(), inputs, &results, reads, next)
    }

    fn launch_async<'a>(&'a self, inputs: &'a [Input<'a>]) -> Awaited<'a, Result<Launched>> {
        Box::pin(self.launched(inputs))
    }

    fn stages<'a>(
        &'a self,
        inputs: &'a [Input<'a>],
        wait: Wait,
    ) -> Awaited<'a, Result<(Box<dyn Readback>, StageTimes)>> {
        Box::pin(self.staged(inputs, wait))
    }

    fn profile<'a>(&'a self, inputs: &'a [Input<'a>], wait: Wait) -> Awaited<'a, Result<Profile>> {
        Box::pin(self.profiled(inputs, wait))
    }
}
