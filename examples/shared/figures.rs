//! A person and a hand to try networks on, pictures that belong to nobody but this project.
//!
//! The networks learned from photographs: the limbs are shaded like round bodies, and the parts differ
//! in colour, because they do not see a stick figure.

use anyhow::{Context as _, Result};
use image::RgbImage;
use tiny_skia::{
    Color, FillRule, GradientStop, LinearGradient, Paint, PathBuilder, Pixmap, Point, Rect, Shader,
    SpreadMode, Stroke, Transform,
};

/// Leaves room around the person, as photographs do.
const PLACE: Transform = Transform { sx: 0.85, kx: 0.0, ky: 0.0, sy: 0.85, tx: 48.0, ty: 22.0 };

type Rgb = [u8; 3];

const SKIN: Rgb = [224, 172, 140];
const PALM: Rgb = [228, 176, 146];
const HAIR: Rgb = [62, 40, 30];
const SHIRT: Rgb = [190, 52, 46];
const TROUSERS: Rgb = [44, 62, 110];
const SHOE: Rgb = [50, 44, 42];

/// The joints of the hand in its picture, from the palm to the tip: thumb, index, middle, ring, little finger.
pub const FINGERS: [[[f32; 2]; 4]; 5] = [
    [[165.0, 318.0], [128.0, 268.0], [106.0, 232.0], [90.0, 200.0]],
    [[158.0, 206.0], [148.0, 150.0], [143.0, 112.0], [139.0, 80.0]],
    [[186.0, 198.0], [184.0, 136.0], [183.0, 94.0], [182.0, 58.0]],
    [[213.0, 201.0], [219.0, 144.0], [223.0, 106.0], [226.0, 72.0]],
    [[238.0, 214.0], [252.0, 172.0], [260.0, 146.0], [267.0, 120.0]],
];

/// How thick the hand's fingers are at their joints, as radii.
const THICKNESS: [[f32; 4]; 5] = [
    [24.0, 19.0, 15.0, 12.0],
    [16.0, 14.0, 12.5, 10.5],
    [17.0, 15.0, 13.0, 11.0],
    [16.0, 14.0, 12.5, 10.5],
    [14.0, 12.0, 11.0, 9.0],
];

/// A person who stands in a room, 480 x 480.
pub fn person() -> Result<RgbImage> {
    let mut canvas = Canvas::new([480, 480], PLACE)?;
    background(&mut canvas);
    legs(&mut canvas);
    arms(&mut canvas);
    body(&mut canvas);
    head(&mut canvas);
    canvas.picture()
}

/// An open hand whose palm is seen, 384 x 384.
pub fn hand() -> Result<RgbImage> {
    let mut canvas = Canvas::new([384, 384], Transform::identity())?;
    let wall = gradient([0.0, 0.0], [0.0, 384.0], &[(0.0, [206, 212, 214]), (1.0, [226, 226, 220])]);
    canvas.rectangle([0.0, 0.0, 384.0, 384.0], wall);
    canvas.limb([192.0, 420.0], [192.0, 320.0], [38.0, 34.0], PALM);
    for finger in 1..5 {
        canvas.finger(finger);
    }
    let mut palm = PathBuilder::new();
    palm.move_to(156.0, 330.0);
    for [x, y] in
        [[140.0, 280.0], [138.0, 222.0], [150.0, 196.0], [238.0, 196.0], [250.0, 222.0], [246.0, 285.0]]
    {
        palm.line_to(x, y);
    }
    palm.line_to(230.0, 335.0);
    palm.close();
    canvas.fill(palm, round([138.0, 0.0], [250.0, 0.0], PALM));
    // The cushions below the fingers, and that of the thumb.
    for [x, y] in [[156.0, 214.0], [186.0, 210.0], [213.0, 212.0], [236.0, 222.0]] {
        canvas.limb([x, y], [0.7 * x + 0.3 * 192.0, y + 60.0], [17.0, 22.0], PALM);
    }
    canvas.limb([190.0, 310.0], [160.0, 280.0], [36.0, 30.0], PALM);
    canvas.finger(0);
    for [from, to] in
        [[[150.0, 250.0], [205.0, 236.0]], [[160.0, 300.0], [152.0, 262.0]], [[168.0, 232.0], [238.0, 246.0]]]
    {
        canvas.line([from, between(from, to, 0.5), to], 2.4, scale(PALM, 0.8));
    }
    canvas.picture()
}

fn background(canvas: &mut Canvas) {
    let wall = gradient([0.0, 0.0], [0.0, 400.0], &[(0.0, [206, 212, 214]), (1.0, [226, 226, 220])]);
    canvas.rectangle([-60.0, -60.0, 600.0, 460.0], wall);
    let floor = gradient([0.0, 400.0], [0.0, 480.0], &[(0.0, [150, 128, 104]), (1.0, [176, 152, 124])]);
    canvas.rectangle([-60.0, 400.0, 600.0, 140.0], floor);
    canvas.rectangle([-60.0, 394.0, 600.0, 6.0], plain([240, 240, 236]));
    for step in 0..8 {
        canvas.ellipse([240.0, 446.0], [92.0 - 7.0 * step as f32, 14.0 - step as f32], shadow(18));
    }
}

fn legs(canvas: &mut Canvas) {
    for (hip, knee, ankle, toe) in [
        ([221.0, 268.0], [212.0, 346.0], [204.0, 422.0], [192.0, 438.0]),
        ([259.0, 268.0], [270.0, 345.0], [282.0, 420.0], [296.0, 436.0]),
    ] {
        let heel = [ankle[0], toe[1]];
        canvas.limb(heel, toe, [10.0, 9.0], SHOE);
        canvas.limb(ankle, heel, [8.0, 9.0], SKIN);
        canvas.limb(knee, between(knee, ankle, 0.86), [17.0, 12.0], TROUSERS);
        canvas.limb(hip, knee, [25.0, 17.0], TROUSERS);
        canvas.crease([hip[0], 290.0], knee, TROUSERS);
    }
}

fn body(canvas: &mut Canvas) {
    // Neck.
    canvas.limb([240.0, 104.0], [240.0, 134.0], [14.0, 15.0], SKIN);
    let mut path = PathBuilder::new();
    path.move_to(222.0, 130.0);
    path.cubic_to(206.0, 136.0, 192.0, 138.0, 184.0, 150.0);
    path.cubic_to(196.0, 180.0, 206.0, 210.0, 202.0, 236.0);
    path.line_to(197.0, 276.0);
    path.cubic_to(220.0, 284.0, 260.0, 284.0, 283.0, 276.0);
    path.line_to(278.0, 236.0);
    path.cubic_to(274.0, 210.0, 284.0, 180.0, 296.0, 150.0);
    path.cubic_to(288.0, 138.0, 274.0, 136.0, 258.0, 130.0);
    path.cubic_to(252.0, 142.0, 228.0, 142.0, 222.0, 130.0);
    path.close();
    canvas.fill(path, round([186.0, 0.0], [294.0, 0.0], SHIRT));
    canvas.crease([236.0, 236.0], [206.0, 256.0], SHIRT);
    canvas.crease([250.0, 250.0], [276.0, 262.0], SHIRT);
}

fn arms(canvas: &mut Canvas) {
    for (shoulder, elbow, wrist, hand) in [
        ([199.0, 154.0], [146.0, 196.0], [112.0, 138.0], [104.0, 122.0]),
        ([281.0, 154.0], [328.0, 204.0], [384.0, 232.0], [400.0, 240.0]),
    ] {
        canvas.limb(wrist, hand, [7.0, 9.0], SKIN);
        for turn in [-0.9_f32, -0.3, 0.0, 0.3] {
            let [dx, dy] = [hand[0] - wrist[0], hand[1] - wrist[1]];
            let (sin, cos) = turn.sin_cos();
            let tip = [hand[0] + 0.9 * (dx * cos - dy * sin), hand[1] + 0.9 * (dx * sin + dy * cos)];
            canvas.limb(hand, tip, [4.0, 2.6], SKIN);
        }
        canvas.limb(elbow, wrist, [12.0, 8.0], SKIN);
        canvas.limb(shoulder, elbow, [16.0, 12.0], SKIN);
        let cuff = between(shoulder, elbow, 0.62);
        canvas.limb(shoulder, cuff, [17.0, 16.0], SHIRT);
    }
}

fn head(canvas: &mut Canvas) {
    for x in [211.0, 269.0] {
        canvas.ellipse([x, 84.0], [5.0, 9.0], plain([206, 150, 120]));
    }
    canvas.ellipse([240.0, 66.0], [33.0, 33.0], plain(HAIR));
    let face = gradient(
        [208.0, 0.0],
        [272.0, 0.0],
        &[(0.0, [206, 150, 120]), (0.35, [238, 190, 160]), (0.7, [228, 176, 146]), (1.0, [190, 136, 108])],
    );
    canvas.ellipse([240.0, 82.0], [28.0, 36.0], face);
    let mut fringe = PathBuilder::new();
    fringe.move_to(208.0, 78.0);
    fringe.cubic_to(206.0, 28.0, 274.0, 28.0, 272.0, 78.0);
    fringe.cubic_to(266.0, 60.0, 246.0, 64.0, 232.0, 56.0);
    fringe.cubic_to(222.0, 60.0, 214.0, 64.0, 208.0, 78.0);
    fringe.close();
    canvas.fill(fringe, plain(HAIR));
    for x in [228.0, 252.0] {
        canvas.ellipse([x, 79.0], [5.2, 3.0], plain([246, 242, 238]));
        canvas.ellipse([x, 79.0], [2.6, 2.8], plain([52, 36, 28]));
        canvas.line([[x - 6.0, 72.0], [x, 70.0], [x + 6.0, 72.0]], 2.2, HAIR);
    }
    canvas.line([[239.0, 82.0], [236.0, 94.0], [243.0, 95.0]], 1.8, [188, 130, 104]);
    canvas.line([[230.0, 103.0], [240.0, 107.0], [250.0, 103.0]], 2.6, [168, 78, 74]);
}

struct Canvas {
    pixels: Pixmap,
    place: Transform,
}

impl Canvas {
    fn new([width, height]: [u32; 2], place: Transform) -> Result<Self> {
        Ok(Canvas { pixels: Pixmap::new(width, height).context("an empty picture")?, place })
    }

    fn picture(&self) -> Result<RgbImage> {
        // Everything is opaque, so the premultiplied colours are the colours.
        let pixels = self.pixels.pixels().iter();
        let pixels = pixels.flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]).collect();
        let (width, height) = (self.pixels.width(), self.pixels.height());
        RgbImage::from_raw(width, height, pixels).context("a picture of another size")
    }

    fn fill(&mut self, path: PathBuilder, shader: Shader<'_>) {
        let Some(path) = path.finish() else { return };
        let paint = Paint { shader, ..Default::default() };
        self.pixels.fill_path(&path, &paint, FillRule::Winding, self.place, None);
    }

    fn rectangle(&mut self, [x, y, width, height]: [f32; 4], shader: Shader<'_>) {
        let mut path = PathBuilder::new();
        if let Some(bounds) = Rect::from_xywh(x, y, width, height) {
            path.push_rect(bounds);
        }
        self.fill(path, shader);
    }

    fn ellipse(&mut self, [x, y]: [f32; 2], [rx, ry]: [f32; 2], shader: Shader<'_>) {
        let mut path = PathBuilder::new();
        if let Some(bounds) = Rect::from_ltrb(x - rx, y - ry, x + rx, y + ry) {
            path.push_oval(bounds);
        }
        self.fill(path, shader);
    }

    /// A round limb, `radii` thick at its ends.
    fn limb(&mut self, from: [f32; 2], to: [f32; 2], radii: [f32; 2], colour: Rgb) {
        let [dx, dy] = [to[0] - from[0], to[1] - from[1]];
        let length = dx.hypot(dy).max(1e-3);
        let across = [-dy / length, dx / length];
        let side = |end: [f32; 2], radius: f32| [end[0] + radius * across[0], end[1] + radius * across[1]];
        let corners = [side(from, radii[0]), side(to, radii[1]), side(to, -radii[1]), side(from, -radii[0])];
        let mut path = PathBuilder::new();
        path.move_to(corners[0][0], corners[0][1]);
        for [x, y] in &corners[1..] {
            path.line_to(*x, *y);
        }
        path.close();
        // The light comes from the left.
        let [left, right] = if across[0] > 0.0 {
            [side(from, -radii[0]), side(from, radii[0])]
        } else {
            [corners[0], corners[3]]
        };
        let shader = || round(left, right, colour);
        self.fill(path, shader());
        for (end, radius) in [(from, radii[0]), (to, radii[1])] {
            self.ellipse(end, [radius, radius], shader());
        }
    }

    fn line(&mut self, points: [[f32; 2]; 3], width: f32, colour: Rgb) {
        let [from, over, to] = points;
        let mut path = PathBuilder::new();
        path.move_to(from[0], from[1]);
        path.quad_to(over[0], over[1], to[0], to[1]);
        let Some(path) = path.finish() else { return };
        let paint = Paint { shader: plain(colour), ..Default::default() };
        let stroke = Stroke { width, line_cap: tiny_skia::LineCap::Round, ..Default::default() };
        self.pixels.stroke_path(&path, &paint, &stroke, self.place, None);
    }

    /// A finger of the hand, with the creases at its joints.
    fn finger(&mut self, index: usize) {
        let (joints, radii) = (FINGERS[index], THICKNESS[index]);
        for joint in 0..3 {
            self.limb(joints[joint], joints[joint + 1], [radii[joint], radii[joint + 1]], PALM);
        }
        for joint in [1, 2] {
            let ([x, y], [dx, dy]) = (
                joints[joint],
                [joints[joint][0] - joints[joint - 1][0], joints[joint][1] - joints[joint - 1][1]],
            );
            let length = dx.hypot(dy).max(1e-3);
            let side = [-8.0 * dy / length, 8.0 * dx / length];
            self.line(
                [[x - side[0], y - side[1]], [x, y], [x + side[0], y + side[1]]],
                2.0,
                scale(PALM, 0.8),
            );
        }
    }

    /// A fold of the cloth.
    fn crease(&mut self, from: [f32; 2], to: [f32; 2], colour: Rgb) {
        let middle = between(from, to, 0.5);
        self.line([from, [middle[0] + 4.0, middle[1]], to], 1.6, scale(colour, 0.72));
    }
}

fn between(from: [f32; 2], to: [f32; 2], share: f32) -> [f32; 2] {
    [from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])]
}

fn scale(colour: Rgb, factor: f32) -> Rgb {
    colour.map(|value| (f32::from(value) * factor).min(255.0) as u8)
}

fn plain([r, g, b]: Rgb) -> Shader<'static> {
    Shader::SolidColor(Color::from_rgba8(r, g, b, 255))
}

fn shadow(alpha: u8) -> Shader<'static> {
    Shader::SolidColor(Color::from_rgba8(40, 30, 20, alpha))
}

/// The shade of a round body between two edges.
fn round(left: [f32; 2], right: [f32; 2], colour: Rgb) -> Shader<'static> {
    let stops = [(0.0, 0.8), (0.3, 1.12), (0.6, 1.0), (1.0, 0.62)];
    gradient(left, right, &stops.map(|(place, factor)| (place, scale(colour, factor))))
}

fn gradient(from: [f32; 2], to: [f32; 2], stops: &[(f32, Rgb)]) -> Shader<'static> {
    let stops = stops
        .iter()
        .map(|&(place, [r, g, b])| GradientStop::new(place, Color::from_rgba8(r, g, b, 255)))
        .collect();
    let ends = [from, to].map(|[x, y]| Point::from_xy(x, y));
    LinearGradient::new(ends[0], ends[1], stops, SpreadMode::Pad, Transform::identity())
        .unwrap_or(Shader::SolidColor(Color::BLACK))
}
