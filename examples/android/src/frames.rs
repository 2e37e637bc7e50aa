//! Frames as textures of wgpu: hardware buffers by way of Vulkan (`VK_ANDROID_external_memory_android_hardware_buffer`),
//! which the GPU reads where they lie, or bytes that are uploaded.
//!
//! A hardware buffer needs a format that Vulkan has: `RGBA_8888`. A camera's own buffers have formats of the vendor, which only
//! a sampler with a conversion of colours reads, and wgpu has none. An application lets the camera draw into a
//! `SurfaceTexture`, and draws that into the `Surface` of an `ImageReader` of `RGBA_8888`: both on the GPU.

use anyhow::{Context as _, Result, bail, ensure};
use ash::{android, vk};
use diptych::{Context, wgpu};
use ndk::hardware_buffer::{HardwareBuffer, HardwareBufferRef};
use ndk::hardware_buffer_format::HardwareBufferFormat;
use std::ffi::CStr;
use wgpu::hal::api::Vulkan;

/// What wgpu's device needs for hardware buffers, beside what every Vulkan 1.1 has.
const EXTENSIONS: [&CStr; 2] =
    [android::external_memory_android_hardware_buffer::NAME, ash::ext::queue_family_foreign::NAME];

/// The most hardware buffers that are kept as textures: those of an `ImageReader` come again.
const KEPT: usize = 8;

/// A camera's frame.
pub enum Frame<'a> {
    /// In memory that the GPU shares.
    Shared(&'a HardwareBuffer),
    /// Four bytes a pixel, red first, width and height, and the bytes from one row to the next.
    Bytes { bytes: &'a [u8], size: [u32; 2], stride: u32 },
}

/// A frame as a texture.
pub struct Texture {
    view: wgpu::TextureView,
    size: [u32; 2],
    /// The image of a hardware buffer, which belongs to the GPU during a run only.
    image: Option<vk::Image>,
}

impl Texture {
    pub fn view(&self) -> &wgpu::TextureView {
        &self.view
    }

    pub fn size(&self) -> [u32; 2] {
        self.size
    }
}

/// A hardware buffer that is a texture.
struct Imported {
    buffer: HardwareBufferRef,
    image: vk::Image,
    texture: wgpu::Texture,
}

/// wgpu's device, and the textures of its frames.
pub struct Frames {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    /// The extension's functions, if the device has it.
    hardware: Result<android::external_memory_android_hardware_buffer::Device, String>,
    imported: Vec<Imported>,
    uploaded: Option<wgpu::Texture>,
}

impl Frames {
    /// Opens the first GPU that Vulkan has, with what Diptych wants, and for hardware buffers if it can.
    pub fn open() -> Result<(wgpu::Adapter, Self)> {
        let mut wanted = wgpu::InstanceDescriptor::new_without_display_handle();
        wanted.backends = wgpu::Backends::VULKAN;
        let instance = wgpu::Instance::new(wanted);
        let options = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..Default::default()
        };
        let adapter = pollster::block_on(instance.request_adapter(&options)).context("no Vulkan device")?;
        let (required_features, required_limits) = Context::wgpu_requirements(&adapter);
        let wanted = wgpu::DeviceDescriptor {
            required_features,
            required_limits,
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue, hardware) = match with_extensions(&adapter, &wanted)? {
            Ok((device, queue, functions)) => (device, queue, Ok(functions)),
            Err(lacks) => {
                let (device, queue) = pollster::block_on(adapter.request_device(&wanted))?;
                (device, queue, Err(lacks))
            }
        };
        Ok((adapter, Frames { device, queue, hardware, imported: Vec::new(), uploaded: None }))
    }

    /// Why hardware buffers are refused, if they are.
    pub fn lacks(&self) -> Option<&str> {
        self.hardware.as_ref().err().map(String::as_str)
    }

    /// A frame as a texture.
    pub fn texture(&mut self, frame: Frame<'_>) -> Result<Texture> {
        match frame {
            Frame::Shared(buffer) => self.shared(buffer),
            Frame::Bytes { bytes, size, stride } => self.uploaded(bytes, size, stride),
        }
    }

    fn uploaded(&mut self, bytes: &[u8], [width, height]: [u32; 2], stride: u32) -> Result<Texture> {
        let extent = wgpu::Extent3d { width, height, depth_or_array_layers: 1 };
        let wanted = u64::from(stride) * u64::from(height.saturating_sub(1)) + 4 * u64::from(width);
        ensure!(
            bytes.len() as u64 >= wanted && u64::from(stride) >= 4 * u64::from(width),
            "{} bytes, {stride} a row, wanted {wanted} for {width} x {height} pixels",
            bytes.len()
        );
        if self.uploaded.as_ref().is_none_or(|texture| texture.size() != extent) {
            let usage = wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::COPY_DST;
            self.uploaded = Some(self.device.create_texture(&descriptor(extent, usage)));
        }
        let texture = self.uploaded.as_ref().context("a texture")?;
        let layout = wgpu::TexelCopyBufferLayout {
            offset: 0,
            bytes_per_row: Some(stride),
            rows_per_image: Some(height),
        };
        self.queue.write_texture(texture.as_image_copy(), bytes, layout, extent);
        let view = texture.create_view(&wgpu::TextureViewDescriptor::default());
        Ok(Texture { view, size: [width, height], image: None })
    }

    fn shared(&mut self, buffer: &HardwareBuffer) -> Result<Texture> {
        let functions = match &self.hardware {
            Ok(functions) => functions,
            Err(lacks) => bail!("hardware buffers cannot be read: {lacks}"),
        };
        let found = self.imported.iter().position(|own| own.buffer.as_ptr() == buffer.as_ptr());
        let imported = match found {
            Some(place) => self.imported.remove(place),
            None => {
                if self.imported.len() >= KEPT {
                    self.imported.remove(0);
                }
                import(&self.device, functions, buffer)?
            }
        };
        let view = imported.texture.create_view(&wgpu::TextureViewDescriptor::default());
        let size = [imported.texture.width(), imported.texture.height()];
        let image = Some(imported.image);
        // The last used one is the last to be forgotten.
        self.imported.push(imported);
        Ok(Texture { view, size, image })
    }

    /// Submits commands that read a texture. A hardware buffer belongs to the GPU's queue while they run.
    pub fn submit(&self, texture: &Texture, commands: wgpu::CommandBuffer) -> Result<()> {
        let Some(image) = texture.image else {
            self.queue.submit([commands]);
            return Ok(());
        };
        let read = vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL;
        // Nobody has told Vulkan's layout of what others wrote.
        let taken = self.transfer(image, [vk::ImageLayout::UNDEFINED, read], true)?;
        let given = self.transfer(image, [read, vk::ImageLayout::GENERAL], false)?;
        self.queue.submit([taken, commands, given]);
        Ok(())
    }

    /// Commands that take an image from what is no Vulkan device, or give it back.
    fn transfer(
        &self,
        image: vk::Image,
        [old, new]: [vk::ImageLayout; 2],
        takes: bool,
    ) -> Result<wgpu::CommandBuffer> {
        // SAFETY: the guard is dropped before the device is, and nothing of it is destroyed.
        let own = unsafe { self.device.as_hal::<Vulkan>() }.context("no Vulkan device")?;
        let families = [vk::QUEUE_FAMILY_FOREIGN_EXT, own.queue_family_index()];
        let [from, to] = if takes { families } else { [families[1], families[0]] };
        let access = [vk::AccessFlags::empty(), vk::AccessFlags::SHADER_READ];
        let [before, after] = if takes { access } else { [access[1], access[0]] };
        let whole = vk::ImageSubresourceRange::default()
            .aspect_mask(vk::ImageAspectFlags::COLOR)
            .level_count(1)
            .layer_count(1);
        let barrier = vk::ImageMemoryBarrier::default()
            .image(image)
            .src_queue_family_index(from)
            .dst_queue_family_index(to)
            .old_layout(old)
            .new_layout(new)
            .src_access_mask(before)
            .dst_access_mask(after)
            .subresource_range(whole);
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        // SAFETY: the image lives as long as its texture, which is kept; wgpu records nothing else into this encoder.
        unsafe {
            encoder.as_hal_mut::<Vulkan, _, _>(|encoder| {
                let commands = encoder.context("no Vulkan commands")?.raw_handle();
                own.raw_device().cmd_pipeline_barrier(
                    commands,
                    vk::PipelineStageFlags::ALL_COMMANDS,
                    vk::PipelineStageFlags::ALL_COMMANDS,
                    vk::DependencyFlags::empty(),
                    &[],
                    &[],
                    &[barrier],
                );
                anyhow::Ok(())
            })?;
        }
        Ok(encoder.finish())
    }
}

/// wgpu's device with [`EXTENSIONS`] and the functions of the first; or what the GPU lacks.
type Opened = (wgpu::Device, wgpu::Queue, android::external_memory_android_hardware_buffer::Device);

fn with_extensions(
    adapter: &wgpu::Adapter,
    wanted: &wgpu::DeviceDescriptor<'_>,
) -> Result<Result<Opened, String>> {
    // SAFETY: nothing of the adapter is destroyed.
    let Some(own) = (unsafe { adapter.as_hal::<Vulkan>() }) else { bail!("the adapter is not Vulkan's") };
    let capabilities = own.physical_device_capabilities();
    if let Some(lacks) = EXTENSIONS.iter().find(|name| !capabilities.supports_extension(name)) {
        return Ok(Err(format!("the driver has no {}", lacks.to_string_lossy())));
    }
    // SAFETY: the driver has the extensions that are added, and nothing else is changed.
    let opened = unsafe {
        own.open_with_callback(
            wanted.required_features,
            &wanted.required_limits,
            &wanted.memory_hints,
            Some(Box::new(|arguments| {
                for name in EXTENSIONS {
                    if !arguments.extensions.contains(&name) {
                        arguments.extensions.push(name);
                    }
                }
            })),
        )
    }?;
    let functions = android::external_memory_android_hardware_buffer::Device::new(
        own.shared_instance().raw_instance(),
        opened.device.raw_device(),
    );
    drop(own);
    // SAFETY: the device is this adapter's, opened with the same features.
    let (device, queue) = unsafe { adapter.create_device_from_hal(opened, wanted) }?;
    Ok(Ok((device, queue, functions)))
}

/// A texture that is a hardware buffer.
fn import(
    device: &wgpu::Device,
    functions: &android::external_memory_android_hardware_buffer::Device,
    buffer: &HardwareBuffer,
) -> Result<Imported> {
    let found = buffer.describe();
    let is_rgba =
        matches!(found.format, HardwareBufferFormat::R8G8B8A8_UNORM | HardwareBufferFormat::R8G8B8X8_UNORM);
    ensure!(is_rgba && found.layers == 1, "a hardware buffer of {found:?}, wanted one layer of RGBA_8888");
    // SAFETY: nothing of the device is destroyed.
    let own = unsafe { device.as_hal::<Vulkan>() }.context("no Vulkan device")?;
    let raw = own.raw_device().clone();
    let kind = vk::ExternalMemoryHandleTypeFlags::ANDROID_HARDWARE_BUFFER_ANDROID;

    let mut properties = vk::AndroidHardwareBufferPropertiesANDROID::default();
    // SAFETY: the buffer is alive while it is described, and has the GPU among its usages, which the call checks.
    unsafe {
        functions.get_android_hardware_buffer_properties(buffer.as_ptr().cast_const().cast(), &mut properties)
    }
    .context("the driver does not know the hardware buffer; its usage must have USAGE_GPU_SAMPLED_IMAGE")?;
    let memory_type = properties.memory_type_bits.trailing_zeros();
    ensure!(memory_type < 32, "no kind of memory can hold the hardware buffer");

    let mut external = vk::ExternalMemoryImageCreateInfo::default().handle_types(kind);
    let extent = vk::Extent3D { width: found.width, height: found.height, depth: 1 };
    let wanted = vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(vk::Format::R8G8B8A8_UNORM)
        .extent(extent)
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .tiling(vk::ImageTiling::OPTIMAL)
        .usage(vk::ImageUsageFlags::SAMPLED)
        .push_next(&mut external);
    // SAFETY: the values are those of the buffer. What was made before a failure is destroyed.
    let image = unsafe { raw.create_image(&wanted, None) }.context("no image of the hardware buffer")?;
    let mut imports = vk::ImportAndroidHardwareBufferInfoANDROID::default().buffer(buffer.as_ptr().cast());
    let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().image(image);
    let wanted = vk::MemoryAllocateInfo::default()
        .allocation_size(properties.allocation_size)
        .memory_type_index(memory_type)
        .push_next(&mut dedicated)
        .push_next(&mut imports);
    // SAFETY: as above; the memory holds a reference of its own to the buffer.
    let memory = match unsafe { raw.allocate_memory(&wanted, None) } {
        Ok(memory) => memory,
        Err(error) => {
            // SAFETY: nobody else knows the image.
            unsafe { raw.destroy_image(image, None) };
            return Err(error).context("the hardware buffer cannot be imported");
        }
    };
    let destroy = {
        let raw = raw.clone();
        // SAFETY: wgpu calls it once, when no commands read the image any more.
        move || unsafe {
            raw.destroy_image(image, None);
            raw.free_memory(memory, None);
        }
    };
    // SAFETY: the image is not bound yet, and the memory is for it alone.
    if let Err(error) = unsafe { raw.bind_image_memory(image, memory, 0) } {
        destroy();
        return Err(error).context("the hardware buffer cannot be bound");
    }

    let size = wgpu::Extent3d { width: found.width, height: found.height, depth_or_array_layers: 1 };
    let wanted = wgpu::hal::TextureDescriptor {
        label: None,
        size,
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: wgpu::TextureFormat::Rgba8Unorm,
        usage: wgpu::TextureUses::RESOURCE,
        memory_flags: wgpu::hal::MemoryFlags::empty(),
        view_formats: Vec::new(),
    };
    // SAFETY: the image is of this device and as it is described. `Frames::submit` has it in the layout of a texture that
    // is read while commands of wgpu run.
    let texture = unsafe {
        let memory = wgpu::hal::vulkan::TextureMemory::External;
        let texture = own.texture_from_raw(image, &wanted, Some(Box::new(destroy)), memory);
        device.create_texture_from_hal::<Vulkan>(
            texture,
            &descriptor(size, wgpu::TextureUsages::TEXTURE_BINDING),
            wgpu::TextureUses::RESOURCE,
        )
    };
    Ok(Imported { buffer: buffer.acquire(), image, texture })
}

fn descriptor(size: wgpu::Extent3d, usage: wgpu::TextureUsages) -> wgpu::TextureDescriptor<'static> {
    wgpu::TextureDescriptor {
        label: None,
        size,
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: wgpu::TextureFormat::Rgba8Unorm,
        usage,
        view_formats: &[],
    }
}
