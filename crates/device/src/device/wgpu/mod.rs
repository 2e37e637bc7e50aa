//! Vulkan (and Metal or DX12) through wgpu.
//!
//! | file | does |
//! |---|---|
//! | `open` | finds an adapter, or takes the application's device |
//! | `scope` | turns wgpu's errors into [`Error`], so that none is left uncaught |
//! | `memory` | allocates, writes, maps |
//! | `pipeline` | compiles kernels and keeps them |
//! | `record` | binds arguments once; encodes a recording into a command encoder |
//! | `prepared` | encodes the next run while the device works on this one |
//! | `staging` | keeps buffers that results are read from |
//! | `submission` | submits, waits, and copies results back: the latency path |
//! | `adopt` | an application's buffers and textures |
//! | `kept` | handles whose end does not end the program |
//! | `calls` | counts of submissions, polls, mappings and copies |
//! | `statistics` | what drivers say of the kernels that they compile |
//! | `clock` | times single dispatches with timestamp queries |
//!
//! Nothing polls the device but `read`, `wait`, `run`, `time`, `map` and what is awaited, and no
//! handler is installed on an application's: it keeps its device to itself. A device that was opened here is polled
//! as well when a session was dropped, by the thread that waits for it: wgpu frees buffers in a poll, and those that
//! were written after the next submission only.
//!
//! Dropping a handle while its work is in flight is safe: wgpu keeps what the work uses alive
//! until it is done.

mod adapters;
mod adopt;
mod calls;
mod clock;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub mod dmabuf;
mod fill;
mod kept;
mod memory;
mod open;
mod pipeline;
mod prepared;
#[cfg(target_os = "linux")]
mod quiet;
mod record;
mod scope;
mod staging;
#[cfg(not(any(target_family = "wasm", target_vendor = "apple")))]
mod statistics;
mod submission;
#[cfg(not(target_family = "wasm"))]
mod visible;

use super::Pending;
use super::cache::KernelCache;
use super::lock;
#[cfg(not(target_family = "wasm"))]
use super::waiter::Waiter;
use super::{Buffer, Device, DeviceInfo, Dispatch, Image, Memory, Pipeline, Recording, Slice};
#[cfg(not(target_family = "wasm"))]
use super::{CompilerReport, copies};
use crate::dtype::DType;
use crate::emit::KernelSource;
use crate::error::{Error, Result};
use crate::task::Awaited;
use kept::Kept;
use std::collections::HashMap;
#[cfg(not(target_family = "wasm"))]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

pub use calls::WgpuCalls;

pub(crate) use adopt::RawTexture;
pub(crate) use memory::RawBuffer;
pub(crate) use pipeline::RawPipeline;
pub(crate) use record::RawRecording;

/// A GPU behind Vulkan, Metal or DX12. Clones share the device, its compiled kernels and its
/// staging memory.
///
/// The kernels of ops are compiled without wgpu's bounds checks and loop bounds, since they guard their
/// own edges; the environment variable `DIPTYCH_CHECKED_SHADERS=1`, read when the device is opened,
/// keeps the checks.
#[derive(Debug, Clone)]
pub struct WgpuDevice {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// First, so that its thread has ended before the device is released.
    #[cfg(not(target_family = "wasm"))]
    waiter: Waiter,
    device: Kept<::wgpu::Device>,
    queue: Kept<::wgpu::Queue>,
    /// What this device's handles carry.
    owner: Owner,
    info: DeviceInfo,
    features: ::wgpu::Features,
    limits: ::wgpu::Limits,
    counters: calls::Counters,
    /// Whether shaders get wgpu's bounds checks and loop bounds.
    checked_shaders: bool,
    /// Whether work-group memory is zeroed.
    zeroed_memory: bool,
    /// Whether the device was opened here, so that nobody else polls it.
    #[cfg(not(target_family = "wasm"))]
    own: AtomicBool,
    /// Whether its driver says what it made of kernels.
    #[cfg(not(target_family = "wasm"))]
    tells: AtomicBool,
    /// Compiled kernels, by their text.
    pipelines: Mutex<HashMap<pipeline::Key, RawPipeline>>,
    /// Compiled kernels on disk.
    cache: Mutex<Option<KernelCache>>,
    /// Idle buffers for reading back.
    staging: Mutex<Vec<::wgpu::Buffer>>,
    /// Idle buffers for uploading, mapped.
    uploads: Mutex<Vec<::wgpu::Buffer>>,
    /// Bytes written since the last submission: they lie in staging memory until the next.
    unsubmitted: AtomicU64,
    /// How long a wait may take.
    #[cfg(not(target_family = "wasm"))]
    time_limit: Option<Duration>,
    /// Whether a wait was given up.
    #[cfg(not(target_family = "wasm"))]
    overdue: AtomicBool,
    /// How the device was lost, once that is known.
    lost: Arc<OnceLock<String>>,
    /// The first error of a call that nobody has awaited.
    #[cfg(target_family = "wasm")]
    found: Arc<Mutex<Option<Error>>>,
}

#[cfg(not(target_family = "wasm"))]
impl Drop for Inner {
    fn drop(&mut self) {
        let ended = || matches!(self.device.poll(::wgpu::PollType::Poll), Ok(::wgpu::PollStatus::QueueEmpty));
        if self.overdue.load(Ordering::Relaxed) && !scope::unpanicked(ended).unwrap_or(false) {
            tracing::warn!("the device did not come to an end: it is never released");
            // The last handle of a queue waits for it without a limit.
            std::mem::forget((::wgpu::Device::clone(&self.device), ::wgpu::Queue::clone(&self.queue)));
        }
    }
}

impl WgpuDevice {
    /// The wgpu device, for an application that shares it.
    pub fn wgpu_device(&self) -> &::wgpu::Device {
        &self.inner.device
    }

    /// The wgpu queue, for an application that shares it.
    pub fn wgpu_queue(&self) -> &::wgpu::Queue {
        &self.inner.queue
    }

    /// How often wgpu has been called since the device was opened, by this device and its clones.
    pub fn calls(&self) -> WgpuCalls {
        self.inner.counters.calls()
    }

    /// Keeps compiled kernels there from now on, or nowhere.
    pub fn keep_kernels(&self, cache: Option<KernelCache>) {
        *lock(&self.inner.cache) = cache;
    }

    /// Refuses a handle of another device.
    fn owned(&self, owner: Owner, what: &str) -> Result<()> {
        if owner == self.inner.owner {
            return Ok(());
        }
        Err(Error::input(
            what,
            "one of another device",
            format!("one made by this device, {}", self.inner.info),
        ))
    }

    fn api(&self) -> &'static str {
        self.inner.info.api
    }

    /// The error of a call that failed.
    fn failed(&self, call: &'static str, message: impl Into<String>) -> Error {
        let message = message.into();
        #[cfg(not(target_family = "wasm"))]
        if let (scope::TIMED_OUT, Some(limit)) = (message.as_str(), self.inner.time_limit) {
            self.inner.overdue.store(true, Ordering::Relaxed);
            return Error::TimedOut { api: self.api(), limit };
        }
        failure(self.api(), call, message, &self.inner.lost)
    }

    /// The error of a device that is of no more use, for this reason unless there was one before.
    fn lost(&self, reason: String) -> Error {
        let reason = self.inner.lost.get_or_init(|| reason).clone();
        Error::DeviceLost { api: self.api(), reason }
    }

    fn refused(&self, call: &'static str, error: &wgpu::Error) -> Error {
        refusal(self.api(), call, error, &self.inner.lost)
    }
}

/// How wgpu's error of a lost device begins.
const LOST: &str = "Parent device is lost";

/// The error of a call that failed. Once the device is lost, every failure has that one cause.
fn failure(api: &'static str, call: &'static str, message: String, lost: &OnceLock<String>) -> Error {
    // All that wgpu has for it is the text of its errors, or none.
    if message.starts_with(LOST) || message.starts_with(scope::SILENT) {
        lost.get_or_init(|| message.clone());
    }
    match lost.get() {
        Some(reason) => Error::DeviceLost { api, reason: reason.clone() },
        None => Error::Driver { api, call, message },
    }
}

/// wgpu's error of `call`.
fn refusal(api: &'static str, call: &'static str, error: &wgpu::Error, lost: &OnceLock<String>) -> Error {
    match (failure(api, call, scope::describe(error), lost), error) {
        (Error::Driver { message, .. }, wgpu::Error::OutOfMemory { .. }) => {
            let message = message.trim_start_matches(scope::NO_MEMORY).trim_start_matches(": ").to_owned();
            Error::OutOfMemory { api, call, message }
        }
        (failure, _) => failure,
    }
}

/// Whose a buffer, kernel or recording is.
///
/// wgpu does not know: its handles are numbers that every instance counts from one, so that a handle
/// of another instance's device is taken for another resource of this one, or ends the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Owner(u64);

impl Owner {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Owner(COUNT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Device for WgpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.inner.info
    }

    fn alloc(&self, bytes: u64, memory: Memory) -> Result<Buffer> {
        self.alloc_buffer(bytes, memory)
    }

    fn alloc_image(&self, width: usize, height: usize, dtype: DType) -> Result<Image> {
        Err(Error::unsupported(
            format!("an image of {width}x{height} {dtype} pixels"),
            format!("{} kernels take buffers only", self.api()),
        ))
    }

    fn write(&self, slice: &Slice, bytes: &[u8]) -> Result<()> {
        self.write_slice(slice, bytes)
    }

    #[cfg(not(target_family = "wasm"))]
    fn read(&self, slice: &Slice) -> Result<Vec<u8>> {
        let mut outputs = copies(&self.finish(self.launch(&[], None, &[slice])?)?);
        outputs.pop().ok_or_else(|| Error::Internal("a read of one slice gave nothing".to_owned()))
    }

    #[cfg(not(target_family = "wasm"))]
    fn map(&self, buffer: &Buffer, access: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        self.map_buffer(buffer, access)
    }

    #[cfg(not(target_family = "wasm"))]
    fn compile(&self, source: &KernelSource) -> Result<Pipeline> {
        crate::task::block_on(self.compile_checked(source))
    }

    #[cfg(not(target_family = "wasm"))]
    unsafe fn compile_unchecked(&self, source: &KernelSource) -> Result<Pipeline> {
        // SAFETY: promised by the caller.
        crate::task::block_on(unsafe { self.compile_trusted(source) })
    }

    #[cfg(not(target_family = "wasm"))]
    fn examine(&self, source: &KernelSource) -> Result<CompilerReport> {
        self.examined(source)
    }

    fn record(&self, dispatches: &[Dispatch]) -> Result<Recording> {
        self.record_dispatches(dispatches)
    }

    fn submit(&self, recording: &Recording) -> Result<()> {
        self.launch(&[], Some(recording), &[]).map(|_| ())
    }

    #[cfg(not(target_family = "wasm"))]
    fn wait(&self) -> Result<()> {
        self.wait_all()
    }

    fn start(
        &self,
        writes: &[(&Slice, &[u8])],
        recording: &Recording,
        reads: &[&Slice],
    ) -> Result<Box<dyn Pending>> {
        let submission = self.submit_run(writes, recording, reads)?;
        Ok(Box::new(submission::Started { device: self.clone(), submission }))
    }

    #[cfg(not(target_family = "wasm"))]
    fn time(&self, recording: &Recording) -> Result<Vec<Duration>> {
        self.time_recording(recording)
    }

    fn compile_async<'a>(&'a self, source: &'a KernelSource) -> Awaited<'a, Result<Pipeline>> {
        Box::pin(self.compile_checked(source))
    }

    unsafe fn compile_unchecked_async<'a>(
        &'a self,
        source: &'a KernelSource,
    ) -> Awaited<'a, Result<Pipeline>> {
        // SAFETY: promised by the caller.
        Box::pin(unsafe { self.compile_trusted(source) })
    }

    fn read_async<'a>(&'a self, slice: &'a Slice) -> Awaited<'a, Result<Vec<u8>>> {
        Box::pin(self.read_slice_async(slice))
    }

    fn wait_async(&self) -> Awaited<'_, Result<()>> {
        Box::pin(async { self.arrive(self.launch(&[], None, &[])?).await.map(|_| ()) })
    }

    fn time_async<'a>(&'a self, recording: &'a Recording) -> Awaited<'a, Result<Vec<Duration>>> {
        Box::pin(self.time_recording_async(recording))
    }

    fn time_together_async<'a>(&'a self, recording: &'a Recording) -> Awaited<'a, Result<Duration>> {
        Box::pin(self.time_together(recording))
    }

    #[cfg(not(target_family = "wasm"))]
    fn release(&self) {
        self.free_dropped();
    }

    #[cfg(target_family = "wasm")]
    fn settled(&self) -> Awaited<'_, Result<()>> {
        Box::pin(self.found())
    }
}
