//! A run enqueued on an application's own OpenCL queue.

use super::Session;
use super::buffers::{BufferBinding, PortInput};
use super::frame::{Frame, Frames};
use super::framing::Framing;
use super::picture::{PictureMedia, Pictures, ShownPictures};
use crate::context::Engine;
use crate::device::opencl::adopt::LentBuffer;
use crate::error::{Error, Result};
use opencl3::memory::{Buffer, Image};

/// A part of an application's OpenCL buffer: a `&Buffer` of opencl3, or a [`BufferBinding`] of one.
#[derive(Debug, Clone, Copy)]
pub struct OpenClBinding<'b>(BufferBinding<LentBuffer<'b>>);

impl<'b, T> From<&'b Buffer<T>> for OpenClBinding<'b> {
    fn from(buffer: &'b Buffer<T>) -> Self {
        BufferBinding::new(buffer).into()
    }
}

impl<'b, T> From<BufferBinding<&'b Buffer<T>>> for OpenClBinding<'b> {
    fn from(binding: BufferBinding<&'b Buffer<T>>) -> Self {
        OpenClBinding(binding.map(LentBuffer::from))
    }
}

/// What an input of [`Session::enqueue`] is: a `&Buffer`, a [`BufferBinding`] of one, [`Pictures`] or [`Frames`].
#[derive(Debug, Clone, Copy)]
pub struct OpenClInput<'b>(BoundSource<'b>);

#[derive(Debug, Clone, Copy)]
enum BoundSource<'b> {
    Buffer(OpenClBinding<'b>),
    Pictures(Pictures<'b, &'b Image>),
    Planes(Frames<'b, &'b Image>),
    Frames(Frames<'b, &'b Buffer<u8>>),
}

impl<'b, T> From<&'b Buffer<T>> for OpenClInput<'b> {
    fn from(buffer: &'b Buffer<T>) -> Self {
        OpenClInput(BoundSource::Buffer(buffer.into()))
    }
}

impl<'b, T> From<BufferBinding<&'b Buffer<T>>> for OpenClInput<'b> {
    fn from(binding: BufferBinding<&'b Buffer<T>>) -> Self {
        OpenClInput(BoundSource::Buffer(binding.into()))
    }
}

impl<'b> From<Pictures<'b, &'b Image>> for OpenClInput<'b> {
    fn from(pictures: Pictures<'b, &'b Image>) -> Self {
        OpenClInput(BoundSource::Pictures(pictures))
    }
}

impl<'b> From<Frames<'b, &'b Image>> for OpenClInput<'b> {
    fn from(frames: Frames<'b, &'b Image>) -> Self {
        OpenClInput(BoundSource::Planes(frames))
    }
}

impl<'b> From<Frames<'b, &'b Buffer<u8>>> for OpenClInput<'b> {
    fn from(frames: Frames<'b, &'b Buffer<u8>>) -> Self {
        OpenClInput(BoundSource::Frames(frames))
    }
}

impl Session {
    /// Enqueues a run on the application's own queue ([`Context::from_opencl`](crate::Context::from_opencl)) and
    /// returns: nothing is waited for and nothing is flushed. The application's buffers are bound where
    /// [`Session::required_usages`] allows it.
    ///
    /// Each of `inputs` (every input, by name) and of `outputs` (those that are wanted; the others are not computed)
    /// is a `&Buffer`, which holds f32 in NHWC order, or a [`BufferBinding`] of one, which says part, layout and type.
    /// An input may be [`Pictures`] or [`Frames`] as well: images of colours, and luma and chroma in images or buffers,
    /// that one kernel crops, turns, scales and normalises.
    /// A buffer that kernels may not read (an output: read and write) by its flags, or at an offset that the device
    /// cannot bind, is copied within the queue. Inputs are read before outputs are written over them. The buffers are
    /// retained as long as the recordings that are kept for them: those of the last eight sets of buffers
    /// ([`Session::unbind`]).
    ///
    /// ```
    /// # fn frame(session: &mut diptych::Session, picture: &diptych::opencl3::memory::Buffer<f32>,
    /// #     result: &diptych::opencl3::memory::Buffer<f32>) -> diptych::Result<()> {
    /// session.enqueue(&[("picture", picture)], &[("mean", result)])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the session does not run on OpenCL, the CPU computes one of its nodes, a name is unknown or given twice, an
    /// input is missing, or a buffer is too small or of another context.
    pub fn enqueue<'b, I, O>(&mut self, inputs: &[(&str, I)], outputs: &[(&str, O)]) -> Result<()>
    where
        I: Into<OpenClInput<'b>> + Clone,
        O: Into<OpenClBinding<'b>> + Clone,
    {
        const WHAT: &str = "Session::enqueue";
        let session = self.on_device(WHAT)?;
        session.bindings(WHAT)?;
        let alignment = session.alignment()?;
        let Engine::OpenCl(device) = session.engine().clone() else {
            return Err(Error::unsupported(WHAT, "the session does not run on OpenCL"));
        };
        let of_port = |OpenClBinding(binding): OpenClBinding<'b>, port: &_, end| {
            binding.of_port(port, end, device.adopt(binding.buffer)?, alignment)
        };
        let buffers = self.port_buffers(
            inputs,
            outputs,
            &mut |port, end, given| match given.clone().into().0 {
                BoundSource::Buffer(binding) => Ok(PortInput::Buffer(of_port(binding, port, end)?)),
                BoundSource::Pictures(Pictures { pictures, colours }) => {
                    let image = |(image, framing): &(&Image, Framing)| {
                        Ok((PictureMedia::texture(device.adopt_image((*image).into())?), *framing))
                    };
                    ShownPictures::of(pictures.iter().map(image), colours).map(PortInput::Pictures)
                }
                BoundSource::Planes(Frames { frames, colours }) => {
                    let planes = |(frame, framing): &(Frame<&Image>, Framing)| {
                        let images = frame.planes().map(|image| device.adopt_image(image.into()));
                        let images = images.collect::<Result<_>>()?;
                        Ok((PictureMedia::planes(&port.name, images, *frame.layout())?, *framing))
                    };
                    ShownPictures::of(frames.iter().map(planes), colours).map(PortInput::Pictures)
                }
                BoundSource::Frames(Frames { frames, colours }) => {
                    let held = |(frame, framing): &(Frame<&Buffer<u8>>, Framing)| {
                        let buffers = frame.planes().map(|buffer| device.adopt(buffer.into()));
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
        let (bound, shown) = self.bound(buffers)?;
        let recordings: Vec<_> = shown.iter().map(|recording| &**recording).chain(&bound.recording).collect();
        device.enqueue(&bound.before, &recordings, &bound.after)
    }
}
