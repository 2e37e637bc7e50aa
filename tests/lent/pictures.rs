//! Textures and images as inputs, held against the same computation in f64.

use crate::app::{App, Format, apps};
use diptych::{
    Colours, Dims, Extras, Fit, Framing, Function, Graph, HostTensor, Pointwise, Session, SessionOptions,
    Shape,
};

const SOURCE: [u32; 2] = [13, 9];

/// Texels of a picture, red first.
pub(crate) fn texels(size: [u32; 2], seed: u32) -> Vec<[u8; 4]> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..size[0] * size[1]).map(|_| [next(), next(), next(), next()]).collect()
}

/// What a kernel reads of a byte, in 0 to 1.
fn read(format: Format, value: u8, channel: usize) -> f64 {
    let value = f64::from(value) / 255.0;
    match format {
        Format::Srgb if channel < 3 && value <= 0.04045 => value / 12.92,
        Format::Srgb if channel < 3 => ((value + 0.055) / 1.055).powf(2.4),
        _ => value,
    }
}

/// What a pixel of the network's input is, with how far f32 may be off; nothing where rounding decides whether it lies
/// in the picture.
fn pixel(
    format: Format,
    texels: &[[u8; 4]],
    framing: &Framing,
    colours: &Colours,
    border: [f32; 4],
    [x, y]: [usize; 2],
) -> Option<[f64; 4]> {
    let [width, height] = framing.source().map(f64::from);
    let [u, v] = framing.to_source([x as f64 + 0.5, y as f64 + 0.5]);
    let edge =
        [u, v, u - width, v - height].into_iter().fold(f64::INFINITY, |least, one| least.min(one.abs()));
    if edge < 1e-4 {
        return None;
    }
    let inside = u > 0.0 && v > 0.0 && u < width && v < height;
    let (s, t) = ((u - 0.5).clamp(0.0, width - 1.0), (v - 0.5).clamp(0.0, height - 1.0));
    let (x0, y0) = (s.floor(), t.floor());
    let at = |x: f64, y: f64, channel: usize| {
        let (x, y) = (x.min(width - 1.0) as usize, y.min(height - 1.0) as usize);
        read(format, texels[y * framing.source()[0] as usize + x][channel], channel)
    };
    let mut colour = [0.0; 4];
    for (channel, slot) in colour.iter_mut().enumerate() {
        let (fx, fy) = (s - x0, t - y0);
        let above = at(x0, y0, channel) * (1.0 - fx) + at(x0 + 1.0, y0, channel) * fx;
        let below = at(x0, y0 + 1.0, channel) * (1.0 - fx) + at(x0 + 1.0, y0 + 1.0, channel) * fx;
        *slot = if inside { above * (1.0 - fy) + below * fy } else { f64::from(border[channel]) };
    }
    Some(colours.rows().map(|row| {
        let sum: f64 = row.iter().zip(colour).map(|(factor, colour)| f64::from(*factor) * colour).sum();
        sum + f64::from(row[4])
    }))
}

/// How a network reads its pictures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Read {
    Rows,
    /// By a product, which reads C4.
    Maps,
    /// Planes, as in ONNX, which it puts in order first.
    Planes,
}

/// The input itself: through a product with the identity, or as it is.
pub(crate) fn network(shape: Shape, read: Read) -> Graph {
    let mut graph = Graph::new();
    let x = if read == Read::Planes {
        let planes = Dims::new(&[shape.n, shape.c, shape.h, shape.w]).expect("dimensions");
        let x = graph.input("x", planes).expect("an input");
        graph.transpose("last", x, &[0, 2, 3, 1]).expect("channels last")
    } else {
        graph.input("x", shape).expect("an input")
    };
    let y = if read != Read::Rows {
        let identity = (0..shape.c * shape.c).map(|at| if at % (shape.c + 1) == 0 { 1.0 } else { 0.0 });
        let weights = HostTensor::new(Shape::nhwc(shape.c, 1, 1, shape.c), identity.collect::<Vec<f32>>());
        let weights = weights.expect("weights");
        graph.pointwise("y", x, weights, Extras::default(), Pointwise::default()).expect("pointwise")
    } else {
        graph.elementwise("y", Function::Maximum, &[x.into(), x.into()]).expect("itself")
    };
    graph.output(y).expect("an output");
    graph
}

fn framings(target: [u32; 2]) -> Vec<Framing> {
    let all = Framing::new(SOURCE, target).expect("a framing");
    let turned = all.crop([5.3, 4.1], [7.0, 4.5]).expect("a crop").rotate(0.6).expect("an angle");
    vec![all, all.fit(Fit::Letterbox), all.fit(Fit::Fill), turned.fit(Fit::Letterbox), turned.fit(Fit::Fill)]
}

#[test]
fn a_picture_is_what_its_framing_says() {
    for app in apps() {
        use Read::{Maps, Planes, Rows};
        for (channels, read) in
            [(3, Maps), (3, Rows), (4, Maps), (1, Rows), (1, Planes), (3, Planes), (4, Planes)]
        {
            let shape = Shape::nhwc(2, 6, 8, channels);
            let mut session = Session::new(app.context(), &network(shape, read), SessionOptions::default());
            let session = session.as_mut().expect("a session");
            let border = [0.25, 0.5, 0.75, 1.0];
            let colours = Colours::normalized([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]).expect("colours");
            let colours = if channels == 1 { colours.gray() } else { colours.bgr() }.border(border);
            for format in [Format::Rgba, Format::Bgra, Format::Srgb, Format::Half] {
                if !app.has(format) {
                    continue;
                }
                let framings = framings([8, 6]);
                for (index, pair) in framings.windows(2).enumerate() {
                    let pictures = [texels(SOURCE, 1 + index as u32), texels(SOURCE, 50 + index as u32)];
                    let found =
                        app.show(session, format, SOURCE, &pictures, pair, colours).expect("pictures");
                    compare(&*app, format, &found, shape, &pictures, pair, &colours, border);
                }
            }
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "all that a message says")]
fn compare(
    app: &dyn App,
    format: Format,
    found: &[f32],
    shape: Shape,
    pictures: &[Vec<[u8; 4]>],
    framings: &[Framing],
    colours: &Colours,
    border: [f32; 4],
) {
    // Factors are up to 4.5; drivers decode sRGB and halves to some 10 bits.
    let bound = if format == Format::Rgba || format == Format::Bgra { 1e-4 } else { 1e-2 };
    let mut compared = 0;
    for (slot, (texels, framing)) in pictures.iter().zip(framings).enumerate() {
        for (y, x) in (0..shape.h).flat_map(|y| (0..shape.w).map(move |x| (y, x))) {
            let Some(wanted) = pixel(format, texels, framing, colours, border, [x, y]) else { continue };
            compared += 1;
            for (channel, wanted) in wanted.iter().take(shape.c).enumerate() {
                let at = ((slot * shape.h + y) * shape.w + x) * shape.c + channel;
                let found = f64::from(found[at]);
                let what =
                    format!("{} {format:?} {shape} picture {slot} at ({x}, {y}), {channel}", app.name());
                assert!((found - wanted).abs() < bound, "{what}: {found}, wanted {wanted}, {framing:?}");
            }
        }
    }
    assert!(compared > shape.h * shape.w, "{compared} pixels were compared");
}

#[test]
fn pictures_that_do_not_fit_are_refused() {
    for app in apps() {
        let shape = Shape::nhwc(1, 6, 8, 3);
        let mut session = Session::new(app.context(), &network(shape, Read::Maps), SessionOptions::default());
        let session = session.as_mut().expect("a session");
        let mut refused = |source: [u32; 2], target: [u32; 2], count: usize, words: &[&str]| {
            let framing = Framing::new(source, target).expect("a framing");
            let pictures = vec![texels(SOURCE, 3); count];
            let shown =
                app.show(session, Format::Rgba, SOURCE, &pictures, &vec![framing; count], Colours::default());
            let error = shown.expect_err("refused").to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{}: {error}", app.name());
        };
        refused(SOURCE, [8, 6], 2, &["\"x\"", "2 pictures"]);
        refused(SOURCE, [6, 8], 1, &["6 x 8", "8 x 6"]);
        refused([12, 9], [8, 6], 1, &["13 x 9", "12 x 9"]);
    }
}

#[test]
fn an_input_of_one_channel_does_not_take_red_unasked() {
    for app in apps() {
        for read in [Read::Rows, Read::Planes] {
            let shape = Shape::nhwc(2, 6, 8, 1);
            let graph = network(shape, read);
            let mut session =
                Session::new(app.context(), &graph, SessionOptions::default()).expect("a session");
            let framings = [Framing::new(SOURCE, [8, 6]).expect("a framing"); 2];
            let pictures = [texels(SOURCE, 4), texels(SOURCE, 5)];
            let mut show = |colours: Colours| {
                app.show(&mut session, Format::Rgba, SOURCE, &pictures, &framings, colours)
            };
            let colours = Colours::range(-1.0, 1.0);
            let error = show(colours).expect_err("refused").to_string();
            assert!(error.contains("Colours::gray") && error.contains("\"x\""), "{}: {error}", app.name());
            for colours in [colours.gray(), colours.first_channel()] {
                let found = show(colours).expect("a picture");
                let border = [0.0, 0.0, 0.0, 1.0];
                compare(&*app, Format::Rgba, &found, shape, &pictures, &framings, &colours, border);
            }
        }
    }
}
