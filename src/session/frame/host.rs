//! A network's input from the bytes of frames, by the CPU: what the kernels of devices compute.

use super::colour::{Conversion, MIDDLE};
use super::format::{Components, Tap};
use super::{Frame, FrameLayout, Frames};
use crate::alloc;
use crate::dims::Dims;
use crate::error::Result;
use crate::host::HostTensor;
use crate::parallel;
use crate::session::framing::{Colours, Framing};
use crate::session::pixel_layout::PixelLayout;

/// Rows of the target that a thread computes at a time.
const ROWS: usize = 16;

impl Frames<'_, &[u8]> {
    /// The network's input of `dims` as a tensor of f32, by the CPU. Channels are the last axis (`n h w c`) or lie in planes
    /// (`n c h w`, `c h w`), as of [`Pictures`](crate::Pictures).
    ///
    /// ```
    /// use diptych::{Colours, Dims, Frame, FrameLayout, Frames, Framing, PixelFormat};
    ///
    /// let layout = FrameLayout::new(PixelFormat::Gray8, [2, 1])?;
    /// let framing = Framing::new([2, 1], [2, 1])?;
    /// let frames = [(Frame::new(&[16, 235][..], layout), framing)];
    /// let tensor = Frames::new(&frames, Colours::default()).to_tensor(Dims::new(&[1, 1, 2, 3])?)?;
    /// assert!(tensor.to_f32().iter().zip([0., 0., 0., 1., 1., 1.]).all(|(a, b)| (a - b).abs() < 1e-6));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are not as many frames as the dimensions have images, they have not 1 to 4 channels, a framing's extents are
    /// others, or a frame's bytes are fewer than its layout needs.
    pub fn to_tensor(&self, dims: Dims) -> Result<HostTensor> {
        HostTensor::new(dims, self.elements("frames", dims)?)
    }

    /// How their pixels lie in an input of these dimensions, if they fit.
    pub(in crate::session) fn places(&self, name: &str, dims: Dims) -> Result<PixelLayout> {
        let framings = self.frames.iter().map(|(_, framing)| framing);
        PixelLayout::checked(name, dims, framings, &self.colours)
    }

    /// Checks that they fit an input of these dimensions.
    #[cfg(not(target_family = "wasm"))]
    pub(in crate::session) fn check(&self, name: &str, dims: Dims) -> Result<()> {
        self.places(name, dims)?;
        self.frames.iter().try_for_each(|(frame, framing)| frame.check(name, framing))
    }

    /// The elements of an input of these dimensions.
    pub(in crate::session) fn elements(&self, name: &str, dims: Dims) -> Result<Vec<f32>> {
        let places = self.places(name, dims)?;
        let mut elements = alloc::zeros(dims.elements(), "an input")?;
        let image = places.width * places.height * places.channels;
        for ((frame, framing), target) in self.frames.iter().zip(elements.chunks_mut(image.max(1))) {
            frame.check(name, framing)?;
            let source = FrameSamples::new(frame);
            fill(&source, framing, &self.colours, places, target);
        }
        Ok(elements)
    }
}

impl Frame<&[u8]> {
    /// Checks that its bytes are as many as its layout needs, and its extents the framing's.
    fn check(&self, name: &str, framing: &Framing) -> Result<()> {
        self.layout.check_size(name, framing)?;
        let mut planes = self.planes().enumerate();
        planes.try_for_each(|(plane, bytes)| self.layout.check_memory(plane, bytes.len() as u64))
    }
}

/// A component's bytes.
#[derive(Clone, Copy)]
struct Component<'a> {
    bytes: &'a [u8],
    stride: usize,
    step: usize,
}

impl<'a> Component<'a> {
    fn new(frame: &Frame<&'a [u8]>, tap: Tap) -> Self {
        let plane = frame.layout.plane(tap.plane).unwrap_or_default();
        let all = frame.planes.get(tap.plane).copied().flatten().unwrap_or_default();
        let first = plane.offset as usize + tap.lane as usize;
        let bytes = all.get(first..).unwrap_or_default();
        Component { bytes, stride: plane.stride as usize, step: tap.step as usize }
    }

    /// A sample, as a float in `0..=1`. The layout was held against the bytes.
    fn at(&self, x: usize, y: usize) -> f32 {
        let byte = self.bytes.get(y * self.stride + x * self.step).copied().unwrap_or_default();
        f32::from(byte) * (1.0 / 255.0)
    }

    fn between(&self, place: &Neighbours) -> f32 {
        let Neighbours { x: [x0, x1], y: [y0, y1], fx, fy } = *place;
        let (a, b) = (self.at(x0, y0), self.at(x1, y0));
        let (c, d) = (self.at(x0, y1), self.at(x1, y1));
        let (above, below) = (a + (b - a) * fx, c + (d - c) * fx);
        above + (below - above) * fy
    }
}

/// Four samples, and what part of the way from the first to the others the place between them is.
struct Neighbours {
    x: [usize; 2],
    y: [usize; 2],
    fx: f32,
    fy: f32,
}

impl Neighbours {
    /// A place among the centres of so many samples each way.
    fn new(s: f32, t: f32, [width, height]: [u32; 2]) -> Self {
        let one = |place: f32, extent: u32| {
            let place = place.clamp(0.0, (extent - 1) as f32);
            let first = (place as usize).min(extent as usize - 1);
            ([first, (first + 1).min(extent as usize - 1)], place - first as f32)
        };
        let ((x, fx), (y, fy)) = (one(s, width), one(t, height));
        Neighbours { x, y, fx, fy }
    }
}

/// What a frame's components are.
struct FrameSamples<'a> {
    size: [u32; 2],
    components: Read<'a>,
}

enum Read<'a> {
    Chroma { of: [Component<'a>; 3], extent: [u32; 2], rows: u32, shift: [f32; 2], conversion: Conversion },
    Luma(Component<'a>, Conversion),
    Colours([Component<'a>; 3], Option<Component<'a>>),
}

impl<'a> FrameSamples<'a> {
    fn new(frame: &Frame<&'a [u8]>) -> Self {
        let layout: &FrameLayout = &frame.layout;
        let size = layout.size();
        let (matrix, range, siting) = layout.colour();
        let (conversion, component) = (Conversion::new(matrix, range), |tap| Component::new(frame, tap));
        let components = match layout.format().components() {
            Components::Chroma { luma, cb, cr, rows } => Read::Chroma {
                of: [luma, cb, cr].map(component),
                extent: [size[0].div_ceil(2), size[1].div_ceil(rows)],
                rows,
                shift: siting.shift(),
                conversion,
            },
            Components::Luma(luma) => Read::Luma(component(luma), conversion),
            Components::Colours(colours, alpha) => {
                Read::Colours(colours.map(component), alpha.map(component))
            }
        };
        FrameSamples { size, components }
    }

    /// Red, green, blue and alpha at a place.
    fn colour(&self, u: f32, v: f32) -> [f32; 4] {
        let place = Neighbours::new(u - 0.5, v - 0.5, self.size);
        match &self.components {
            Read::Chroma { of: [luma, cb, cr], extent, rows, shift, conversion } => {
                let t = if *rows == 2 { v * 0.5 - shift[1] } else { v - 0.5 };
                let chroma = Neighbours::new(u * 0.5 - shift[0], t, *extent);
                let [r, g, b] =
                    conversion.colours(luma.between(&place), cb.between(&chroma), cr.between(&chroma));
                [r, g, b, 1.0]
            }
            Read::Luma(luma, conversion) => {
                let [r, g, b] = conversion.colours(luma.between(&place), MIDDLE, MIDDLE);
                [r, g, b, 1.0]
            }
            Read::Colours([r, g, b], alpha) => {
                let alpha = alpha.as_ref().map_or(1.0, |alpha| alpha.between(&place));
                [r.between(&place), g.between(&place), b.between(&place), alpha]
            }
        }
    }
}

/// One image of the network's input.
fn fill(
    source: &FrameSamples<'_>,
    framing: &Framing,
    colours: &Colours,
    places: PixelLayout,
    target: &mut [f32],
) {
    let PixelLayout { width, height, channels, planar, .. } = places;
    let [[xx, xy, xo], [yx, yy, yo]] = framing.matrix().map(|row| row.map(|number| number as f32));
    let (rows, border) = (colours.rows(), colours.border_colour());
    let [right, bottom] = source.size.map(|extent| extent as f32);
    let value = |x: usize, y: usize| {
        let (x, y) = (x as f32 + 0.5, y as f32 + 0.5);
        let (u, v) = (xx * x + xy * y + xo, yx * x + yy * y + yo);
        let outside = u < 0.0 || v < 0.0 || u > right || v > bottom;
        let [r, g, b, a] = if outside { border } else { source.colour(u, v) };
        rows.map(|[of_r, of_g, of_b, of_a, one]| of_r * r + of_g * g + of_b * b + of_a * a + one)
    };
    // Strips of a few rows: of each plane one, or one of pixels with all channels.
    let (planes, lanes) = if planar { (channels, 1) } else { (1, channels) };
    let mut strips: Vec<Strip<'_>> = Vec::new();
    strips.resize_with(height.div_ceil(ROWS), || Strip { first: 0, planes: Vec::with_capacity(planes) });
    for plane in target.chunks_mut(width * height * lanes) {
        for (index, (strip, part)) in
            strips.iter_mut().zip(plane.chunks_mut(ROWS * width * lanes)).enumerate()
        {
            strip.first = index * ROWS;
            strip.planes.push(part);
        }
    }
    parallel::each(strips, |Strip { first, planes }| {
        let mut pixels: Vec<_> = planes.into_iter().map(|plane| plane.chunks_mut(lanes)).collect();
        for place in first * width..(first + ROWS).min(height) * width {
            let values = value(place % width, place / width);
            let slots = pixels.iter_mut().filter_map(Iterator::next).flatten();
            slots.zip(values).for_each(|(slot, value)| *slot = value);
        }
    });
}

/// Rows of the target, from the first on.
struct Strip<'a> {
    first: usize,
    planes: Vec<&'a mut [f32]>,
}
