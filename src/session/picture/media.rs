//! Pictures and frames as a device has them.

use super::kernel::Medium;
use crate::device::adopt::Adopted;
use crate::device::{Image, Resource, Slice};
use crate::emit::Scalar;
use crate::error::{Error, Result};
use crate::session::frame::{Conversion, FrameLayout, PixelFormat};
use crate::session::framing::{Colours, Framing};
use crate::session::pixel_layout::PixelLayout;
use crate::source::Port;

/// What a picture lies in.
#[derive(Debug, Clone)]
pub(in crate::session) struct PictureMedia {
    pub(super) medium: Medium,
    /// A texture or a buffer for each plane.
    pub(super) resources: Vec<Resource>,
    /// Where each plane begins in its buffer, and its stride.
    pub(super) places: Vec<[u32; 2]>,
}

impl PictureMedia {
    /// A texture of red, green and blue.
    pub(in crate::session) fn texture(image: Image) -> Self {
        PictureMedia { medium: Medium::Texture, resources: vec![Resource::Image(image)], places: Vec::new() }
    }

    /// A frame whose planes are textures.
    ///
    /// # Errors
    /// If they have other extents or fewer channels than the format's planes, or one is there twice.
    pub(in crate::session) fn planes(name: &str, images: Vec<Image>, layout: FrameLayout) -> Result<Self> {
        let (format, size) = (layout.format(), layout.size());
        let what = || format!("{format} frame of {name:?}");
        let of_colours = [PixelFormat::Rgb8, PixelFormat::Bgr8, PixelFormat::Rgba8, PixelFormat::Bgra8];
        if of_colours.contains(&format) {
            return Err(Error::input(
                what(),
                "a texture of red, green and blue",
                "`Pictures`, which take it",
            ));
        }
        for (plane, image) in images.iter().enumerate() {
            let (wanted, channels) = format.extent(plane, size);
            if image.channels.own < channels as usize {
                let found = match image.channels.own {
                    0 => format!("a texture whose first channel is not red for plane {plane}"),
                    own => format!("a texture of {} for plane {plane}", channels_said(own)),
                };
                return Err(Error::input(
                    what(),
                    found,
                    format!("{} or more", channels_said(channels as usize)),
                ));
            }
            let (found, wanted) = (image.extent(), wanted.map(|extent| extent as usize));
            if found != wanted {
                let found = format!("a texture of {} x {} texels for plane {plane}", found[0], found[1]);
                let wanted = format!("{} x {} for {} x {} pixels", wanted[0], wanted[1], size[0], size[1]);
                return Err(Error::input(what(), found, wanted));
            }
        }
        // The same memory thrice is one texture for three planes.
        let again = |plane: usize| images.iter().take(plane).any(|other| other.is(&images[plane]));
        if let Some(plane) = (1..images.len()).find(|&plane| again(plane)) {
            let found = format!("one texture for plane {plane} and one before it");
            return Err(Error::input(what(), found, "`Frame::of_planes`, with a texture for each"));
        }
        let resources = images.into_iter().map(Resource::Image).collect();
        Ok(PictureMedia { medium: Medium::Planes(layout), resources, places: Vec::new() })
    }

    /// A frame whose planes lie in buffers that kernels may read, bound at multiples of `alignment`.
    ///
    /// # Errors
    /// If a buffer is too small, or kernels may not read it.
    pub(in crate::session) fn buffers(
        name: &str,
        planes: impl Iterator<Item = Result<Adopted>>,
        layout: FrameLayout,
        alignment: u64,
    ) -> Result<Self> {
        let what = || format!("{} frame of {name:?}", layout.format());
        let (mut resources, mut places) = (Vec::new(), Vec::new());
        for (plane, adopted) in planes.enumerate() {
            let Adopted { buffer, kernels, part: (first, bytes), said, .. } = adopted?;
            if !kernels[0] {
                let wanted = "one that kernels may read (wgpu: STORAGE; OpenCL: not CL_MEM_WRITE_ONLY)";
                return Err(Error::input(what(), format!("a buffer of {said}"), wanted));
            }
            layout.check_memory(plane, bytes)?;
            // Words of four bytes, the last of them whole.
            let end = (first + layout.end(plane)).next_multiple_of(4);
            if end > first + bytes {
                let found = format!("a buffer of {bytes} bytes");
                let wanted = format!(
                    "{}: plane {plane} ends at byte {}, and is read in words of four bytes",
                    end - first,
                    layout.end(plane)
                );
                return Err(Error::input(what(), found, wanted));
            }
            let own = layout.plane(plane).unwrap_or_default();
            let begin = first + own.offset;
            let bound = begin - begin % alignment.max(4);
            resources.push(Resource::Buffer(buffer.slice(bound, end - bound)?));
            let offset = u32::try_from(begin - bound);
            let offset =
                offset.map_err(|_| Error::Internal(format!("a binding at multiples of {alignment}")))?;
            places.push([offset, own.stride]);
        }
        Ok(PictureMedia { medium: Medium::Buffers(layout), resources, places })
    }

    /// The parameters of the picture's kernel.
    pub(super) fn params(&self, framing: &Framing, colours: &Colours, slot: usize) -> Vec<Scalar> {
        let ([width, height], [source_width, source_height]) = (framing.target(), framing.source());
        let slot = u32::try_from(slot).unwrap_or(u32::MAX);
        let mut whole = vec![width, height, slot, source_width, source_height];
        whole.extend(self.places.iter().flatten());
        let places = framing.matrix();
        let places = places.iter().flatten().map(|&number| number as f32);
        let mut numbers: Vec<f32> = places.chain(colours.border_colour()).collect();
        numbers.extend(colours.rows().iter().flatten());
        if let Some(layout) = self.medium.layout().filter(|_| self.medium.has_luma()) {
            let (matrix, range, _) = layout.colour();
            numbers.extend(Conversion::new(matrix, range).0.iter().flatten());
        }
        whole.into_iter().map(Scalar::U32).chain(numbers.into_iter().map(Scalar::F32)).collect()
    }

    fn is(&self, other: &PictureMedia) -> bool {
        let mut pairs = self.resources.iter().zip(&other.resources);
        let same = |(one, other): (&Resource, &Resource)| match (one, other) {
            (Resource::Image(one), Resource::Image(other)) => one.is(other),
            (Resource::Buffer(one), Resource::Buffer(other)) => is_slice(one, other),
            _ => false,
        };
        self.medium == other.medium && self.places == other.places && pairs.all(same)
    }
}

pub(super) fn is_slice(one: &Slice, other: &Slice) -> bool {
    (one.offset, one.bytes) == (other.offset, other.bytes) && one.buffer.is(&other.buffer)
}

fn channels_said(count: usize) -> String {
    format!("{count} channel{}", if count == 1 { "" } else { "s" })
}

/// Pictures of an input, and how their colours become its numbers.
#[derive(Debug, Clone)]
pub(in crate::session) struct ShownPictures {
    pub(in crate::session) pictures: Vec<(PictureMedia, Framing)>,
    pub(in crate::session) colours: Colours,
}

impl ShownPictures {
    pub(in crate::session) fn of(
        pictures: impl Iterator<Item = Result<(PictureMedia, Framing)>>,
        colours: Colours,
    ) -> Result<Self> {
        Ok(ShownPictures { pictures: pictures.collect::<Result<_>>()?, colours })
    }

    pub(super) fn is(&self, other: &ShownPictures) -> bool {
        let mut pairs = self.pictures.iter().zip(&other.pictures);
        self.colours == other.colours
            && self.pictures.len() == other.pictures.len()
            && pairs.all(|(one, two)| one.1 == two.1 && one.0.is(&two.0))
    }

    /// How many of red, green and blue the first `channels` numbers of a pixel are made of.
    fn colours_read(&self, channels: usize) -> usize {
        let rows = self.colours.rows();
        let is_read = |&colour: &usize| rows.iter().take(channels).any(|row| row.get(colour) != Some(&0.0));
        (0..3).rev().find(is_read).map_or(0, |last| last + 1)
    }

    pub(super) fn check(&self, port: &Port) -> Result<PixelLayout> {
        let framings = self.pictures.iter().map(|(_, framing)| framing);
        let places = PixelLayout::checked(&port.name, port.dims, framings, &self.colours)?;
        for (held, framing) in &self.pictures {
            match (&held.medium, held.resources.first()) {
                (Medium::Planes(layout) | Medium::Buffers(layout), _) => {
                    layout.check_size(&port.name, framing)?;
                }
                (Medium::Texture, Some(Resource::Image(image))) => {
                    let (found, wanted) = (image.extent(), framing.source().map(|extent| extent as usize));
                    if found != wanted {
                        let found = format!("a picture of {} x {} pixels", found[0], found[1]);
                        let wanted = format!("the framing's {} x {}", wanted[0], wanted[1]);
                        return Err(Error::input(format!("pictures of {:?}", port.name), found, wanted));
                    }
                    let (found, wanted) = (image.channels.colours, self.colours_read(places.channels));
                    if found < wanted {
                        let found = format!("a texture whose colours have {}", channels_said(found));
                        let wanted = format!(
                            "{}, which the colours are made of; `Colours::first_channel` takes one",
                            channels_said(wanted)
                        );
                        return Err(Error::input(format!("pictures of {:?}", port.name), found, wanted));
                    }
                }
                (Medium::Texture, _) => {
                    return Err(Error::Internal("a picture without a texture".to_owned()));
                }
            }
        }
        Ok(places)
    }
}
