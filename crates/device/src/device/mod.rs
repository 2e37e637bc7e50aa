//! Drivers: kernel sources and buffers, without any knowledge of ops.

#[cfg(any(feature = "wgpu", feature = "opencl"))]
pub mod adopt;
pub mod cache;
pub mod choice;
pub mod copy;
#[cfg(all(any(feature = "wgpu", feature = "opencl"), any(target_os = "linux", target_os = "android")))]
mod dmabuf;
pub mod family;
#[cfg(all(shuttle, test, any(feature = "wgpu", feature = "opencl")))]
mod interleavings;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
mod signal;
#[cfg(all(any(feature = "wgpu", feature = "opencl"), not(target_family = "wasm")))]
mod waiter;

#[cfg(feature = "opencl")]
pub mod opencl;
#[cfg(feature = "wgpu")]
pub mod wgpu;

mod handle;
pub(crate) mod identity;
pub mod options;
mod planned;
mod report;
pub mod visible;
mod wait;

#[cfg(not(target_family = "wasm"))]
pub use planned::compile_planned;
pub use planned::compile_planned_async;
#[cfg(not(target_family = "wasm"))]
pub use planned::compile_planned_together;
pub use wait::Wait;

pub use crate::task::{Awaited, Movable};
pub use handle::{Buffer, Dispatch, Image, Pipeline, Recording, Resource, Slice};
pub use identity::{DeviceUuid, PciAddress};
pub use report::{CompiledProgram, CompilerReport, Statistic};

use crate::dtype::DType;
use crate::emit::KernelSource;
use crate::error::Result;
use crate::limits::Limits;
use identity::Identity;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Locks a mutex whose data is whole between any two calls: a panic elsewhere is no reason to refuse.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known of a device: name, driver, limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// `Vulkan`, `Metal`, `DX12` or `OpenCL`.
    pub api: &'static str,
    /// The device's name as the driver gives it.
    pub name: String,
    /// The driver's name and version.
    pub driver: String,
    /// Where it sits on the PCI bus, if it does and the driver reports it.
    pub pci: Option<PciAddress>,
    /// The card's identifier, if the driver reports one.
    pub uuid: Option<DeviceUuid>,
    /// What it allows, and its family.
    pub limits: Limits,
    /// Whether it is a driver that runs kernels on the CPU.
    pub is_cpu: bool,
    /// Whether it can time single dispatches.
    pub timestamps: bool,
}

impl DeviceInfo {
    /// Whether both are known to be the same card, which each API lists by itself: by PCI address or UUID.
    ///
    /// ```
    /// // One card may be on the lists of several APIs.
    /// let all: Vec<_> = diptych::devices().into_iter().flat_map(|listing| listing.devices).flatten().collect();
    /// for device in &all {
    ///     let entries = all.iter().filter(|other| device.is_same_card(other)).count();
    ///     println!("{device}: on {entries} lists");
    /// }
    /// ```
    pub fn is_same_card(&self, other: &DeviceInfo) -> bool {
        self.identity().is(&other.identity())
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity { pci: self.pci, uuid: self.uuid }
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.name, self.api, self.driver)
    }
}

/// Where a buffer lies and how the host reaches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Memory {
    /// Device memory; the host copies in and out.
    #[default]
    Device,
    /// Memory that the host maps and the kernels use in place, without a copy, where the API
    /// allows it (OpenCL `CL_MEM_ALLOC_HOST_PTR`; wgpu's `MAPPABLE_PRIMARY_BUFFERS`).
    HostVisible,
}

/// What a run read, where it lies: memory that the driver has mapped, or the host's. Dropped, that memory goes back to
/// whose it is.
pub trait Readback: fmt::Debug + Movable {
    /// The bytes of each of the run's reads, in their order.
    fn parts(&self) -> Vec<&[u8]>;
}

impl Readback for Vec<Vec<u8>> {
    fn parts(&self) -> Vec<&[u8]> {
        self.iter().map(Vec::as_slice).collect()
    }
}

/// Copies of what a run read.
fn copies(read: &dyn Readback) -> Vec<Vec<u8>> {
    read.parts().into_iter().map(<[u8]>::to_vec).collect()
}

/// A run under way. Dropping it leaves its results unread, and is safe.
pub trait Pending: fmt::Debug + Movable {
    /// Waits for the run, and gives what it read.
    ///
    /// # Errors
    /// If the driver fails, and in a browser, where nothing may block.
    fn wait(self: Box<Self>) -> Result<Box<dyn Readback>>;

    /// [`Pending::wait`], awaited. Dropped midway, the run is left to end, unread.
    ///
    /// # Errors
    /// If the driver fails.
    fn arrive(self: Box<Self>) -> Awaited<'static, Result<Box<dyn Readback>>>;

    /// [`Pending::wait`] with copies of what was read.
    ///
    /// # Errors
    /// Those of [`Pending::wait`].
    fn finish(self: Box<Self>) -> Result<Vec<Vec<u8>>> {
        Ok(copies(&*self.wait()?))
    }
}

/// A device that runs kernels.
///
/// Work is recorded once and submitted many times. Nothing waits but what is awaited ([`Device::run_async`],
/// [`Device::read_async`], [`Device::wait_async`], [`Device::time_async`]) and what blocks: [`Device::read`],
/// [`Device::wait`], [`Device::run`], [`Device::map`] and [`Device::time`], which are not there on `wasm32`.
///
/// A browser says later what is wrong with a call: there an error of a call that is not awaited is one of
/// [`Device::settled`], which a session awaits when it is built.
pub trait Device: fmt::Debug + Send + Sync {
    /// Who it is and what it allows.
    fn info(&self) -> &DeviceInfo;

    /// Allocates `bytes` bytes (rounded up to 16) of zeros that kernels can read and write.
    ///
    /// # Errors
    /// If `bytes` is 0 or above the device's limit, if the driver is out of memory, or if
    /// `memory` is [`Memory::HostVisible`] and the API does not allow it.
    fn alloc(&self, bytes: u64, memory: Memory) -> Result<Buffer>;

    /// Allocates an RGBA image of `width x height` pixels.
    ///
    /// # Errors
    /// If the device has no images as kernel arguments, or the image is too large.
    fn alloc_image(&self, width: usize, height: usize, dtype: DType) -> Result<Image>;

    /// Copies `bytes` to the buffer, after all work submitted so far.
    ///
    /// # Errors
    /// If they do not fit the slice or the driver fails.
    fn write(&self, slice: &Slice, bytes: &[u8]) -> Result<()>;

    /// Waits for all work submitted so far and copies the slice to the host.
    ///
    /// # Errors
    /// If the driver fails.
    #[cfg(not(target_family = "wasm"))]
    fn read(&self, slice: &Slice) -> Result<Vec<u8>>;

    /// Lets `access` see and change a [`Memory::HostVisible`] buffer in place, after all work
    /// submitted so far.
    ///
    /// # Errors
    /// If the buffer is not host-visible or the driver fails.
    #[cfg(not(target_family = "wasm"))]
    fn map(&self, buffer: &Buffer, access: &mut dyn FnMut(&mut [u8])) -> Result<()>;

    /// Compiles a kernel, or finds it among those compiled before (by its text).
    ///
    /// The text may come from any source: an index beyond a buffer, or beyond an array of the kernel's own,
    /// stays within it, and work-group memory begins as zeros. These checks are made in the kernel and
    /// cost time. A loop without an end hangs the device.
    ///
    /// # Errors
    /// [`Error::Compile`](crate::error::Error::Compile) with the driver's log and the numbered source; also if the
    /// compiled kernel's arguments are not those of its interface.
    /// [`Error::Unsupported`](crate::error::Error::Unsupported) for text that cannot be checked: OpenCL C. Also if it needs more
    /// memory of its own than WGSL's limits, or than the device has for a work-group.
    #[cfg(not(target_family = "wasm"))]
    fn compile(&self, source: &KernelSource) -> Result<Pipeline>;

    /// [`Device::compile`] without the checks.
    ///
    /// # Safety
    /// `source` declares what its interface and work-group say. In each dispatch that is ever recorded
    /// of the pipeline, the kernel stays within the resources it is given and within its own arrays,
    /// reads no memory before it is written, ends, and no two invocations access one place without a
    /// barrier if one of them writes. Where WGSL is printed as OpenCL C, no index is above 2^31 - 1. A kernel that does not may do anything to the process.
    ///
    /// # Errors
    /// Those of [`Device::compile`], but that it takes OpenCL C.
    #[cfg(not(target_family = "wasm"))]
    unsafe fn compile_unchecked(&self, source: &KernelSource) -> Result<Pipeline> {
        // A device that wraps another one is safe unless it says otherwise.
        self.compile(source)
    }

    /// Compiles kernels ahead that [`Device::compile_unchecked`] is to be asked for, as one where that takes the driver
    /// less time. What goes wrong is left to that call.
    ///
    /// # Safety
    /// That of [`Device::compile_unchecked`], of each.
    unsafe fn compile_together(&self, _sources: &[&KernelSource]) {}

    /// Compiles a kernel anew, as [`Device::compile_unchecked`] does, and gives what the driver says of it. The kernel is
    /// not kept, so that nothing is ever dispatched of it.
    ///
    /// # Errors
    /// Those of [`Device::compile_unchecked`].
    #[cfg(not(target_family = "wasm"))]
    fn examine(&self, source: &KernelSource) -> Result<CompilerReport> {
        self.compile(source).map(|_| CompilerReport::default())
    }

    /// Binds the arguments of a sequence of dispatches, each of which sees the effects of those
    /// before it.
    ///
    /// # Errors
    /// If a resource does not fit its binding.
    fn record(&self, dispatches: &[Dispatch]) -> Result<Recording>;

    /// Submits a recording and returns at once.
    ///
    /// # Errors
    /// If the driver refuses.
    fn submit(&self, recording: &Recording) -> Result<()>;

    /// Waits for all work submitted so far.
    ///
    /// # Errors
    /// If the driver fails.
    #[cfg(not(target_family = "wasm"))]
    fn wait(&self) -> Result<()>;

    /// Writes inputs, runs a recording, and reads outputs, in one submission with one wait.
    ///
    /// # Errors
    /// Those of its parts.
    #[cfg(not(target_family = "wasm"))]
    fn run(
        &self,
        writes: &[(&Slice, &[u8])],
        recording: &Recording,
        reads: &[&Slice],
    ) -> Result<Vec<Vec<u8>>> {
        Ok(copies(&*self.run_in_place(writes, recording, reads)?))
    }

    /// [`Device::run`], with what was read left where it lies: [`Device::start`] and the wait. Some drivers are faster
    /// where they know from the start that the caller waits.
    ///
    /// # Errors
    /// Those of its parts, and in a browser, where nothing may block.
    fn run_in_place(
        &self,
        writes: &[(&Slice, &[u8])],
        recording: &Recording,
        reads: &[&Slice],
    ) -> Result<Box<dyn Readback>> {
        self.start(writes, recording, reads)?.wait()
    }

    /// [`Device::run`] up to the wait: what comes back is waited for, or awaited, when it is wanted. Several
    /// runs may be under way at once; they take place in the order they were started.
    ///
    /// # Errors
    /// Those of its parts.
    fn start(
        &self,
        writes: &[(&Slice, &[u8])],
        recording: &Recording,
        reads: &[&Slice],
    ) -> Result<Box<dyn Pending>>;

    /// Submits a recording and returns the device time of each of its dispatches, in order.
    ///
    /// # Errors
    /// If the device has no clock ([`DeviceInfo::timestamps`]) or the driver fails.
    #[cfg(not(target_family = "wasm"))]
    fn time(&self, recording: &Recording) -> Result<Vec<Duration>>;

    /// Compiles a kernel as [`Device::compile`] does, awaited.
    ///
    /// # Errors
    /// Those of [`Device::compile`].
    fn compile_async<'a>(&'a self, source: &'a KernelSource) -> Awaited<'a, Result<Pipeline>> {
        #[cfg(not(target_family = "wasm"))]
        return at_once(self.compile(source));
        #[cfg(target_family = "wasm")]
        refused(source)
    }

    /// [`Device::compile_async`] without the checks, where they can be left out.
    ///
    /// # Safety
    /// `source` keeps what [`Device::compile_unchecked`] asks of it.
    ///
    /// # Errors
    /// Those of [`Device::compile`].
    unsafe fn compile_unchecked_async<'a>(
        &'a self,
        source: &'a KernelSource,
    ) -> Awaited<'a, Result<Pipeline>> {
        // SAFETY: promised by the caller.
        #[cfg(not(target_family = "wasm"))]
        return at_once(unsafe { self.compile_unchecked(source) });
        #[cfg(target_family = "wasm")]
        self.compile_async(source)
    }

    /// Writes inputs, runs a recording, and reads outputs, in one submission, awaited. The work is submitted when
    /// this is first polled; if it is dropped later, the results are left unread.
    ///
    /// # Errors
    /// Those of its parts.
    fn run_async<'a>(
        &'a self,
        writes: &'a [(&'a Slice, &'a [u8])],
        recording: &'a Recording,
        reads: &'a [&'a Slice],
    ) -> Awaited<'a, Result<Vec<Vec<u8>>>> {
        Box::pin(async move { Ok(copies(&*self.start(writes, recording, reads)?.arrive().await?)) })
    }

    /// Copies the slice to the host after all work submitted so far, awaited.
    ///
    /// # Errors
    /// If the driver fails.
    fn read_async<'a>(&'a self, slice: &'a Slice) -> Awaited<'a, Result<Vec<u8>>> {
        #[cfg(not(target_family = "wasm"))]
        return at_once(self.read(slice));
        #[cfg(target_family = "wasm")]
        refused(slice)
    }

    /// All work submitted so far, awaited.
    ///
    /// # Errors
    /// If the driver fails.
    fn wait_async(&self) -> Awaited<'_, Result<()>> {
        #[cfg(not(target_family = "wasm"))]
        return at_once(self.wait());
        #[cfg(target_family = "wasm")]
        refused(())
    }

    /// The device time of each dispatch of a recording as [`Device::time`] gives it, awaited.
    ///
    /// # Errors
    /// Those of [`Device::time`].
    fn time_async<'a>(&'a self, recording: &'a Recording) -> Awaited<'a, Result<Vec<Duration>>> {
        #[cfg(not(target_family = "wasm"))]
        return at_once(self.time(recording));
        #[cfg(target_family = "wasm")]
        refused(recording)
    }

    /// The device time of all dispatches of a recording together, awaited: with one reading of the clock before them and
    /// one behind them, where the API allows it.
    ///
    /// # Errors
    /// Those of [`Device::time_async`].
    fn time_together_async<'a>(&'a self, recording: &'a Recording) -> Awaited<'a, Result<Duration>> {
        Box::pin(async { Ok(self.time_async(recording).await?.into_iter().sum()) })
    }

    /// Lets the driver free what nobody holds any more, without waiting for it: to be called when buffers were dropped.
    /// An API that frees them by itself does nothing, and neither does a device that is the application's.
    fn release(&self) {}

    /// Awaits the device's word on the calls so far that nobody has awaited: allocations, writes, recordings and
    /// submissions. Other APIs than a browser's say at once what is wrong.
    ///
    /// # Errors
    /// The first that was found since the last time.
    fn settled(&self) -> Awaited<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What a device that only blocks gives where something is awaited.
#[cfg(not(target_family = "wasm"))]
fn at_once<'a, T: Send + 'a>(result: Result<T>) -> Awaited<'a, Result<T>> {
    Box::pin(std::future::ready(result))
}

/// What a device that awaits nothing gives where nothing may block.
#[cfg(target_family = "wasm")]
fn refused<'a, T: 'a>(_asked: impl Sized) -> Awaited<'a, Result<T>> {
    let refusal = crate::error::Error::unsupported("a device on wasm32", "it has no awaited calls");
    Box::pin(std::future::ready(Err(refusal)))
}
