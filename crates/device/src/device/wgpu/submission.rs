//! From the encoder to the host: submit, wait, copy back.
//!
//! All outputs of a run are copied into one mappable staging buffer at the end of the same
//! submission, so that a run costs one submission, one wait and one mapping.

use super::WgpuDevice;
#[cfg(not(target_family = "wasm"))]
use super::{lock, scope};
#[cfg(not(target_family = "wasm"))]
use crate::clock::Instant;
use crate::device::signal::Signal;
use crate::device::{Awaited, Pending, Readback, Recording, Slice, copies};
use crate::error::{Error, Result};
#[cfg(target_family = "wasm")]
use std::future::Future;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
#[cfg(not(target_family = "wasm"))]
use std::time::Duration;

/// How long a waiting thread looks before it sleeps.
#[cfg(not(target_family = "wasm"))]
const SPIN_TIME: Duration = Duration::from_millis(1);

/// How often a waiting thread looks again if another thread is about to report for it.
#[cfg(not(target_family = "wasm"))]
const RECHECK_INTERVAL: Duration = Duration::from_millis(5);

/// A part of a wgpu buffer to copy to the host.
pub(super) struct DownloadRange<'a> {
    pub(super) buffer: &'a wgpu::Buffer,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// Submitted work whose results are on their way to the host.
#[derive(Debug)]
pub(super) struct Submission {
    #[cfg(not(target_family = "wasm"))]
    index: wgpu::SubmissionIndex,
    #[cfg(target_family = "wasm")]
    errors: Errors,
    readback: Option<Staged>,
    /// The buffer the inputs came from, and when it is mapped again.
    upload: Option<(wgpu::Buffer, Arc<Signal>)>,
}

/// Where the results of a submission are read.
#[derive(Debug)]
pub(super) struct Staged {
    staging: wgpu::Buffer,
    used: u64,
    /// Offset and length of each result.
    parts: Vec<(usize, usize)>,
    mapped: Arc<Signal>,
}

/// What the browser will say of a submission.
#[cfg(target_family = "wasm")]
#[derive(Default)]
struct Errors(Option<crate::task::Awaited<'static, Option<wgpu::Error>>>);

#[cfg(target_family = "wasm")]
impl std::fmt::Debug for Errors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Errors")
    }
}

/// A submission and the device that waits for it.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) device: WgpuDevice,
    pub(super) submission: Submission,
}

impl Pending for Started {
    #[cfg(not(target_family = "wasm"))]
    fn wait(self: Box<Self>) -> Result<Box<dyn Readback>> {
        Ok(Box::new(self.device.finish(self.submission)?))
    }

    #[cfg(target_family = "wasm")]
    fn wait(self: Box<Self>) -> Result<Box<dyn Readback>> {
        Err(Error::unsupported("a wait for the GPU in a browser", "nothing may block there: await the run"))
    }

    fn arrive(self: Box<Self>) -> Awaited<'static, Result<Box<dyn Readback>>> {
        Box::pin(async move {
            let mapped = self.device.arrive(self.submission).await?;
            Ok(Box::new(mapped) as Box<dyn Readback>)
        })
    }
}

/// The results of a submission in its staging buffer, which is mapped until this is dropped.
#[derive(Debug)]
pub(super) struct Mapped {
    device: WgpuDevice,
    /// None if nothing was read.
    results: Option<(wgpu::Buffer, wgpu::BufferView)>,
    /// Offset and length of each result.
    parts: Vec<(usize, usize)>,
}

impl Readback for Mapped {
    fn parts(&self) -> Vec<&[u8]> {
        // They were found to lie within it.
        let part = |&(at, length): &(usize, usize)| self.results.as_ref()?.1.get(at..at + length);
        self.parts.iter().map(|place| part(place).unwrap_or_default()).collect()
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let Some((staging, view)) = self.results.take() else { return };
        drop(view);
        let unmapped = self.device.scoped("unmap", || {
            staging.unmap();
            Ok(())
        });
        match unmapped {
            Ok(()) => self.device.keep_staging(staging),
            Err(error) => tracing::warn!("{error}"),
        }
    }
}

impl Submission {
    #[cfg(target_family = "wasm")]
    pub(super) fn with_errors(self, errors: impl Future<Output = Option<wgpu::Error>> + 'static) -> Self {
        Submission { errors: Errors(Some(Box::pin(errors))), ..self }
    }

    /// The submission, once the browser has found nothing wrong with it.
    #[cfg(target_family = "wasm")]
    async fn accepted(mut self, device: &WgpuDevice) -> Result<Self> {
        let Some(errors) = self.errors.0.take() else { return Ok(self) };
        match errors.await {
            None => Ok(self),
            Some(error) => Err(device.refused("submit", &error)),
        }
    }
}

impl WgpuDevice {
    /// Copies the slice to the host after all work submitted so far, awaited.
    pub(super) async fn read_slice_async(&self, slice: &Slice) -> Result<Vec<u8>> {
        let mut outputs = copies(&self.arrive(self.launch(&[], None, &[slice])?).await?);
        outputs.pop().ok_or_else(|| Error::Internal("a read of one slice gave nothing".to_owned()))
    }

    /// The results of a submission, awaited.
    ///
    /// In a browser its own promises are awaited. Elsewhere, if the work is not done when this is first polled, a thread
    /// of the device waits for the driver and wakes the task; wgpu has no other way to learn that the device has
    /// finished. The thread ends with the device. No executor is needed beyond one that polls the future, such as
    /// `pollster::block_on`. Dropped, the submitted work is left to finish and its results unread. Where threads cannot
    /// be started, the wait blocks.
    pub(super) async fn arrive(&self, submission: Submission) -> Result<Mapped> {
        #[cfg(target_family = "wasm")]
        let submission = submission.accepted(self).await?;
        let done = match &submission.readback {
            Some(readback) => Arc::clone(&readback.mapped),
            None => {
                let done = Arc::new(Signal::default());
                let signal = Arc::clone(&done);
                self.inner.queue.on_submitted_work_done(move || signal.set(Ok(())));
                done
            }
        };
        let mut watched = cfg!(target_family = "wasm");
        let result = poll_fn(|context| {
            if let Some(result) = done.get_or_wake(context.waker()) {
                return Poll::Ready(Ok(result));
            }
            if !watched {
                watched = true;
                if let Err(error) = self.watch(&submission, &done) {
                    return Poll::Ready(Err(error));
                }
            }
            Poll::Pending
        })
        .await?;
        result.map_err(|message| self.failed("map_async", message))?;
        self.mapped(submission)
    }

    /// Sees to it that `done` is set when the submission is done: a browser does so by itself.
    #[cfg(target_family = "wasm")]
    fn watch(&self, _submission: &Submission, _done: &Arc<Signal>) -> Result<()> {
        Ok(())
    }

    /// Sees to it that `done` is set when the submission is done.
    #[cfg(not(target_family = "wasm"))]
    fn watch(&self, submission: &Submission, done: &Arc<Signal>) -> Result<()> {
        self.poll(wgpu::PollType::Poll)?;
        if done.get().is_some() {
            return Ok(());
        }
        let completion = self.completion(Some(submission.index.clone()));
        let device = self.inner.device.clone();
        self.inner.counters.poll();
        self.inner.waiter.wait(done, move || scope::poll(&device, completion));
        Ok(())
    }

    /// Submits writes, a recording and the copies of what is read.
    pub(super) fn launch(
        &self,
        writes: &[(&Slice, &[u8])],
        recording: Option<&Recording>,
        reads: &[&Slice],
    ) -> Result<Submission> {
        self.submitted(|| {
            for (slice, bytes) in writes {
                self.enqueue_write(slice, bytes)?;
            }
            let mut encoder =
                self.inner.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            if let Some(recording) = recording {
                self.encode(recording, &mut encoder)?;
            }
            let sources = reads
                .iter()
                .map(|slice| {
                    self.word_aligned(slice)?;
                    Ok(DownloadRange {
                        buffer: self.raw(&slice.buffer)?,
                        offset: slice.offset,
                        bytes: slice.bytes,
                    })
                })
                .collect::<Result<Vec<DownloadRange>>>()?;
            self.submit_reading(encoder, &sources)
        })
    }

    /// Submits a run whose commands were encoded ahead, and encodes the next one.
    pub(super) fn submit_run(
        &self,
        writes: &[(&Slice, &[u8])],
        recording: &Recording,
        reads: &[&Slice],
    ) -> Result<Submission> {
        let recorded = self.recorded(recording)?;
        let transfers = self.transfers(writes, reads)?;
        let submission = self.submitted(|| {
            let prepared = self.prepared(recorded, &transfers)?;
            let submission = self.submit_prepared(prepared, writes)?;
            #[cfg(target_family = "wasm")]
            self.prepare_next(recorded, &transfers)?;
            Ok(submission)
        })?;
        // In a scope of its own: this run does not fail because there is no memory for the next one.
        #[cfg(not(target_family = "wasm"))]
        if let Err(error) = self.scoped("prepare", || self.prepare_next(recorded, &transfers)) {
            tracing::warn!("the next run is not prepared: {error}");
            lock(&recorded.ready).clear();
        }
        Ok(submission)
    }

    /// Appends the copies of `sources` to the encoder and submits it. To be called in a scope.
    pub(super) fn submit_reading(
        &self,
        mut encoder: wgpu::CommandEncoder,
        sources: &[DownloadRange<'_>],
    ) -> Result<Submission> {
        let readback = self.encode_readback(&mut encoder, sources);
        Ok(self.submit_commands(encoder.finish(), None, readback))
    }

    /// Appends the copies of `sources` to a staging buffer.
    pub(super) fn encode_readback(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        sources: &[DownloadRange<'_>],
    ) -> Option<Staged> {
        let mut used = 0;
        let mut parts = Vec::with_capacity(sources.len());
        for source in sources {
            parts.push((used as usize, source.bytes as usize));
            used += source.bytes.next_multiple_of(16);
        }
        let staging = if used == 0 { None } else { Some(self.take_staging(used)) };
        if let Some(staging) = &staging {
            for (source, &(at, _)) in sources.iter().zip(&parts) {
                // The buffer's size is a multiple of this as well: the copy ends within it.
                let words = source.bytes.next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT);
                self.inner.counters.copy();
                encoder.copy_buffer_to_buffer(source.buffer, source.offset, staging, at as u64, words);
            }
        }
        staging.map(|staging| Staged { staging, used, parts, mapped: Arc::default() })
    }

    /// Submits commands, and has the buffers mapped that the host touches next.
    pub(super) fn submit_commands(
        &self,
        commands: wgpu::CommandBuffer,
        upload: Option<wgpu::Buffer>,
        readback: Option<Staged>,
    ) -> Submission {
        let map = |buffer: &wgpu::Buffer, mode, bytes, signal: &Arc<Signal>| {
            let signal = Arc::clone(signal);
            self.inner.counters.map();
            buffer.map_async(mode, 0..bytes, move |result| {
                signal.set(result.map_err(|error| error.to_string()));
            });
        };
        self.inner.counters.submit();
        let _index = self.inner.queue.submit([commands]);
        self.inner.unsubmitted.store(0, Ordering::Relaxed);
        // wgpu calls back in this order, so that the upload buffer is ready when the results are.
        let upload = upload.map(|buffer| {
            let mapped = Arc::default();
            map(&buffer, wgpu::MapMode::Write, buffer.size(), &mapped);
            (buffer, mapped)
        });
        if let Some(Staged { staging, used, mapped, .. }) = &readback {
            map(staging, wgpu::MapMode::Read, *used, mapped);
        }
        Submission {
            #[cfg(not(target_family = "wasm"))]
            index: _index,
            #[cfg(target_family = "wasm")]
            errors: Errors::default(),
            readback,
            upload,
        }
    }

    /// Waits for a submission and gives its results.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn finish(&self, submission: Submission) -> Result<Mapped> {
        match &submission.readback {
            Some(readback) => {
                self.spin(&readback.mapped)?;
                let completion = || self.completion(Some(submission.index.clone()));
                self.wait_for(completion, &readback.mapped, "map_async")?;
            }
            None => self.poll(self.completion(Some(submission.index.clone())))?,
        }
        self.mapped(submission)
    }

    /// The wait for a submission, the last one if none is said, within the device's limit.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn completion(&self, submission_index: Option<wgpu::SubmissionIndex>) -> wgpu::PollType {
        wgpu::PollType::Wait { submission_index, timeout: self.inner.time_limit }
    }

    /// Looks again and again for a short while whether `signal` is set.
    ///
    /// A thread that sleeps in the driver wakes up tens to hundreds of microseconds after the
    /// device is done, as long as a small network takes. A driver that computes on the CPU needs
    /// that CPU itself.
    #[cfg(not(target_family = "wasm"))]
    fn spin(&self, signal: &Signal) -> Result<()> {
        let start = Instant::now();
        while !self.inner.info.is_cpu && signal.get().is_none() && start.elapsed() < SPIN_TIME {
            self.poll(wgpu::PollType::Poll)?;
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Polls until `signal` is set.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn wait_for(
        &self,
        how: impl Fn() -> wgpu::PollType,
        signal: &Signal,
        call: &'static str,
    ) -> Result<()> {
        loop {
            self.poll(how())?;
            // The callback is not run yet only if another thread polled at the same moment and
            // is about to run it.
            if let Some(result) = signal.get_within(RECHECK_INTERVAL) {
                return result.map_err(|message| self.failed(call, message));
            }
        }
    }

    /// The results of a finished submission.
    fn mapped(&self, submission: Submission) -> Result<Mapped> {
        if let Some((buffer, mapped)) = submission.upload
            && mapped.get() == Some(Ok(()))
        {
            self.keep_upload(buffer);
        }
        let Some(Staged { staging, used, parts, .. }) = submission.readback else {
            return Ok(Mapped { device: self.clone(), results: None, parts: Vec::new() });
        };
        let view = staging
            .get_mapped_range(0..used)
            .map_err(|error| self.failed("get_mapped_range", error.to_string()))?;
        if parts.iter().any(|&(at, length)| view.get(at..at + length).is_none()) {
            return Err(Error::Internal(format!("results {parts:?} beyond {used} staged bytes")));
        }
        Ok(Mapped { device: self.clone(), results: Some((staging, view)), parts })
    }
}
