//! Drawing on a picture, anti-aliased. Positions count from the corner of the first pixel.

use anyhow::{Context as _, Result};
use image::RgbImage;
use std::path::Path;
use tiny_skia::{Color, FillRule, IntSize, LineCap, LineJoin, Paint, PathBuilder, Pixmap, Stroke, Transform};

/// A picture to draw on.
pub fn open(picture: &RgbImage) -> Result<Pixmap> {
    let (width, height) = picture.dimensions();
    let size = IntSize::from_wh(width, height).context("the picture has no pixels")?;
    let rgba = picture.pixels().flat_map(|pixel| [pixel[0], pixel[1], pixel[2], 255]).collect();
    Pixmap::from_vec(rgba, size).context("the picture is too large to draw on")
}

/// What was drawn.
pub fn picture(canvas: &Pixmap) -> Result<RgbImage> {
    // The canvas is opaque, so its colours are not scaled by an alpha.
    let rgb = canvas.pixels().iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]).collect();
    RgbImage::from_raw(canvas.width(), canvas.height(), rgb).context("the canvas does not fit the picture")
}

/// Writes a picture as PNG, whatever the file is called.
pub fn write(picture: &RgbImage, path: &Path) -> Result<()> {
    picture
        .save_with_format(path, image::ImageFormat::Png)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// A colour that lets what lies under it be seen; an opacity of 1 hides it.
pub fn faded(r: u8, g: u8, b: u8, opacity: f32) -> Color {
    Color::from_rgba8(r, g, b, (opacity * 255.0).round() as u8)
}

/// A plain colour to draw with.
pub fn paint(colour: Color) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Default::default() };
    paint.set_color(colour);
    paint
}

/// A line from point to point, with round ends.
pub fn line(canvas: &mut Pixmap, points: &[(f32, f32)], width: f32, paint: &Paint<'_>) {
    let mut path = PathBuilder::new();
    for (index, &(x, y)) in points.iter().enumerate() {
        if index == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
    }
    // Without a path there is nothing to draw: all points are one.
    if let Some(path) = path.finish() {
        let (line_cap, line_join) = (LineCap::Round, LineJoin::Round);
        let stroke = Stroke { width, line_cap, line_join, ..Default::default() };
        canvas.stroke_path(&path, paint, &stroke, Transform::identity(), None);
    }
}

/// A filled disc.
pub fn disc(canvas: &mut Pixmap, (x, y): (f32, f32), radius: f32, colour: Color) {
    if let Some(path) = PathBuilder::from_circle(x, y, radius) {
        canvas.fill_path(&path, &paint(colour), FillRule::Winding, Transform::identity(), None);
    }
}
