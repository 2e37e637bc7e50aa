//! `source = centre + R(angle) diag(sx, sy) (target - extent / 2)`: which part of a picture a network sees, and where in
//! the picture its results lie.
//!
//! Coordinates are continuous and `y` points down: pixel `(i, j)` covers `i..i+1` and `j..j+1`, and its centre, where it
//! is sampled, is `(i + 0.5, j + 0.5)`. That is the convention of TensorFlow's half-pixel centres and of PyTorch's
//! `align_corners=False`.

use crate::error::{Error, Result};

/// How a crop of one aspect ratio is shown in a picture of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Fit {
    /// Each axis has its own scale: the crop fills the target.
    #[default]
    Stretch,
    /// One scale for both axes. All of the crop is seen. What remains of the target shows what lies beside the crop in the
    /// source, or the border's colour.
    Letterbox,
    /// One scale for both axes. The crop covers the target, and what overhangs is cut off.
    Fill,
}

/// A rectangle of a source picture as a picture of another size.
///
/// ```
/// use diptych::{Fit, Framing};
///
/// let framing = Framing::new([1920, 1080], [256, 256])?.fit(Fit::Letterbox);
/// // The middle is the middle, and the left edge is the left edge.
/// assert_eq!(framing.to_source([128.0, 128.0]), [960.0, 540.0]);
/// assert_eq!(framing.to_source([0.0, 128.0]), [0.0, 540.0]);
/// assert_eq!(framing.to_target([960.0, 540.0]), [128.0, 128.0]);
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Framing {
    source: [u32; 2],
    target: [u32; 2],
    centre: [f64; 2],
    extent: [f64; 2],
    angle: f64,
    fit: Fit,
}

impl Framing {
    /// All of a picture of `source` pixels (width, height) as one of `target` pixels.
    ///
    /// ```
    /// use diptych::Framing;
    ///
    /// let framing = Framing::new([640, 480], [320, 240])?;
    /// assert_eq!(framing.scale(), [2.0, 2.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an extent is 0 or above 2^24, which f32 no longer counts.
    pub fn new(source: [u32; 2], target: [u32; 2]) -> Result<Self> {
        for extent in source.into_iter().chain(target) {
            if !(1..=1 << 24).contains(&extent) {
                return Err(Error::input("framing", format!("{extent} pixels"), "1 to 16777216"));
            }
        }
        let extent = source.map(f64::from);
        let centre = extent.map(|extent| extent / 2.0);
        Ok(Framing { source, target, centre, extent, angle: 0.0, fit: Fit::Stretch })
    }

    /// A part of the source: its centre and its width and height, in the source's pixels. It may reach beyond the
    /// source.
    ///
    /// ```
    /// use diptych::Framing;
    ///
    /// let framing = Framing::new([640, 480], [320, 240])?.crop([100.0, 100.0], [64.0, 48.0])?;
    /// assert_eq!(framing.to_source([160.0, 120.0]), [100.0, 100.0]); // the crop's centre
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a number is not finite, or the width or height is not above 0.
    pub fn crop(self, centre: [f64; 2], extent: [f64; 2]) -> Result<Self> {
        let finite = centre.iter().chain(&extent).all(|number| number.is_finite());
        if !finite || extent.iter().any(|&extent| extent <= 0.0) {
            let found = format!("{extent:?} pixels around {centre:?}");
            return Err(Error::input("crop", found, "finite numbers, and more than 0 pixels"));
        }
        Ok(Framing { centre, extent, ..self })
    }

    /// Turns the crop around its centre, by an angle in radians from the x axis towards the y axis: clockwise as
    /// seen. What points that way in the source points to the right in the target.
    ///
    /// ```
    /// use diptych::Framing;
    ///
    /// let framing = Framing::new([640, 480], [320, 240])?.rotate(std::f64::consts::PI)?;
    /// let [x, y] = framing.to_source([0.0, 0.0]); // half a turn: the other corner
    /// assert!((x - 640.0).abs() < 1e-9 && (y - 480.0).abs() < 1e-9);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the angle is not finite.
    pub fn rotate(self, angle: f64) -> Result<Self> {
        if !angle.is_finite() {
            return Err(Error::input("rotation", angle.to_string(), "a finite angle"));
        }
        Ok(Framing { angle, ..self })
    }

    /// How the crop is shown where its aspect ratio is not the target's.
    ///
    /// ```
    /// use diptych::{Fit, Framing};
    ///
    /// let framing = Framing::new([640, 480], [256, 256])?.fit(Fit::Letterbox);
    /// assert_eq!(framing.to_source([128.0, 32.0]), [320.0, 0.0]); // 32 rows of border above the picture
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[must_use]
    pub fn fit(self, fit: Fit) -> Self {
        Framing { fit, ..self }
    }

    /// Width and height of the source.
    ///
    /// ```
    /// use diptych::Framing;
    ///
    /// let framing = Framing::new([640, 480], [320, 240])?;
    /// assert_eq!(framing.source(), [640, 480]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn source(&self) -> [u32; 2] {
        self.source
    }

    /// Width and height of the target.
    ///
    /// ```
    /// use diptych::Framing;
    ///
    /// let framing = Framing::new([640, 480], [320, 240])?;
    /// assert_eq!(framing.target(), [320, 240]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn target(&self) -> [u32; 2] {
        self.target
    }

    /// Pixels of the source for one of the target, along the crop's axes.
    ///
    /// ```
    /// use diptych::Framing;
    ///
    /// let framing = Framing::new([640, 480], [320, 240])?;
    /// assert_eq!(framing.scale(), [2.0, 2.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn scale(&self) -> [f64; 2] {
        let [w, h] = self.target.map(f64::from);
        let [sx, sy] = [self.extent[0] / w, self.extent[1] / h];
        match self.fit {
            Fit::Stretch => [sx, sy],
            Fit::Letterbox => [sx.max(sy); 2],
            Fit::Fill => [sx.min(sy); 2],
        }
    }

    /// Where a place of the target lies in the source.
    ///
    /// ```
    /// use diptych::Framing;
    ///
    /// let framing = Framing::new([640, 480], [320, 240])?;
    /// assert_eq!(framing.to_source([160.0, 120.0]), [320.0, 240.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn to_source(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let [[a, b, c], [d, e, f]] = self.matrix();
        [a * x + b * y + c, d * x + e * y + f]
    }

    /// Where a place of the source lies in the target.
    ///
    /// ```
    /// use diptych::Framing;
    ///
    /// let framing = Framing::new([640, 480], [320, 240])?;
    /// assert_eq!(framing.to_target([320.0, 240.0]), [160.0, 120.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn to_target(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let ([sx, sy], (sin, cos)) = (self.scale(), self.angle.sin_cos());
        let (dx, dy) = (x - self.centre[0], y - self.centre[1]);
        let [w, h] = self.target.map(f64::from);
        [(cos * dx + sin * dy) / sx + w / 2.0, (cos * dy - sin * dx) / sy + h / 2.0]
    }

    /// The two rows of the affine map from target to source: factors of `x` and `y`, and what is added.
    ///
    /// ```
    /// use diptych::Framing;
    ///
    /// let framing = Framing::new([640, 480], [320, 240])?;
    /// let [[xx, _, _], [_, yy, _]] = framing.matrix();
    /// assert_eq!([xx, yy], [2.0, 2.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn matrix(&self) -> [[f64; 3]; 2] {
        let ([sx, sy], (sin, cos)) = (self.scale(), self.angle.sin_cos());
        let [w, h] = self.target.map(f64::from);
        let row = |a: f64, b: f64, centre: f64| [a, b, centre - a * w / 2.0 - b * h / 2.0];
        [row(cos * sx, -sin * sy, self.centre[0]), row(sin * sx, cos * sy, self.centre[1])]
    }
}

/// How colours become a network's numbers: `y_k = sum_c m[k][c] colour_c + m[k][4]`, for red, green, blue and alpha in
/// `0..=1` as the texture gives them. A view in an sRGB format gives linear light; networks are usually trained on
/// the encoded values, which a view in the plain format gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Colours {
    rows: [[f32; 5]; 4],
    border: [f32; 4],
    /// Whether it was said what an input of one channel is given.
    one_channel: bool,
}

impl Default for Colours {
    /// Red, green, blue and alpha as they are, and black beyond the picture.
    fn default() -> Self {
        let mut rows = [[0.0; 5]; 4];
        for (channel, row) in rows.iter_mut().enumerate() {
            row[channel] = 1.0;
        }
        Colours { rows, border: [0.0, 0.0, 0.0, 1.0], one_channel: false }
    }
}

impl Colours {
    /// `(colour - mean) / deviation` of red, green and blue, both in `0..=1`.
    ///
    /// ```
    /// use diptych::Colours;
    ///
    /// // As networks trained on ImageNet want them.
    /// let colours = Colours::normalized([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])?;
    /// assert!(Colours::normalized([0.5; 3], [0.0; 3]).is_err());
    /// # let _ = colours;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a deviation is 0, or a number is not finite.
    pub fn normalized(mean: [f32; 3], deviation: [f32; 3]) -> Result<Self> {
        if mean.iter().chain(&deviation).any(|one| !one.is_finite()) || deviation.contains(&0.0) {
            let found = format!("mean {mean:?}, deviation {deviation:?}");
            return Err(Error::input("colours", found, "finite numbers, deviations that are not 0"));
        }
        let mut colours = Colours::default();
        for (channel, (mean, deviation)) in mean.into_iter().zip(deviation).enumerate() {
            colours.rows[channel][channel] = 1.0 / deviation;
            colours.rows[channel][4] = -mean / deviation;
        }
        Ok(colours)
    }

    /// Red, green and blue from `0..=1` to `low..=high`.
    ///
    /// ```
    /// use diptych::Colours;
    ///
    /// let rows = Colours::range(-1.0, 1.0).rows();
    /// assert_eq!(rows[0], [2.0, 0.0, 0.0, 0.0, -1.0]); // 2 red - 1
    /// ```
    pub fn range(low: f32, high: f32) -> Self {
        let mut colours = Colours::default();
        for channel in 0..3 {
            colours.rows[channel][channel] = high - low;
            colours.rows[channel][4] = low;
        }
        colours
    }

    /// Blue first, then green and red.
    ///
    /// ```
    /// use diptych::Colours;
    ///
    /// assert_eq!(Colours::default().bgr().rows()[0], [0.0, 0.0, 1.0, 0.0, 0.0]); // blue first
    /// ```
    #[must_use]
    pub fn bgr(mut self) -> Self {
        self.rows.swap(0, 2);
        self
    }

    /// One channel: the luma of BT.601, `0.299 r + 0.587 g + 0.114 b` of what red, green and blue are.
    ///
    /// ```
    /// use diptych::Colours;
    ///
    /// let [row, ..] = Colours::default().gray().rows();
    /// assert_eq!(row[..3], [0.299, 0.587, 0.114]);
    /// ```
    #[must_use]
    pub fn gray(mut self) -> Self {
        let [r, g, b, _] = self.rows;
        for (place, slot) in self.rows[0].iter_mut().enumerate() {
            *slot = 0.299 * r[place] + 0.587 * g[place] + 0.114 * b[place];
        }
        self.one_channel = true;
        self
    }

    /// One channel: the first alone, for textures that have no other (`r8unorm`, `r32float`).
    #[must_use]
    pub fn first_channel(self) -> Self {
        Colours { one_channel: true, ..self }
    }

    /// The colour beyond the picture, before it is normalised.
    ///
    /// ```
    /// use diptych::Colours;
    ///
    /// let colours = Colours::range(-1.0, 1.0).border([0.5, 0.5, 0.5, 1.0]); // grey beyond the picture
    /// # let _ = colours;
    /// ```
    #[must_use]
    pub fn border(self, border: [f32; 4]) -> Self {
        Colours { border, ..self }
    }

    /// The rows of the matrix: factors of red, green, blue and alpha, and what is added.
    ///
    /// ```
    /// use diptych::Colours;
    ///
    /// assert_eq!(Colours::default().rows()[1], [0.0, 1.0, 0.0, 0.0, 0.0]); // green as it is
    /// ```
    pub fn rows(&self) -> [[f32; 5]; 4] {
        self.rows
    }

    /// Whether it was said what an input of one channel is given: red is seldom meant.
    #[cfg(any(feature = "cpu", feature = "wgpu", feature = "opencl"))]
    pub(super) fn have_one_channel(&self) -> bool {
        self.one_channel
    }

    #[cfg(any(feature = "cpu", feature = "wgpu", feature = "opencl"))]
    pub(super) fn border_colour(&self) -> [f32; 4] {
        self.border
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: [f64; 2], wanted: [f64; 2]) {
        let off = (found[0] - wanted[0]).abs().max((found[1] - wanted[1]).abs());
        assert!(off < 1e-9, "{found:?}, wanted {wanted:?}");
    }

    #[test]
    fn corners_lie_where_they_should() {
        let all = Framing::new([200, 100], [50, 50]).expect("a framing");
        near(all.to_source([0.0, 0.0]), [0.0, 0.0]);
        near(all.to_source([50.0, 50.0]), [200.0, 100.0]);
        let letterbox = all.fit(Fit::Letterbox);
        near(letterbox.to_source([0.0, 12.5]), [0.0, 0.0]);
        near(letterbox.to_source([0.0, 0.0]), [0.0, -50.0]);
        let fill = all.fit(Fit::Fill);
        near(fill.to_source([0.0, 0.0]), [50.0, 0.0]);
        // A quarter turn: what points down in the source points to the right.
        let turned = all.crop([100.0, 50.0], [50.0, 50.0]).expect("a crop");
        let turned = turned.rotate(std::f64::consts::FRAC_PI_2).expect("an angle");
        near(turned.to_source([50.0, 25.0]), [100.0, 75.0]);
        near(turned.to_source([25.0, 50.0]), [75.0, 50.0]);
    }

    #[test]
    fn there_and_back_is_the_same_place() {
        for fit in [Fit::Stretch, Fit::Letterbox, Fit::Fill] {
            let framing = Framing::new([640, 360], [257, 129]).expect("a framing");
            let framing = framing.crop([300.0, 90.5], [120.0, 333.0]).expect("a crop");
            let framing = framing.rotate(0.7).expect("an angle").fit(fit);
            for place in [[0.0, 0.0], [13.25, 99.0], [-7.0, 400.0]] {
                near(framing.to_target(framing.to_source(place)), place);
            }
        }
    }

    #[test]
    fn numbers_without_a_meaning_are_refused() {
        assert!(Framing::new([0, 4], [4, 4]).is_err());
        let framing = Framing::new([4, 4], [4, 4]).expect("a framing");
        assert!(framing.crop([0.0, 0.0], [0.0, 1.0]).is_err());
        assert!(framing.crop([f64::NAN, 0.0], [1.0, 1.0]).is_err());
        assert!(framing.rotate(f64::INFINITY).is_err());
        assert!(Colours::normalized([0.0; 3], [1.0, 0.0, 1.0]).is_err());
    }
}
