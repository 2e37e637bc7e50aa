//! Which adapters there are, and which cards they are.

#[cfg(target_os = "linux")]
use super::quiet::Quiet;
#[cfg(not(target_family = "wasm"))]
use super::visible::{NVIDIA, places};
use crate::device::identity::{DeviceUuid, Identity};
#[cfg(not(target_family = "wasm"))]
use crate::device::visible::Visible;
use crate::sorted;
use std::sync::LazyLock;

/// wgpu's own variable for checks of dispatches whose grid lies in a buffer.
const INDIRECT_VARIABLE: &str = "WGPU_VALIDATION_INDIRECT_CALL";

/// The primary APIs that there are, once for the process and as long as it lives.
///
/// With the last instance the loader unloads the drivers. NVIDIA's (580.159, Linux) leaves a destructor of
/// thread-local values behind: a thread that used it crashed when it ended. And it does not survive that two
/// threads make an instance at once (<https://github.com/gfx-rs/wgpu/issues/5930>).
static INSTANCE: LazyLock<Option<Opened>> = LazyLock::new(|| {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    if cfg!(not(target_family = "wasm")) {
        descriptor = descriptor.with_env();
    }
    descriptor.backends &= wgpu::Instance::enabled_backend_features() & wgpu::Backends::PRIMARY;
    // No dispatch here takes its grid from a buffer. To check those that do, wgpu compiles kernels of
    // its own whenever a device is made.
    if std::env::var_os(INDIRECT_VARIABLE).is_none() {
        descriptor.flags.remove(wgpu::InstanceFlags::VALIDATION_INDIRECT_CALL);
    }
    // wgpu hides those unless it is told not to, and nobody would know why there is no device.
    let all = wgpu::InstanceFlags::ALLOW_UNDERLYING_NONCOMPLIANT_ADAPTER;
    let takes_all = descriptor.flags.contains(all);
    descriptor.flags.insert(all);
    // wgpu refuses to make an instance without an API.
    (!descriptor.backends.is_empty()).then(|| Opened {
        takes_all,
        #[cfg(target_os = "linux")]
        quiet: Quiet::where_there_is_no_compositor(&descriptor),
        instance: wgpu::Instance::new(descriptor),
    })
});

struct Opened {
    instance: wgpu::Instance,
    /// Lists Vulkan's devices instead, where it does so more quietly: all that are listed on Linux.
    #[cfg(target_os = "linux")]
    quiet: Option<Quiet>,
    /// Whether wgpu's own variable takes drivers that are not conformant like others.
    takes_all: bool,
}

impl Opened {
    async fn adapters(&self) -> Vec<wgpu::Adapter> {
        #[cfg(target_os = "linux")]
        if let Some(quiet) = &self.quiet {
            return quiet.adapters(&self.instance);
        }
        self.instance.enumerate_adapters(wgpu::Backends::PRIMARY).await
    }
}

/// The adapters of the primary APIs that can compute, the best first.
pub(super) struct Adapters {
    pub(super) seen: Vec<(wgpu::Adapter, Identity)>,
    /// Adapters whose driver did not pass Vulkan's conformance tests. Only who asks for one by name gets it.
    pub(super) not_conformant: Vec<(wgpu::Adapter, Identity)>,
    /// The adapters that the environment hides, and why, in words for people.
    pub(super) hidden: Vec<String>,
}

impl Adapters {
    pub(super) async fn all() -> Self {
        let none = Adapters { seen: Vec::new(), not_conformant: Vec::new(), hidden: Vec::new() };
        let Some(opened) = &*INSTANCE else { return none };
        let mut adapters = opened.adapters().await;
        adapters.retain(has_compute);
        // A stable sort: wgpu lists Vulkan and Metal before DX12.
        sorted::sort_by_key(&mut adapters, |adapter: &wgpu::Adapter| match adapter.get_info().device_type {
            wgpu::DeviceType::DiscreteGpu => 0,
            wgpu::DeviceType::IntegratedGpu => 1,
            wgpu::DeviceType::VirtualGpu => 2,
            wgpu::DeviceType::Other => 3,
            wgpu::DeviceType::Cpu => 4,
        });
        let mut all = none;
        for adapter in adapters {
            let described = described(&adapter);
            let identity = identified(&adapter, &described);
            let to = if described.not_conformant && !opened.takes_all {
                &mut all.not_conformant
            } else {
                &mut all.seen
            };
            to.push((adapter, identity));
        }
        #[cfg(not(target_family = "wasm"))]
        if let Some(visible) = Visible::from_environment() {
            return all.seen_through(&visible);
        }
        all
    }

    /// Leaves of NVIDIA's adapters those that are visible, in the order in which they are listed; the others stay
    /// where they are.
    #[cfg(not(target_family = "wasm"))]
    fn seen_through(self, visible: &Visible) -> Self {
        let is_nvidia = |adapter: &wgpu::Adapter| adapter.get_info().vendor == NVIDIA;
        // One card may be the adapter of two APIs.
        let mut cards: Vec<Identity> = Vec::new();
        for (adapter, identity) in &self.seen {
            if is_nvidia(adapter) && !cards.iter().any(|card| card.is(identity)) {
                cards.push(*identity);
            }
        }
        let order: Vec<Identity> =
            places(visible, &cards).into_iter().filter_map(|card| cards.get(card).copied()).collect();
        let (nvidia, others): (Vec<_>, Vec<_>) =
            self.seen.into_iter().enumerate().partition(|(_, (adapter, _))| is_nvidia(adapter));
        let place = |identity: &Identity| order.iter().position(|card| card.is(identity));
        let (mut kept, mut hidden) = (Vec::new(), self.hidden);
        let mut slots = Vec::new();
        for (slot, (adapter, identity)) in nvidia {
            match place(&identity) {
                Some(place) => {
                    slots.push(slot);
                    kept.push((place, (adapter, identity)));
                }
                None => hidden.push(format!("{}: hidden by {}", adapter.get_info().name, visible.told())),
            }
        }
        sorted::sort_by_key(&mut kept, |(place, _)| *place);
        let kept = slots.into_iter().zip(kept.into_iter().map(|(_, adapter)| adapter));
        let mut seen: Vec<_> = others.into_iter().chain(kept).collect();
        sorted::sort_by_key(&mut seen, |(slot, _)| *slot);
        Adapters { seen: seen.into_iter().map(|(_, adapter)| adapter).collect(), hidden, ..self }
    }
}

/// Which card an adapter is.
pub(super) fn identity(adapter: &wgpu::Adapter) -> Identity {
    identified(adapter, &described(adapter))
}

fn identified(adapter: &wgpu::Adapter, described: &Described) -> Identity {
    Identity { pci: adapter.get_info().device_pci_bus_id.parse().ok(), uuid: described.uuid }
}

/// What Vulkan says of an adapter and wgpu's description leaves out.
#[derive(Default)]
struct Described {
    uuid: Option<DeviceUuid>,
    /// The version of the conformance tests that the driver passed is 0. MoltenVK's is, and is taken all the same.
    not_conformant: bool,
}

#[cfg(not(any(target_family = "wasm", target_vendor = "apple")))]
fn described(adapter: &wgpu::Adapter) -> Described {
    use ash::vk;
    // SAFETY: nothing is destroyed; the handles are used while the guard holds the adapter.
    let Some(vulkan) = (unsafe { adapter.as_hal::<wgpu::hal::api::Vulkan>() }) else {
        return Described::default();
    };
    let (shared, device) = (vulkan.shared_instance(), vulkan.raw_physical_device());
    let instance = shared.raw_instance();
    if shared.instance_api_version() < vk::API_VERSION_1_1 {
        return Described::default();
    }
    // SAFETY: the device is of this instance.
    let version = unsafe { instance.get_physical_device_properties(device) }.api_version;
    let mut id = vk::PhysicalDeviceIDProperties::default();
    let mut driver = vk::PhysicalDeviceDriverProperties::default();
    let tells = version >= vk::API_VERSION_1_2
        || vulkan.physical_device_capabilities().supports_extension(ash::khr::driver_properties::NAME);
    let identified = version >= vk::API_VERSION_1_1;
    let mut properties = vk::PhysicalDeviceProperties2::default();
    if identified {
        properties = properties.push_next(&mut id);
    }
    if tells {
        properties = properties.push_next(&mut driver);
    }
    // SAFETY: the device is of this instance, which knows Vulkan 1.1, and knows these structures.
    unsafe { instance.get_physical_device_properties2(device, &mut properties) };
    let passed = driver.conformance_version.major > 0 || driver.driver_id == vk::DriverId::MOLTENVK;
    Described { uuid: identified.then_some(DeviceUuid(id.device_uuid)), not_conformant: tells && !passed }
}

#[cfg(any(target_family = "wasm", target_vendor = "apple"))]
fn described(_: &wgpu::Adapter) -> Described {
    Described::default()
}

/// Whether it runs compute shaders.
pub(super) fn has_compute(adapter: &wgpu::Adapter) -> bool {
    adapter.get_downlevel_capabilities().flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS)
}
