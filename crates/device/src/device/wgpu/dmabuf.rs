//! Memory of a camera or a decoder as buffers and textures: dma-bufs of Linux, imported through Vulkan
//! (`VK_EXT_external_memory_dma_buf`, `VK_EXT_image_drm_format_modifier`).
//!
//! wgpu 30 imports textures; a buffer is made here with the same functions of Vulkan and handed to wgpu, which frees it with its
//! memory.

use super::WgpuDevice;
use crate::device::dmabuf::{WHAT, check, lengths};
use crate::error::{Error, Result};
use ash::{ext, khr, vk};
use std::ffi::CStr;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, IntoRawFd as _, OwnedFd};
use wgpu::hal::api::Vulkan;

/// A texture of a dma-buf's.
pub struct ImportedTexture {
    pub size: [u32; 2],
    pub format: wgpu::TextureFormat,
    pub offset: u64,
    pub stride: u64,
    pub modifier: u64,
}

/// The error of a function of Vulkan.
fn failed(call: &'static str) -> impl Fn(vk::Result) -> Error {
    move |result| match result {
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY => {
            Error::OutOfMemory { api: "Vulkan", call, message: result.to_string() }
        }
        _ => Error::Driver { api: "Vulkan", call, message: result.to_string() },
    }
}

impl WgpuDevice {
    /// A buffer of the first `bytes` bytes of a dma-buf, in whole words, with usage `STORAGE`, `COPY_SRC` and `COPY_DST`.
    pub fn import_buffer(&self, fd: BorrowedFd<'_>, bytes: u64) -> Result<wgpu::Buffer> {
        self.import_buffer_as(fd, bytes, vk::ExternalMemoryHandleTypeFlags::DMA_BUF_EXT)
    }

    /// A buffer of the first `bytes` bytes of the memory that `fd`, a handle of kind `kind`, stands for: in whole words, with usage
    /// `STORAGE`, `COPY_SRC` and `COPY_DST`.
    fn import_buffer_as(
        &self,
        fd: BorrowedFd<'_>,
        bytes: u64,
        kind: vk::ExternalMemoryHandleTypeFlags,
    ) -> Result<wgpu::Buffer> {
        if kind == vk::ExternalMemoryHandleTypeFlags::DMA_BUF_EXT {
            check(fd)?;
        }
        let (size, length) = lengths(fd, bytes)?;
        // SAFETY: nothing is destroyed through the handle but what is made here.
        let hal = unsafe { self.inner.device.as_hal::<Vulkan>() };
        let hal = hal.ok_or_else(|| Error::unsupported(WHAT, "the device is not one of Vulkan"))?;
        let mut wanted = vec![khr::external_memory_fd::NAME];
        if kind == vk::ExternalMemoryHandleTypeFlags::DMA_BUF_EXT {
            wanted.push(ext::external_memory_dma_buf::NAME);
        }
        let enabled = hal.enabled_device_extensions();
        if let Some(missing) = wanted.iter().find(|name| !enabled.contains(*name)) {
            return Err(lacks(self, missing));
        }
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST;
        let (device, instance) = (hal.raw_device(), hal.shared_instance().raw_instance());
        let asked = vk::PhysicalDeviceExternalBufferInfo::default().usage(usage).handle_type(kind);
        let mut told = vk::ExternalBufferProperties::default();
        let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(kind);
        let info = vk::BufferCreateInfo::default().size(size).usage(usage).push_next(&mut external);
        // SAFETY: the extensions are enabled on this device, whose instance and physical device these are; the buffer is
        // destroyed below, or with the memory by wgpu. Test: `memory_of_a_file_is_a_buffer`.
        let buffer = unsafe {
            instance.get_physical_device_external_buffer_properties(
                hal.raw_physical_device(),
                &asked,
                &mut told,
            );
            let features = told.external_memory_properties.external_memory_features;
            if !features.contains(vk::ExternalMemoryFeatureFlags::IMPORTABLE) {
                let why = format!("{} imports none as a storage buffer", self.inner.info);
                return Err(Error::unsupported(WHAT, why));
            }
            device.create_buffer(&info, None).map_err(failed("vkCreateBuffer"))?
        };
        let memory =
            import(device, &khr::external_memory_fd::Device::new(instance, device), fd, buffer, kind, length);
        let memory = memory.inspect_err(|_| {
            // SAFETY: it was made above, and nothing else knows it.
            unsafe { device.destroy_buffer(buffer, None) };
        })?;
        // SAFETY: the buffer is of this device and bound to all of this memory, and both are wgpu's from here on. What the
        // file holds is data that was written, as far as Vulkan knows. Test: as above.
        unsafe {
            let raw = wgpu::hal::vulkan::Buffer::from_raw_managed(buffer, memory, 0, size);
            drop(hal);
            Ok(self.inner.device.create_buffer_from_hal::<Vulkan>(
                raw,
                &wgpu::BufferDescriptor {
                    label: Some(WHAT),
                    size,
                    usage: wgpu::BufferUsages::STORAGE
                        | wgpu::BufferUsages::COPY_SRC
                        | wgpu::BufferUsages::COPY_DST,
                    mapped_at_creation: false,
                },
            ))
        }
    }

    /// A texture of a dma-buf, to be read by shaders.
    ///
    /// # Safety
    /// The file's memory has a texture of this extent, format and modifier there.
    pub unsafe fn import_texture(&self, fd: OwnedFd, texture: &ImportedTexture) -> Result<wgpu::Texture> {
        check(fd.as_fd())?;
        let ImportedTexture { size: [width, height], format, offset, stride, modifier } = *texture;
        let needed = wgpu::Features::VULKAN_EXTERNAL_MEMORY_DMA_BUF;
        // SAFETY: nothing is destroyed through the handle.
        let hal = unsafe { self.inner.device.as_hal::<Vulkan>() };
        let hal = hal.ok_or_else(|| Error::unsupported(WHAT, "the device is not one of Vulkan"))?;
        if !self.inner.features.contains(needed) {
            return Err(lacks(self, ext::image_drm_format_modifier::NAME));
        }
        let extent = wgpu::Extent3d { width, height, depth_or_array_layers: 1 };
        let descriptor = wgpu::hal::TextureDescriptor {
            label: Some(WHAT),
            size: extent,
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format,
            usage: wgpu::TextureUses::RESOURCE,
            memory_flags: wgpu::hal::MemoryFlags::empty(),
            view_formats: Vec::new(),
        };
        // SAFETY: the feature is enabled, and the rest is the caller's promise. The memory has contents, so that its layout
        // is one in which they are kept.
        unsafe {
            let raw = hal.texture_from_dmabuf_fd(fd, &descriptor, modifier, stride, offset);
            let raw = raw.map_err(|error| {
                let what =
                    format!("a {format:?} texture of {width} x {height} texels, modifier {modifier:#x}");
                Error::unsupported(format!("{WHAT} as {what}"), format!("the driver refused: {error}"))
            })?;
            drop(hal);
            Ok(self.inner.device.create_texture_from_hal::<Vulkan>(
                raw,
                &wgpu::TextureDescriptor {
                    label: Some(WHAT),
                    size: extent,
                    mip_level_count: 1,
                    sample_count: 1,
                    dimension: wgpu::TextureDimension::D2,
                    format,
                    usage: wgpu::TextureUsages::TEXTURE_BINDING,
                    view_formats: &[],
                },
                wgpu::TextureUses::RESOURCE,
            ))
        }
    }
}

fn lacks(device: &WgpuDevice, extension: &CStr) -> Error {
    let name = extension.to_string_lossy();
    let why = format!(
        "{} was opened without {name}: its driver lacks it, or the application that opened the device did not ask for it",
        device.inner.info
    );
    Error::unsupported(WHAT, why)
}

/// The memory of a file, bound to a buffer.
fn import(
    device: &ash::Device,
    functions: &khr::external_memory_fd::Device,
    fd: BorrowedFd<'_>,
    buffer: vk::Buffer,
    kind: vk::ExternalMemoryHandleTypeFlags,
    length: u64,
) -> Result<vk::DeviceMemory> {
    // SAFETY: the buffer is of this device.
    let needed = unsafe { device.get_buffer_memory_requirements(buffer) };
    if needed.size > length {
        let found = format!("one of {length} bytes");
        return Err(Error::input(
            WHAT,
            found,
            format!("{}, which the driver needs for the buffer", needed.size),
        ));
    }
    let mut types = needed.memory_type_bits;
    if kind == vk::ExternalMemoryHandleTypeFlags::DMA_BUF_EXT {
        let mut told = vk::MemoryFdPropertiesKHR::default();
        // SAFETY: the extension is enabled, and the file is open while it is borrowed.
        unsafe { functions.get_memory_fd_properties(kind, fd.as_raw_fd(), &mut told) }
            .map_err(failed("vkGetMemoryFdPropertiesKHR"))?;
        types &= told.memory_type_bits;
    }
    if types == 0 {
        return Err(Error::unsupported(
            WHAT,
            "the driver has no type of memory for both the file and a buffer",
        ));
    }
    let own = fd.try_clone_to_owned();
    let own = own.map_err(|error| Error::input(WHAT, error.to_string(), "a file descriptor more"))?;
    let mut imported = vk::ImportMemoryFdInfoKHR::default().handle_type(kind).fd(own.as_raw_fd());
    let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(buffer);
    let dmabuf = kind == vk::ExternalMemoryHandleTypeFlags::DMA_BUF_EXT;
    let mut info = vk::MemoryAllocateInfo::default()
        .allocation_size(needed.size)
        .memory_type_index(types.trailing_zeros())
        .push_next(&mut imported);
    if dmabuf {
        info = info.push_next(&mut dedicated);
    }
    // SAFETY: the type is one of both, and the file has so many bytes. Vulkan owns the descriptor once this succeeds.
    let memory = unsafe { device.allocate_memory(&info, None) }.map_err(failed("vkAllocateMemory"))?;
    let _ = own.into_raw_fd();
    // SAFETY: the memory has as many bytes as the buffer needs.
    let bound = unsafe { device.bind_buffer_memory(buffer, memory, 0) }.map_err(failed("vkBindBufferMemory"));
    bound.inspect_err(|_| {
        // SAFETY: it was made above, and nothing else knows it.
        unsafe { device.free_memory(memory, None) };
    })?;
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device as _;
    use std::os::fd::FromRawFd as _;

    /// Memory that the driver itself gives as a file, with these bytes in it; nothing, if it gives none of the kind.
    fn exported(
        device: &WgpuDevice,
        bytes: &[u8],
        kind: vk::ExternalMemoryHandleTypeFlags,
    ) -> Option<OwnedFd> {
        // SAFETY: what is made here is not wgpu's; the memory lives as long as the file.
        unsafe {
            let hal = device.inner.device.as_hal::<Vulkan>()?;
            let (raw, instance) = (hal.raw_device(), hal.shared_instance().raw_instance());
            let enabled = hal.enabled_device_extensions();
            let dmabuf = kind == vk::ExternalMemoryHandleTypeFlags::DMA_BUF_EXT;
            if !enabled.contains(&khr::external_memory_fd::NAME)
                || dmabuf && !enabled.contains(&ext::external_memory_dma_buf::NAME)
            {
                return None;
            }
            let usage = vk::BufferUsageFlags::STORAGE_BUFFER
                | vk::BufferUsageFlags::TRANSFER_SRC
                | vk::BufferUsageFlags::TRANSFER_DST;
            let asked = vk::PhysicalDeviceExternalBufferInfo::default().usage(usage).handle_type(kind);
            let mut told = vk::ExternalBufferProperties::default();
            instance.get_physical_device_external_buffer_properties(
                hal.raw_physical_device(),
                &asked,
                &mut told,
            );
            let features = told.external_memory_properties.external_memory_features;
            if !features.contains(vk::ExternalMemoryFeatureFlags::EXPORTABLE) {
                return None;
            }
            let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(kind);
            let info = vk::BufferCreateInfo::default()
                .size(bytes.len() as u64)
                .usage(usage)
                .push_next(&mut external);
            let buffer = raw.create_buffer(&info, None).expect("a buffer");
            let needed = raw.get_buffer_memory_requirements(buffer);
            let properties = instance.get_physical_device_memory_properties(hal.raw_physical_device());
            let visible = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
            let ty = properties.memory_types_as_slice().iter().enumerate().position(|(index, ty)| {
                needed.memory_type_bits & (1 << index) != 0 && ty.property_flags.contains(visible)
            })?;
            let mut export = vk::ExportMemoryAllocateInfo::default().handle_types(kind);
            let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(buffer);
            let info = vk::MemoryAllocateInfo::default()
                .allocation_size(needed.size)
                .memory_type_index(ty as u32)
                .push_next(&mut export);
            let info = if dmabuf { info.push_next(&mut dedicated) } else { info };
            let memory = raw.allocate_memory(&info, None).expect("memory");
            let place =
                raw.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()).expect("mapped");
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place.cast::<u8>(), bytes.len());
            raw.unmap_memory(memory);
            let functions = khr::external_memory_fd::Device::new(instance, raw);
            let info = vk::MemoryGetFdInfoKHR::default().memory(memory).handle_type(kind);
            let file = functions.get_memory_fd(&info).expect("a file");
            raw.destroy_buffer(buffer, None);
            raw.free_memory(memory, None);
            Some(OwnedFd::from_raw_fd(file))
        }
    }

    fn devices() -> Option<WgpuDevice> {
        let opened = WgpuDevice::open(None);
        if let Err(error) = &opened {
            assert!(std::env::var_os("DIPTYCH_REQUIRE_DEVICES").is_none(), "{error}");
        }
        opened.ok()
    }

    /// The driver's own export, as a dma-buf where it has those, else as a file that only it knows.
    #[test]
    fn memory_of_a_file_is_a_buffer() {
        let Some(device) = devices() else { return };
        let bytes: Vec<u8> = (0..8192).map(|at| (at % 251) as u8).collect();
        let mut tried = 0;
        for kind in
            [vk::ExternalMemoryHandleTypeFlags::DMA_BUF_EXT, vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD]
        {
            let Some(file) = exported(&device, &bytes, kind) else {
                println!("{} exports no {kind:?}", device.info());
                continue;
            };
            tried += 1;
            let wanted = bytes.len() as u64;
            let buffer = device.import_buffer_as(file.as_fd(), wanted, kind).expect("an import");
            drop(file);
            let own = device.adopt(&buffer).buffer;
            assert!(device.read(&own.whole()).expect("a read") == bytes, "{kind:?}");
            drop(buffer);
        }
        let wanted = std::env::var_os("DIPTYCH_REQUIRE_DEVICES").is_some();
        assert!(tried > 0 || !wanted, "{} exports no memory", device.info());
    }

    #[test]
    fn what_is_no_dmabuf_is_refused() {
        let Some(device) = devices() else { return };
        let file = tempfile::tempfile().expect("a file");
        file.set_len(4096).expect("a length");
        let error = device.import_buffer(file.as_fd(), 4096).expect_err("no dma-buf").to_string();
        assert!(error.contains("which is none, wanted a dma-buf"), "{error}");
    }
}
