//! Letters on a drawing.

use ab_glyph::{Font as _, FontRef, Glyph, PxScale, ScaleFont as _, point};
use anyhow::{Context as _, Result};
use tiny_skia::{Pixmap, PremultipliedColorU8};

/// Printable ASCII of DejaVu Sans, which the command line's charts are written in; its licence lies beside it.
const FONT: &[u8] = include_bytes!("DejaVuSans-ascii.ttf");

/// A font.
pub struct Ink(FontRef<'static>);

impl Ink {
    pub fn new() -> Result<Self> {
        Ok(Ink(FontRef::try_from_slice(FONT).context("the font")?))
    }

    /// The letters of a line, and its width.
    fn letters(&self, text: &str, (x, y): (f32, f32), height: f32) -> (Vec<Glyph>, f32) {
        let font = self.0.as_scaled(PxScale::from(height));
        let mut right = x;
        let letters = text.chars().map(|letter| {
            // What the font does not have is a question mark.
            let id = if letter.is_ascii() && !letter.is_ascii_control() { letter } else { '?' };
            let id = font.glyph_id(id);
            let glyph = id.with_scale_and_position(PxScale::from(height), point(right, y + font.ascent()));
            right += font.h_advance(id);
            glyph
        });
        (letters.collect(), right - x)
    }

    /// A line whose upper left corner is at `at`, in a colour.
    pub fn plain(&self, canvas: &mut Pixmap, text: &str, at: (f32, f32), height: f32, colour: [u8; 3]) {
        let (letters, _) = self.letters(text, at, height);
        let (width, rows) = (canvas.width() as i32, canvas.height() as i32);
        for outline in letters.into_iter().filter_map(|letter| self.0.outline_glyph(letter)) {
            let corner = outline.px_bounds().min;
            outline.draw(|x, y, cover| {
                let (x, y) = (corner.x as i32 + x as i32, corner.y as i32 + y as i32);
                if (0..width).contains(&x) && (0..rows).contains(&y) {
                    let pixel = &mut canvas.pixels_mut()[(y * width + x) as usize];
                    let cover = cover.clamp(0.0, 1.0);
                    let mix = |under: u8, over: u8| {
                        (f32::from(under) + (f32::from(over) - f32::from(under)) * cover).round() as u8
                    };
                    let [r, g, b] = colour;
                    let mixed = [mix(pixel.red(), r), mix(pixel.green(), g), mix(pixel.blue(), b)];
                    // The canvas is opaque.
                    if let Some(mixed) = PremultipliedColorU8::from_rgba(mixed[0], mixed[1], mixed[2], 255) {
                        *pixel = mixed;
                    }
                }
            });
        }
    }

    /// A line on a plate of a colour, in black or white, whichever is seen better.
    pub fn write(&self, canvas: &mut Pixmap, text: &str, (x, y): (f32, f32), height: f32, plate: [u8; 3]) {
        let (_, width) = self.letters(text, (x, y), height);
        let plate_area = tiny_skia::Rect::from_xywh(x, y, width + 0.5 * height, 1.25 * height);
        if let Some(area) = plate_area {
            let [r, g, b] = plate;
            let paint = crate::canvas::paint(crate::canvas::faded(r, g, b, 0.85));
            canvas.fill_rect(area, &paint, tiny_skia::Transform::identity(), None);
        }
        let [r, g, b] = plate.map(f32::from);
        let light = 0.299 * r + 0.587 * g + 0.114 * b > 128.0;
        let colour = if light { [0; 3] } else { [255; 3] };
        self.plain(canvas, text, (x + 0.25 * height, y + 0.12 * height), height, colour);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_lie_where_they_are_written() {
        let ink = Ink::new().expect("the font");
        let mut canvas = crate::canvas::open(&image::RgbImage::new(60, 40)).expect("a canvas");
        ink.plain(&mut canvas, "H\u{e9}", (20.0, 10.0), 20.0, [255, 0, 0]);
        let lit = |x: std::ops::Range<u32>| {
            x.flat_map(|x| (0..40).map(move |y| (x, y)))
                .filter(|&(x, y)| canvas.pixel(x, y).is_some_and(|pixel| pixel.red() > 128))
                .count()
        };
        assert_eq!(lit(0..20), 0);
        assert!(lit(20..35) > 25 && lit(35..60) > 10, "{} {}", lit(20..35), lit(35..60));
        // Outside there is nothing to write on.
        ink.write(&mut canvas, "far", (-500.0, 900.0), 20.0, [0; 3]);
    }
}
