//! `y[n,i,j,c] = x[n, v(i), u(j), c]`, between pixels the mean of four weighted by their distance, or the
//! nearest
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `n h w c` | C4 on the device |
//! | `y` | `n oh ow c` | C4 on the device |
//!
//! Coordinates are TensorFlow Lite's: `v(i) = i * s` with `s = h / oh`, or `(h - 1) / (oh - 1)` where corners are aligned
//! and `oh > 1`; `(i + 1/2) * s - 1/2` with half-pixel centers, clamped to the map. The nearest pixel is
//! `floor(v(i))`, with half-pixel centers `floor((i + 1/2) * s)`; where corners are aligned it is rounded to the
//! nearest instead, halves up. Coordinates are computed in f32, so that a nearest pixel is the same one.
//!
//! A mean with a NaN is NaN, also where its weight is 0; a copied pixel is as it is.

mod cpu;
mod examples;
mod maps;
mod operator;
mod oracle;
mod plan;

pub(super) use examples::{NUMBERS, examples};

use crate::dtype::Precision;
use crate::error::{Error, Result};
use crate::shape::Shape;

const OP: &str = "resize";

/// The longest axis: coordinates between pixels are kept in f32.
const MAX_EXTENT: usize = 1 << 20;

/// How values between pixels are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResizeMode {
    /// The nearest pixel.
    Nearest,
    /// The mean of the four pixels around, weighted by distance.
    Bilinear,
}

/// Options of a change of a feature map's height and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Resize {
    /// Height and width of the output.
    pub size: [usize; 2],
    /// How values between pixels are computed.
    pub mode: ResizeMode,
    /// Whether the centers of the corners' pixels stay where they are, instead of the corners.
    pub align_corners: bool,
    /// Whether a pixel's center is half a pixel from its corner; not with aligned corners, unless the nearest
    /// pixel is taken.
    pub half_pixel_centers: bool,
}

impl Resize {
    /// To `size`, without aligned corners and half-pixel centers.
    ///
    /// ```
    /// use diptych::{Resize, ResizeMode};
    ///
    /// let resize = Resize { half_pixel_centers: true, ..Resize::new(ResizeMode::Bilinear, [64, 64]) };
    /// assert_eq!(resize.size, [64, 64]);
    /// ```
    pub const fn new(mode: ResizeMode, size: [usize; 2]) -> Self {
        Resize { size, mode, align_corners: false, half_pixel_centers: false }
    }
}

/// A resize of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ResizeOp {
    input: Shape,
    output: Shape,
    options: Resize,
    precision: Precision,
}

/// Where an output element lies along one axis of the input.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Neighbours {
    /// The pixel, or the one before.
    first: usize,
    /// The one behind; the same where it lies on a pixel.
    second: usize,
    /// The distance from `first`, from 0 to 1.
    part: f32,
}

impl ResizeOp {
    /// Checks the shape and the options.
    ///
    /// # Errors
    /// If there are no pixels or an extent is too large, or corners are aligned between half-pixel centers.
    pub fn new(input: Shape, options: &Resize, precision: Precision) -> Result<Self> {
        let [h, w] = options.size;
        let output = Shape { h, w, ..input };
        // Of no image or no channel there is nothing to resize; an image of no pixels has none to take.
        Shape { n: input.n.max(1), c: input.c.max(1), ..input }.check(OP)?;
        Shape { n: output.n.max(1), c: output.c.max(1), ..output }.check(OP)?;
        if [input.h, input.w, h, w].iter().any(|&extent| extent > MAX_EXTENT) {
            let found = format!("{input} to {output}");
            return Err(Error::shape(OP, found, format!("at most {MAX_EXTENT} pixels along an axis")));
        }
        if options.align_corners && options.half_pixel_centers && options.mode == ResizeMode::Bilinear {
            return Err(Error::unsupported(OP, "aligned corners with half-pixel centers"));
        }
        // Coordinates need f32, and few values are summed.
        Ok(ResizeOp { input, output, options: *options, precision: precision.with_f32_sums() })
    }

    fn extents(&self, axis: usize) -> [usize; 2] {
        let (x, y) = (self.input, self.output);
        [[x.h, y.h], [x.w, y.w]][axis]
    }

    /// Input pixels per output pixel along axis 0 (height) or 1 (width).
    fn scale(&self, axis: usize) -> f32 {
        let [input, output] = self.extents(axis);
        if self.options.align_corners && output > 1 {
            (input - 1) as f32 / (output - 1) as f32
        } else {
            input as f32 / output as f32
        }
    }

    /// Where output element `out` lies along an axis.
    fn source(&self, axis: usize, out: usize) -> Neighbours {
        let last = self.extents(axis)[0] - 1;
        let half = if self.options.half_pixel_centers { 0.5 } else { 0.0 };
        let scaled = (out as f32 + half) * self.scale(axis);
        if self.options.mode == ResizeMode::Nearest {
            let floor = scaled.floor();
            let up = self.options.align_corners && scaled >= floor + 0.5;
            let nearest = (floor as usize + usize::from(up)).min(last);
            return Neighbours { first: nearest, second: nearest, part: 0.0 };
        }
        let place = (scaled - half).clamp(0.0, last as f32);
        let [first, second] = [place.floor(), place.ceil()];
        Neighbours { first: first as usize, second: second as usize, part: place - first }
    }
}
