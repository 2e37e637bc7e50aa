//! Which adapter, with which features; or the application's own device.

use super::adapters::{Adapters, has_compute, identity};
use super::kept::Kept;
use super::scope::unpanicked;
use super::{Inner, Owner, WgpuDevice};
use crate::device::DeviceInfo;
use crate::device::choice::DeviceChoice;
use crate::device::family::{facts, family};
use crate::device::identity::Identity;
use crate::device::options::{DeviceOptions, environment};
#[cfg(not(target_family = "wasm"))]
use crate::device::waiter::Waiter;
use crate::emit::Dialect;
use crate::error::{Error, Result};
use crate::limits::faults::{Faults, Identified};
use crate::limits::{Limits, MatrixUnit};
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// Why an adapter whose driver is not conformant is opened only by name, address or UUID.
const NOT_CONFORMANT: &str = "its driver did not pass Vulkan's conformance tests, so that results may be wrong: it is opened if a \
                              part of its name, its PCI address or its UUID asks for it";

/// A part of the name of the adapter to open, in any case.
const ADAPTER_VARIABLE: &str = "DIPTYCH_WGPU_ADAPTER";

impl WgpuDevice {
    /// Opens the best adapter: discrete before integrated before virtual before CPU, Vulkan first
    /// where a GPU has several APIs.
    ///
    /// `filter`, or else the environment variable `DIPTYCH_WGPU_ADAPTER`, picks among the adapters
    /// whose name contains it in any case. `WGPU_BACKEND` (`vulkan`, `metal`, `dx12`) picks the API.
    ///
    /// # Errors
    /// [`Error::NoDevice`] listing the adapters that were seen and what came of each.
    #[cfg(not(target_family = "wasm"))]
    pub fn open(filter: Option<&str>) -> Result<Self> {
        let named = filter.map(|name| DeviceChoice::Name(name.to_owned()));
        let choice = named.or_else(Self::choice_of_environment).unwrap_or_default();
        crate::task::block_on(Self::open_with(&choice, &DeviceOptions::from_environment()))
    }

    /// The adapter that `DIPTYCH_WGPU_ADAPTER` names.
    pub fn choice_of_environment() -> Option<DeviceChoice> {
        environment(ADAPTER_VARIABLE).map(DeviceChoice::Name)
    }

    /// Opens the best of the adapters that are wanted. One whose driver is not conformant is opened if it is asked for by name,
    /// address or identifier.
    pub async fn open_with(choice: &DeviceChoice, options: &DeviceOptions) -> Result<Self> {
        let adapters = Adapters::all().await;
        let mut tried = adapters.hidden;
        let conformant = adapters.seen.len();
        for (index, (adapter, identity)) in
            adapters.seen.into_iter().chain(adapters.not_conformant).enumerate()
        {
            let info = adapter.get_info();
            let seen = format!("{} ({})", info.name, api_name(info.backend));
            let is_cpu = info.device_type == wgpu::DeviceType::Cpu;
            let not_conformant = index >= conformant;
            let unnamed = (not_conformant && !choice.is_of_one()).then(|| NOT_CONFORMANT.to_owned());
            if let Some(obstacle) = unnamed.or_else(|| choice.obstacle(index, &info.name, identity, is_cpu)) {
                tried.push(format!("{seen}: {obstacle}"));
                continue;
            }
            if not_conformant {
                tracing::warn!(
                    "{seen}: its driver ({}) is not conformant: results may be wrong",
                    info.driver
                );
            }
            match open_adapter(&adapter, options).await {
                Ok(device) => return Ok(device),
                Err(error) => {
                    tracing::warn!("{seen} could not be opened: {error}");
                    tried.push(format!("{seen}: {error}"));
                }
            }
        }
        if tried.is_empty() {
            tried.push("no adapter".to_owned());
        }
        Err(Error::NoDevice { backend: "wgpu".to_owned(), wanted: choice.to_string(), tried })
    }

    /// Every adapter that [`WgpuDevice::open`] chooses from, the best first.
    #[cfg(not(target_family = "wasm"))]
    pub fn list() -> Vec<DeviceInfo> {
        crate::task::block_on(Self::list_async())
    }

    /// [`WgpuDevice::list`], or if there is none why those are left out that there are.
    #[cfg(not(target_family = "wasm"))]
    pub fn listed() -> Result<Vec<DeviceInfo>> {
        let listed = Self::list();
        let adapters = crate::task::block_on(Adapters::all());
        if !listed.is_empty() || adapters.not_conformant.is_empty() {
            return Ok(listed);
        }
        let refused = adapters.not_conformant.iter().map(|(adapter, _)| {
            let info = adapter.get_info();
            format!("{} ({}): {NOT_CONFORMANT}", info.name, api_name(info.backend))
        });
        let wanted = DeviceChoice::Best.to_string();
        Err(Error::NoDevice { backend: "wgpu".to_owned(), wanted, tried: refused.collect() })
    }

    /// [`WgpuDevice::list`], awaited.
    pub async fn list_async() -> Vec<DeviceInfo> {
        let adapters = Adapters::all().await;
        let described = adapters.seen.iter().map(|(adapter, identity)| {
            let (features, limits) = Self::requirements(adapter);
            device_info(&adapter.get_info(), *identity, features, &limits)
        });
        described.collect()
    }

    /// The features and limits to request of `adapter` for a device that is given to
    /// [`WgpuDevice::from_wgpu`]: all of its limits and, of what it offers, what kernels use.
    ///
    /// | feature | for |
    /// |---|---|
    /// | `TIMESTAMP_QUERY` | timing single dispatches |
    /// | `SHADER_F16` | half-float arithmetic |
    /// | `SUBGROUP` | kernels that exchange values within a subgroup |
    /// | `PIPELINE_CACHE` | keeping compiled kernels from one start to the next |
    /// | `MAPPABLE_PRIMARY_BUFFERS` | [`crate::device::Memory::HostVisible`] |
    /// | `VULKAN_EXTERNAL_MEMORY_DMA_BUF` | a camera's memory as textures |
    ///
    /// None of them is needed: a device without one does without. A device that was also requested
    /// with `EXPERIMENTAL_COOPERATIVE_MATRIX`, which takes the application's consent to experimental
    /// features, multiplies halves with it.
    pub fn requirements(adapter: &wgpu::Adapter) -> (wgpu::Features, wgpu::Limits) {
        let useful = wgpu::Features::TIMESTAMP_QUERY
            | wgpu::Features::SHADER_F16
            | wgpu::Features::SUBGROUP
            | wgpu::Features::PIPELINE_CACHE
            | wgpu::Features::MAPPABLE_PRIMARY_BUFFERS
            | wgpu::Features::VULKAN_EXTERNAL_MEMORY_DMA_BUF;
        (adapter.features() & useful, adapter.limits())
    }

    /// Uses a device that the application owns, with the features and limits it was created with.
    ///
    /// No handler is installed on it, and it is polled only by calls that wait: wgpu frees what a dropped session held
    /// when the application submits something and polls the device. Buffers, kernels
    /// and recordings belong to the returned device and its clones.
    ///
    /// # Errors
    /// If the adapter has no compute shaders.
    pub fn from_wgpu(adapter: &wgpu::Adapter, device: wgpu::Device, queue: wgpu::Queue) -> Result<Self> {
        Self::from_wgpu_with(adapter, device, queue, &DeviceOptions::from_environment())
    }

    /// [`WgpuDevice::from_wgpu`] with these options.
    pub fn from_wgpu_with(
        adapter: &wgpu::Adapter,
        device: wgpu::Device,
        queue: wgpu::Queue,
        options: &DeviceOptions,
    ) -> Result<Self> {
        if !has_compute(adapter) {
            return Err(Error::unsupported(
                format!("the adapter {}", adapter.get_info().name),
                "it has no compute shaders",
            ));
        }
        let (features, limits) = (device.features(), device.limits());
        let mut info = device_info(&adapter.get_info(), identity(adapter), features, &limits);
        if features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX) && cooperative_matrices(adapter)
        {
            let adapter = adapter.get_info();
            // Where the size may vary, a kernel does not know which invocations share a matrix.
            info.limits.matrix_unit = (adapter.subgroup_min_size == adapter.subgroup_max_size)
                .then_some(MatrixUnit::Cooperative { subgroup: adapter.subgroup_min_size });
        }
        // Some drivers offer the queries and tick with a period of zero.
        info.timestamps &= queue.get_timestamp_period() > 0.0;
        let inner = Inner {
            #[cfg(not(target_family = "wasm"))]
            waiter: Waiter::default(),
            device: Kept::new(device),
            queue: Kept::new(queue),
            owner: Owner::new(),
            info,
            features,
            limits,
            counters: super::calls::Counters::default(),
            #[cfg(not(target_family = "wasm"))]
            own: false.into(),
            #[cfg(not(target_family = "wasm"))]
            tells: false.into(),
            checked_shaders: options.checked_kernels,
            zeroed_memory: options.zeroed_memory,
            pipelines: Mutex::new(HashMap::new()),
            cache: Mutex::new(options.kernel_cache()),
            staging: Mutex::new(Vec::new()),
            uploads: Mutex::new(Vec::new()),
            unsubmitted: AtomicU64::new(0),
            #[cfg(not(target_family = "wasm"))]
            time_limit: options.time_limit,
            #[cfg(not(target_family = "wasm"))]
            overdue: false.into(),
            lost: Arc::default(),
            #[cfg(target_family = "wasm")]
            found: Arc::default(),
        };
        Ok(WgpuDevice { inner: Arc::new(inner) })
    }
}

async fn open_adapter(adapter: &wgpu::Adapter, options: &DeviceOptions) -> Result<WgpuDevice> {
    let (mut required_features, required_limits) = WgpuDevice::requirements(adapter);
    let mut experimental_features = wgpu::ExperimentalFeatures::disabled();
    if cooperative_matrices(adapter) {
        required_features |= wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX;
        // SAFETY: the token asks to be ready for undefined behaviour in features that are not
        // finished. Of these only cooperative matrices are requested; the one kernel that uses
        // them loads and stores whole 16x16 tiles within its own work-group memory.
        experimental_features = unsafe { wgpu::ExperimentalFeatures::enabled() };
    }
    let descriptor = wgpu::DeviceDescriptor {
        label: Some("diptych"),
        required_features,
        required_limits,
        experimental_features,
        // The other choice allocates blocks of 64 MiB of host memory, whose pages the driver pins: 11 ms
        // of a first run on an H200, for the inputs and outputs of a few megabytes.
        memory_hints: wgpu::MemoryHints::MemoryUsage,
        ..Default::default()
    };
    let failed = |message| {
        let api = api_name(adapter.get_info().backend);
        Error::Driver { api, call: "request_device", message }
    };
    #[cfg(not(any(target_family = "wasm", target_vendor = "apple")))]
    let telling = match options.statistics {
        true => unpanicked(|| super::statistics::request(adapter, &descriptor)).map_err(failed)?,
        false => None,
    };
    #[cfg(any(target_family = "wasm", target_vendor = "apple"))]
    let telling: Option<std::result::Result<_, String>> = None;
    let _tells = telling.is_some();
    let (device, queue) = match telling {
        Some(opened) => opened.map_err(failed)?,
        None => {
            let request = unpanicked(|| adapter.request_device(&descriptor)).map_err(failed)?;
            request.await.map_err(|error| failed(error.to_string()))?
        }
    };
    let device = WgpuDevice::from_wgpu_with(adapter, device, queue, options)?;
    #[cfg(not(target_family = "wasm"))]
    {
        device.inner.own.store(true, std::sync::atomic::Ordering::Relaxed);
        device.inner.tells.store(_tells, std::sync::atomic::Ordering::Relaxed);
    }
    let lost = Arc::clone(&device.inner.lost);
    device.inner.device.set_device_lost_callback(move |_, message| {
        // The first reason is the cause of the others.
        lost.get_or_init(|| if message.is_empty() { "no reason was given".to_owned() } else { message });
    });
    Ok(device)
}

/// Whether subgroups multiply 16x16 matrices of halves and sum in f32.
fn cooperative_matrices(adapter: &wgpu::Adapter) -> bool {
    use wgpu::CooperativeScalarType::{F16, F32};
    let wanted = wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX | wgpu::Features::SHADER_F16;
    adapter.features().contains(wanted)
        && adapter.cooperative_matrix_properties().iter().any(|offered| {
            [offered.m_size, offered.n_size, offered.k_size] == [16; 3]
                && (offered.ab_type, offered.cr_type) == (F16, F32)
        })
}

const fn api_name(backend: wgpu::Backend) -> &'static str {
    match backend {
        wgpu::Backend::Vulkan => "Vulkan",
        wgpu::Backend::Metal => "Metal",
        wgpu::Backend::Dx12 => "DX12",
        wgpu::Backend::Gl => "OpenGL",
        wgpu::Backend::BrowserWebGpu => "WebGPU",
        wgpu::Backend::Noop => "noop",
    }
}

fn device_info(
    adapter: &wgpu::AdapterInfo,
    identity: Identity,
    features: wgpu::Features,
    limits: &wgpu::Limits,
) -> DeviceInfo {
    let is_cpu = adapter.device_type == wgpu::DeviceType::Cpu;
    let family = family(&adapter.name, adapter.vendor, is_cpu);
    let driver = format!("{} {}", adapter.driver, adapter.driver_info).trim().to_owned();
    let api = api_name(adapter.backend);
    let faults = Faults::of(&Identified { family, name: &adapter.name, api, driver: &driver });
    DeviceInfo {
        api,
        // A browser may keep it to itself.
        name: if adapter.name.is_empty() {
            api_name(adapter.backend).to_owned()
        } else {
            adapter.name.clone()
        },
        driver,
        pci: identity.pci,
        uuid: identity.uuid,
        limits: Limits {
            dialect: Dialect::Wgsl,
            family,
            max_invocations: limits.max_compute_invocations_per_workgroup,
            max_work_group: [
                limits.max_compute_workgroup_size_x,
                limits.max_compute_workgroup_size_y,
                limits.max_compute_workgroup_size_z,
            ],
            max_groups: [limits.max_compute_workgroups_per_dimension; 3],
            local_memory: limits.max_compute_workgroup_storage_size,
            max_binding: limits.max_storage_buffer_binding_size.min(limits.max_buffer_size),
            binding_alignment: u64::from(limits.min_storage_buffer_offset_alignment),
            native_half: features.contains(wgpu::Features::SHADER_F16),
            max_image: None,
            matrix_unit: None,
            subgroup: features
                .contains(wgpu::Features::SUBGROUP)
                .then_some([adapter.subgroup_min_size, adapter.subgroup_max_size]),
            compute_units: facts(family, &adapter.name).compute_units,
            max_turns: faults.turns(),
            faults,
            measured: None,
        },
        is_cpu,
        timestamps: features.contains(wgpu::Features::TIMESTAMP_QUERY),
    }
}
