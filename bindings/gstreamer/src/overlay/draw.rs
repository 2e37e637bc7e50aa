//! What was found, on a frame.

use super::canvas::{Canvas, Colour};
use crate::decode::Region;
use crate::tensors::View;
use diptych_decode::skeleton::{LIMBS, PARTS};

/// What is drawn, and how.
#[derive(Debug, Clone)]
pub(super) struct Style {
    pub(super) boxes: bool,
    pub(super) keypoints: bool,
    pub(super) masks: bool,
    /// The width of lines in pixels; 0 for a width that suits the frame.
    pub(super) line_width: f32,
    /// The least score of a point that is drawn.
    pub(super) threshold: f32,
    pub(super) mask_opacity: f32,
}

impl Default for Style {
    fn default() -> Self {
        Style {
            boxes: true,
            keypoints: true,
            masks: true,
            line_width: 0.0,
            threshold: 0.3,
            mask_opacity: 0.5,
        }
    }
}

impl Style {
    fn width(&self, canvas: &Canvas<'_>) -> f32 {
        match self.line_width > 0.0 {
            true => self.line_width,
            false => (((canvas.width * canvas.height) as f32).sqrt() / 200.0).max(1.5),
        }
    }
}

/// A colour for each number, far from those of its neighbours.
pub(super) fn colour(number: usize) -> Colour {
    // Steps of the golden ratio around the circle of hues.
    let hue = (0.33 + number as f32 * 0.618_034).fract() * 6.0;
    let part = |shift: f32| {
        let away = ((hue + shift) % 6.0 - 3.0).abs() - 1.0;
        (70.0 + 185.0 * away.clamp(0.0, 1.0)).round() as u8
    };
    [part(0.0), part(4.0), part(2.0)]
}

/// The colour of a part: of one side of the person, of the other, or of neither.
fn side(part: usize) -> Colour {
    match part {
        0 => [255, 255, 255],
        odd if odd % 2 == 1 => [255, 160, 30],
        _ => [40, 160, 255],
    }
}

/// A box and its points.
pub(super) fn region(canvas: &mut Canvas<'_>, region: &Region, style: &Style) {
    let (width, height) = (canvas.width as f32, canvas.height as f32);
    let line = style.width(canvas);
    if style.boxes {
        let [left, top, right, bottom] = region.area.map(|share| share as f32);
        let area = [left * width, top * height, right * width, bottom * height];
        canvas.rectangle(area, line, colour(region.class as usize));
    }
    if !style.keypoints {
        return;
    }
    let is_person = region.points.len() == PARTS;
    let place = |part: usize| {
        let point = region.points.get(part)?;
        let [x, y] = point.place.map(|share| share as f32);
        (point.score >= f64::from(style.threshold)).then_some([x * width, y * height])
    };
    for (a, b) in LIMBS.into_iter().filter(|_| is_person) {
        if let (Some(from), Some(to)) = (place(a), place(b)) {
            canvas.line(from, to, 2.0 * line, [20, 20, 20], 0.6);
            let joins_sides = a % 2 != b % 2;
            canvas.line(from, to, 1.2 * line, if joins_sides { [90, 215, 90] } else { side(a) }, 1.0);
        }
    }
    for part in 0..region.points.len() {
        if let Some(at) = place(part) {
            canvas.disc(at, 1.6 * line, [20, 20, 20], 0.6);
            let own = if is_person { side(part) } else { colour(region.class as usize) };
            canvas.disc(at, 1.2 * line, own, 1.0);
        }
    }
}

/// The classes of a mask but 0, the background.
pub(super) fn mask(
    canvas: &mut Canvas<'_>,
    classes: &[u8],
    [height, width]: [usize; 2],
    view: &View,
    style: &Style,
) {
    let [input_width, input_height] = view.input.map(f64::from);
    let colours: Vec<Colour> = (0..=255).map(colour).collect();
    canvas.paint(style.mask_opacity, |x, y| {
        let [u, v] = view.input_place([x as f64 + 0.5, y as f64 + 0.5]);
        let [u, v] = [u / input_width * width as f64, v / input_height * height as f64];
        if !(0.0..width as f64).contains(&u) || !(0.0..height as f64).contains(&v) {
            return None;
        }
        match classes.get(v as usize * width + u as usize) {
            Some(&class) if class > 0 => colours.get(usize::from(class)).copied(),
            _ => None,
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_numbers_have_other_colours() {
        for number in 0..80 {
            let (one, two) = (colour(number), colour(number + 1));
            let apart: u32 = one.iter().zip(two).map(|(a, b)| u32::from(a.abs_diff(b))).sum();
            assert!(apart > 120, "{number}: {one:?} and {two:?}");
        }
    }

    #[test]
    fn a_mask_lies_where_the_network_looked() {
        // A frame of 4 x 2 in a picture of 8 x 8 with borders: rows 2 to 5 of it are the frame.
        let view = View { input: [8, 8], frame: [4, 2], to_frame: [[0.5, 0.0, 0.0], [0.0, 0.5, -1.0]] };
        // A mask of 4 x 4, of which rows 1 and 2 are the frame.
        let classes = [9, 9, 9, 9, 0, 1, 0, 0, 0, 0, 0, 2, 9, 9, 9, 9];
        let mut data = vec![0; 4 * 2 * 3];
        let mut canvas =
            Canvas { data: &mut data, stride: 12, step: 3, offsets: [0, 1, 2], width: 4, height: 2 };
        let style = Style { mask_opacity: 1.0, ..Style::default() };
        mask(&mut canvas, &classes, [4, 4], &view, &style);
        let mut wanted = vec![0; 4 * 2 * 3];
        wanted[3..6].copy_from_slice(&colour(1));
        wanted[21..24].copy_from_slice(&colour(2));
        assert_eq!(data, wanted);
    }
}
