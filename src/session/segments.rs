//! A run as segments: what the device does in one submission, and what the CPU computes behind it.
//!
//! A network whose steps all run on the device is one segment. A step on the CPU ends a segment: what it reads is
//! downloaded with that submission, and what it writes is uploaded before the next one. What the host has anyway, an
//! input of the network or the result of another step on the CPU, is not downloaded. What is in which segment is planned
//! from the program alone ([`SegmentPlan`]), before anything is allocated.

use super::host_steps::{HostSteps, elements};
use super::profile::{self, TimedStep};
use super::resources::Resources;
use super::segment_plan::SegmentPlan;
use crate::clock::Instant;
use crate::device::{Device, Dispatch, Recording, Slice, Wait};
use crate::error::{Error, Result};
use crate::lower::Part;
use std::borrow::Cow;
use std::sync::Arc;

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
