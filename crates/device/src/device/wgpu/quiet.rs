//! Listing devices without what Vulkan's layers print.
//!
//! Mesa's layer `VK_LAYER_MESA_device_select` asks a Wayland compositor which GPU it uses, whenever an instance has the
//! extension for its windows, which wgpu's always has. Without `XDG_RUNTIME_DIR`, as in containers and services, there is no
//! compositor to ask, and libwayland prints "error: XDG_RUNTIME_DIR is invalid or not set in the environment." to stderr at
//! each listing. There an instance of our own lists them, which has no such extension. Nothing of the process is changed.

use wgpu::hal::Instance as _;
use wgpu::hal::api::Vulkan;
use wgpu::hal::vulkan::{CreateInstanceCallbackArgs, Instance};

/// The extension with which the layer asks.
const WAYLAND: &std::ffi::CStr = c"VK_KHR_wayland_surface";

/// An instance without it.
pub(super) struct Quiet(Instance);

impl Quiet {
    /// One like that of `descriptor`, where no part of the process can have a compositor.
    pub(super) fn where_there_is_no_compositor(descriptor: &wgpu::InstanceDescriptor) -> Option<Self> {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let has_compositor = ["XDG_RUNTIME_DIR", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"].into_iter().any(set);
        if has_compositor || !descriptor.backends.contains(wgpu::Backends::VULKAN) {
            return None;
        }
        let own = wgpu::hal::InstanceDescriptor {
            name: "diptych",
            flags: descriptor.flags,
            memory_budget_thresholds: descriptor.memory_budget_thresholds,
            backend_options: descriptor.backend_options.clone(),
            telemetry: None,
            display: None,
        };
        let without = |arguments: CreateInstanceCallbackArgs<'_, '_, '_>| {
            arguments.extensions.retain(|name| *name != WAYLAND);
        };
        // SAFETY: no window is made with this instance, and wgpu looks whether it has the extension before it uses it for
        // one. Nothing else is changed. Test: `devices_are_those_of_wgpus_own_instance`.
        let instance = unsafe { Instance::init_with_callback(&own, Some(Box::new(without))) };
        instance.map(Quiet).inspect_err(|error| tracing::debug!("{error}")).ok()
    }

    /// The adapters, as those of `instance`.
    pub(super) fn adapters(&self, instance: &wgpu::Instance) -> Vec<wgpu::Adapter> {
        // SAFETY: the instance lives as long as the process. Test: as above.
        let found = unsafe { self.0.enumerate_adapters(None) };
        // SAFETY: the adapters are of an instance of the same library, as it makes them for itself.
        found.into_iter().map(|found| unsafe { instance.create_adapter_from_hal::<Vulkan>(found) }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_those_of_wgpus_own_instance() {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::VULKAN;
        let quiet = Quiet::where_there_is_no_compositor(&descriptor);
        let instance = wgpu::Instance::new(descriptor);
        let Some(quiet) = quiet else { return println!("skipped: there is a compositor, or no Vulkan") };
        let names = |adapters: Vec<wgpu::Adapter>| -> Vec<String> {
            adapters.iter().map(|adapter| format!("{:?}", adapter.get_info())).collect()
        };
        let own = names(quiet.adapters(&instance));
        assert_eq!(own, names(crate::task::block_on(instance.enumerate_adapters(wgpu::Backends::VULKAN))));
    }
}
