//! Pictures as an input: textures of wgpu, images of OpenCL and frames, by one kernel for each picture.

mod kernel;
mod media;

pub(super) use media::{PictureMedia, ShownPictures};

use super::framing::{Colours, Framing};
use super::pixel_layout::PixelLayout;
use crate::device::{Buffer, Device, Dispatch, Memory, Recording, Resource, Slice, compile_planned_async};
use crate::error::Result;
use crate::lower::Arrangement;
use crate::source::Port;
use kernel::WORK_GROUP;
use std::sync::Arc;

/// Sets of pictures whose recordings are kept, which keep their memory alive. Cameras and decoders give buffers of a pool in turns:
/// with more buffers than this no set is kept until its turn comes again. Cameras have 4 to 8, and a decoder of H.264 keeps up to 16.
const MAX_SETS: usize = 16;

/// Pictures as an input of a network: one for each image of its batch, with the part of it that the network sees, and how
/// its colours become numbers. The port has one to four channels. They are its last axis (`n h w c`), or planes behind the batch, as in
/// most ONNX files (`n c h w`, or `c h w`); where the extents allow both, they are the last axis. For a port of one channel the
/// colours say what that channel is: [`Colours::gray`] or [`Colours::first_channel`]. A texture is refused if it lacks a channel
/// (red, green or blue) that the colours use.
///
/// What reads the pictures of a run is kept for the last 16 different sets of an input, and keeps their memory alive
/// ([`Session::unbind`](crate::Session::unbind) lets go of it): runs on textures or buffers that come in turns make nothing anew.
///
/// A pixel is interpolated between the four texels around its centre, as most networks were trained with; where a
/// picture shrinks to less than half, texels are skipped. Beyond the picture it is the border's colour.
///
/// For `encode` a picture is a `&wgpu::TextureView` of a two-dimensional texture with usage `TEXTURE_BINDING` in a
/// format of floats (`rgba8unorm`, `bgra8unorm`, their sRGB variants, `rgba16float` and others), for `enqueue` an
/// `&opencl3::memory::Image` of two dimensions whose channels are normalised or floats.
#[derive(Debug, Clone, Copy)]
pub struct Pictures<'p, V> {
    pub(super) pictures: &'p [(V, Framing)],
    pub(super) colours: Colours,
}

impl<'p, V> Pictures<'p, V> {
    /// These pictures.
    ///
    /// ```
    /// use diptych::{Colours, Fit, Framing, Pictures, wgpu};
    ///
    /// # fn frame(session: &mut diptych::Session, encoder: &mut wgpu::CommandEncoder, camera: &wgpu::TextureView,
    /// #     result: &wgpu::Buffer) -> diptych::Result<()> {
    /// let framing = Framing::new([1920, 1080], [257, 257])?.fit(Fit::Letterbox);
    /// let views = [(camera, framing)];
    /// let pictures = Pictures::new(&views, Colours::range(-1.0, 1.0));
    /// session.encode(encoder, &[("image", pictures)], &[("keypoints", result)])?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(pictures: &'p [(V, Framing)], colours: Colours) -> Self {
        Pictures { pictures, colours }
    }
}

/// The memory that the pictures of an input become, and the recordings that make them.
#[derive(Debug)]
pub(super) struct PictureInput {
    pub(super) target: Slice,
    pub(super) arrangement: Arrangement,
    /// The latest last.
    kept: Vec<(ShownPictures, Arc<Recording>)>,
}

impl PictureInput {
    /// With memory of its own, for a port whose pixels are best so arranged.
    pub(super) fn new(device: &dyn Device, port: &Port, preferred: Arrangement) -> Result<Self> {
        let planar = PixelLayout::of(port.dims).is_some_and(|places| places.planar);
        let arrangement = if planar { Arrangement::ROWS } else { preferred };
        let buffer: Buffer = device.alloc(arrangement.bytes(&port.shape), Memory::Device)?;
        Ok(PictureInput::of(buffer.whole(), arrangement))
    }

    /// In memory that holds the input so arranged.
    pub(super) fn of(target: Slice, arrangement: Arrangement) -> Self {
        PictureInput { target, arrangement, kept: Vec::new() }
    }

    /// Whether it lies there.
    #[cfg(all(feature = "cpu", not(target_family = "wasm")))]
    pub(super) fn is_of(&self, target: &Slice) -> bool {
        media::is_slice(&self.target, target)
    }

    pub(super) fn clear(&mut self) {
        self.kept.clear();
    }

    /// The recording that makes the input of these pictures.
    pub(super) async fn recording(
        &mut self,
        device: &dyn Device,
        port: &Port,
        shown: ShownPictures,
    ) -> Result<Arc<Recording>> {
        if let Some(place) = self.kept.iter().position(|(kept, _)| kept.is(&shown)) {
            let known = self.kept.remove(place);
            let recording = Arc::clone(&known.1);
            self.kept.push(known);
            return Ok(recording);
        }
        let places = shown.check(port)?;
        let least = self.arrangement.bytes(&port.shape);
        let dialect = device.info().limits.dialect;
        let mut dispatches = Vec::with_capacity(shown.pictures.len());
        for (slot, (held, framing)) in shown.pictures.iter().enumerate() {
            let source = kernel::source(&held.medium, self.arrangement, places, least, dialect);
            let mut resources = held.resources.clone();
            resources.push(Resource::Buffer(self.target.clone()));
            let [width, height] = framing.target();
            dispatches.push(Dispatch {
                pipeline: compile_planned_async(device, &source).await?,
                resources,
                params: held.params(framing, &shown.colours, slot),
                groups: [width.div_ceil(WORK_GROUP[0]), height.div_ceil(WORK_GROUP[1]), 1],
            });
        }
        let recording = Arc::new(device.record(&dispatches)?);
        if self.kept.len() >= MAX_SETS {
            self.kept.remove(0);
        }
        self.kept.push((shown, Arc::clone(&recording)));
        Ok(recording)
    }
}
