//! A picture as a network's input, and positions of the input in the picture.
//!
//! Positions count from the outer corner of the first pixel, in the picture as in the input: the centre of the
//! first pixel is 0.5.

use anyhow::{Result, ensure};
use image::RgbImage;

/// How a part of a picture takes its place in an input of other proportions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Stretched to the input's proportions.
    Stretch,
    /// The whole part in the middle, with bars on two sides: `keep_aspect_ratio` in MediaPipe's graphs.
    Whole,
    /// The middle of the part, as much as fills the input.
    Middle,
}

/// What lies outside the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Border {
    /// Black: `BORDER_ZERO` in MediaPipe's graphs.
    Black,
    /// The nearest pixel of the picture: what MediaPipe does where a graph says nothing.
    Nearest,
}

/// What a network wants of a picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Height and width.
    pub size: [usize; 2],
    pub fit: Fit,
    pub border: Border,
    /// Whether the weights widen with the pictures that are made smaller (antialiased). Without it, four pixels
    /// make one, and others are passed over: that is how MediaPipe samples.
    pub smooth: bool,
    /// `(value - mean) / deviation` for each channel of the input, values from 0 to 255.
    pub normalise: [(f32, f32); 3],
    /// Whether the input's first channel is blue.
    pub bgr: bool,
}

/// Numbers from `low` for black to `high` for white, as a normalisation.
pub fn range(low: f32, high: f32) -> [(f32, f32); 3] {
    let deviation = 255.0 / (high - low);
    [(0.0 - low * deviation, deviation); 3]
}

/// Channels first: the first of every pixel, then the second, then the third.
pub fn planes(values: &[f32]) -> Vec<f32> {
    (0..3).flat_map(|channel| values.iter().skip(channel).step_by(3).copied()).collect()
}

/// A part of a picture, in pixels: left, top, width, height.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl Part {
    /// All of a picture.
    pub fn whole(picture: &RgbImage) -> Self {
        Part { x: 0.0, y: 0.0, width: picture.width().into(), height: picture.height().into() }
    }
}

/// Where an input's pixels lie in a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Where the input's corner lies.
    origin: [f64; 2],
    /// Pixels of the picture for one of the input, to the right and down.
    step: [f64; 2],
}

impl Window {
    /// Lays an input of height and width over a part of a picture.
    pub fn of(part: Part, [height, width]: [usize; 2], fit: Fit) -> Self {
        let (width, height) = (width.max(1) as f64, height.max(1) as f64);
        let [x, y] = [part.width / width, part.height / height];
        let step = match fit {
            Fit::Stretch => [x, y],
            Fit::Whole => [x.max(y); 2],
            Fit::Middle => [x.min(y); 2],
        };
        let left = part.x + (part.width - step[0] * width) / 2.0;
        let top = part.y + (part.height - step[1] * height) / 2.0;
        Window { origin: [left, top], step }
    }

    /// Where a position of the input lies in the picture.
    pub fn to_picture(self, [x, y]: [f32; 2]) -> [f32; 2] {
        let at = |axis: usize, v: f32| (self.origin[axis] + f64::from(v) * self.step[axis]) as f32;
        [at(0, x), at(1, y)]
    }

    /// Where a position of the picture lies in the input.
    pub fn to_input(self, [x, y]: [f32; 2]) -> [f32; 2] {
        let at = |axis: usize, v: f32| ((f64::from(v) - self.origin[axis]) / self.step[axis]) as f32;
        [at(0, x), at(1, y)]
    }
}

/// What one pixel of the input takes of a row or column of the picture.
struct Taps {
    first: usize,
    weights: Vec<f32>,
}

/// The weights along one axis: a triangle of at least two pixels about each centre.
fn taps(count: usize, (origin, step): (f64, f64), extent: usize, wanted: &Wanted) -> Vec<Taps> {
    let reach = if wanted.smooth { step.max(1.0) } else { 1.0 };
    let last = extent as i64 - 1;
    let tap = |index: usize| {
        let centre = origin + (index as f64 + 0.5) * step - 0.5;
        let [from, to] = [(centre - reach).ceil() as i64, (centre + reach).floor() as i64];
        let weight = |at: i64| (1.0 - (at as f64 - centre).abs() / reach).max(0.0);
        let sum: f64 = (from..=to).map(weight).sum();
        let first = from.clamp(0, last);
        let mut weights = vec![0.0; (to.clamp(0, last) - first + 1) as usize];
        for at in from..=to {
            if wanted.border == Border::Nearest || (0..=last).contains(&at) {
                weights[(at.clamp(0, last) - first) as usize] += (weight(at) / sum) as f32;
            }
        }
        Taps { first: first as usize, weights }
    };
    (0..count).map(tap).collect()
}

/// The part of a picture under a window as the input that is wanted: NHWC, of one picture.
pub fn input(picture: &RgbImage, window: &Window, wanted: &Wanted) -> Result<Vec<f32>> {
    let [height, width] = wanted.size;
    let (from_width, from_height) = (picture.width() as usize, picture.height() as usize);
    ensure!(from_width > 0 && from_height > 0, "the picture has no pixels");
    let columns = taps(width, (window.origin[0], window.step[0]), from_width, wanted);
    let rows = taps(height, (window.origin[1], window.step[1]), from_height, wanted);
    let pixels = picture.as_raw();
    // Rows of the picture in the input's width; only those that are looked at.
    let mut narrow = vec![0.0f32; from_height * width * 3];
    let mut needed = vec![false; from_height];
    for row in &rows {
        needed[row.first..row.first + row.weights.len()].fill(true);
    }
    for (y, row) in narrow.chunks_exact_mut(width * 3).enumerate().filter(|&(y, _)| needed[y]) {
        for (tap, pixel) in columns.iter().zip(row.chunks_exact_mut(3)) {
            let from = (y * from_width + tap.first) * 3;
            for (weight, found) in tap.weights.iter().zip(pixels[from..].chunks_exact(3)) {
                for (sum, &value) in pixel.iter_mut().zip(found) {
                    *sum += weight * f32::from(value);
                }
            }
        }
    }
    let mut input = vec![0.0f32; height * width * 3];
    for (tap, row) in rows.iter().zip(input.chunks_exact_mut(width * 3)) {
        for (index, weight) in tap.weights.iter().enumerate() {
            let from = &narrow[(tap.first + index) * width * 3..][..width * 3];
            row.iter_mut().zip(from).for_each(|(sum, value)| *sum += weight * value);
        }
    }
    for pixel in input.chunks_exact_mut(3) {
        if wanted.bgr {
            pixel.swap(0, 2);
        }
        for (value, (mean, deviation)) in pixel.iter_mut().zip(wanted.normalise) {
            *value = (*value - mean) / deviation;
        }
    }
    Ok(input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgb;

    fn wanted(size: [usize; 2], border: Border) -> Wanted {
        let normalise = range(0.0, 255.0);
        Wanted { size, fit: Fit::Stretch, border, smooth: false, normalise, bgr: false }
    }

    fn close(found: [f32; 2], wanted: [f32; 2]) {
        let off = (found[0] - wanted[0]).abs().max((found[1] - wanted[1]).abs());
        assert!(off < 1e-3, "{found:?}, wanted {wanted:?}");
    }

    #[test]
    fn a_whole_picture_has_bars_on_two_sides() {
        // 640 x 480 in 128 x 128: five pixels make one, and 16 rows are free above and below.
        let part = Part { x: 0.0, y: 0.0, width: 640.0, height: 480.0 };
        let window = Window::of(part, [128, 128], Fit::Whole);
        close(window.to_picture([0.0, 16.0]), [0.0, 0.0]);
        close(window.to_picture([128.0, 112.0]), [640.0, 480.0]);
        close(window.to_picture([0.0, 0.0]), [0.0, -80.0]);
        let window = Window::of(part, [128, 128], Fit::Middle);
        close(window.to_picture([0.0, 0.0]), [80.0, 0.0]);
        close(window.to_picture([128.0, 128.0]), [560.0, 480.0]);
    }

    #[test]
    fn positions_come_back() {
        let part = Part { x: 31.0, y: -7.0, width: 257.0, height: 513.0 };
        for fit in [Fit::Stretch, Fit::Whole, Fit::Middle] {
            let window = Window::of(part, [120, 160], fit);
            for at in [[0.0, 0.0], [160.0, 120.0], [33.25, 71.5]] {
                close(window.to_input(window.to_picture(at)), at);
            }
        }
    }

    #[test]
    fn one_for_one_is_the_picture_itself() {
        let picture = RgbImage::from_fn(4, 3, |x, y| Rgb([(10 * x) as u8, (20 * y) as u8, 255]));
        let window = Window::of(Part::whole(&picture), [3, 4], Fit::Whole);
        let mut plan = wanted([3, 4], Border::Black);
        let found = input(&picture, &window, &plan).expect("an input");
        let same: Vec<f32> = picture.as_raw().iter().map(|&value| f32::from(value)).collect();
        assert_eq!(found, same);
        (plan.bgr, plan.normalise) = (true, range(-1.0, 1.0));
        let found = input(&picture, &window, &plan).expect("an input");
        let last = &found[found.len() - 3..];
        for (found, wanted) in last.iter().zip([1.0, 40.0 / 127.5 - 1.0, 30.0 / 127.5 - 1.0]) {
            assert!((found - wanted).abs() < 1e-6, "{last:?}");
        }
    }

    #[test]
    fn what_is_outside_is_black_or_the_nearest_pixel() {
        let picture = RgbImage::from_pixel(4, 2, Rgb([200; 3]));
        let window = Window::of(Part::whole(&picture), [4, 4], Fit::Whole);
        for (border, outside) in [(Border::Black, 0.0), (Border::Nearest, 200.0)] {
            let found = input(&picture, &window, &wanted([4, 4], border)).expect("an input");
            let row = |y: usize| &found[y * 12..][..12];
            for (y, value) in [(0, outside), (1, 200.0), (2, 200.0), (3, outside)] {
                assert!(row(y).iter().all(|found| (found - value).abs() < 1e-3), "row {y}: {:?}", row(y));
            }
        }
        // Far away there is nothing to look at.
        let far = Part { x: 1e4, y: 1e4, width: 4.0, height: 4.0 };
        let window = Window::of(far, [2, 2], Fit::Stretch);
        let found = input(&picture, &window, &wanted([2, 2], Border::Black)).expect("an input");
        assert_eq!(found, [0.0; 12]);
    }

    #[test]
    fn smaller_pictures_are_means_or_samples() {
        // Columns of 0 and 240 in turns: eight pixels make two.
        let picture = RgbImage::from_fn(8, 1, |x, _| Rgb([if x % 2 == 1 { 240 } else { 0 }; 3]));
        let window = Window::of(Part::whole(&picture), [1, 2], Fit::Stretch);
        let mut plan = wanted([1, 2], Border::Nearest);
        let of = |plan: &Wanted| input(&picture, &window, plan).expect("an input")[0];
        // Centre 1.5: halves of pixels 1 and 2.
        assert!((of(&plan) - 120.0).abs() < 1e-3, "{}", of(&plan));
        plan.smooth = true;
        // Weights 5/8, 7/8, 7/8, 5/8, 3/8, 1/8 for pixels 0 to 5, and 3/8, 1/8 beyond the edge for pixel 0.
        assert!((of(&plan) - 240.0 * (7.0 + 5.0 + 1.0) / 32.0).abs() < 1e-3, "{}", of(&plan));
    }

    #[test]
    fn planes_are_the_channels_one_behind_the_other() {
        assert_eq!(planes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    }

    #[test]
    fn ranges_are_normalisations() {
        assert_eq!(range(-1.0, 1.0), [(127.5, 127.5); 3]);
        assert_eq!(range(0.0, 1.0), [(0.0, 255.0); 3]);
        assert_eq!(range(0.0, 255.0), [(0.0, 1.0); 3]);
    }
}
