//! Where networks run: one device of one API, or the CPU.

use crate::device::cache::KernelCache;
use crate::device::{Device, DeviceInfo};
use crate::error::{Error, Result};
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

#[cfg(feature = "opencl")]
use crate::device::opencl::OpenClDevice;
#[cfg(feature = "wgpu")]
use crate::device::wgpu::WgpuDevice;

/// What runs the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Backend {
    /// A GPU through wgpu, else a GPU through OpenCL, else the CPU. Drivers that run GPU kernels
    /// on the CPU are passed over: the CPU backend is faster. [`ContextInfo`] says what was taken
    /// and why.
    #[default]
    Auto,
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
            Backend::Wgpu => "wgpu",
            Backend::OpenCl => "opencl",
            Backend::Cpu => "cpu",
        })
    }
}

impl FromStr for Backend {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        [Backend::Auto, Backend::Wgpu, Backend::OpenCl, Backend::Cpu]
            .into_iter()
            .find(|backend| backend.to_string() == text)
            .ok_or_else(|| Error::input("backend", format!("{text:?}"), "auto, wgpu, opencl or cpu"))
    }
}

/// The device of a context, and why it is this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextInfo {
    /// The backend in use; never [`Backend::Auto`].
    pub backend: Backend,
    /// The device, for the GPU backends.
    pub device: Option<DeviceInfo>,
    /// Why this backend and device.
    pub reason: String,
}

impl fmt::Display for ContextInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.device {
            Some(device) => write!(f, "{}: {device}", self.backend)?,
            None => write!(f, "{}: {} threads", self.backend, rayon::current_num_threads())?,
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
#[derive(Debug, Clone)]
pub struct Context {
    pub(crate) engine: Engine,
    info: Arc<ContextInfo>,
}

impl Context {
    /// Opens a device. `DIPTYCH_WGPU_ADAPTER` and `DIPTYCH_OPENCL_DEVICE` choose among several by
    /// a part of the name.
    ///
    /// # Errors
    /// If there is no such device; [`Backend::Auto`] and [`Backend::Cpu`] always succeed. A
    /// request for a GPU API never falls back on the CPU backend.
    pub fn new(backend: Backend) -> Result<Self> {
        let asked = "asked for by name".to_owned();
        match backend {
            Backend::Auto => Ok(Self::auto()),
            Backend::Cpu => Ok(Self::with(Engine::Cpu, asked)),
            Backend::Wgpu => Self::open_wgpu(asked),
            Backend::OpenCl => Self::open_opencl(asked),
        }
    }

    fn auto() -> Self {
        let mut passed_over = Vec::new();
        for (backend, opened) in [
            (Backend::Wgpu, Self::open_wgpu(String::new())),
            (Backend::OpenCl, Self::open_opencl(String::new())),
        ] {
            match opened {
                Ok(context) => match &context.info.device {
                    Some(device) if !device.is_cpu => {
                        let mut reason = format!("the first GPU: {backend} before opencl before cpu");
                        if !passed_over.is_empty() {
                            reason = format!("the first GPU; {}", passed_over.join("; "));
                        }
                        return Self::with(context.engine, reason);
                    }
                    Some(device) => {
                        passed_over.push(format!("{backend} offers only {}, a CPU driver", device.name));
                    }
                    None => {}
                },
                Err(error) => passed_over.push(format!("{backend}: {error}")),
            }
        }
        Self::with(Engine::Cpu, format!("no GPU: {}", passed_over.join("; ")))
    }

    #[cfg(feature = "wgpu")]
    fn open_wgpu(reason: String) -> Result<Self> {
        Ok(Self::with(Engine::Wgpu(WgpuDevice::open(None)?), reason))
    }

    #[cfg(not(feature = "wgpu"))]
    fn open_wgpu(_reason: String) -> Result<Self> {
        Err(Error::unsupported("backend wgpu", "the crate was built without feature `wgpu`"))
    }

    #[cfg(feature = "opencl")]
    fn open_opencl(reason: String) -> Result<Self> {
        Ok(Self::with(Engine::OpenCl(OpenClDevice::open(None)?), reason))
    }

    #[cfg(not(feature = "opencl"))]
    fn open_opencl(_reason: String) -> Result<Self> {
        Err(Error::unsupported("backend opencl", "the crate was built without feature `opencl`"))
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
        Context { engine, info: Arc::new(info) }
    }

    /// Runs on the application's own wgpu device. [`Context::wgpu_requirements`] says what to ask
    /// the adapter for; whatever the device lacks of it is not used.
    ///
    /// The application keeps its device: nothing is submitted but by `run` and its kin, and
    /// nothing polls but what waits for a result.
    ///
    /// # Errors
    /// If the device's limits are below what the kernels need.
    #[cfg(feature = "wgpu")]
    pub fn from_wgpu(adapter: &wgpu::Adapter, device: wgpu::Device, queue: wgpu::Queue) -> Result<Self> {
        let device = WgpuDevice::from_wgpu(adapter, device, queue)?;
        Ok(Self::with(Engine::Wgpu(device), "the application's device".to_owned()))
    }

    /// Runs on the application's own OpenCL context and queue, which must be in order. Both are
    /// retained, so the application may drop its handles.
    ///
    /// # Errors
    /// If the queue is out of order or of another context or device, or the device is older than
    /// OpenCL 1.2.
    #[cfg(feature = "opencl")]
    pub fn from_opencl(
        context: &opencl3::context::Context,
        device: &opencl3::device::Device,
        queue: &opencl3::command_queue::CommandQueue,
    ) -> Result<Self> {
        let device = OpenClDevice::from_opencl(context, device, queue)?;
        Ok(Self::with(Engine::OpenCl(device), "the application's device".to_owned()))
    }

    /// The features and limits that an application should ask `adapter` for, so that everything
    /// the crate can use is there.
    #[cfg(feature = "wgpu")]
    pub fn wgpu_requirements(adapter: &wgpu::Adapter) -> (wgpu::Features, wgpu::Limits) {
        WgpuDevice::requirements(adapter)
    }

    /// Keeps compiled kernels in `directory` from now on, or nowhere. Without this call they lie
    /// in the directory of the tuner's record, [`crate::tune::db::Database::default_dir`].
    ///
    /// A kernel's file is found by device, driver and text, is at most written, never waited for,
    /// and a damaged one is compiled anew. On wgpu the device needs the feature `PIPELINE_CACHE`.
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

    /// The device, for the GPU backends: to allocate buffers, and to record kernels of one's own.
    pub fn device(&self) -> Option<&dyn Device> {
        self.engine.device().ok()
    }

    /// The device, for the GPU backends, to keep: what [`crate::tune::OpBench`] takes.
    pub fn shared_device(&self) -> Option<Arc<dyn Device>> {
        self.engine.shared().ok()
    }

    /// Which device this is, and why.
    pub fn info(&self) -> &ContextInfo {
        &self.info
    }
}

/// A backend's devices, or why there are none.
#[derive(Debug)]
pub struct DeviceListing {
    /// The backend.
    pub backend: Backend,
    /// Its devices.
    pub devices: Result<Vec<DeviceInfo>>,
}

/// Every device of every backend that the crate was built with, the CPU excluded: it is always
/// there.
pub fn devices() -> Vec<DeviceListing> {
    vec![
        #[cfg(feature = "wgpu")]
        DeviceListing { backend: Backend::Wgpu, devices: Ok(WgpuDevice::list()) },
        #[cfg(feature = "opencl")]
        DeviceListing { backend: Backend::OpenCl, devices: OpenClDevice::list() },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_reads_back_from_its_name_and_nothing_else() {
        for backend in [Backend::Auto, Backend::Wgpu, Backend::OpenCl, Backend::Cpu] {
            assert_eq!(backend.to_string().parse::<Backend>().expect("its own name"), backend);
        }
        assert!("cuda".parse::<Backend>().expect_err("no such backend").to_string().contains("\"cuda\""));
    }

    #[test]
    fn the_cpu_is_always_there_and_auto_says_why() {
        assert_eq!(Context::new(Backend::Cpu).expect("the CPU").info().backend, Backend::Cpu);
        let auto = Context::new(Backend::Auto).expect("something");
        assert_ne!(auto.info().backend, Backend::Auto);
        assert!(!auto.info().reason.is_empty());
    }
}
