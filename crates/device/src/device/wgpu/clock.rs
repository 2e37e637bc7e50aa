//! Device time of single dispatches, by timestamp queries around one pass each, or of many in one pass.

use super::WgpuDevice;
use super::record::Step;
use super::submission::{DownloadRange, Submission};
use crate::device::{Readback, Recording};
use crate::error::{Error, Result};
use std::time::Duration;

/// Dispatches timed in one submission: each takes two queries of a set.
const CHUNK: usize = wgpu::QUERY_SET_MAX_QUERIES as usize / 2;

impl WgpuDevice {
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn time_recording(&self, recording: &Recording) -> Result<Vec<Duration>> {
        let steps = self.timed(recording)?;
        let mut times = Vec::with_capacity(steps.len());
        for chunk in steps.chunks(CHUNK) {
            times.extend(self.times(&self.finish(self.submit_timed(&chunk.chunks(1).collect::<Vec<_>>())?)?));
        }
        Ok(times)
    }

    /// [`WgpuDevice::time_recording`], awaited.
    pub(super) async fn time_recording_async(&self, recording: &Recording) -> Result<Vec<Duration>> {
        let steps = self.timed(recording)?;
        let mut times = Vec::with_capacity(steps.len());
        for chunk in steps.chunks(CHUNK) {
            times.extend(
                self.times(&self.arrive(self.submit_timed(&chunk.chunks(1).collect::<Vec<_>>())?).await?),
            );
        }
        Ok(times)
    }

    /// The time of all dispatches together, awaited.
    pub(super) async fn time_together(&self, recording: &Recording) -> Result<Duration> {
        let steps = self.timed(recording)?;
        Ok(self.times(&self.arrive(self.submit_timed(&[steps])?).await?).into_iter().sum())
    }

    /// What is timed.
    fn timed<'a>(&self, recording: &'a Recording) -> Result<&'a [Step]> {
        if !self.inner.info.timestamps {
            return Err(Error::unsupported(
                "timing a dispatch",
                format!("{} was opened without TIMESTAMP_QUERY", self.inner.info),
            ));
        }
        Ok(&self.recorded(recording)?.steps)
    }

    /// Submits the steps of each pass between two queries.
    fn submit_timed(&self, passes: &[&[Step]]) -> Result<Submission> {
        let device = &self.inner.device;
        let count = 2 * passes.len() as u32;
        let bytes = u64::from(count) * u64::from(wgpu::QUERY_SIZE);
        self.submitted(|| {
            let queries = device.create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("diptych clock"),
                ty: wgpu::QueryType::Timestamp,
                count,
            });
            let ticks = device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("diptych clock"),
                size: bytes,
                usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: false,
            });
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            for (steps, first) in passes.iter().zip((0..).step_by(2)) {
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                    label: Some("diptych timed"),
                    timestamp_writes: Some(wgpu::ComputePassTimestampWrites {
                        query_set: &queries,
                        beginning_of_pass_write_index: Some(first),
                        end_of_pass_write_index: Some(first + 1),
                    }),
                });
                steps.iter().for_each(|step| step.encode(&mut pass));
            }
            encoder.resolve_query_set(&queries, 0..count, &ticks, 0);
            self.submit_reading(encoder, &[DownloadRange { buffer: &ticks, offset: 0, bytes }])
        })
    }

    /// The times of the passes whose queries were resolved to these bytes.
    fn times(&self, resolved: &dyn Readback) -> Vec<Duration> {
        let period = f64::from(self.inner.queue.get_timestamp_period());
        let ticks: Vec<u64> = resolved
            .parts()
            .into_iter()
            .flat_map(|bytes| bytes.as_chunks().0)
            .map(|tick| u64::from_ne_bytes(*tick))
            .collect();
        // A pass whose end was written before its beginning took less than the clock can measure.
        ticks
            .as_chunks()
            .0
            .iter()
            .map(|[begin, end]| Duration::from_nanos((end.saturating_sub(*begin) as f64 * period) as u64))
            .collect()
    }
}
