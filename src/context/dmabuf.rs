//! A camera's memory as an application's buffers and textures, without a copy.

use super::{Context, Engine};
use crate::error::{Error, Result};
use std::os::fd::AsFd;

#[cfg(feature = "wgpu")]
use crate::device::wgpu::dmabuf::ImportedTexture;

/// dma-bufs of Linux, such as those of Video4Linux (`VIDIOC_EXPBUF`), VA-API, libcamera and GStreamer.
///
/// The memory is shared, not copied: who writes the next frame into it must have been told that the last run is over, and must be
/// done before the next is submitted (a frame of Video4Linux that was dequeued is). Import each memory once, not each frame: a
/// camera gives the same few in turns. The file descriptor may be closed after the call.
///
/// A run does not acquire the memory from the other side: there is no ownership transfer from `VK_QUEUE_FAMILY_FOREIGN_EXT` on Vulkan,
/// and OpenCL acquires the buffer once, when it is imported. That is enough where the GPU's caches are coherent with the camera's
/// memory. On other GPUs a run may read an earlier frame from a cache: copy the frames there.
impl Context {
    /// The first `bytes` bytes of a dma-buf as a buffer with usage `STORAGE`, `COPY_SRC` and `COPY_DST`, for
    /// [`Frame`](crate::Frame)s and [`BufferBinding`](crate::BufferBinding)s. It is for memory whose rows lie one behind the other
    /// (`DRM_FORMAT_MOD_LINEAR`), as that of most cameras.
    ///
    /// ```no_run
    /// use diptych::{Colours, Frame, FrameLayout, Frames, Framing, PixelFormat, Session, wgpu};
    /// use std::os::fd::OwnedFd;
    ///
    /// # fn frame(context: &diptych::Context, session: &mut Session, encoder: &mut wgpu::CommandEncoder, exported: OwnedFd,
    /// #     result: &wgpu::Buffer) -> diptych::Result<()> {
    /// let layout = FrameLayout::new(PixelFormat::Nv12, [1920, 1080])?;
    /// let camera = context.dmabuf_buffer(&exported, layout.bytes())?;
    /// let frames = [(Frame::new(&camera, layout), Framing::new([1920, 1080], [257, 257])?)];
    /// let frames = Frames::new(&frames, Colours::range(-1.0, 1.0));
    /// session.encode(encoder, &[("image", frames)], &[("keypoints", result)])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the context's device is not one of Vulkan with `VK_EXT_external_memory_dma_buf`, the file is no dma-buf or has fewer
    /// bytes, or the driver refuses it, as it does memory that its GPU cannot reach.
    #[cfg(feature = "wgpu")]
    pub fn dmabuf_buffer(&self, fd: impl AsFd, bytes: u64) -> Result<wgpu::Buffer> {
        match &self.engine {
            Engine::Wgpu(device) => device.import_buffer(fd.as_fd(), bytes),
            _ => Err(Error::unsupported("dma-buf as a buffer of wgpu", "the context's backend is not wgpu")),
        }
    }

    /// A plane of a dma-buf as a texture with usage `TEXTURE_BINDING`: from byte `offset` on with rows every `stride` bytes,
    /// as `modifier` of `drm_fourcc.h` has it arranged (0 is `DRM_FORMAT_MOD_LINEAR`). It is for memory that a GPU or a decoder has
    /// arranged in tiles; that of most cameras is [`Context::dmabuf_buffer`].
    ///
    /// ```no_run
    /// use diptych::wgpu;
    /// use std::os::fd::OwnedFd;
    ///
    /// # fn planes(context: &diptych::Context, decoded: OwnedFd, modifier: u64) -> diptych::Result<()> {
    /// // NV12 of 1920 x 1080 pixels: luma, and chroma of half the size behind 1088 rows.
    /// let (r8, rg8) = (wgpu::TextureFormat::R8Unorm, wgpu::TextureFormat::Rg8Unorm);
    /// // SAFETY: the decoder said so.
    /// let [luma, chroma] = unsafe {
    ///     [
    ///         context.dmabuf_texture(&decoded, r8, [1920, 1080], 0, 2048, modifier)?,
    ///         context.dmabuf_texture(&decoded, rg8, [960, 540], 2048 * 1088, 2048, modifier)?,
    ///     ]
    /// };
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// The memory has a texture of this format and extent there, and is arranged as `modifier` says: no driver can check it.
    ///
    /// # Errors
    /// If the context's device is not one of Vulkan that was opened with `VULKAN_EXTERNAL_MEMORY_DMA_BUF`
    /// ([`Context::wgpu_requirements`]), or the driver refuses the file, the format or the modifier.
    #[cfg(feature = "wgpu")]
    pub unsafe fn dmabuf_texture(
        &self,
        fd: impl AsFd,
        format: wgpu::TextureFormat,
        size: [u32; 2],
        offset: u64,
        stride: u32,
        modifier: u64,
    ) -> Result<wgpu::Texture> {
        let Engine::Wgpu(device) = &self.engine else {
            return Err(Error::unsupported(
                "dma-buf as a texture of wgpu",
                "the context's backend is not wgpu",
            ));
        };
        let own = fd.as_fd().try_clone_to_owned();
        let own = own.map_err(|error| Error::input("dma-buf", error.to_string(), "an open file"))?;
        let texture = ImportedTexture { size, format, offset, stride: u64::from(stride), modifier };
        // SAFETY: promised by the caller.
        unsafe { device.import_texture(own, &texture) }
    }

    /// The first `bytes` bytes of a dma-buf as a buffer of the context's OpenCL device, as [`Context::dmabuf_buffer`] is for wgpu.
    /// It is acquired for the device's queue once, by this call, and is never released.
    ///
    /// ```no_run
    /// # fn camera(context: &diptych::Context, exported: std::os::fd::OwnedFd) -> diptych::Result<()> {
    /// let camera = context.dmabuf_opencl_buffer(&exported, 1920 * 1080 * 3 / 2)?;
    /// # let _ = camera;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the context's device is not one of OpenCL with `cl_khr_external_memory_dma_buf`, the file is no dma-buf or has fewer
    /// bytes, or the driver refuses it.
    #[cfg(feature = "opencl")]
    pub fn dmabuf_opencl_buffer(&self, fd: impl AsFd, bytes: u64) -> Result<opencl3::memory::Buffer<u8>> {
        match &self.engine {
            Engine::OpenCl(device) => device.import_buffer(fd.as_fd(), bytes),
            _ => {
                Err(Error::unsupported("dma-buf as an OpenCL buffer", "the context's backend is not OpenCL"))
            }
        }
    }
}
