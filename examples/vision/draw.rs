//! What was found, drawn on the picture at its own size.

use crate::canvas::{self, faded, paint};
use crate::found::{Found, label};
use crate::hand::{BONES, Hand};
use crate::ink::Ink;
use crate::segment;
use anyhow::Result;
use diptych_decode::Detection;
use diptych_decode::classification::Scored;
use image::{Rgb, RgbImage};
use tiny_skia::{Color, Pixmap};

/// Lines are this share of the picture's size (the root of its area) thick, and letters so high.
const LINE: f32 = 1.0 / 220.0;
const LETTER: f32 = 1.0 / 26.0;

/// What lies behind a person.
const BACKGROUND: [f32; 3] = [26.0, 64.0, 92.0];

/// How much of a class's colour covers its pixels.
const CLASS: f32 = 0.6;

/// Colours of fingers, boxes and their points.
const COLOURS: [[u8; 3]; 6] =
    [[235, 235, 235], [255, 160, 30], [92, 214, 92], [38, 166, 255], [226, 70, 222], [255, 78, 50]];

/// The drawing.
pub fn draw(picture: &RgbImage, found: &Found, labels: &[String], ink: &Ink) -> Result<RgbImage> {
    let size = ((picture.width() * picture.height()) as f32).sqrt();
    let (line, letter) = ((size * LINE).max(1.5), (size * LETTER).max(11.0));
    match found {
        Found::Mask { map, .. } => {
            let mut drawn = picture.clone();
            for (pixel, &person) in drawn.pixels_mut().zip(&map.values) {
                let behind = 0.85 * (1.0 - person);
                let mixed =
                    |index: usize| f32::from(pixel[index]) * (1.0 - behind) + BACKGROUND[index] * behind;
                *pixel = Rgb([0, 1, 2].map(|index| mixed(index).round().clamp(0.0, 255.0) as u8));
            }
            Ok(drawn)
        }
        Found::Classes(map) => {
            let mut drawn = picture.clone();
            for (pixel, &class) in drawn.pixels_mut().zip(&map.values).filter(|(_, class)| **class > 0) {
                let colour = segment::colour(class.into());
                let mixed =
                    |index: usize| f32::from(pixel[index]) * (1.0 - CLASS) + f32::from(colour[index]) * CLASS;
                *pixel = Rgb([0, 1, 2].map(|index| mixed(index).round() as u8));
            }
            let mut canvas = canvas::open(&drawn)?;
            let there = map.shares().into_iter().filter(|&(class, part)| class > 0 && part >= 0.002);
            for (row, (class, part)) in there.take(8).enumerate() {
                let text = format!("{} {:.1} %", label(labels, class), 100.0 * part);
                ink.write(
                    &mut canvas,
                    &text,
                    (0.3 * letter, (0.3 + 1.3 * row as f32) * letter),
                    letter,
                    segment::colour(class),
                );
            }
            canvas::picture(&canvas)
        }
        Found::Hand(hand) => {
            let mut canvas = canvas::open(picture)?;
            if hand.present {
                skeleton(&mut canvas, hand, line);
            }
            let text = match hand.side {
                Some((side, score)) if hand.present => {
                    format!("hand {:.2}, {side} {score:.2}", hand.score)
                }
                _ => format!("hand {:.2}", hand.score),
            };
            ink.write(&mut canvas, &text, (0.3 * letter, 0.3 * letter), letter, COLOURS[3]);
            canvas::picture(&canvas)
        }
        Found::Boxes { detections, .. } => {
            let mut canvas = canvas::open(picture)?;
            // The surest last, on top.
            for one in detections.iter().rev() {
                boxed(&mut canvas, one, labels, ink, (line, letter));
            }
            canvas::picture(&canvas)
        }
        Found::Scores(best) => {
            let mut canvas = canvas::open(picture)?;
            for (row, one) in best.iter().enumerate() {
                bar(&mut canvas, one, row, labels, ink, letter);
            }
            canvas::picture(&canvas)
        }
        Found::Styled(picture) => Ok(picture.clone()),
    }
}

/// Whether the rasteriser has room for a position: none far outside the picture.
fn near(canvas: &Pixmap, [x, y]: [f32; 2]) -> bool {
    let within = |v: f32, extent: u32| v > -4.0 * extent as f32 && v < 5.0 * extent as f32;
    within(x, canvas.width()) && within(y, canvas.height())
}

fn colour([r, g, b]: [u8; 3]) -> Color {
    faded(r, g, b, 1.0)
}

/// A line with a dark edge.
fn outlined(canvas: &mut Pixmap, points: &[[f32; 2]], width: f32, of: [u8; 3]) {
    if points.iter().all(|&at| near(canvas, at)) {
        let points: Vec<(f32, f32)> = points.iter().map(|&[x, y]| (x, y)).collect();
        canvas::line(canvas, &points, 1.7 * width, &paint(faded(20, 20, 28, 0.6)));
        canvas::line(canvas, &points, width, &paint(colour(of)));
    }
}

fn dot(canvas: &mut Pixmap, at: [f32; 2], radius: f32, of: [u8; 3]) {
    if near(canvas, at) {
        canvas::disc(canvas, (at[0], at[1]), 1.4 * radius, faded(20, 20, 28, 0.6));
        canvas::disc(canvas, (at[0], at[1]), radius, colour(of));
    }
}

fn skeleton(canvas: &mut Pixmap, hand: &Hand, line: f32) {
    let at = |joint: usize| hand.joints.get(joint).map_or([f32::NAN; 2], |&[x, y, _]| [x, y]);
    for (bones, of) in BONES.iter().zip(COLOURS) {
        let points: Vec<[f32; 2]> = bones.iter().map(|&joint| at(joint)).collect();
        outlined(canvas, &points, line, of);
    }
    for (bones, of) in BONES.iter().zip(COLOURS) {
        bones.iter().for_each(|&joint| dot(canvas, at(joint), 1.3 * line, of));
    }
}

fn boxed(canvas: &mut Pixmap, one: &Detection, labels: &[String], ink: &Ink, (line, letter): (f32, f32)) {
    let [left, top, right, bottom] = one.bounding_box;
    let of = COLOURS[1 + (one.class + 2) % 5];
    let corners = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]];
    outlined(canvas, &corners, line, of);
    // A person's points: how large the body is about the hips.
    if let [centre, edge, _, _] = one.keypoints[..] {
        let (x, y) = (centre.x, centre.y);
        let radius = (edge.x - x).hypot(edge.y - y);
        let around = (0..=72).map(|step| (step as f32 * 5.0).to_radians());
        let circle: Vec<[f32; 2]> =
            around.map(|angle| [x + radius * angle.cos(), y + radius * angle.sin()]).collect();
        outlined(canvas, &circle, 0.6 * line, of);
    }
    for (index, keypoint) in one.keypoints.iter().enumerate() {
        dot(canvas, [keypoint.x, keypoint.y], 1.2 * line, COLOURS[index % COLOURS.len()]);
    }
    let text = format!("{} {:.2}", label(labels, one.class), one.score);
    if near(canvas, [left, top]) {
        let above = top - 1.35 * letter;
        ink.write(canvas, &text, (left.max(0.0), if above < 0.0 { top } else { above }), letter, of);
    }
}

/// A class as a bar at the bottom of the picture, the best uppermost.
fn bar(canvas: &mut Pixmap, one: &Scored, row: usize, labels: &[String], ink: &Ink, letter: f32) {
    let (width, height) = (canvas.width() as f32, canvas.height() as f32);
    let top = height - (5 - row.min(4)) as f32 * 1.5 * letter;
    let length = (width - 2.0 * letter) * one.score.clamp(0.0, 1.0);
    let middle = top + 0.65 * letter;
    let from = 0.9 * letter;
    canvas::line(
        canvas,
        &[(from, middle), (from + width - 1.8 * letter, middle)],
        1.2 * letter,
        &paint(faded(20, 20, 28, 0.55)),
    );
    if length > 0.5 {
        canvas::line(
            canvas,
            &[(from, middle), (from + length, middle)],
            letter,
            &paint(faded(38, 140, 220, 0.85)),
        );
    }
    let text = format!("{} {:.3}", label(labels, one.class), one.score);
    ink.plain(canvas, &text, (1.1 * letter, top + 0.18 * letter), 0.85 * letter, [255; 3]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Map;
    use diptych_decode::Keypoint;

    const GREY: Rgb<u8> = Rgb([128; 3]);

    fn grey() -> RgbImage {
        RgbImage::from_pixel(100, 100, GREY)
    }

    fn ink() -> Ink {
        Ink::new().expect("the font")
    }

    #[test]
    fn a_box_is_drawn_around_what_it_holds() {
        let one = Detection {
            score: 0.9,
            class: 0,
            bounding_box: [20.0, 40.0, 80.0, 90.0],
            keypoints: vec![Keypoint::new([50.0, 60.0], 0.9)],
        };
        let found = Found::Boxes { detections: vec![one], points: vec!["nose"] };
        let drawn = draw(&grey(), &found, &[], &ink()).expect("a drawing");
        let at = |x: u32, y: u32| *drawn.get_pixel(x, y);
        assert_eq!(at(40, 75), GREY);
        assert!([(20, 70), (80, 70), (50, 40), (50, 90), (50, 60)].iter().all(|&(x, y)| at(x, y) != GREY));
    }

    #[test]
    fn a_person_stays_as_it_is_and_the_background_does_not() {
        let values = (0..10_000).map(|index| if index % 100 < 50 { 1.0 } else { 0.0 }).collect();
        let found = Found::Mask { map: Map { width: 100, values, looked_at: 10_000 }, least: 0.5 };
        let drawn = draw(&grey(), &found, &[], &ink()).expect("a drawing");
        assert_eq!((*drawn.get_pixel(10, 10), *drawn.get_pixel(90, 10)), (GREY, Rgb([41, 74, 97])));
    }

    #[test]
    fn what_lies_far_outside_is_left_out() {
        for far in [f32::NAN, f32::INFINITY, 1e9] {
            let one = Detection {
                score: 1.0,
                class: 0,
                bounding_box: [far; 4],
                keypoints: vec![Keypoint::new([far; 2], 1.0); 4],
            };
            let found = Found::Boxes { detections: vec![one], points: vec!["a"; 4] };
            assert_eq!(draw(&grey(), &found, &[], &ink()).expect("a drawing"), grey());
        }
    }
}
