//! A run recorded into an application's own command encoder.

use super::Session;
use super::buffers::{BufferBinding, PortInput};
use super::frame::{Frame, Frames};
use super::framing::Framing;
use super::picture::{PictureMedia, Pictures, ShownPictures};
use crate::context::Engine;
use crate::device::wgpu::WgpuDevice;
use crate::error::{Error, Result};

/// All of a wgpu buffer, as f32 in NHWC order.
impl<'b> From<&'b wgpu::Buffer> for BufferBinding<&'b wgpu::Buffer> {
    fn from(buffer: &'b wgpu::Buffer) -> Self {
        BufferBinding::new(buffer)
    }
}

/// What an input of [`Session::encode`] is: a `&wgpu::Buffer`, a [`BufferBinding`] of one, [`Pictures`] or [`Frames`].
#[derive(Debug, Clone, Copy)]
pub struct WgpuInput<'b>(BoundSource<'b>);

#[derive(Debug, Clone, Copy)]
enum BoundSource<'b> {
    Buffer(BufferBinding<&'b wgpu::Buffer>),
    Pictures(Pictures<'b, &'b wgpu::TextureView>),
    Planes(Frames<'b, &'b wgpu::TextureView>),
    Frames(Frames<'b, &'b wgpu::Buffer>),
}

impl<'b> From<&'b wgpu::Buffer> for WgpuInput<'b> {
    fn from(buffer: &'b wgpu::Buffer) -> Self {
        WgpuInput(BoundSource::Buffer(buffer.into()))
    }
}

impl<'b> From<BufferBinding<&'b wgpu::Buffer>> for WgpuInput<'b> {
    fn from(binding: BufferBinding<&'b wgpu::Buffer>) -> Self {
        WgpuInput(BoundSource::Buffer(binding))
    }
}

impl<'b> From<Pictures<'b, &'b wgpu::TextureView>> for WgpuInput<'b> {
    fn from(pictures: Pictures<'b, &'b wgpu::TextureView>) -> Self {
        WgpuInput(BoundSource::Pictures(pictures))
    }
}

impl<'b> From<Frames<'b, &'b wgpu::TextureView>> for WgpuInput<'b> {
    fn from(frames: Frames<'b, &'b wgpu::TextureView>) -> Self {
        WgpuInput(BoundSource::Planes(frames))
    }
}

impl<'b> From<Frames<'b, &'b wgpu::Buffer>> for WgpuInput<'b> {
    fn from(frames: Frames<'b, &'b wgpu::Buffer>) -> Self {
        WgpuInput(BoundSource::Frames(frames))
    }
}

impl Session {
    /// Records a run into the application's own command encoder: nothing is submitted here, and the application's
    /// buffers are bound where [`Session::required_usages`] allows it.
    ///
    /// Each of `inputs` (every input, by name) and of `outputs` (those that are wanted; the others are not computed)
    /// is a `&wgpu::Buffer`, which holds f32 in NHWC order, or a [`BufferBinding`], which says part, layout and type.
    /// An input may be [`Pictures`] or [`Frames`] as well: textures of colours, and luma and chroma in textures or
    /// buffers, that one kernel crops, turns, scales and normalises.
    /// A buffer without usage `STORAGE`, or at an offset that the device cannot bind, is copied within the encoder
    /// and needs `COPY_SRC` (inputs) or `COPY_DST` (outputs); and so is one that a single dispatch would have to read
    /// and write, as wgpu allows for no buffer. Inputs are read before outputs are written over them.
    ///
    /// The textures' views are of mip level 0.
    ///
    /// Nothing is compiled, allocated or bound when the same buffers come again: the recordings of the last eight sets
    /// of buffers are kept ([`Session::unbind`]).
    ///
    /// ```
    /// # fn frame(session: &mut diptych::Session, encoder: &mut diptych::wgpu::CommandEncoder,
    /// #     picture: &diptych::wgpu::Buffer, result: &diptych::wgpu::Buffer) -> diptych::Result<()> {
    /// session.encode(encoder, &[("picture", picture)], &[("mean", result)])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the session does not run on wgpu, the CPU computes one of its nodes, a name is unknown or given twice, an
    /// input is missing, or a buffer is too small or allows neither way.
    pub fn encode<'b, I, O>(
        &mut self,
        encoder: &mut wgpu::CommandEncoder,
        inputs: &[(&str, I)],
        outputs: &[(&str, O)],
    ) -> Result<()>
    where
        I: Into<WgpuInput<'b>> + Clone,
        O: Into<BufferBinding<&'b wgpu::Buffer>> + Clone,
    {
        let (device, given) = self.given("Session::encode", inputs, outputs)?;
        let (bound, shown) = self.bound(given)?;
        shown.iter().try_for_each(|recording| device.encode(recording, encoder))?;
        bound.before.iter().try_for_each(|copy| device.encode_copy(copy, encoder))?;
        if let Some(recording) = &bound.recording {
            device.encode(recording, encoder)?;
        }
        bound.after.iter().try_for_each(|copy| device.encode_copy(copy, encoder))
    }

    /// Does what [`Session::encode`] does for a new set of buffers, without an encoder: kernels that are not known yet
    /// are compiled, and the run is recorded. In a browser, where nothing may block, an `encode` that needs such a
    /// kernel is an error without it.
    ///
    /// ```
    /// # async fn prepare(session: &mut diptych::Session, picture: &diptych::wgpu::Buffer,
    /// #     result: &diptych::wgpu::Buffer) -> diptych::Result<()> {
    /// session.bind(&[("picture", picture)], &[("mean", result)]).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::encode`].
    pub async fn bind<'b, I, O>(&mut self, inputs: &[(&str, I)], outputs: &[(&str, O)]) -> Result<()>
    where
        I: Into<WgpuInput<'b>> + Clone,
        O: Into<BufferBinding<&'b wgpu::Buffer>> + Clone,
    {
        let (_, given) = self.given("Session::bind", inputs, outputs)?;
        self.bound_async(given).await.map(drop)
    }

    /// The device, and what the ports are given.
    fn given<'b, I, O>(
        &self,
        what: &str,
        inputs: &[(&str, I)],
        outputs: &[(&str, O)],
    ) -> Result<(WgpuDevice, Vec<PortInput>)>
    where
        I: Into<WgpuInput<'b>> + Clone,
        O: Into<BufferBinding<&'b wgpu::Buffer>> + Clone,
    {
        let session = self.on_device(what)?;
        session.bindings(what)?;
        let alignment = session.alignment()?;
        let Engine::Wgpu(device) = session.engine().clone() else {
            return Err(Error::unsupported(what, "the session does not run on wgpu"));
        };
        let of_port = |binding: BufferBinding<&wgpu::Buffer>, port: &_, end| {
            binding.of_port(port, end, device.adopt(binding.buffer), alignment)
        };
        let buffers = self.port_buffers(
            inputs,
            outputs,
            &mut |port, end, given| match given.clone().into().0 {
                BoundSource::Buffer(binding) => Ok(PortInput::Buffer(of_port(binding, port, end)?)),
                BoundSource::Pictures(Pictures { pictures, colours }) => {
                    let image = |(view, framing): &(&wgpu::TextureView, Framing)| {
                        Ok((PictureMedia::texture(device.adopt_texture(view)?), *framing))
                    };
                    ShownPictures::of(pictures.iter().map(image), colours).map(PortInput::Pictures)
                }
                BoundSource::Planes(Frames { frames, colours }) => {
                    let planes = |(frame, framing): &(Frame<&wgpu::TextureView>, Framing)| {
                        let images = frame.planes().enumerate();
                        let images = images.map(|(plane, view)| device.adopt_plane(view, plane));
                        let images = images.collect::<Result<_>>()?;
                        Ok((PictureMedia::planes(&port.name, images, *frame.layout())?, *framing))
                    };
                    ShownPictures::of(frames.iter().map(planes), colours).map(PortInput::Pictures)
                }
                BoundSource::Frames(Frames { frames, colours }) => {
                    let held = |(frame, framing): &(Frame<&wgpu::Buffer>, Framing)| {
                        let buffers = frame.planes().map(|buffer| Ok(device.adopt(buffer)));
                        Ok((
                            PictureMedia::buffers(&port.name, buffers, *frame.layout(), alignment)?,
                            *framing,
                        ))
                    };
                    ShownPictures::of(frames.iter().map(held), colours).map(PortInput::Pictures)
                }
            },
            &mut |port, end, given| of_port(given.clone().into(), port, end),
        )?;
        Ok((device, buffers))
    }
}
