//! How the pixels of an input lie.

use super::framing::{Colours, Framing};
use crate::dims::Dims;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// Red, green, blue and alpha.
const MAX_CHANNELS: usize = 4;

/// How the pictures of an input lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PixelLayout {
    pub(super) pictures: usize,
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) channels: usize,
    /// Whether each channel is a plane.
    pub(super) planar: bool,
}

impl PixelLayout {
    /// Of an input of these dimensions, if they are those of pictures.
    pub(super) fn of(dims: Dims) -> Option<Self> {
        let Shape { n, h, w, c } = dims.shape();
        if c <= MAX_CHANNELS {
            return Some(PixelLayout { pictures: n, height: h, width: w, channels: c, planar: false });
        }
        let (pictures, channels, height, width) = match *dims.extents() {
            [pictures, channels, height, width] => (pictures, channels, height, width),
            [channels, height, width] => (1, channels, height, width),
            _ => return None,
        };
        (channels <= MAX_CHANNELS).then_some(PixelLayout { pictures, height, width, channels, planar: true })
    }

    /// [`PixelLayout::of`] an input that is given pictures with these framings and colours, if they fit.
    pub(super) fn checked<'f>(
        name: &str,
        dims: Dims,
        framings: impl ExactSizeIterator<Item = &'f Framing>,
        colours: &Colours,
    ) -> Result<Self> {
        let (what, count) = (format!("pictures of {name:?}"), framings.len());
        let places = PixelLayout::of(dims).filter(|places| count == places.pictures);
        let Some(places) = places else {
            let found = format!("{count} pictures of 1 to 4 channels");
            return Err(Error::input(what, found, format!("dimensions {dims}")));
        };
        let PixelLayout { width, height, channels, .. } = places;
        if channels == 1 && !colours.have_one_channel() {
            let wanted = "`Colours::gray` for an input of one channel, or `Colours::first_channel` for a texture of one";
            return Err(Error::input(what, "colours of several channels", wanted));
        }
        for framing in framings {
            let target = framing.target();
            if target.map(|extent| extent as usize) != [width, height] {
                let found = format!("a framing to {} x {} pixels", target[0], target[1]);
                return Err(Error::input(what, found, format!("{width} x {height}")));
            }
        }
        Ok(places)
    }
}
