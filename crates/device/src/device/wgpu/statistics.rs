//! What Vulkan's drivers say of the kernels that they compile: `VK_KHR_pipeline_executable_properties`.
//!
//! wgpu neither asks for the extension nor for a pipeline's statistics. So a device that is opened for reports is made
//! here, as wgpu makes its own but with the extension, and wgpu is given it with another `vkCreateComputePipelines`: one
//! that asks the driver to keep the statistics, and reads them as soon as there is a pipeline. All else is wgpu's, and so
//! the driver is given the very SPIR-V that a session's kernels are.

use crate::device::lock;
use crate::device::report::{CompiledProgram, Statistic};
use ash::khr::pipeline_executable_properties as properties;
use ash::vk::{self, Handle};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;

/// The extension, as a report calls it.
pub(super) const MEANS: &str = "VK_KHR_pipeline_executable_properties";

/// What a device's pipelines are made and asked with.
#[derive(Clone)]
struct Functions {
    create: vk::PFN_vkCreateComputePipelines,
    asked: properties::Device,
}

/// The functions of the devices that were opened here. A driver may use a handle again, and then its entry is replaced.
static DEVICES: Mutex<BTreeMap<u64, Functions>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// What was said of the pipeline that this thread made last.
    static SAID: RefCell<Vec<CompiledProgram>> = const { RefCell::new(Vec::new()) };
}

/// What the driver said of the pipeline that this thread made last, on any device that tells; nothing, the next time.
pub(super) fn said() -> Vec<CompiledProgram> {
    SAID.take()
}

/// Opens a device of `adapter` that tells; `None` if its driver does not.
///
/// # Errors
/// If the driver fails.
pub(super) fn request(
    adapter: &wgpu::Adapter,
    descriptor: &wgpu::DeviceDescriptor<'_>,
) -> Option<Result<(wgpu::Device, wgpu::Queue), String>> {
    // SAFETY: nothing of the adapter is destroyed, and what is made of it here is given to wgpu.
    let vulkan = unsafe { adapter.as_hal::<wgpu::hal::api::Vulkan>() }?;
    if !vulkan.physical_device_capabilities().supports_extension(properties::NAME) {
        return None;
    }
    let (instance, physical) = (vulkan.shared_instance().raw_instance(), vulkan.raw_physical_device());
    let features = descriptor.required_features;
    let mut extensions = vulkan.required_device_extensions(features);
    let mut enabled = vulkan.physical_device_features(&extensions, features);
    extensions.push(properties::NAME);
    let names: Vec<*const c_char> = extensions.iter().map(|name| name.as_ptr()).collect();
    let mut wanted =
        vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default().pipeline_executable_info(true);
    // The queue that wgpu takes.
    let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(0).queue_priorities(&[1.0])];
    let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_extension_names(&names);
    let info = enabled.add_to_device_create(info).push_next(&mut wanted);
    let failed = |call: &str, error: &dyn std::fmt::Display| Some(Err(format!("{call}: {error}")));
    // SAFETY: the physical device is of this instance, and the structures live until the call is over.
    let device = match unsafe { instance.create_device(physical, &info, None) } {
        Ok(device) => device,
        Err(error) => return failed("vkCreateDevice", &error),
    };
    let functions = Functions {
        create: device.fp_v1_0().create_compute_pipelines,
        asked: properties::Device::new(instance, &device),
    };
    lock(&DEVICES).insert(device.handle().as_raw(), functions);
    // SAFETY: the functions are this device's, but for one that has the same type and calls the device's.
    let told = unsafe {
        ash::Device::load_with(
            |name: &CStr| {
                if name == c"vkCreateComputePipelines" {
                    create as vk::PFN_vkCreateComputePipelines as *const c_void
                } else {
                    let found = (instance.fp_v1_0().get_device_proc_addr)(device.handle(), name.as_ptr());
                    found.map_or(std::ptr::null(), |function| function as *const c_void)
                }
            },
            device.handle(),
        )
    };
    let (limits, hints) = (&descriptor.required_limits, &descriptor.memory_hints);
    // SAFETY: the device is of this adapter, has the queue 0 of family 0, the features that wgpu enables and its
    // extensions with one more; wgpu destroys it. Test: `a_driver_is_asked_for_its_statistics`.
    let open = unsafe { vulkan.device_from_raw(told, None, &extensions, features, limits, hints, 0, 0) };
    let open = match open {
        Ok(open) => open,
        Err(error) => return failed("device_from_raw", &error),
    };
    // SAFETY: it was made from this adapter, with the features of the descriptor.
    let made = unsafe { adapter.create_device_from_hal::<wgpu::hal::api::Vulkan>(open, descriptor) };
    Some(made.map_err(|error| error.to_string()))
}

/// `vkCreateComputePipelines` of a device that tells.
///
/// # Safety
/// That of the function whose place it has.
unsafe extern "system" fn create(
    device: vk::Device,
    _cache: vk::PipelineCache,
    count: u32,
    infos: *const vk::ComputePipelineCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    made: *mut vk::Pipeline,
) -> vk::Result {
    let Some(functions) = lock(&DEVICES).get(&device.as_raw()).cloned() else {
        return vk::Result::ERROR_UNKNOWN;
    };
    // SAFETY: the caller has as many as it says.
    let mut infos = unsafe { std::slice::from_raw_parts(infos, count as usize) }.to_vec();
    for info in &mut infos {
        info.flags |= vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR;
    }
    // SAFETY: as the caller was told, with another flag that the device's feature allows, and without a cache, from which a
    // pipeline may come without statistics.
    let result = unsafe {
        (functions.create)(device, vk::PipelineCache::null(), count, infos.as_ptr(), allocator, made)
    };
    if result == vk::Result::SUCCESS {
        // SAFETY: the driver wrote as many.
        let made = unsafe { std::slice::from_raw_parts(made, count as usize) };
        // SAFETY: they are live pipelines of this device, made so that they tell.
        let programs = made.iter().flat_map(|pipeline| unsafe { ask(&functions.asked, *pipeline) }).collect();
        SAID.set(programs);
    }
    result
}

/// What the driver says of a pipeline: nothing where it fails.
///
/// # Safety
/// `pipeline` is live, of the device of `asked`, and was made with `CAPTURE_STATISTICS_KHR`.
unsafe fn ask(asked: &properties::Device, pipeline: vk::Pipeline) -> Vec<CompiledProgram> {
    let info = vk::PipelineInfoKHR::default().pipeline(pipeline);
    // SAFETY: promised by the caller.
    let executables = unsafe { asked.get_pipeline_executable_properties(&info) }.unwrap_or_default();
    let programs = executables.iter().enumerate().map(|(index, executable)| {
        let info = vk::PipelineExecutableInfoKHR::default().pipeline(pipeline).executable_index(index as u32);
        // SAFETY: promised by the caller, and the index is one of those that the driver counted.
        let statistics = unsafe { asked.get_pipeline_executable_statistics(&info) }.unwrap_or_default();
        CompiledProgram {
            name: text(&executable.name),
            subgroup: executable.subgroup_size,
            statistics: statistics.iter().map(statistic).collect(),
        }
    });
    programs.collect()
}

fn statistic(found: &vk::PipelineExecutableStatisticKHR<'_>) -> Statistic {
    use vk::PipelineExecutableStatisticFormatKHR as Format;
    // SAFETY: the format says which member was written, and numbers of 64 bits hold any bits. A driver that gives another
    // format than these four wrote 64 bits as well.
    let value = unsafe {
        match found.format {
            Format::BOOL32 => f64::from(u8::from(found.value.b32 != vk::FALSE)),
            Format::INT64 => found.value.i64 as f64,
            Format::FLOAT64 => found.value.f64,
            _ => told(&text(&found.name), found.value.u64) as f64,
        }
    };
    Statistic { name: text(&found.name), description: text(&found.description), value }
}

/// A number as a driver means it. NVIDIA's (580.159) writes 16 to the upper half of the bytes of local memory that an invocation takes.
fn told(name: &str, value: u64) -> u64 {
    if name == "Local Memory Size" { value & u64::from(u32::MAX) } else { value }
}

/// The text of an array of letters that ends with a zero.
fn text<const N: usize>(letters: &[c_char; N]) -> String {
    let bytes: &[u8] = bytemuck::cast_slice(letters);
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_local_memory_are_the_lower_half() {
        assert_eq!(told("Local Memory Size", 68_719_476_736), 0);
        assert_eq!(told("Local Memory Size", 68_719_476_848), 112);
        assert_eq!(told("Binary Size", 68_719_476_848), 68_719_476_848);
    }
}
