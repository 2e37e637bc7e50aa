//! OpenCL through opencl3, found at run time.
//!
//! | file | what |
//! |---|---|
//! | `loader` | finds the library |
//! | `device` | what every device does |
//! | `call` | codes to errors, handles, commands without events |
//! | `query` | which devices there are, and their limits |
//! | `memory`, `part` | buffers and images, copies, mapping; parts of buffers and the order they go in |
//! | `compile`, `arguments` | building a program, and holding its arguments against the interface |
//! | `half` | half arithmetic on drivers that do not list it, tried once |
//! | `retarget` | instructions that only one architecture has |
//! | `record` | kernels with their arguments set, submitted as often as wanted, and timed |
//! | `command_buffer` | a recording as one command, where the device offers it |
//! | `patience` | waits with a limit, and memory that the device does not let go of |
//! | `staging` | pinned host memory, and the queues of copies that overlap other work |
//! | `run`, `awaited`, `readback` | inputs, a recording and outputs with one wait: the latency path; the same as a future; what was read |
//!
//! One in-order queue carries all work, so a command sees the effects of those before it without
//! events. Only the copies of a run that was started and is waited for later, as in a stream, go through
//! queues of their own, to overlap with the work on another run. Every call that enqueues more than one command holds a lock, so that threads which
//! share a device do not mix their commands.
//!
//! OpenCL C has pointers, and nothing here or in a driver keeps a kernel within the buffers it is
//! given. So text in OpenCL C is compiled by an unsafe call, or is this crate's own. Text in WGSL is printed
//! as OpenCL C that checks every index.

pub mod adopt;
mod arguments;
mod awaited;
mod call;
mod cl;
mod command_buffer;
mod compile;
mod device;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod dmabuf;
mod examine;
mod half;
mod joined;
mod launch;
mod loader;
mod memory;
mod order;
mod part;
mod patience;
mod query;
mod readback;
mod record;
mod retarget;
mod run;
mod staging;

pub(crate) use compile::RawPipeline;
pub(crate) use memory::{RawBuffer, RawImage};
pub(crate) use record::RawRecording;

/// The crate whose objects [`OpenClDevice::from_opencl`] takes.
pub use opencl3;

use crate::device::cache::KernelCache;
use crate::device::choice::DeviceChoice;
use crate::device::family::{self, Facts};
use crate::device::options::{DeviceOptions, environment};
use crate::device::waiter::Waiter;
use crate::device::{DeviceInfo, lock};
use crate::error::{Error, Result};
use crate::limits::{self, MatrixUnit};
use call::{Context, Lane, Owned, Queue, Runtime, check};
use cl3::command_queue::{
    CL_QUEUE_CONTEXT, CL_QUEUE_DEVICE, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, CL_QUEUE_PROFILING_ENABLE,
    CL_QUEUE_PROPERTIES,
};
use cl3::device::cl_device_id;
use order::Order;
use patience::{Hung, Patience};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Chooses the device: part of its name or its platform's, in any case.
const CHOICE: &str = "DIPTYCH_OPENCL_DEVICE";

/// An OpenCL device. Cloning is cheap: clones share the context, the queue and the compiled
/// programs, and may be used from any thread.
#[derive(Clone)]
pub struct OpenClDevice {
    inner: Arc<Inner>,
}

/// What the clones of a device, and all its buffers, images, kernels and recordings, share.
struct Inner {
    /// First, so that its thread has ended before anything is released.
    waiter: Waiter,
    info: DeviceInfo,
    facts: Facts,
    /// Whether the ops' own kernels are printed with checks too.
    checked_kernels: bool,
    runtime: &'static Runtime,
    id: opencl3::device::Device,
    address_bits: u32,
    /// How programs are built.
    options: &'static std::ffi::CStr,
    /// Held while commands are enqueued, and while a buffer is mapped.
    order: Order,
    /// Programs by their text.
    programs: Mutex<HashMap<String, compile::Compiled>>,
    /// `cl_khr_command_buffer`, where it is offered.
    command_buffers: Option<command_buffer::Functions>,
    /// Whether a driver that does not list half arithmetic has it, once that was tried.
    halves: std::sync::OnceLock<std::result::Result<(), String>>,
    /// Compiled kernels on disk.
    cache: Mutex<Option<KernelCache>>,
    /// Memory for the copies of runs, where that is worth it.
    staging: Option<staging::Staging>,
    /// Profiles its commands; made when first used. A queue that profiles is slower.
    timing: Mutex<Option<Owned<Queue>>>,
    queue: Owned<Queue>,
    /// Whether the queue is the device's own, not an application's.
    own_queue: bool,
    context: Owned<Context>,
    /// How long a wait may take. Last, as what is released asks it.
    patience: Arc<Patience>,
}

impl fmt::Debug for OpenClDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenClDevice").field("info", &self.inner.info).finish_non_exhaustive()
    }
}

impl OpenClDevice {
    /// Opens the best device of all platforms: GPUs before accelerators before CPUs.
    ///
    /// `filter` is a part of the device's or its platform's name, in any case; without it the
    /// variable `DIPTYCH_OPENCL_DEVICE` is used if set.
    ///
    /// # Errors
    /// [`Error::OpenClLibrary`] without an OpenCL library, [`Error::NoDevice`] with a line for
    /// each device that was passed over.
    pub fn open(filter: Option<&str>) -> Result<Self> {
        let named = filter.map(|name| DeviceChoice::Name(name.to_owned()));
        let choice = named.or_else(Self::choice_of_environment).unwrap_or_default();
        Self::open_with(&choice, &DeviceOptions::from_environment())
    }

    /// The device that `DIPTYCH_OPENCL_DEVICE` names.
    pub fn choice_of_environment() -> Option<DeviceChoice> {
        environment(CHOICE).map(DeviceChoice::Name)
    }

    /// Opens the best of the devices that are wanted.
    pub fn open_with(choice: &DeviceChoice, options: &DeviceOptions) -> Result<Self> {
        let (device, info) = query::best(choice, options)?;
        let raw = cl::create_context(device.id());
        // SAFETY: the call made the context, and this is its only reference.
        let context = unsafe { Owned::new(check("clCreateContext", raw)?, Hung::of(device.id())) };
        let queue = new_queue(&context, device.id(), 0)?;
        Self::assemble(device, info, context, queue, true, options)
    }

    /// Every device that [`OpenClDevice::open`] could open, the best first.
    ///
    /// # Errors
    /// [`Error::OpenClLibrary`] without an OpenCL library, or if the library fails.
    pub fn list() -> Result<Vec<DeviceInfo>> {
        Ok(query::devices(&DeviceOptions::from_environment())?
            .found
            .into_iter()
            .filter_map(|found| found.info.ok())
            .collect())
    }

    /// The path or name that the OpenCL library was found under.
    ///
    /// # Errors
    /// [`Error::OpenClLibrary`] with everything that was tried.
    pub fn library() -> Result<&'static str> {
        Ok(loader::load(DeviceOptions::from_environment().opencl_library.as_deref())?.path)
    }

    /// A device on an application's own context and queue.
    ///
    /// The context and the queue are retained, not taken: the application may drop its handles at
    /// any time. All work is enqueued on its queue, in order with its own; only
    /// `time` makes a second queue on the same context. Calls that wait
    /// (`wait`, `time`) wait for the application's work on the queue as well.
    ///
    /// # Errors
    /// If the queue runs its commands out of order, if it is not of this context and device, or
    /// if the device cannot run OpenCL C 1.2.
    pub fn from_opencl(
        context: &opencl3::context::Context,
        device: &opencl3::device::Device,
        queue: &opencl3::command_queue::CommandQueue,
    ) -> Result<Self> {
        Self::from_opencl_with(context, device, queue, &DeviceOptions::from_environment())
    }

    /// [`OpenClDevice::from_opencl`] with these options.
    pub fn from_opencl_with(
        context: &opencl3::context::Context,
        device: &opencl3::device::Device,
        queue: &opencl3::command_queue::CommandQueue,
        options: &DeviceOptions,
    ) -> Result<Self> {
        loader::load(options.opencl_library.as_deref())?;
        adopt::check_library("an application's OpenCL device")?;
        let ask = |what| check("clGetCommandQueueInfo", cl::get_command_queue_data(queue.get(), what));
        // Both handles and bit fields are given in the bytes of the machine.
        for (what, name, wanted) in [
            (CL_QUEUE_CONTEXT, "context", context.get() as usize),
            (CL_QUEUE_DEVICE, "device", device.id() as usize),
        ] {
            let found = ask(what)?;
            if found != wanted.to_ne_bytes() {
                let wanted = format!("the {name} that was given, {wanted:#x}");
                return Err(Error::input("OpenCL queue", format!("a queue of another {name}"), wanted));
            }
        }
        let properties = ask(CL_QUEUE_PROPERTIES)?;
        let properties = <[u8; 8]>::try_from(properties.as_slice()).map(u64::from_ne_bytes).unwrap_or(0);
        if properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE != 0 {
            return Err(Error::input(
                "OpenCL queue",
                "CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE",
                "a queue that runs its commands in order",
            ));
        }
        let info = query::describe(device.id(), options)?;
        // SAFETY: the application's handle is live during this call; the reference that is taken
        // here is given back by `Owned`. Test: `an_application_keeps_its_own_queue`.
        let context = unsafe {
            check("clRetainContext", cl::retain_context(context.get()))?;
            Owned::new(context.get(), Hung::of(device.id()))
        };
        // SAFETY: as above.
        let queue = unsafe {
            check("clRetainCommandQueue", cl::retain_command_queue(queue.get()))?;
            Owned::new(queue.get(), context.hung())
        };
        Self::assemble(*device, info, context, queue, false, options)
    }

    fn assemble(
        id: opencl3::device::Device,
        info: DeviceInfo,
        context: Owned<Context>,
        queue: Owned<Queue>,
        own_queue: bool,
        options: &DeviceOptions,
    ) -> Result<Self> {
        let runtime = loader::load(None)?.runtime;
        let listed = query::extensions(id.id()).unwrap_or_default();
        let mut inner = Inner {
            waiter: Waiter::default(),
            command_buffers: command_buffer::Functions::of(runtime, &id, options),
            facts: family::facts(info.limits.family, &info.name),
            info,
            checked_kernels: options.checked_kernels,
            runtime,
            address_bits: query::address_bits(id.id())?,
            options: compile::options(query::capability(id.id(), &listed)),
            order: Order::default(),
            programs: Mutex::default(),
            halves: std::sync::OnceLock::new(),
            cache: Mutex::new(options.kernel_cache()),
            timing: Mutex::default(),
            patience: Arc::new(Patience::new(options.time_limit, context.hung())),
            staging: staging::Staging::of(&id, own_queue, options),
            id,
            queue,
            own_queue,
            context,
        };
        if let Some(MatrixUnit::Ptx { capability: 90, .. }) = inner.info.limits.matrix_unit {
            let warp_groups = compile::takes_warp_groups(&inner, limits::WARP_GROUP_MEMORY);
            inner.info.limits.matrix_unit = Some(MatrixUnit::Ptx { capability: 90, warp_groups });
        }
        tracing::debug!("opened {}", inner.info);
        Ok(OpenClDevice { inner: Arc::new(inner) })
    }

    /// Keeps compiled kernels there from now on, or nowhere.
    pub fn keep_kernels(&self, cache: Option<KernelCache>) {
        *lock(&self.inner.cache) = cache;
    }

    /// What is known about the GPU beyond what its driver says.
    pub fn facts(&self) -> &Facts {
        &self.inner.facts
    }
}

fn new_queue(context: &Owned<Context>, device: cl_device_id, properties: u64) -> Result<Owned<Queue>> {
    // SAFETY: the context was made for this device, or checked to belong to it.
    let queue = unsafe { cl::create_command_queue(context.raw(), device, properties) };
    // SAFETY: the call made the queue, and this is its only reference.
    Ok(unsafe { Owned::new(check("clCreateCommandQueue", queue)?, context.hung()) })
}

impl Inner {
    fn lane(&self) -> Lane<'_> {
        Lane { runtime: self.runtime, queue: &self.queue, patience: &self.patience }
    }

    /// Calls `with` with a queue that profiles its commands.
    fn with_timing_lane<T>(&self, with: impl FnOnce(Lane<'_>) -> Result<T>) -> Result<T> {
        let mut timing = lock(&self.timing);
        let queue = match timing.take() {
            Some(queue) => queue,
            None => new_queue(&self.context, self.id.id(), CL_QUEUE_PROFILING_ENABLE)?,
        };
        with(Lane { runtime: self.runtime, queue: timing.insert(queue), patience: &self.patience })
    }

    /// The error for a handle of another device.
    fn foreign(&self, what: &str) -> Error {
        Error::input(what, "a handle of another device", format!("a handle of {}", self.info))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Nothing that is in use is freed: OpenCL keeps what queued commands need, but not every
        // driver survives its library's exit with work in flight. An application's queue is its
        // own business.
        // If it does not come to an end, nothing of it is released.
        if self.own_queue {
            let _ = self.lane().drain();
        }
    }
}
