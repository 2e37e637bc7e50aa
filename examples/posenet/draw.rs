//! The skeletons on the picture, anti-aliased, at the picture's own resolution: a colour for each part,
//! a gradient along each limb, and fainter where the network is unsure.

use crate::canvas::{self, faded, paint};
use anyhow::Result;
use diptych_decode::skeleton::{LIMBS, PARTS, Side, limb_side};
use diptych_decode::{Keypoint, Pose};
use image::RgbImage;
use tiny_skia::{Color, GradientStop, LinearGradient, Paint, Pixmap, Point, Shader, SpreadMode, Transform};

/// Limbs are this share of the picture's size (the root of its area) thick.
const LIMB_OF_PICTURE: f32 = 1.0 / 110.0;

/// But not more than this share of the person's extent, so that small people stay visible.
const LIMB_OF_PERSON: f32 = 1.0 / 60.0;

/// The thinnest limb, in pixels.
const THINNEST: f32 = 1.5;

/// The photograph with the poses on it. Coordinates are the photograph's pixels; parts that score
/// below `min_score`, and limbs that end in one, are left out.
pub fn draw(photograph: &RgbImage, poses: &[Pose], min_score: f32) -> Result<RgbImage> {
    let mut canvas = canvas::open(photograph)?;
    // The surest person last, on top.
    for pose in poses.iter().rev() {
        person(&mut canvas, pose, min_score);
    }
    canvas::picture(&canvas)
}

fn person(canvas: &mut Pixmap, pose: &Pose, min_score: f32) {
    let (width, height) = (canvas.width() as f32, canvas.height() as f32);
    // The rasteriser has no room for coordinates far outside the picture.
    let near = |v: f32, extent: f32| v > -extent && v < 2.0 * extent;
    let shown = |part: usize| {
        let keypoint = pose.keypoints[part];
        let visible = near(keypoint.x, width) && near(keypoint.y, height);
        (visible && keypoint.score >= min_score).then_some(keypoint)
    };
    let parts: Vec<Keypoint> = (0..PARTS).filter_map(shown).collect();
    let thickness = thickness(width, height, &parts);
    for limb in LIMBS {
        let (Some(a), Some(b)) = (shown(limb.0), shown(limb.1)) else { continue };
        let opacity = opacity(a.score.min(b.score));
        line(canvas, &a, &b, 1.6 * thickness, paint(outline(opacity)));
        gradient(canvas, limb, [&a, &b], thickness, opacity);
    }
    for part in 0..PARTS {
        let Some(keypoint) = shown(part) else { continue };
        // The face is small: its five discs would cover it.
        let radius = if part < 5 { 0.75 * thickness } else { 1.15 * thickness };
        let opacity = opacity(keypoint.score);
        disc(canvas, &keypoint, radius + 0.35 * thickness, outline(opacity));
        disc(canvas, &keypoint, radius, colour(part, opacity));
    }
}

/// The thickness of a limb, in pixels.
fn thickness(width: f32, height: f32, parts: &[Keypoint]) -> f32 {
    let span = |of: fn(&Keypoint) -> f32| {
        let values = parts.iter().map(of);
        values.clone().fold(f32::NEG_INFINITY, f32::max) - values.fold(f32::INFINITY, f32::min)
    };
    let extent = if parts.len() < 2 { f32::INFINITY } else { span(|k| k.x).hypot(span(|k| k.y)) };
    let picture = (width * height).sqrt();
    (picture * LIMB_OF_PICTURE).min(extent * LIMB_OF_PERSON).max(THINNEST)
}

/// A confidence as an opacity: faint, but visible, where the network is unsure.
fn opacity(score: f32) -> f32 {
    (0.15 + 0.85 * score).clamp(0.0, 1.0)
}

/// The colours of the parts, in their order: warm to the person's left, cold to the right, and from
/// the shoulders to the hands, and from the hips to the feet, each of its own.
const COLOURS: [[u8; 3]; PARTS] = [
    [250, 246, 200],
    [255, 214, 110],
    [150, 222, 255],
    [255, 186, 90],
    [110, 196, 255],
    [255, 160, 30],
    [38, 166, 255],
    [255, 124, 30],
    [50, 120, 255],
    [255, 78, 50],
    [92, 84, 255],
    [255, 90, 140],
    [30, 205, 190],
    [248, 70, 178],
    [34, 200, 140],
    [226, 70, 222],
    [60, 196, 88],
];

/// What joins both sides.
const TRUNK: [u8; 3] = [92, 214, 92];

fn colour(part: usize, opacity: f32) -> Color {
    let [r, g, b] = COLOURS[part];
    faded(r, g, b, opacity)
}

/// A limb from the colour of one end to that of the other; the trunk in one colour.
fn gradient(canvas: &mut Pixmap, limb: (usize, usize), [a, b]: [&Keypoint; 2], width: f32, opacity: f32) {
    let [r, g, blue] = TRUNK;
    let plain = faded(r, g, blue, opacity);
    if limb_side(limb) == Side::Trunk {
        return line(canvas, a, b, width, paint(plain));
    }
    let stops = vec![
        GradientStop::new(0.0, colour(limb.0, opacity)),
        GradientStop::new(1.0, colour(limb.1, opacity)),
    ];
    let ends = [a, b].map(|end| Point::from(canvas_position(end)));
    // Ends in one point have no gradient; then the disc covers the limb.
    let shader = LinearGradient::new(ends[0], ends[1], stops, SpreadMode::Pad, Transform::identity());
    let mut paint = paint(plain);
    paint.shader = shader.unwrap_or(Shader::SolidColor(plain));
    line(canvas, a, b, width, paint);
}

fn outline(opacity: f32) -> Color {
    faded(20, 20, 28, 0.65 * opacity)
}

/// The canvas counts from the corner of the first pixel, keypoints from its centre.
fn canvas_position(keypoint: &Keypoint) -> (f32, f32) {
    (keypoint.x + 0.5, keypoint.y + 0.5)
}

fn line(canvas: &mut Pixmap, a: &Keypoint, b: &Keypoint, width: f32, paint: Paint<'_>) {
    canvas::line(canvas, &[canvas_position(a), canvas_position(b)], width, &paint);
}

fn disc(canvas: &mut Pixmap, at: &Keypoint, radius: f32, colour: Color) {
    canvas::disc(canvas, canvas_position(at), radius, colour);
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgb;

    const GREY: Rgb<u8> = Rgb([128, 128, 128]);

    fn pose(score: f32) -> Pose {
        let mut keypoints = [Keypoint { x: 20.0, y: 20.0, score: 0.0 }; PARTS];
        keypoints[5] = Keypoint { x: 300.0, y: 100.0, score };
        keypoints[6] = Keypoint { x: 100.0, y: 100.0, score };
        keypoints[7] = Keypoint { x: 300.0, y: 300.0, score };
        keypoints[8] = Keypoint { x: f32::NAN, y: 300.0, score };
        Pose { keypoints, score }
    }

    fn drawn(score: f32, min_score: f32) -> RgbImage {
        draw(&RgbImage::from_pixel(400, 400, GREY), &[pose(score)], min_score).expect("a drawing")
    }

    #[test]
    fn limbs_and_joints_lie_where_the_parts_are() {
        let picture = drawn(1.0, 0.3);
        assert_eq!(*picture.get_pixel(200, 100), Rgb([92, 214, 92]), "trunk between the shoulders");
        // Half way from the shoulder's (255, 160, 30) to the elbow's (255, 124, 30).
        let middle = picture.get_pixel(300, 200);
        let near = middle.0.iter().zip([255, 142, 30]).all(|(&found, wanted)| found.abs_diff(wanted) <= 1);
        assert!(near, "the left upper arm: {middle:?}");
        assert_eq!(*picture.get_pixel(300, 300), Rgb([255, 124, 30]), "the left elbow");
        assert_eq!(*picture.get_pixel(100, 100), Rgb([38, 166, 255]), "the right shoulder");
        assert_eq!(*picture.get_pixel(20, 20), GREY, "a part below the threshold");
        assert_eq!(*picture.get_pixel(100, 200), GREY, "a limb to a part that is nowhere");
    }

    #[test]
    fn unsure_parts_are_fainter() {
        let distance = |picture: &RgbImage| picture.get_pixel(300, 200)[0] - 128;
        assert!(distance(&drawn(0.4, 0.3)) < distance(&drawn(0.9, 0.3)));
        assert_eq!(*drawn(0.2, 0.3).get_pixel(300, 200), GREY);
    }

    #[test]
    fn thickness_follows_the_picture_and_the_person() {
        let at = |x: f32| Keypoint { x, y: 0.0, score: 1.0 };
        assert_eq!(thickness(1100.0, 1100.0, &[at(0.0), at(900.0)]), 10.0);
        assert!((thickness(1100.0, 1100.0, &[at(0.0), at(300.0)]) - 5.0).abs() < 1e-4);
        assert_eq!(thickness(1100.0, 1100.0, &[at(0.0), at(9.0)]), THINNEST);
        assert_eq!(thickness(1100.0, 1100.0, &[]), 10.0);
    }

    #[test]
    fn parts_outside_the_picture_are_clipped() {
        for (x, y) in [(1e9, -1e9), (f32::INFINITY, 0.0), (-30.0, 70.0), (-39.9, 79.9), (1e5, 20.0)] {
            let mut far = pose(1.0);
            far.keypoints[7] = Keypoint { x, y, score: 1.0 };
            assert!(draw(&RgbImage::from_pixel(40, 40, GREY), &[far], 0.0).is_ok(), "{x} {y}");
        }
    }
}
