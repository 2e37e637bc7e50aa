//! An application's buffers and textures.

use super::memory::RawBuffer;
use super::{Owner, WgpuDevice};
use crate::device::adopt::{Adopted, Transfer};
use crate::device::{Buffer, Image, handle};
use crate::error::{Error, Result};

/// A view of a texture and whose it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RawTexture {
    view: wgpu::TextureView,
    owner: Owner,
}

impl WgpuDevice {
    /// A handle of a view of an application's texture. wgpu checks that it is one of this device when it is bound.
    ///
    /// # Errors
    /// If kernels cannot read it as a picture of floats.
    pub fn adopt_texture(&self, view: &wgpu::TextureView) -> Result<Image> {
        self.adopt_aspect(view, wgpu::TextureAspect::All)
    }

    /// [`WgpuDevice::adopt_texture`] of a plane of a frame: a texture of its own, or a view of that plane of a texture that
    /// has all.
    pub fn adopt_plane(&self, view: &wgpu::TextureView, plane: usize) -> Result<Image> {
        let aspect = match (view.texture().format(), plane) {
            (wgpu::TextureFormat::NV12, 0) => wgpu::TextureAspect::Plane0,
            (wgpu::TextureFormat::NV12, 1) => wgpu::TextureAspect::Plane1,
            _ => wgpu::TextureAspect::All,
        };
        self.adopt_aspect(view, aspect)
    }

    fn adopt_aspect(&self, view: &wgpu::TextureView, aspect: wgpu::TextureAspect) -> Result<Image> {
        let texture = view.texture();
        let (mut size, format) = (texture.size(), texture.format());
        if aspect == wgpu::TextureAspect::Plane1 {
            (size.width, size.height) = (size.width.div_ceil(2), size.height.div_ceil(2));
        }
        let is_float = |kind| matches!(kind, Some(wgpu::TextureSampleType::Float { .. }));
        let readable = texture.usage().contains(wgpu::TextureUsages::TEXTURE_BINDING)
            && texture.dimension() == wgpu::TextureDimension::D2
            && texture.sample_count() == 1
            && is_float(format.sample_type(Some(aspect), Some(self.inner.features)));
        if !readable {
            let (dimension, samples) = (texture.dimension(), texture.sample_count());
            let found = format!("{dimension:?}, {format:?}, {samples} samples, usage {:?}", texture.usage());
            return Err(Error::input(
                "texture",
                found,
                "D2, a format of floats, 1 sample, usage TEXTURE_BINDING",
            ));
        }
        let raw = RawTexture { view: view.clone(), owner: self.inner.owner };
        let extent = [size.width as usize, size.height as usize];
        let mut channels = handle::Channels::new(usize::from(format.components_with_aspect(aspect)));
        if format.remove_srgb_suffix() == wgpu::TextureFormat::Bgra8Unorm {
            channels.own = 0;
        }
        Ok(Image { raw: handle::RawImage::Wgpu(raw), extent, channels })
    }

    /// The view behind a handle.
    pub(super) fn raw_texture<'a>(&self, image: &'a Image) -> Result<&'a wgpu::TextureView> {
        match &image.raw {
            handle::RawImage::Wgpu(raw) => self.owned(raw.owner, "texture").map(|()| &raw.view),
            #[cfg(feature = "opencl")]
            handle::RawImage::OpenCl(_) => Err(handle::foreign("image", self.api())),
        }
    }

    /// A handle of an application's buffer, which it keeps alive. wgpu checks that it is one of this device when
    /// it is bound.
    pub fn adopt(&self, buffer: &wgpu::Buffer) -> Adopted {
        let usage = buffer.usage();
        let bound = usage.contains(wgpu::BufferUsages::STORAGE);
        let raw = RawBuffer::new(buffer.clone(), self.inner.owner);
        Adopted {
            buffer: Buffer { raw: handle::RawBuffer::Wgpu(raw), bytes: buffer.size() },
            kernels: [bound; 2],
            copies: [wgpu::BufferUsages::COPY_SRC, wgpu::BufferUsages::COPY_DST]
                .map(|one| usage.contains(one)),
            part: (0, buffer.size()),
            said: format!("{usage:?}"),
        }
    }

    /// Encodes a copy.
    pub fn encode_copy(&self, copy: &Transfer, encoder: &mut wgpu::CommandEncoder) -> Result<()> {
        let (from, to) = (self.raw(&copy.from.buffer)?, self.raw(&copy.to.buffer)?);
        self.inner.counters.copy();
        encoder.copy_buffer_to_buffer(from, copy.from.offset, to, copy.to.offset, copy.from.bytes);
        Ok(())
    }
}
