//! What is in which segment of a run ([`super::segments`]), planned from the program alone, before anything is allocated.

use super::host_steps::{HostStep, ReadFrom};
use super::profile;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::lower::{HostSource, Part, Program, Step, Stored, Work};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A submission before anything is allocated.
#[derive(Debug, Default)]
pub(super) struct PlannedSegment {
    /// How many steps of the device it has.
    pub(super) dispatches: usize,
    pub(super) reads: Vec<Part>,
    /// Results of the CPU's steps before, by number, and where they belong.
    pub(super) uploads: Vec<(usize, Part)>,
    pub(super) host: Vec<HostStep>,
    pub(super) steps: [Vec<profile::Step>; 4],
}

/// The segments of a run before anything is allocated: at least one.
#[derive(Debug)]
pub(super) struct SegmentPlan(pub(super) Vec<PlannedSegment>);

/// What the host has of a value during a run: an input's or a result's number, and its part.
type HostCopy = (usize, Part);

/// Segments in the making.
struct Builder<'p> {
    program: &'p Program,
    /// Stored values that the device, or an output, wants.
    wanted: BTreeSet<Stored>,
    results: Vec<HostCopy>,
    done: Vec<PlannedSegment>,
    current: PlannedSegment,
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
fn within(kept: &[HostCopy], part: &Part) -> Option<(usize, usize)> {
    let inside = |(_, own): &&HostCopy| {
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
        let inputs: Vec<HostCopy> = self.program.inputs.iter().copied().enumerate().collect();
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
                HostSource::Constant(values) => (ReadFrom::Constant(Arc::clone(values)), values.len()),
                HostSource::Stored(part) => {
                    let elements = (part.bytes / 4) as usize;
                    if let Some((index, first)) = within(&inputs, part) {
                        (ReadFrom::Input(index, first), elements)
                    } else if let Some((index, first)) = within(&self.results, part) {
                        (ReadFrom::Result(index, first), elements)
                    } else {
                        let current = &mut self.current;
                        current.reads.push(*part);
                        current.steps[2].push(transfer(&step.name, "download", *operand, part.bytes));
                        (ReadFrom::Download(current.reads.len() - 1), elements)
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
            current: PlannedSegment::default(),
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
