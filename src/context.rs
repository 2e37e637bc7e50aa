//! Where networks run: one device of one API, or the CPU.

mod builder;
#[cfg(all(any(feature = "wgpu", feature = "opencl"), any(target_os = "linux", target_os = "android")))]
mod dmabuf;
#[cfg(not(target_family = "wasm"))]
mod gpus;
mod selector;

pub use builder::ContextBuilder;
#[cfg(not(target_family = "wasm"))]
pub use gpus::{Gpu, gpus};
pub use selector::DeviceSelector;

use crate::device::cache::KernelCache;
use crate::device::{Device, DeviceInfo};
use crate::error::{Error, Result};
use crate::sync::{Mutex, lock};
use crate::tune::db::SharedDatabase;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

#[cfg(feature = "opencl")]
use crate::device::opencl::OpenClDevice;
#[cfg(feature = "wgpu")]
use crate::device::wgpu::WgpuDevice;

/// What runs the kernels.
///
/// ```
/// use diptych::Backend;
///
/// assert_eq!("opencl".parse::<Backend>()?, Backend::OpenCl);
/// assert_eq!(Backend::default(), Backend::Auto);
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Backend {
    /// A GPU through wgpu, else a GPU through OpenCL, else the CPU. Drivers that run GPU kernels
    /// on the CPU are passed over: the CPU backend is faster. [`ContextInfo`] says what was taken
    /// and why.
    #[default]
    Auto,
    /// A GPU through wgpu, else a GPU through OpenCL, as [`Backend::Auto`] finds it. Never the CPU, nor a driver that runs
    /// GPU kernels on the CPU: without a GPU it is an error.
    Gpu,
    /// WGSL through wgpu.
    Wgpu,
    /// OpenCL C through OpenCL.
    OpenCl,
    /// Rust on the CPU.
    Cpu,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Auto => "auto",
            Backend::Gpu => "gpu",
            Backend::Wgpu => "wgpu",
            Backend::OpenCl => "opencl",
            Backend::Cpu => "cpu",
        })
    }
}

impl FromStr for Backend {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        [Backend::Auto, Backend::Gpu, Backend::Wgpu, Backend::OpenCl, Backend::Cpu]
            .into_iter()
            .find(|backend| backend.to_string() == text)
            .ok_or_else(|| Error::input("backend", format!("{text:?}"), "auto, gpu, wgpu, opencl or cpu"))
    }
}

/// The device of a context, and why it is this one.
///
/// ```
/// use diptych::{Backend, Context};
///
/// let context = Context::new(Backend::Cpu)?;
/// assert_eq!(context.info().backend, Backend::Cpu);
/// assert!(context.info().device.is_none());
/// println!("why: {}", context.info().reason);
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextInfo {
    /// The backend in use; never [`Backend::Auto`] or [`Backend::Gpu`].
    pub backend: Backend,
    /// The device, for the GPU backends.
    pub device: Option<DeviceInfo>,
    /// Why this backend and device.
    pub reason: String,
}

impl fmt::Display for ContextInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.device {
            Some(device) => {
                write!(f, "{}: {device}", self.backend)?;
                if let Some(address) = device.pci {
                    write!(f, " at {address}")?;
                }
            }
            None => write!(f, "{}: {} threads", self.backend, crate::parallel::threads())?,
        }
        write!(f, " ({})", self.reason)
    }
}

/// The engine behind a context.
#[derive(Debug, Clone)]
pub(crate) enum Engine {
    #[cfg(feature = "wgpu")]
    Wgpu(WgpuDevice),
    #[cfg(feature = "opencl")]
    OpenCl(OpenClDevice),
    Cpu,
}

impl Engine {
    /// The device.
    pub(crate) fn device(&self) -> Result<&dyn Device> {
        match self {
            #[cfg(feature = "wgpu")]
            Engine::Wgpu(device) => Ok(device),
            #[cfg(feature = "opencl")]
            Engine::OpenCl(device) => Ok(device),
            Engine::Cpu => Err(Error::Internal("the CPU backend has no device".to_owned())),
        }
    }

    /// The device, shared.
    pub(crate) fn shared(&self) -> Result<Arc<dyn Device>> {
        match self {
            #[cfg(feature = "wgpu")]
            Engine::Wgpu(device) => Ok(Arc::new(device.clone())),
            #[cfg(feature = "opencl")]
            Engine::OpenCl(device) => Ok(Arc::new(device.clone())),
            Engine::Cpu => Err(Error::Internal("the CPU backend has no device".to_owned())),
        }
    }
}

/// A device to run on. Cheap to clone; may be shared by threads.
///
/// A context on a GPU, and what was made on it, is of the process that opened it: drivers have threads and locks of their
/// own, which `fork` does not copy. In a child that was forked, a context of the parent may wait for ever, also where it is
/// only dropped. So open contexts after the fork, in the process that uses them; start children by
/// [`std::process::Command`], which runs a program anew; or leave a forked child by `_exit`, which drops nothing. Contexts
/// on the CPU have threads too, and the same is true of them.
///
/// ```
/// use diptych::{Backend, Context};
///
/// let context = Context::new(Backend::Cpu)?; // Backend::Auto takes a GPU where there is one
/// println!("{}", context.info());
/// let again = context.clone(); // the same device
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Context {
    pub(crate) engine: Engine,
    info: Arc<ContextInfo>,
    /// How it was opened, unless the device is the application's.
    opened: Option<Arc<ContextBuilder>>,
    /// The tuner's record that matrix products ask. Clones of the context have the same.
    record: Arc<Mutex<Option<SharedDatabase>>>,
}

impl Context {
    /// Opens the best device of a backend: [`Context::builder`] with nothing but the backend said.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// let context = Context::new(Backend::Cpu)?;
    /// assert_eq!(context.info().backend, Backend::Cpu);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such device; [`Backend::Cpu`] always succeeds, and [`Backend::Auto`] unless `DIPTYCH_DEVICE` names a
    /// device that is not there. A request for a GPU API never falls back on the CPU backend; [`Backend::Gpu`] fails where
    /// there is none but a driver that runs kernels on the CPU, also if `DIPTYCH_DEVICE` names that one.
    #[cfg(not(target_family = "wasm"))]
    pub fn new(backend: Backend) -> Result<Self> {
        Self::builder().backend(backend).open()
    }

    /// [`Context::new`], awaited: the only way in a browser, where [`Backend::Wgpu`] is its WebGPU
    /// and [`Backend::Auto`] that, or the CPU without it. See [`ContextBuilder::open_async`].
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// # pollster::block_on(async {
    /// let context = Context::new_async(Backend::Cpu).await?;
    /// assert_eq!(context.info().backend, Backend::Cpu);
    /// # Ok::<(), diptych::Error>(())
    /// # })?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Context::new`].
    pub async fn new_async(backend: Backend) -> Result<Self> {
        Self::builder().backend(backend).open_async().await
    }

    /// Chooses a device by its place, name, PCI address or UUID, and how it is opened.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    /// use std::time::Duration;
    ///
    /// let context = Context::builder().backend(Backend::Cpu).time_limit(Duration::from_secs(10)).open()?;
    /// println!("{}", context.info());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn builder() -> ContextBuilder {
        ContextBuilder::default()
    }

    /// The CPU, which is always there.
    pub(crate) fn cpu(reason: impl Into<String>) -> Self {
        Self::with(Engine::Cpu, reason.into())
    }

    /// Opens the device again, as this context was opened: after [`Error::DeviceLost`]. This context and what was made
    /// on it stay as they are; [`Session::rebuild`](crate::Session::rebuild) moves a session to the new one.
    ///
    /// ```
    /// # use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// # let input = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 2.0])?;
    /// let mut context = Context::new(Backend::Auto)?;
    /// let options = SessionOptions { keep_graph: true, ..Default::default() };
    /// let mut session = Session::new(&context, &graph, options)?;
    /// let outputs = match session.run(&[("x", &input)]) {
    ///     Err(error) if error.is_device_lost() => {
    ///         context = context.reopen()?;
    ///         session.rebuild(&context)?;
    ///         session.run(&[("x", &input)])?
    ///     }
    ///     outputs => outputs?,
    /// };
    /// # assert_eq!(*outputs[0].to_f32(), [3.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`ContextBuilder::open`]: a GPU that was unplugged is not there. [`Error::Unsupported`] if the device
    /// is the application's own.
    #[cfg(not(target_family = "wasm"))]
    pub fn reopen(&self) -> Result<Self> {
        crate::task::block_on(self.reopen_async())
    }

    /// [`Context::reopen`], awaited.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// # pollster::block_on(async {
    /// let context = Context::new(Backend::Cpu)?.reopen_async().await?;
    /// assert_eq!(context.info().backend, Backend::Cpu);
    /// # Ok::<(), diptych::Error>(())
    /// # })?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Context::reopen`].
    pub async fn reopen_async(&self) -> Result<Self> {
        match &self.opened {
            Some(builder) => builder.as_ref().clone().open_async().await,
            None => Err(Error::unsupported(
                "Context::reopen",
                "the device is the application's own: a context of its new device takes the place of this one",
            )),
        }
    }

    /// The wgpu device and queue, where there are: for an application that makes its buffers on the device that was
    /// opened here.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// if let Ok(context) = Context::new(Backend::Wgpu)
    ///     && let Some((device, _queue)) = context.wgpu()
    /// {
    ///     println!("storage buffers of {} bytes", device.limits().max_storage_buffer_binding_size);
    /// }
    /// ```
    #[cfg(feature = "wgpu")]
    pub fn wgpu(&self) -> Option<(&wgpu::Device, &wgpu::Queue)> {
        match &self.engine {
            Engine::Wgpu(device) => Some((device.wgpu_device(), device.wgpu_queue())),
            _ => None,
        }
    }

    fn with(engine: Engine, reason: String) -> Self {
        let (backend, device) = match &engine {
            #[cfg(feature = "wgpu")]
            Engine::Wgpu(device) => (Backend::Wgpu, Some(device.info().clone())),
            #[cfg(feature = "opencl")]
            Engine::OpenCl(device) => (Backend::OpenCl, Some(device.info().clone())),
            Engine::Cpu => (Backend::Cpu, None),
        };
        let info = ContextInfo { backend, device, reason };
        tracing::debug!("context: {info}");
        Context { engine, info: Arc::new(info), opened: None, record: Arc::default() }
    }

    /// The context with `reason` as the reason why this backend was chosen.
    pub(crate) fn because(self, reason: String) -> Self {
        let info = ContextInfo { reason, ..self.info().clone() };
        Context { info: Arc::new(info), ..self }
    }

    /// Runs on the application's own wgpu device. [`Context::wgpu_requirements`] says what to ask
    /// the adapter for; whatever the device lacks of it is not used.
    ///
    /// The application keeps its device: nothing is submitted but by `run` and its variants, and
    /// nothing polls but what waits for a result.
    ///
    /// ```
    /// use diptych::{Context, wgpu};
    ///
    /// async fn of_this_application(adapter: &wgpu::Adapter) -> Result<Context, Box<dyn std::error::Error>> {
    ///     let (required_features, required_limits) = Context::wgpu_requirements(adapter);
    ///     let wanted = wgpu::DeviceDescriptor { required_features, required_limits, ..Default::default() };
    ///     let (device, queue) = adapter.request_device(&wanted).await?;
    ///     Ok(Context::from_wgpu(adapter, device, queue)?)
    /// }
    /// ```
    ///
    /// # Errors
    /// If the device's limits are below what the kernels need.
    #[cfg(feature = "wgpu")]
    pub fn from_wgpu(adapter: &wgpu::Adapter, device: wgpu::Device, queue: wgpu::Queue) -> Result<Self> {
        Self::builder().from_wgpu(adapter, device, queue)
    }

    /// Runs on the application's own OpenCL context and queue, which must be in order. Both are
    /// retained, so the application may drop its handles.
    ///
    /// ```
    /// use diptych::opencl3::{command_queue::CommandQueue, context::Context, device::Device};
    ///
    /// fn of_this_application(
    ///     context: &Context,
    ///     device: &Device,
    ///     queue: &CommandQueue,
    /// ) -> diptych::Result<diptych::Context> {
    ///     diptych::Context::from_opencl(context, device, queue)
    /// }
    /// ```
    ///
    /// # Errors
    /// If the queue is out of order or of another context or device, the device is older than OpenCL 1.2, or `opencl3` calls
    /// another OpenCL library than Diptych, which `OPENCL_DYLIB_PATH` mends.
    #[cfg(feature = "opencl")]
    pub fn from_opencl(
        context: &opencl3::context::Context,
        device: &opencl3::device::Device,
        queue: &opencl3::command_queue::CommandQueue,
    ) -> Result<Self> {
        Self::builder().from_opencl(context, device, queue)
    }

    /// The features and limits that an application should ask `adapter` for, so that everything
    /// the crate can use is there.
    ///
    /// ```
    /// use diptych::{Context, wgpu};
    ///
    /// async fn of_this_application(adapter: &wgpu::Adapter) -> Result<Context, Box<dyn std::error::Error>> {
    ///     let (required_features, required_limits) = Context::wgpu_requirements(adapter);
    ///     let wanted = wgpu::DeviceDescriptor { required_features, required_limits, ..Default::default() };
    ///     let (device, queue) = adapter.request_device(&wanted).await?;
    ///     Ok(Context::from_wgpu(adapter, device, queue)?)
    /// }
    /// ```
    #[cfg(feature = "wgpu")]
    pub fn wgpu_requirements(adapter: &wgpu::Adapter) -> (wgpu::Features, wgpu::Limits) {
        WgpuDevice::requirements(adapter)
    }

    /// How often the crate has submitted, polled, mapped and copied through wgpu since the device was opened; nothing
    /// on another backend. What the application itself does is not counted.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// assert!(Context::new(Backend::Cpu)?.wgpu_calls().is_none());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[cfg(feature = "wgpu")]
    pub fn wgpu_calls(&self) -> Option<crate::device::wgpu::WgpuCalls> {
        match &self.engine {
            Engine::Wgpu(device) => Some(device.calls()),
            _ => None,
        }
    }

    /// Loads the OpenCL library, as the crate does when it looks for a device, and returns the path or name
    /// that it was found under: for an application that calls [`opencl3`] before it has a context.
    ///
    /// ```
    /// match diptych::Context::load_opencl() {
    ///     Ok(library) => println!("OpenCL is {library}"),
    ///     Err(error) => assert!(error.is_no_device()),
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::OpenClLibrary`] with everything that was tried.
    #[cfg(feature = "opencl")]
    pub fn load_opencl() -> Result<&'static str> {
        OpenClDevice::library()
    }

    /// Keeps compiled kernels in `directory` from now on, or nowhere. Without this call they lie
    /// in the directory of the tuner's record, [`Database::default_dir`](crate::Database::default_dir).
    ///
    /// A kernel's file is found by device, driver and text, is at most written, never waited for,
    /// and a damaged one is compiled anew. On wgpu the device needs the feature `PIPELINE_CACHE`.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// let context = Context::new(Backend::Cpu)?;
    /// context.keep_kernels(Some(folder.path())); // the CPU compiles none
    /// context.keep_kernels(None);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn keep_kernels(&self, directory: Option<&Path>) {
        let _cache = directory.map(KernelCache::within);
        match &self.engine {
            #[cfg(feature = "wgpu")]
            Engine::Wgpu(device) => device.keep_kernels(_cache),
            #[cfg(feature = "opencl")]
            Engine::OpenCl(device) => device.keep_kernels(_cache),
            Engine::Cpu => {}
        }
    }

    /// Has [`Context::gemm`] and every [`MatrixProduct`](crate::MatrixProduct) that is made from now on ask this record of the
    /// tuner for its kernel, or none, unless [`ProductOptions::tuning`](crate::ProductOptions::tuning) names another. So do
    /// clones of this context. A session asks that of its own options.
    ///
    /// ```
    /// use diptych::{Backend, Context, Database};
    /// use std::sync::{Arc, Mutex};
    ///
    /// let context = Context::new(Backend::Cpu)?;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path();
    /// // The user's own record lies in `Database::default_dir()?`.
    /// context.use_record(Some(Arc::new(Mutex::new(Database::open(folder)?))));
    /// context.use_record(None);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn use_record(&self, record: Option<SharedDatabase>) {
        *lock(&self.record) = record;
    }

    /// The record of [`Context::use_record`].
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn record(&self) -> Option<SharedDatabase> {
        lock(&self.record).clone()
    }

    /// The device, for the GPU backends: to allocate buffers, and to record kernels of one's own.
    #[doc(hidden)]
    pub fn device(&self) -> Option<&dyn Device> {
        self.engine.device().ok()
    }

    /// The device, for the GPU backends, to keep.
    #[doc(hidden)]
    pub fn shared_device(&self) -> Option<Arc<dyn Device>> {
        self.engine.shared().ok()
    }

    /// Which device this is, and why.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// println!("{}", Context::new(Backend::Cpu)?.info());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn info(&self) -> &ContextInfo {
        &self.info
    }
}

impl ContextBuilder {
    /// [`Context::from_wgpu`] with what was said of how a device is opened; which one is the
    /// application's business.
    ///
    /// ```
    /// use diptych::{Context, wgpu};
    ///
    /// async fn of_this_application(adapter: &wgpu::Adapter) -> Result<Context, Box<dyn std::error::Error>> {
    ///     let (required_features, required_limits) = Context::wgpu_requirements(adapter);
    ///     let wanted = wgpu::DeviceDescriptor { required_features, required_limits, ..Default::default() };
    ///     let (device, queue) = adapter.request_device(&wanted).await?;
    ///     Ok(Context::builder().checked_kernels(true).from_wgpu(adapter, device, queue)?)
    /// }
    /// ```
    ///
    /// # Errors
    /// Those of [`Context::from_wgpu`].
    #[cfg(feature = "wgpu")]
    pub fn from_wgpu(
        self,
        adapter: &wgpu::Adapter,
        device: wgpu::Device,
        queue: wgpu::Queue,
    ) -> Result<Context> {
        let options = self.options.overridden_by_environment();
        let device = WgpuDevice::from_wgpu_with(adapter, device, queue, &options)?;
        Ok(Context::with(Engine::Wgpu(device), "the application's device".to_owned()))
    }

    /// [`Context::from_opencl`] with what was said of how a device is opened; which one is the
    /// application's business.
    ///
    /// ```
    /// use diptych::opencl3::{command_queue::CommandQueue, context::Context, device::Device};
    ///
    /// fn of_this_application(
    ///     context: &Context,
    ///     device: &Device,
    ///     queue: &CommandQueue,
    /// ) -> diptych::Result<diptych::Context> {
    ///     diptych::Context::builder().pinned_copies(false).from_opencl(context, device, queue)
    /// }
    /// ```
    ///
    /// # Errors
    /// Those of [`Context::from_opencl`].
    #[cfg(feature = "opencl")]
    pub fn from_opencl(
        self,
        context: &opencl3::context::Context,
        device: &opencl3::device::Device,
        queue: &opencl3::command_queue::CommandQueue,
    ) -> Result<Context> {
        let options = self.options.overridden_by_environment();
        let device = OpenClDevice::from_opencl_with(context, device, queue, &options)?;
        Ok(Context::with(Engine::OpenCl(device), "the application's device".to_owned()))
    }
}

/// A backend's devices, or why there are none.
///
/// ```
/// for listing in diptych::devices() {
///     match listing.devices {
///         Ok(devices) => println!("{}: {} devices", listing.backend, devices.len()),
///         Err(error) => println!("{}: {error}", listing.backend),
///     }
/// }
/// ```
#[derive(Debug)]
pub struct DeviceListing {
    /// The backend.
    pub backend: Backend,
    /// Its devices.
    pub devices: Result<Vec<DeviceInfo>>,
}

/// Every device of every backend that the crate was built with, the CPU excluded: it is always
/// there.
///
/// ```
/// for listing in diptych::devices() {
///     for device in listing.devices.into_iter().flatten() {
///         println!("{}: {device}", listing.backend);
///     }
/// }
/// ```
#[cfg(not(target_family = "wasm"))]
pub fn devices() -> Vec<DeviceListing> {
    vec![
        #[cfg(feature = "wgpu")]
        DeviceListing { backend: Backend::Wgpu, devices: WgpuDevice::listed() },
        #[cfg(feature = "opencl")]
        DeviceListing { backend: Backend::OpenCl, devices: OpenClDevice::list() },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_reads_back_from_its_name_and_nothing_else() {
        for backend in [Backend::Auto, Backend::Gpu, Backend::Wgpu, Backend::OpenCl, Backend::Cpu] {
            assert_eq!(backend.to_string().parse::<Backend>().expect("its own name"), backend);
        }
        assert!("cuda".parse::<Backend>().expect_err("no such backend").to_string().contains("\"cuda\""));
    }

    #[test]
    fn a_gpu_is_never_the_cpu() {
        match Context::new(Backend::Gpu) {
            Ok(context) => {
                assert!(matches!(context.info().backend, Backend::Wgpu | Backend::OpenCl));
                assert!(
                    context.info().device.as_ref().is_some_and(|device| !device.is_cpu),
                    "{}",
                    context.info()
                );
            }
            Err(Error::NoDevice { backend, wanted, tried }) => {
                assert_eq!((&*backend, &*wanted), ("gpu", "the best GPU"));
                assert!(tried.iter().any(|reason| reason.starts_with("wgpu")), "{tried:?}");
            }
            Err(error) => panic!("{error}"),
        }
        // A driver that runs on the CPU may be named, but is no GPU.
        for listing in devices() {
            for device in listing.devices.unwrap_or_default().iter().filter(|device| device.is_cpu) {
                let error = Context::builder().backend(Backend::Gpu).name(&device.name).open();
                let error = error.expect_err("a driver that runs on the CPU").to_string();
                assert!(error.contains("runs kernels on the CPU"), "{error}");
            }
        }
    }

    #[test]
    fn the_cpu_is_always_there_and_auto_says_why() {
        assert_eq!(Context::new(Backend::Cpu).expect("the CPU").info().backend, Backend::Cpu);
        let auto = Context::new(Backend::Auto).expect("something");
        assert_ne!(auto.info().backend, Backend::Auto);
        assert!(!auto.info().reason.is_empty());
    }

    #[test]
    fn every_listed_device_is_found_by_place_name_and_address() {
        let mut before = 0;
        for listing in devices() {
            let Ok(listed) = listing.devices else { continue };
            for (index, info) in listed.iter().enumerate() {
                let of = |builder: ContextBuilder| {
                    let context = builder.open().expect("a listed device");
                    assert!(!context.info().reason.is_empty());
                    (context.info().backend, context.info().device.clone().expect("a device"))
                };
                let on = || Context::builder().backend(listing.backend);
                assert_eq!(of(on().index(index)).1.name, info.name);
                let auto = of(Context::builder().index(before + index));
                assert_eq!((auto.0, &auto.1.name), (listing.backend, &info.name));
                assert_eq!(of(on().name(info.name.to_uppercase())).1.name, info.name);
                if let Some(address) = info.pci {
                    assert_eq!(of(on().pci(address)).1.pci, Some(address));
                    assert_eq!(of(Context::builder().pci(address)).1.pci, Some(address));
                }
            }
            before += listed.len();
            let missing = [
                (Context::builder().backend(listing.backend).index(listed.len()), "number"),
                (Context::builder().backend(listing.backend).name("no such GPU"), "\"no such GPU\""),
                (Context::builder().name("no such GPU"), "\"no such GPU\""),
                (Context::builder().index(1000), "number 1000"),
                (Context::builder().pci("ffff:ff:1f.7".parse().expect("an address")), "ffff:ff:1f.7"),
            ];
            for (builder, wanted) in missing {
                let error = builder.open().expect_err("no such device").to_string();
                assert!(error.contains(wanted), "{error}");
                assert!(listed.iter().all(|info| error.contains(&info.name)), "{error}");
            }
        }
    }

    #[test]
    fn the_cpu_has_no_devices_to_choose_from() {
        let error = Context::builder().backend(Backend::Cpu).index(0).open().expect_err("no devices");
        assert!(error.to_string().contains("device number 0"), "{error}");
    }

    #[test]
    fn a_context_runs_as_it_was_built() {
        let directory = tempfile::tempdir().expect("a directory");
        let kept = || std::fs::read_dir(directory.path().join("kernels")).map_or(0, Iterator::count);
        let ones = |c| crate::HostTensor::new(crate::Shape::nhwc(1, 1, 1, c), vec![1.0; c]).expect("ones");
        let run = |builder: ContextBuilder| {
            let context = builder.open().expect("as listed");
            let sum = context.pointwise(&ones(5), &ones(5), None, &crate::Pointwise::default());
            assert_eq!(sum.expect("a sum").to_f32()[0], 5.0, "{}", context.info());
        };
        for listing in devices() {
            if !listing.devices.is_ok_and(|devices| !devices.is_empty()) {
                continue;
            }
            let builder = || Context::builder().backend(listing.backend);
            let before = kept();
            run(builder().kernel_cache(directory.path()).without_kernel_cache().checked_kernels(true));
            assert_eq!(kept(), before, "{}", listing.backend);
            run(builder().kernel_cache(directory.path()).zeroed_memory(true).pinned_copies(true));
            run(builder().kernel_cache(directory.path()).pinned_copies(false).command_buffers(false));
            println!("{} keeps {} kernels", listing.backend, kept() - before);
            // The variable says where, whatever the code says.
            let elsewhere = std::env::var_os("DIPTYCH_CACHE_DIR").is_some();
            assert!(elsewhere || listing.backend != Backend::OpenCl || kept() > before);
        }
    }
}
