//! Buffers: allocation, writes, and mapping in place.

#[cfg(not(target_family = "wasm"))]
use super::scope::{self, catch};
use super::{Owner, WgpuDevice};
use crate::device::handle::RawBuffer as AnyBuffer;
#[cfg(not(target_family = "wasm"))]
use crate::device::signal::Signal;
use crate::device::{Buffer, Memory, Slice};
use crate::error::{Error, Result};
#[cfg(not(target_family = "wasm"))]
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Allocations are whole vec4s of f32, so that rounding a slice up to whole words stays inside.
const SIZE_GRANULE: u64 = 16;

/// Staging memory of writes is given back after the next submission; one is made when this much
/// has gathered, so that uploading a large model does not hold it twice.
const UNSUBMITTED_LIMIT: u64 = 64 << 20;

/// A wgpu buffer and whose it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RawBuffer {
    buffer: wgpu::Buffer,
    owner: Owner,
}

impl RawBuffer {
    pub(super) fn new(buffer: wgpu::Buffer, owner: Owner) -> Self {
        RawBuffer { buffer, owner }
    }
}

impl WgpuDevice {
    pub(super) fn alloc_buffer(&self, bytes: u64, memory: Memory) -> Result<Buffer> {
        let limit = self.inner.limits.max_buffer_size;
        let size = match bytes.checked_next_multiple_of(SIZE_GRANULE) {
            Some(size) if (1..=limit).contains(&size) => size,
            _ => {
                return Err(Error::input(
                    "allocation",
                    format!("{bytes} bytes"),
                    format!("from 1 byte to the device's {limit}, in steps of {SIZE_GRANULE}"),
                ));
            }
        };
        let mut usage =
            wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        if memory == Memory::HostVisible {
            if !self.inner.features.contains(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS) {
                return Err(Error::unsupported(
                    "a host-visible buffer",
                    "the device was made without MAPPABLE_PRIMARY_BUFFERS",
                ));
            }
            usage |= wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::MAP_WRITE;
        }
        let descriptor =
            wgpu::BufferDescriptor { label: Some("diptych"), size, usage, mapped_at_creation: false };
        let buffer = self.scoped("create_buffer", || Ok(self.inner.device.create_buffer(&descriptor)))?;
        let raw = RawBuffer { buffer, owner: self.inner.owner };
        Ok(Buffer { raw: AnyBuffer::Wgpu(raw), bytes: size })
    }

    /// The wgpu buffer behind a handle.
    pub(super) fn raw<'a>(&self, buffer: &'a Buffer) -> Result<&'a wgpu::Buffer> {
        match &buffer.raw {
            AnyBuffer::Wgpu(raw) => self.owned(raw.owner, "buffer").map(|()| &raw.buffer),
            #[cfg(feature = "opencl")]
            AnyBuffer::OpenCl(_) => Err(crate::device::handle::foreign("buffer", self.api())),
        }
    }

    /// wgpu copies whole words from whole-word offsets.
    pub(super) fn word_aligned(&self, slice: &Slice) -> Result<()> {
        if slice.offset.is_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT) {
            return Ok(());
        }
        Err(Error::input(
            "buffer slice",
            format!("offset {}", slice.offset),
            format!("a multiple of {} to copy from or to", wgpu::COPY_BUFFER_ALIGNMENT),
        ))
    }

    pub(super) fn write_slice(&self, slice: &Slice, bytes: &[u8]) -> Result<()> {
        self.scoped("write_buffer", || {
            self.enqueue_write(slice, bytes)?;
            if self.inner.unsubmitted.load(Ordering::Relaxed) > UNSUBMITTED_LIMIT {
                self.flush();
            }
            Ok(())
        })
    }

    /// Queues a copy into the slice, done before the next submission. If `bytes` are not whole
    /// words, the rest of the last word becomes zero.
    pub(super) fn enqueue_write(&self, slice: &Slice, bytes: &[u8]) -> Result<()> {
        let raw = self.raw(&slice.buffer)?;
        self.word_aligned(slice)?;
        self.fits(slice, bytes)?;
        let (words, rest) = bytes.split_at(bytes.len() - bytes.len() % wgpu::COPY_BUFFER_ALIGNMENT as usize);
        if !words.is_empty() {
            self.inner.counters.copy();
            self.inner.queue.write_buffer(raw, slice.offset, words);
        }
        if !rest.is_empty() {
            let mut last = [0; wgpu::COPY_BUFFER_ALIGNMENT as usize];
            for (to, from) in last.iter_mut().zip(rest) {
                *to = *from;
            }
            self.inner.counters.copy();
            self.inner.queue.write_buffer(raw, slice.offset + words.len() as u64, &last);
        }
        self.inner.unsubmitted.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Submits the writes queued so far.
    pub(super) fn flush(&self) {
        if self.inner.unsubmitted.swap(0, Ordering::Relaxed) > 0 {
            self.inner.counters.submit();
            self.inner.queue.submit([]);
        }
    }

    /// Has wgpu free the buffers that nobody holds any more: it does so in a poll, and what was written to them holds
    /// them until the next submission. The device's thread polls, once the work so far is done.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn free_dropped(&self) {
        let inner = &self.inner;
        if !inner.own.load(Ordering::Relaxed)
            || inner.overdue.load(Ordering::Relaxed)
            || inner.lost.get().is_some()
        {
            return;
        }
        let submitted = self.scoped("submit", || {
            inner.unsubmitted.store(0, Ordering::Relaxed);
            inner.counters.submit();
            Ok(inner.queue.submit([]))
        });
        match submitted {
            Ok(index) => {
                let (device, completion) = (inner.device.clone(), self.completion(Some(index)));
                inner.counters.poll();
                inner.waiter.wait(&Arc::default(), move || scope::poll(&device, completion));
            }
            Err(error) => tracing::warn!("what was dropped is not freed yet: {error}"),
        }
    }

    /// Waits for everything on the queue, by an empty submission behind it: a lost device refuses
    /// that, where waiting for the last accepted one would call it done.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn wait_all(&self) -> Result<()> {
        let index = self.scoped("submit", || {
            self.inner.unsubmitted.store(0, Ordering::Relaxed);
            self.inner.counters.submit();
            Ok(self.inner.queue.submit([]))
        })?;
        self.poll(self.completion(Some(index)))
    }

    #[cfg(not(target_family = "wasm"))]
    pub(super) fn map_buffer(&self, buffer: &Buffer, access: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        let raw = self.raw(buffer)?;
        if !raw.usage().contains(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::MAP_WRITE) {
            return Err(Error::input("map", "a buffer in device memory", "a host-visible buffer"));
        }
        let signal = Arc::new(Signal::default());
        self.scoped("map_async", || {
            self.flush();
            let mapped = Arc::clone(&signal);
            self.inner.counters.map();
            raw.map_async(wgpu::MapMode::Write, .., move |result| {
                mapped.set(result.map_err(|error| error.to_string()));
            });
            Ok(())
        })?;
        self.wait_for(|| self.completion(None), &signal, "map_async")?;
        // Only now: if the mapping was refused, it may be another thread's to end.
        let _mapped = Mapped { device: &self.inner.device, buffer: raw };
        let mut view = raw.get_mapped_range_mut(..).map_err(|error| self.failed("map", error.to_string()))?;
        let mut bytes = view.slice(..);
        let length = bytes.len();
        // SAFETY: the pointer and length are those of wgpu's own view of the mapping, which is
        // valid, exclusive and alive until `view` is dropped below. The view is typed write-only
        // because mapped memory need not be readable; here it is, and initialised: the buffer was
        // made with MAP_READ too, for which every backend takes host-readable coherent memory
        // (wgpu-hal 30: Vulkan `CpuToGpu`, Metal shared, DX12 custom heap), and wgpu zeroes what
        // was never written when it maps. Any byte is a valid u8. Backed by the test
        // `a_host_visible_buffer_is_mapped_in_place`.
        let bytes = unsafe { std::slice::from_raw_parts_mut(bytes.as_raw_element_ptr().as_ptr(), length) };
        access(bytes);
        Ok(())
    }
}

/// Unmaps a buffer at the end of its scope, also when the caller's closure panics.
#[cfg(not(target_family = "wasm"))]
struct Mapped<'a> {
    device: &'a wgpu::Device,
    buffer: &'a wgpu::Buffer,
}

#[cfg(not(target_family = "wasm"))]
impl Drop for Mapped<'_> {
    fn drop(&mut self) {
        if let (Err(panic), _) = catch(self.device, || self.buffer.unmap()) {
            tracing::warn!("{panic}");
        }
    }
}
