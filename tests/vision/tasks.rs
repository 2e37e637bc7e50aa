//! Each task on drawn pictures whose answer is known, with the networks in `models` of the shared folder.
//!
//! A network that is not there is skipped with a line.

use crate::figures;
use crate::film;
use crate::found::Found;
use crate::ink::Ink;
use crate::network::Network;
use crate::options::Options;
use clap::Parser as _;
use diptych_decode::picture::Picture;
use diptych_decode::{Detection, Keypoint};
use image::{GenericImage as _, Rgb, RgbImage};
use std::path::PathBuf;

/// The drawn person's right and left eye, as `figures.rs` places them.
const EYES: [[f32; 2]; 2] = [[241.8, 89.15], [262.2, 89.15]];

/// The middle of the drawn person's hips and of the shoulders.
const HIPS: [f32; 2] = [252.0, 249.8];
const SHOULDERS: [f32; 2] = [252.0, 152.9];

/// The options of a line, on the CPU; none if its network is not there.
fn options(line: &str, model: &str) -> Option<Options> {
    let parsed = Options::try_parse_from(format!("vision --backend cpu {line}").split_whitespace());
    let mut options = parsed.expect("a valid line");
    let file = if model.starts_with("onnx/") { format!("{model}.onnx") } else { format!("{model}.tflite") };
    let path = options.models().join(file);
    if !path.exists() {
        println!("skipped: {} is not there", path.display());
        return None;
    }
    options.model = Some(path);
    Some(options)
}

/// What a network finds in a picture.
fn look(options: &Options, picture: &RgbImage) -> Found {
    let mut network = Network::new(options).expect("a network");
    let inputs = network.work.inputs(picture).expect("inputs");
    let (outputs, _) = network.run(&inputs).expect("a run");
    network.work.read(&outputs, picture).expect("a result")
}

fn distance(found: Keypoint, wanted: [f32; 2]) -> f32 {
    (found.x - wanted[0]).hypot(found.y - wanted[1])
}

fn only(found: Found) -> Detection {
    match found {
        Found::Boxes { detections, .. } if detections.len() == 1 => detections[0].clone(),
        other => panic!("wanted one box, found {}", other.json(&[])),
    }
}

#[test]
fn faces_are_where_the_eyes_were_drawn() {
    let picture = figures::person().expect("a drawing");
    for (model, least) in
        [("face_detection_short_range", 0.7), ("yunet_f16", 0.9), ("yunet_int8_weights", 0.9)]
    {
        let Some(options) = options("--task faces", model) else { continue };
        let face = only(look(&options, &picture));
        println!("{model}: {face:?}");
        assert!(face.score > least, "{model}: {face:?}");
        let [left, top, right, bottom] = face.bounding_box;
        for (point, eye) in face.keypoints.iter().zip(EYES) {
            assert!(distance(*point, eye) < 10.0, "{model}: {point:?}, drawn at {eye:?}");
            assert!((left..right).contains(&eye[0]) && (top..bottom).contains(&eye[1]), "{model}: {face:?}");
        }
    }
}

/// YuNet as an ONNX file: channels first, extents given, outputs for each stride.
#[cfg(feature = "onnx")]
#[test]
fn faces_are_found_with_an_onnx_file() {
    let picture = figures::person().expect("a drawing");
    let line = "--task faces --dimension height=480 --dimension width=480";
    let Some(options) = options(line, "onnx/yunet_n_dynamic") else { return };
    let face = only(look(&options, &picture));
    println!("{face:?}");
    let [left, top, right, bottom] = face.bounding_box;
    for (point, eye) in face.keypoints.iter().zip(EYES) {
        assert!(distance(*point, eye) < 10.0, "{point:?}, drawn at {eye:?}");
        assert!((left..right).contains(&eye[0]) && (top..bottom).contains(&eye[1]), "{face:?}");
    }
}

#[test]
fn nothing_is_found_where_nothing_is() {
    let picture = RgbImage::from_pixel(320, 200, Rgb([120, 140, 160]));
    for (line, model) in [
        ("--task faces", "face_detection_short_range"),
        ("--task faces", "yunet_f16"),
        ("--task detect", "pose_detection"),
    ] {
        let Some(options) = options(line, model) else { continue };
        let found = look(&options, &picture);
        assert!(
            matches!(&found, Found::Boxes { detections, .. } if detections.is_empty()),
            "{model}: {found:?}"
        );
    }
    let Some(options) = options("--task hands", "hand_landmark_lite") else { return };
    let found = look(&options, &picture);
    assert!(matches!(&found, Found::Hand(hand) if !hand.present), "{found:?}");
}

#[test]
fn a_person_is_found_between_hips_and_shoulders() {
    let Some(options) = options("--task detect", "pose_detection") else { return };
    let person = only(look(&options, &figures::person().expect("a drawing")));
    println!("{person:?}");
    assert!(person.score > 0.8);
    assert!(distance(person.keypoints[0], HIPS) < 12.0, "{person:?}");
    assert!(distance(person.keypoints[2], SHOULDERS) < 15.0, "{person:?}");
}

/// The joints of the drawn hand that a network found, without the wrist: the worst distance from where they
/// were drawn.
fn joints_off(found: &Found, moved: [f32; 2]) -> f32 {
    let Found::Hand(hand) = found else { panic!("no hand: {found:?}") };
    assert!(hand.present, "{hand:?}");
    let drawn = figures::FINGERS.iter().flatten();
    let pairs = hand.joints[1..].iter().zip(drawn);
    let off = pairs.map(|(&[x, y, _], drawn)| {
        distance(Keypoint::new([x, y], 1.0), [drawn[0] + moved[0], drawn[1] + moved[1]])
    });
    off.fold(0.0, f32::max)
}

#[test]
fn joints_are_where_the_fingers_were_drawn() {
    let Some(options) = options("--task hands", "hand_landmark_lite") else { return };
    let hand = figures::hand().expect("a drawing");
    let found = look(&options, &hand);
    let off = joints_off(&found, [0.0; 2]);
    println!("joints are {off:.1} pixels off at most");
    assert!(off < 15.0);
    // The same in a part of a larger picture, and as its mirror shows it.
    let mut large = RgbImage::from_pixel(700, 500, Rgb([90, 110, 90]));
    large.copy_from(&hand, 250, 70).expect("room");
    let cropped = Options {
        crop: Some(crate::fit::Part { x: 250.0, y: 70.0, width: 384.0, height: 384.0 }),
        ..options
    };
    let found_again = look(&cropped, &large);
    assert!(joints_off(&found_again, [250.0, 70.0]) < 15.0);
    let side = |found: &Found| match found {
        Found::Hand(hand) => hand.side.expect("a side").0,
        _ => unreachable!("it was a hand before"),
    };
    let mirrored = Options { mirrored: true, ..cropped };
    assert_ne!(side(&look(&mirrored, &large)), side(&found_again));
}

#[test]
fn a_person_is_reported_from_the_room() {
    let picture = figures::person().expect("a drawing");
    // Chest, head, a leg; wall, floor, between the legs.
    let (body, room) = ([[252, 200], [252, 80], [232, 320]], [[60, 60], [420, 440], [252, 380]]);
    let place = |[x, y]: [usize; 2]| y * 480 + x;
    if let Some(options) = options("--task segment", "selfie_segmentation") {
        let Found::Mask { map, least } = look(&options, &picture) else { panic!("no mask") };
        let (mean, share, area) = map.statistics(least);
        println!("mask: mean {mean:.4}, share {share:.4}, {area:?}");
        assert!((0.10..0.13).contains(&share) && (0.10..0.13).contains(&mean));
        assert!(body.iter().all(|&at| map.values[place(at)] > 0.9));
        assert!(room.iter().all(|&at| map.values[place(at)] < 0.1));
    }
    if let Some(options) = options("--task segment", "deeplabv3_257_mv_gpu") {
        let Found::Classes(map) = look(&options, &picture) else { panic!("no classes") };
        let shares = map.shares();
        println!("classes: {shares:?}");
        assert_eq!(shares.iter().map(|&(class, _)| class).collect::<Vec<_>>(), [0, 15]);
        assert!((0.11..0.14).contains(&shares[1].1));
        assert!(body.iter().all(|&at| map.values[place(at)] == 15));
        assert!(room.iter().take(2).all(|&at| map.values[place(at)] == 0));
    }
}

#[test]
fn classes_are_scored() {
    let picture = figures::person().expect("a drawing");
    if let Some(options) = options("--task classify --crop 210,45,85,85", "gender_lite") {
        let Found::Scores(best) = look(&options, &picture) else { panic!("no scores") };
        println!("{best:?}");
        // The drawn person has short hair: the network says male.
        assert!(best.len() == 2 && best[0].class == 0 && best[0].score > 0.9);
    }
    let Some(options) = options("--task classify", "mobilenet_v1_0.25_224_keras_f32") else { return };
    let Found::Scores(best) = look(&options, &picture) else { panic!("no scores") };
    assert!(best.len() == 5 && best.is_sorted_by(|a, b| a.score >= b.score));
    // Two people on skis, one of ImageNet's classes.
    let photograph = options.models().join("../posenet/images/test_couple.jpg");
    if !photograph.exists() {
        return println!("skipped: {} is not there", photograph.display());
    }
    let found = look(&options, &Picture::open(&photograph).expect("a photograph").pixels);
    let Found::Scores(best) = found else { panic!("no scores") };
    println!("{best:?}");
    assert!(best[0].class == 795 && best[0].score > 0.9);
}

/// Two runs of a large network on the CPU: only in `scripts/test --full`, where the library is not optimised.
#[test]
fn a_style_changes_the_picture_and_follows_from_its_seed() {
    if cfg!(debug_assertions) && std::env::var("DIPTYCH_CONFORMANCE").as_deref() != Ok("full") {
        return println!("skipped: DIPTYCH_CONFORMANCE=full runs it");
    }
    let Some(options) = options("--task style", "style_transfer_f16_384") else { return };
    let whole = figures::person().expect("a drawing");
    let picture = image::imageops::crop_imm(&whole, 0, 0, 480, 300).to_image();
    let styled = |seed: u64| match look(&Options { seed, ..options.clone() }, &picture) {
        Found::Styled(styled) => styled,
        other => panic!("no picture: {other:?}"),
    };
    let (first, second) = (styled(1), styled(2));
    assert_eq!(first.dimensions(), picture.dimensions());
    let apart = |a: &RgbImage, b: &RgbImage| {
        let total: u64 = a.as_raw().iter().zip(b.as_raw()).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
        total as f64 / a.as_raw().len() as f64
    };
    println!(
        "styles are {:.1} apart, {:.1} from the picture",
        apart(&first, &second),
        apart(&first, &picture)
    );
    assert!(apart(&first, &second) > 5.0 && apart(&first, &picture) > 5.0);
    // The person is still there: the chest is not the wall beside it.
    let far = |picture: &RgbImage| {
        let [chest, wall] = [[252, 200], [60, 200]].map(|[x, y]| *picture.get_pixel(x, y));
        (0..3).map(|index| chest[index].abs_diff(wall[index])).max()
    };
    assert!(far(&first) > Some(20), "{:?}", far(&first));
}

#[test]
fn a_pictures_style_is_read_by_a_network_of_as_many_numbers() {
    let Some(mut options) = options("--task style", "style_transfer_f16_384") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let style = folder.path().join("style.png");
    figures::hand().expect("a drawing").save(&style).expect("written");
    options.style = Some(style);
    let refused = |options: &Options| format!("{:#}", Network::new(options).expect_err("no style"));
    options.style_model = Some("no/such.tflite".into());
    assert!(refused(&options).contains("no/such.tflite is not there"), "{}", refused(&options));
    // It scores 1000 classes, which are no style.
    options.style_model = Some(options.models().join("mobilenet_v1_0.25_224_keras_f32.tflite"));
    assert!(refused(&options).contains("found 1000 numbers, wanted 100"), "{}", refused(&options));
}

#[test]
fn a_part_beside_the_picture_is_refused() {
    let Some(options) = options("--task faces --crop 500,0,20,20", "face_detection_short_range") else {
        return;
    };
    let network = Network::new(&options).expect("a network");
    let error = network.work.inputs(&figures::person().expect("a drawing")).expect_err("beside");
    assert!(error.to_string().contains("--crop") && error.to_string().contains("480x480"), "{error}");
}

#[test]
fn a_film_has_the_results_of_its_frames_in_their_order() {
    let Some(mut options) = options("--task faces --json", "face_detection_short_range") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (frames, drawn) = (folder.path().join("frames"), folder.path().join("film.gif"));
    std::fs::create_dir(&frames).expect("a folder");
    let person = figures::person().expect("a drawing");
    for step in 0..4u32 {
        // The person goes to the left.
        let frame = image::imageops::crop_imm(&person, 20 * step, 0, 400, 400).to_image();
        frame.save(frames.join(format!("{step}.png"))).expect("written");
    }
    options.output = Some(drawn.clone());
    let ink = Ink::new().expect("the font");
    let mut network = Network::new(&options).expect("a network");
    let report = film::film(&options, &frames, &mut network, &ink).expect("a film");
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let left = |index: usize| report["frames"][index]["boxes"][0]["box"][0].as_f64().expect("a face");
    assert_eq!(report["frames"].as_array().map(Vec::len), Some(4));
    for index in 1..4 {
        let moved = left(index - 1) - left(index);
        assert!((12.0..28.0).contains(&moved), "frame {index}: {moved} pixels to the left, drawn 20");
    }
    let (_, read) = crate::frames::frames(&drawn, 10.0).expect("a GIF");
    assert_eq!(read.count(), 4);
    // A frame that is no picture ends the film with an error that names it.
    std::fs::write(frames.join("2.png"), "no picture").expect("written");
    let error = film::film(&options, &frames, &mut network, &ink).expect_err("a broken frame");
    assert!(format!("{error:#}").contains("2.png"), "{error:#}");
}

#[test]
fn an_extent_may_be_given_where_the_file_leaves_it_open() {
    let of = |line: &str| options(line, "gender_lite").map(|options| Network::new(&options).map(|_| ()));
    let Some(fine) = of("--task classify --dimension batch=1") else { return };
    fine.expect("the file's own");
    let error = of("--task classify --dimension image.1=64").expect("it is there").expect_err("not open");
    assert!(format!("{error:#}").contains("batch"), "{error:#}");
}

#[test]
fn a_model_of_another_kind_is_refused_with_what_it_has() {
    let model = "examples/posenet/data/posenet_figures.tflite";
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(model);
    for task in ["segment", "hands", "faces", "detect", "classify", "style"] {
        let line = format!("vision --backend cpu --task {task}");
        let mut options = Options::try_parse_from(line.split_whitespace()).expect("a valid line");
        options.model = Some(path.clone());
        let error = format!("{:#}", Network::new(&options).expect_err(task));
        for word in [&format!("--task {task}"), "heatmap", "1x17x17x17", "wanted"] {
            assert!(error.contains(word), "{task}: {error}");
        }
    }
}

#[test]
fn a_network_that_is_not_there_is_reported() {
    let line = "vision --task hands --models no/such";
    let options = Options::try_parse_from(line.split_whitespace()).expect("a valid line");
    let error = format!("{:#}", Network::new(&options).expect_err("no file"));
    assert!(error.contains("no/such/hand_landmark_lite.tflite") && error.contains("--model"), "{error}");
}
