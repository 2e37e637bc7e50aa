//! The bundled network on the bundled picture of drawn people, and on a film of it.

use crate::{buffer, harness, people, posenet, rgb};
use diptych::{
    Backend, Colours, Context, Fit, Frame, FrameLayout, Frames, Framing, LoadOptions, Model, PixelFormat,
    Session, SessionOptions,
};
use gst_video::VideoRegionOfInterestMeta;
use gstdiptych::{Region, TensorMeta, gst, regions};
use image::{Rgb, RgbImage};

/// The three people's noses in the picture, from the left.
const NOSES: [[f64; 2]; 3] = [[149.0, 176.0], [328.0, 281.0], [480.0, 140.0]];

/// The people that were found, from the left.
fn found(buffer: &gst::BufferRef) -> Vec<Region> {
    let mut found = regions(buffer);
    found.sort_by(|a, b| a.area[0].total_cmp(&b.area[0]));
    found
}

fn place(region: &Region, name: &str, [width, height]: [f64; 2]) -> [f64; 2] {
    let point = region.points.iter().find(|point| point.name == name).expect(name);
    [point.place[0] * width, point.place[1] * height]
}

fn assert_near(found: [f64; 2], wanted: [f64; 2], most: f64, what: &str) {
    let apart = (found[0] - wanted[0]).hypot(found[1] - wanted[1]);
    assert!(apart <= most, "{what}: {found:?} is {apart:.1} pixels from {wanted:?}");
}

/// From a frame to the picture with the people: what the elements say is the library's own result, and what they draw lies where
/// the people are.
#[test]
fn people_are_found_and_drawn() {
    let line = format!(
        "diptychinfer name=pose model={} backend=cpu range=<-1,1> fit=letterbox ! diptychdecode ! diptychoverlay \
         line-width=4",
        posenet()
    );
    let picture = people();
    let mut harness = harness(&line, "RGB", [640, 480]);
    let out = harness.push_and_pull(buffer(rgb(&picture), 0)).expect("a frame");

    let model = Model::load(posenet(), &LoadOptions::default()).expect("the network");
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let mut session = Session::new(&context, &model.graph, SessionOptions::default()).expect("a session");
    let input = &model.inputs[0];
    let framing = Framing::new([640, 480], [257, 257]).expect("a framing").fit(Fit::Letterbox);
    let layout = FrameLayout::new(PixelFormat::Rgb8, [640, 480]).expect("a layout");
    let frames = [(Frame::new(&picture.as_raw()[..], layout), framing)];
    let tensor = Frames::new(&frames, Colours::range(-1.0, 1.0)).to_tensor(input.dims).expect("a tensor");
    let wanted = session.run(&[(&input.name, &tensor)]).expect("a run");

    let meta = out.meta::<TensorMeta>().expect("tensors");
    let tensors = meta.tensors();
    assert_eq!((tensors.network(), tensors.all().len()), ("pose", wanted.len()));
    for ((found, wanted), port) in tensors.all().iter().zip(&wanted).zip(&model.outputs) {
        assert_eq!((&found.name, found.data.dims()), (&port.name, port.dims));
        assert_eq!(found.data.to_f32(), wanted.to_f32(), "{}", port.name);
    }
    let view = meta.view();
    assert_eq!((view.input, view.frame), ([257, 257], [640, 480]));
    let place_in_frame = framing.to_source([12.0, 200.0]);
    assert_near(view.frame_place([12.0, 200.0]), place_in_frame, 1e-9, "the view");

    let found = found(&out);
    assert_eq!(found.len(), 3);
    for (person, nose) in found.iter().zip(NOSES) {
        assert_eq!((person.label.as_str(), person.class, person.points.len()), ("person", 0, 17));
        assert!(person.score > 0.6 && person.score <= 1.0, "{}", person.score);
        assert_near(place(person, "nose", [640.0, 480.0]), nose, 12.0, "a nose");
    }
    // The rectangles are those of the boxes.
    for (meta, region) in out.iter_meta::<VideoRegionOfInterestMeta>().zip(regions(&out)) {
        let (x, y, width, height) = meta.rect();
        let [left, top, right, bottom] = region.area;
        assert_near([x.into(), y.into()], [left * 640.0, top * 480.0], 1.0, "a corner");
        assert_near(
            [(x + width).into(), (y + height).into()],
            [right * 640.0, bottom * 480.0],
            1.5,
            "a corner",
        );
    }

    let bytes = out.map_readable().expect("bytes");
    let drawn = RgbImage::from_raw(640, 480, bytes.to_vec()).expect("a picture");
    for person in &found {
        // The wrist of the left side, the hip of the right one, and a corner of the box.
        let pixel = |[x, y]: [f64; 2]| drawn.get_pixel(x as u32, y as u32).0;
        let at = |name| pixel(place(person, name, [640.0, 480.0]));
        assert_eq!((at("left_ankle"), at("right_hip")), ([255, 160, 30], [40, 160, 255]));
        // Where the left edge has no point near.
        let [left, top, _, bottom] = person.area;
        assert_eq!(pixel([left * 640.0, (0.55 * top + 0.45 * bottom) * 480.0]), [74, 255, 70], "the box");
    }
    // What lies between them is as it was.
    let untouched = |x: u32, y: u32| drawn.get_pixel(x, y) == picture.get_pixel(x, y);
    assert!((580..640).all(|x| untouched(x, 20)) && (0..100).all(|x| untouched(x, 400)));
    let changed = drawn.pixels().zip(picture.pixels()).filter(|(a, b)| a != b).count();
    assert!((4_000..40_000).contains(&changed), "{changed} pixels");
}

/// A camera that turns to the right: in three frames of one run the people go to the left.
#[test]
fn people_are_followed_through_a_film() {
    let picture = people();
    let line = format!(
        "diptychinfer model={} backend=cpu range=<-1,1> batch=3 ! diptychdecode threshold=0.4 ! videoscale ! capsfilter \
         caps=video/x-raw,width=320,height=240",
        posenet()
    );
    let mut harness = harness(&line, "RGB", [640, 480]);
    const STEP: u32 = 20;
    for number in 0..3 {
        let frame = RgbImage::from_fn(640, 480, |x, y| {
            let x = x + number * STEP;
            if x < 640 { *picture.get_pixel(x, y) } else { Rgb([200, 180, 200]) }
        });
        harness.push(buffer(rgb(&frame), number.into())).expect("taken");
    }
    for number in 0..3 {
        let out = harness.pull().expect("a frame");
        assert_eq!(out.pts(), Some(gst::ClockTime::from_mseconds(40 * number)));
        let found = found(&out);
        assert_eq!(found.len(), 3, "frame {number}");
        for (person, nose) in found.iter().zip(NOSES) {
            // In pixels of the frame before it was scaled: the parameters are shares.
            let wanted = [nose[0] - number as f64 * f64::from(STEP), nose[1]];
            assert_near(
                place(person, "nose", [640.0, 480.0]),
                wanted,
                15.0,
                &format!("frame {number}, a nose"),
            );
        }
        // The rectangles were scaled with the frame.
        let most =
            out.iter_meta::<VideoRegionOfInterestMeta>().map(|meta| meta.rect().0 + meta.rect().2).max();
        assert!(most.is_some_and(|most| most <= 320), "{most:?}");
    }
}
