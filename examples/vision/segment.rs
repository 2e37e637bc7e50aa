//! Masks: how likely each pixel is to be a person's, or which of several classes it is.

use crate::fit::{Part, Window};

/// The 21 classes of Pascal VOC, in their order.
pub const VOC: [&str; 21] = [
    "background",
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "dining table",
    "dog",
    "horse",
    "motorbike",
    "person",
    "potted plant",
    "sheep",
    "sofa",
    "train",
    "tv monitor",
];

/// A map as large as the picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Map<T> {
    pub width: usize,
    /// Row by row; what lies outside the part that was looked at is the least.
    pub values: Vec<T>,
    /// Pixels that were looked at.
    pub looked_at: usize,
}

/// A map of `size` (height, width) laid over the picture of width and height: `at` gives the value at a
/// position of the input.
fn lay<T: Copy + Default>(
    (width, height): (u32, u32),
    part: Part,
    window: &Window,
    at: impl Fn([f32; 2]) -> T,
) -> Map<T> {
    let mut values = vec![T::default(); width as usize * height as usize];
    let mut looked_at = 0;
    for (y, row) in values.chunks_exact_mut(width.max(1) as usize).enumerate() {
        for (x, value) in row.iter_mut().enumerate() {
            let [right, down] = [x as f64 + 0.5 - part.x, y as f64 + 0.5 - part.y];
            if (0.0..part.width).contains(&right) && (0.0..part.height).contains(&down) {
                *value = at(window.to_input([x as f32 + 0.5, y as f32 + 0.5]));
                looked_at += 1;
            }
        }
    }
    Map { width: width as usize, values, looked_at }
}

/// Probabilities in the picture's size, with straight lines between the network's.
pub fn mask(
    values: &[f32],
    [height, width]: [usize; 2],
    picture: (u32, u32),
    part: Part,
    window: &Window,
) -> Map<f32> {
    let between = |v: f32, extent: usize| {
        let v = (v - 0.5).clamp(0.0, extent.saturating_sub(1) as f32);
        let low = v.floor() as usize;
        (low, (low + 1).min(extent - 1), v - low as f32)
    };
    lay(picture, part, window, |[x, y]| {
        let ((left, right, x), (top, bottom, y)) = (between(x, width), between(y, height));
        let row = |y: usize| values[y * width + left] * (1.0 - x) + values[y * width + right] * x;
        row(top) * (1.0 - y) + row(bottom) * y
    })
}

/// The likeliest class of each pixel of the picture: that of the network's pixel it lies in.
pub fn classes(
    values: &[f32],
    [height, width, classes]: [usize; 3],
    picture: (u32, u32),
    part: Part,
    window: &Window,
) -> Map<u16> {
    let largest: Vec<u16> = values.chunks_exact(classes).map(|scores| largest(scores) as u16).collect();
    lay(picture, part, window, |[x, y]| {
        let cell = |v: f32, extent: usize| (v.max(0.0) as usize).min(extent - 1);
        largest[cell(y, height) * width + cell(x, width)]
    })
}

/// The place of the largest number, the first of several.
pub fn largest(scores: &[f32]) -> usize {
    let better =
        |best: usize, (index, score): (usize, &f32)| if *score > scores[best] { index } else { best };
    scores.iter().enumerate().fold(0, better)
}

impl Map<f32> {
    /// The mean, the share that is above `least`, and the box around those pixels (left, top, right, bottom).
    pub fn statistics(&self, least: f32) -> (f64, f64, Option<[usize; 4]>) {
        let mean =
            self.values.iter().map(|&value| f64::from(value)).sum::<f64>() / self.looked_at.max(1) as f64;
        let above = || self.values.iter().enumerate().filter(|(_, value)| **value > least);
        let share = above().count() as f64 / self.looked_at.max(1) as f64;
        let area = above().fold(None, |area: Option<[usize; 4]>, (index, _)| {
            let (x, y) = (index % self.width, index / self.width);
            let [left, top, right, bottom] = area.unwrap_or([x, y, x + 1, y + 1]);
            Some([left.min(x), top.min(y), right.max(x + 1), bottom.max(y + 1)])
        });
        (mean, share, area)
    }
}

impl Map<u16> {
    /// The classes that are there with their shares, the largest first. Class 0 is also what was not looked at.
    pub fn shares(&self) -> Vec<(usize, f64)> {
        let mut counts = std::collections::BTreeMap::<usize, usize>::new();
        self.values.iter().for_each(|&class| *counts.entry(class.into()).or_default() += 1);
        if let Some(background) = counts.get_mut(&0) {
            *background -= self.values.len() - self.looked_at;
        }
        let share = |(class, count)| (class, count as f64 / self.looked_at.max(1) as f64);
        let mut shares: Vec<_> = counts.into_iter().filter(|&(_, count)| count > 0).map(share).collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        shares
    }
}

/// The colour of a class: the bits of its number, three by three, from the most significant of each channel on.
///
/// Source: the colour map of the Pascal VOC development kit.
pub fn colour(class: usize) -> [u8; 3] {
    let channel = |channel: usize| {
        (0..8).fold(0u8, |colour, bit| colour | ((class >> (3 * bit + channel) & 1) as u8) << (7 - bit))
    };
    [channel(0), channel(1), channel(2)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::Fit;

    fn part(width: f64, height: f64) -> Part {
        Part { x: 0.0, y: 0.0, width, height }
    }

    #[test]
    fn a_mask_takes_the_pictures_size() {
        let window = Window::of(part(8.0, 2.0), [1, 2], Fit::Stretch);
        let map = mask(&[0.0, 1.0], [1, 2], (8, 2), part(8.0, 2.0), &window);
        // The network's pixels have their centres at 2 and 6.
        let row = [0.0, 0.0, 0.125, 0.375, 0.625, 0.875, 1.0, 1.0];
        assert_eq!(map.values, [row, row].concat());
        assert_eq!(map.statistics(0.5), (0.5, 0.5, Some([4, 0, 8, 2])));
        assert_eq!(map.statistics(1.0), (0.5, 0.0, None));
    }

    #[test]
    fn bars_are_left_out_and_the_rest_of_the_picture_is_background() {
        // The right half of the picture, 4 x 2 in 4 x 4, class 1 below the middle.
        let half = Part { x: 4.0, y: 0.0, width: 4.0, height: 2.0 };
        let window = Window::of(half, [4, 4], Fit::Whole);
        let scores = [[0.9, 0.1].repeat(8), [0.1, 0.9].repeat(8)].concat();
        let map = classes(&scores, [4, 4, 2], (8, 2), half, &window);
        assert_eq!(map.values, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!((map.looked_at, map.shares()), (8, vec![(0, 0.5), (1, 0.5)]));
    }

    #[test]
    fn colours_are_those_of_the_development_kit() {
        assert_eq!(
            [0, 1, 2, 15, 20].map(colour),
            [[0; 3], [128, 0, 0], [0, 128, 0], [192, 128, 128], [0, 64, 128]]
        );
        assert_eq!(largest(&[1.0, 3.0, 3.0, f32::NAN]), 1);
    }
}
