//! Faults for `scripts/validate`: that the layers report them proves that what they find is seen.
#![cfg(all(feature = "wgpu", not(target_vendor = "apple")))]

use crate::machine::contexts;
use ash::vk;
use diptych::Backend;
use diptych::wgpu::{BufferDescriptor, BufferUsages, hal::api::Vulkan};

const BYTES: u64 = 64;

/// A buffer of no bytes; copies to the same bytes with nothing between them, in one list of commands and in two that
/// are submitted one after the other.
#[test]
#[ignore = "it is wrong: only for `scripts/validate`"]
fn planted_faults_are_reported() {
    let context = contexts(&[Backend::Wgpu]).pop().expect("a Vulkan device");
    let (device, _) = context.wgpu().expect("a device of wgpu's");
    let buffer = |usage| {
        let (label, size, mapped_at_creation) = (None, BYTES, false);
        device.create_buffer(&BufferDescriptor { label, size, usage, mapped_at_creation })
    };
    let (from, to) = (buffer(BufferUsages::COPY_SRC), buffer(BufferUsages::COPY_DST));
    // SAFETY: the device and the buffers outlive the commands, which are waited for; no other thread uses the queue.
    unsafe {
        let hal = device.as_hal::<Vulkan>().expect("Vulkan");
        let raw = hal.raw_device();
        let empty = vk::BufferCreateInfo::default().usage(vk::BufferUsageFlags::TRANSFER_DST);
        if let Ok(empty) = raw.create_buffer(&empty, None) {
            raw.destroy_buffer(empty, None);
        }
        let from = from.as_hal::<Vulkan>().expect("Vulkan").raw_handle();
        let to = to.as_hal::<Vulkan>().expect("Vulkan").raw_handle();
        let pool = vk::CommandPoolCreateInfo::default().queue_family_index(hal.queue_family_index());
        let pool = raw.create_command_pool(&pool, None).expect("a pool");
        let lists = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(2);
        let lists = raw.allocate_command_buffers(&lists).expect("two lists");
        for (&list, copies) in lists.iter().zip([2, 1]) {
            raw.begin_command_buffer(list, &vk::CommandBufferBeginInfo::default()).expect("begun");
            for _ in 0..copies {
                raw.cmd_copy_buffer(list, from, to, &[vk::BufferCopy::default().size(BYTES)]);
            }
            raw.end_command_buffer(list).expect("ended");
        }
        for list in lists {
            let submitted = [vk::SubmitInfo::default().command_buffers(std::slice::from_ref(&list))];
            raw.queue_submit(hal.raw_queue(), &submitted, vk::Fence::null()).expect("submitted");
        }
        raw.queue_wait_idle(hal.raw_queue()).expect("done");
        raw.destroy_command_pool(pool, None);
    }
}
