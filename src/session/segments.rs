//! A run as segments: what the device does in one submission, and what the CPU computes behind it.
//!
//! A network whose steps all run on the device is one segment. A step on the CPU ends a segment: what it reads is
//! downloaded with that submission, and what it writes is uploaded before the next one. What the host has anyway, an
//! input of the network or the result of another step on the CPU, is not downloaded. What is in which segment is planned
//! from the program alone ([`SegmentPlan`]), before anything is allocated.

use super::profile::{self, TimedStep};
use super::resources::Resources;
use crate::alloc;
use crate::clock::Instant;
use crate::cpu::CpuKernel;
use crate::device::{Device, Dispatch, Recording, Slice, Wait};
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::lower::{HostSource, Part, Program, Step, Stored, Work};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a step on the CPU reads.
#[derive(Debug)]
enum Given {
    /// The elements of a constant.
    Constant(Arc<[f32]>),
    /// An input of the network, from an element on.
    Input(usize, usize),
    /// A result of a step on the CPU, from an element on.
    Result(usize, usize),
    /// One of the segment's downloads.
    Download(usize),
}

/// A step on the CPU.
#[derive(Debug)]
struct HostStep {
    name: String,
    kernel: Arc<dyn CpuKernel>,
    /// With how many elements of each.
    reads: Vec<(Operand, Given, usize)>,
    writes: Vec<(Operand, usize)>,
}

/// Steps on the CPU, one behind the other.
#[derive(Debug, Default)]
pub(super) struct HostSteps(Vec<HostStep>);

/// A submission, and the CPU's work behind it.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) is_first: bool,
    pub(super) recording: Recording,
    /// What the CPU's steps read, downloaded with the submission.
    pub(super) reads: Vec<Slice>,
    /// Results of the CPU's steps before, by number, and where they belong.
    uploads: Vec<(usize, Slice)>,
    pub(super) host: Arc<HostSteps>,
    /// Its steps: uploads, the device's, downloads, the CPU's.
    steps: [Vec<profile::Step>; 4],
}

/// The segments of a run: at least one.
#[derive(Debug)]
pub(super) struct Segments {
    lead: Vec<Segment>,
    last: Segment,
}

/// A submission before anything is allocated.
#[derive(Debug, Default)]
struct Planned {
    /// How many steps of the device it has.
    dispatches: usize,
    reads: Vec<Part>,
    /// Results of the CPU's steps before, by number, and where they belong.
    uploads: Vec<(usize, Part)>,
    host: Vec<HostStep>,
    steps: [Vec<profile::Step>; 4],
}

/// The segments of a run before anything is allocated: at least one.
#[derive(Debug)]
pub(super) struct SegmentPlan(Vec<Planned>);

/// What the host has of a value during a run: an input's or a result's number, and its part.
type Kept = (usize, Part);

/// Segments in the making.
struct Builder<'p> {
    program: &'p Program,
    /// Stored values that the device, or an output, wants.
    wanted: BTreeSet<Stored>,
    results: Vec<Kept>,
    done: Vec<Planned>,
    current: Planned,
    /// What the steps on the CPU of this segment leave to the next one to upload.
    next: Vec<(usize, Part, profile::Step)>,
}

fn node(step: &Step, kernel: String, precision: Precision, work_group: [u32; 3]) -> profile::Step {
    profile::Step {
        name: step.name.clone(),
        inserted: step.inserted,
        op: step.op,
        kernel,
        precision,
        work_group,
        choice: step.choice,
        source: step.from.clone(),
        flops: step.flops,
    }
}

/// A step that moves `bytes` between the device and the host, for the step `of` on the CPU.
fn transfer(of: &str, op: &'static str, operand: Operand, bytes: u64) -> profile::Step {
    profile::Step {
        name: format!("{of} ({op} {})", operand.name()),
        inserted: true,
        op,
        kernel: format!("{op}, {bytes} bytes"),
        precision: Precision::F32,
        work_group: [0; 3],
        choice: None,
        source: format!("{of} is on the CPU"),
        flops: 0,
    }
}

/// Where `part` begins in one of `kept`, in elements, if it lies within.
fn within(kept: &[Kept], part: &Part) -> Option<(usize, usize)> {
    let inside = |(_, own): &&Kept| {
        own.stored == part.stored
            && own.offset <= part.offset
            && part.offset + part.bytes <= own.offset + own.bytes
    };
    let (index, own) = kept.iter().find(inside)?;
    Some((*index, ((part.offset - own.offset) / 4) as usize))
}

impl Builder<'_> {
    fn host(&mut self, step: &Step) -> Result<()> {
        let Work::Host { kernel, reads, writes } = &step.work else {
            return Err(Error::Internal(format!("{:?} is no step of the CPU", step.name)));
        };
        let inputs: Vec<Kept> = self.program.inputs.iter().copied().enumerate().collect();
        let stored = |source: &HostSource| match source {
            HostSource::Stored(part) => Some(*part),
            HostSource::Constant(_) => None,
        };
        // What was computed behind this submission is on the device only with the next one.
        let later = reads.iter().filter_map(|(_, source)| stored(source)).any(|part| {
            let pending = self.next.iter().any(|(_, own, _)| own.stored == part.stored);
            pending && within(&self.results, &part).is_none()
        });
        if later {
            self.close();
        }
        let mut given = Vec::with_capacity(reads.len());
        for (operand, source) in reads {
            let (source, elements) = match source {
                HostSource::Constant(values) => (Given::Constant(Arc::clone(values)), values.len()),
                HostSource::Stored(part) => {
                    let elements = (part.bytes / 4) as usize;
                    if let Some((index, first)) = within(&inputs, part) {
                        (Given::Input(index, first), elements)
                    } else if let Some((index, first)) = within(&self.results, part) {
                        (Given::Result(index, first), elements)
                    } else {
                        let current = &mut self.current;
                        current.reads.push(*part);
                        current.steps[2].push(transfer(&step.name, "download", *operand, part.bytes));
                        (Given::Download(current.reads.len() - 1), elements)
                    }
                }
            };
            given.push((*operand, source, elements));
        }
        let mut written = Vec::with_capacity(writes.len());
        for (operand, part) in writes {
            if self.wanted.contains(&part.stored) {
                let move_up = transfer(&step.name, "upload", *operand, part.bytes);
                self.next.push((self.results.len(), *part, move_up));
            }
            self.results.push((self.results.len(), *part));
            written.push((*operand, (part.bytes / 4) as usize));
        }
        self.current.steps[3].push(node(step, format!("cpu_{}_f32", step.op), Precision::F32, [0; 3]));
        let (name, kernel) = (step.name.clone(), Arc::clone(kernel));
        self.current.host.push(HostStep { name, kernel, reads: given, writes: written });
        Ok(())
    }

    fn close(&mut self) {
        self.done.push(std::mem::take(&mut self.current));
        for (index, part, move_up) in std::mem::take(&mut self.next) {
            self.current.uploads.push((index, part));
            self.current.steps[0].push(move_up);
        }
    }
}

impl SegmentPlan {
    pub(super) fn of(program: &Program) -> Result<Self> {
        let of_device = program.steps.iter().filter(|step| matches!(step.work, Work::Device { .. }));
        let states = program.states.iter().map(|(part, _)| part);
        let ports = program.outputs.iter().chain(states).map(|part| part.stored);
        let mut builder = Builder {
            program,
            wanted: of_device.flat_map(|step| step.parts()).map(|part| part.stored).chain(ports).collect(),
            results: Vec::new(),
            done: Vec::new(),
            current: Planned::default(),
            next: Vec::new(),
        };
        for step in &program.steps {
            match &step.work {
                Work::Device { launch, .. } => {
                    if !builder.current.host.is_empty() {
                        builder.close();
                    }
                    let (spec, current) = (&launch.spec, &mut builder.current);
                    current.dispatches += 1;
                    current.steps[1].push(node(step, spec.label(), spec.precision, spec.work_group));
                }
                Work::Host { .. } => builder.host(step).map_err(|error| error.at_node(&step.name))?,
            }
        }
        if !builder.current.host.is_empty() {
            builder.close();
        }
        builder.done.push(builder.current);
        Ok(SegmentPlan(builder.done))
    }

    /// What a run downloads, in bytes, its outputs aside.
    pub(super) fn downloads(&self) -> u64 {
        self.0.iter().flat_map(|segment| &segment.reads).map(|part| part.bytes).sum()
    }

    /// What a run uploads, in bytes, its inputs aside.
    pub(super) fn uploads(&self) -> u64 {
        self.0.iter().flat_map(|segment| &segment.uploads).map(|(_, part)| part.bytes).sum()
    }
}

impl Segments {
    /// The segments of `plan`, which between them run all of `dispatches`.
    pub(super) fn new(
        device: &dyn Device,
        plan: SegmentPlan,
        resources: &Resources,
        dispatches: &[Dispatch],
    ) -> Result<Self> {
        let mut dispatches = dispatches.iter();
        let mut segments = Vec::with_capacity(plan.0.len());
        for (index, planned) in plan.0.into_iter().enumerate() {
            let own: Vec<Dispatch> = dispatches.by_ref().take(planned.dispatches).cloned().collect();
            let upload = |(result, part): (usize, Part)| Ok((result, resources.slice(&part)?));
            segments.push(Segment {
                is_first: index == 0,
                recording: device.record(&own)?,
                reads: planned.reads.iter().map(|part| resources.slice(part)).collect::<Result<_>>()?,
                uploads: planned.uploads.into_iter().map(upload).collect::<Result<_>>()?,
                host: Arc::new(HostSteps(planned.host)),
                steps: planned.steps,
            });
        }
        let last = segments.pop().ok_or_else(|| Error::Internal("a run of no segments".to_owned()))?;
        Ok(Segments { lead: segments, last })
    }

    /// All but the last.
    pub(super) fn lead(&self) -> &[Segment] {
        &self.lead
    }

    /// The last, behind which the CPU computes nothing.
    pub(super) fn last(&self) -> &Segment {
        &self.last
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Segment> {
        self.lead.iter().chain([&self.last])
    }

    pub(super) fn steps(&self) -> Vec<profile::Step> {
        self.all().flat_map(|segment| segment.steps.iter().flatten()).cloned().collect()
    }

    /// The nodes that the CPU computes, if there are any.
    #[cfg(any(feature = "wgpu", feature = "opencl"))]
    pub(super) fn on_cpu(&self) -> Option<String> {
        let names = self.all().flat_map(|segment| &segment.host.0).map(|step| format!("{:?}", step.name));
        let names: Vec<String> = names.collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

impl HostSteps {
    /// Computes the steps and appends their results.
    pub(super) fn run(
        &self,
        inputs: &[Cow<'_, [f32]>],
        read: &[&[u8]],
        results: &mut Vec<Vec<f32>>,
    ) -> Result<()> {
        let downloads: Vec<Cow<'_, [f32]>> = read.iter().map(|bytes| elements(bytes)).collect();
        self.0.iter().try_for_each(|step| step.run(inputs, &downloads, results))
    }
}

/// The elements that `bytes` are.
fn elements(bytes: &[u8]) -> Cow<'_, [f32]> {
    match bytemuck::try_cast_slice(bytes) {
        Ok(elements) => Cow::Borrowed(elements),
        Err(_) => Cow::Owned(bytemuck::pod_collect_to_vec(bytes)),
    }
}

impl HostStep {
    fn run(
        &self,
        inputs: &[Cow<'_, [f32]>],
        downloads: &[Cow<'_, [f32]>],
        results: &mut Vec<Vec<f32>>,
    ) -> Result<()> {
        let zeros = |(_, elements): &(Operand, usize)| alloc::zeros(*elements, "what the CPU computes");
        let mut written = self.writes.iter().map(zeros).collect::<Result<Vec<Vec<f32>>>>()?;
        let mut slots: Vec<(Operand, &mut [f32])> = self
            .writes
            .iter()
            .zip(&mut written)
            .map(|((operand, _), values)| (*operand, values.as_mut_slice()))
            .collect();
        let read = self.reads.iter().map(|(operand, given, elements)| {
            let (all, first) = match given {
                Given::Constant(values) => (Some(&**values), 0),
                Given::Input(index, first) => (inputs.get(*index).map(|values| &**values), *first),
                Given::Result(index, first) => (results.get(*index).map(Vec::as_slice), *first),
                Given::Download(index) => (downloads.get(*index).map(|values| &**values), 0),
            };
            let found = all.and_then(|all| all.get(first..first.checked_add(*elements)?));
            let missing = || Error::Internal(format!("{elements} elements from {first} of {given:?}"));
            Ok((*operand, found.ok_or_else(missing)?))
        });
        let read = read.collect::<Result<Vec<_>>>();
        let ran = read.and_then(|read| self.kernel.run(&read, &mut slots));
        ran.map_err(|error| error.at_node(&self.name))?;
        results.extend(written);
        Ok(())
    }
}

impl Segment {
    /// What it writes of the CPU's results.
    pub(super) fn writes<'a>(
        &'a self,
        results: &'a [Vec<f32>],
    ) -> impl Iterator<Item = (&'a Slice, &'a [u8])> {
        let write = |(index, slice): &'a (usize, Slice)| {
            Some((slice, bytemuck::cast_slice(results.get(*index)?.as_slice())))
        };
        self.uploads.iter().filter_map(write)
    }

    /// Uploads, runs and downloads, each by itself.
    pub(super) async fn submit(
        &self,
        device: &dyn Device,
        wait: Wait,
        results: &[Vec<f32>],
    ) -> Result<Vec<Vec<u8>>> {
        self.writes(results).try_for_each(|(slice, bytes)| device.write(slice, bytes))?;
        device.submit(&self.recording)?;
        let mut read = Vec::with_capacity(self.reads.len());
        for slice in &self.reads {
            read.push(wait.read(device, slice).await?);
        }
        Ok(read)
    }

    /// [`Segment::submit`] and the CPU's work behind it, with the time of each step.
    pub(super) async fn profile(
        &self,
        device: &dyn Device,
        wait: Wait,
        inputs: &[Cow<'_, [f32]>],
        results: &mut Vec<Vec<f32>>,
    ) -> Result<Vec<TimedStep>> {
        let mut times = Vec::new();
        for (slice, bytes) in self.writes(results) {
            let start = Instant::now();
            device.write(slice, bytes)?;
            wait.wait(device).await?;
            times.push(start.elapsed());
        }
        times.extend(wait.time(device, &self.recording).await?);
        let mut downloads = Vec::with_capacity(self.reads.len());
        for slice in &self.reads {
            let start = Instant::now();
            let bytes = wait.read(device, slice).await?;
            times.push(start.elapsed());
            downloads.push(Cow::Owned(elements(&bytes).into_owned()));
        }
        for step in &self.host.0 {
            let start = Instant::now();
            step.run(inputs, &downloads, results)?;
            times.push(start.elapsed());
        }
        profile::timed(self.steps.iter().flatten().cloned().collect(), times)
    }
}
