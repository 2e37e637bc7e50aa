//! The bundled PoseNet on every backend, against the training framework's float64.
//!
//! `tests/data/posenet_figures.png` is a generated picture of the network's size, `.npy` holds every
//! third row and column of the four heads, computed in float64 from the weights as the file has them
//! (`examples/posenet/train/golden.py`). A backend that is missing is skipped with a line, or fails
//! with `DIPTYCH_REQUIRE_DEVICES=1`.

use crate::npy;
use diptych::{Backend, Context, HostTensor, Session, SessionOptions, Shape, tflite};
use diptych_decode::picture::Picture;
use diptych_decode::posenet::{Heads, single};
use diptych_decode::{FeatureMap, skeleton};
use std::path::Path;

const FILE: &[u8] = include_bytes!("../../examples/posenet/data/posenet_figures.tflite");

/// Every n-th row and column of the heads is in the file of goldens.
const EVERY: usize = 3;

/// What float32 may be off by: heatmap (logits), offset and displacements (pixels). Six standard
/// deviations of the rounding errors of all sums, taken as independent and carried through the layers;
/// `golden.py` computes and prints them.
const TOLERANCES: [f64; 4] = [2.06e-2, 1.36e-1, 9.35e-2, 8.89e-2];

/// The figure's height and its parts, in pixels, as the generator placed them.
const HEIGHT: f32 = 235.5;
const PARTS: [[f32; 2]; skeleton::PARTS] = [
    [170.8, 30.7],
    [175.2, 24.5],
    [164.8, 28.6],
    [188.0, 19.6],
    [161.8, 30.0],
    [203.7, 51.7],
    [164.8, 47.1],
    [195.8, 87.8],
    [129.8, 49.1],
    [186.2, 63.5],
    [99.5, 55.1],
    [213.5, 114.2],
    [190.9, 110.7],
    [217.1, 167.4],
    [193.7, 162.8],
    [224.3, 223.4],
    [201.3, 217.2],
];

fn contexts() -> Vec<(Backend, Context)> {
    let mut found = Vec::new();
    for backend in [Backend::Cpu, Backend::OpenCl, Backend::Wgpu] {
        let built = match backend {
            Backend::Wgpu => cfg!(feature = "wgpu"),
            Backend::OpenCl => cfg!(feature = "opencl"),
            _ => true,
        };
        match Context::new(backend) {
            _ if !built => (),
            Ok(context) => found.push((backend, context)),
            Err(error) if std::env::var_os("DIPTYCH_REQUIRE_DEVICES").is_some() => {
                panic!("{backend} is required: {error}")
            }
            Err(error) => println!("skipped {backend}: {error}"),
        }
    }
    found
}

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn input(mirrored: bool) -> HostTensor {
    let mut picture = Picture::open(&data("posenet_figures.png")).expect("a picture");
    assert_eq!(picture.pixels.dimensions(), (257, 257), "or the resize would blur it");
    if mirrored {
        image::imageops::flip_horizontal_in_place(&mut picture.pixels);
    }
    let values = picture.input([257, 257]).expect("values");
    HostTensor::new(Shape::nhwc(1, 257, 257, 3), values).expect("a tensor")
}

/// The largest difference of each head from its golden.
fn differences(outputs: &[HostTensor]) -> Vec<f64> {
    let (_, wanted) = npy::read(&data("posenet_figures.npy"));
    let mut rest = wanted.iter();
    let mut worst = Vec::new();
    for output in outputs {
        let Shape { h, w, c, .. } = output.shape();
        let values = output.to_nhwc();
        let mut most = 0.0f64;
        for (y, x) in (0..h).step_by(EVERY).flat_map(|y| (0..w).step_by(EVERY).map(move |x| (y, x))) {
            for k in 0..c {
                let wanted = *rest.next().expect("as many goldens");
                let difference = (f64::from(values[(y * w + x) * c + k]) - wanted).abs();
                // A NaN must not pass for a small difference.
                most = if difference <= most { most } else { difference };
            }
        }
        worst.push(most);
    }
    assert_eq!(rest.len(), 0, "goldens left over");
    worst
}

fn keeps(worst: &[f64]) -> bool {
    worst.len() == TOLERANCES.len() && worst.iter().zip(TOLERANCES).all(|(&worst, limit)| worst <= limit)
}

#[test]
fn the_bundled_network_computes_what_float64_computes() {
    let graph = tflite::from_bytes(FILE).expect("the bundled network");
    let mut failures = Vec::new();
    for (backend, context) in contexts() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let outputs = session.run(&[("image", &input(false))]).expect("a run");
        let worst = differences(&outputs);
        let errors: Vec<String> = worst.iter().map(|value| format!("{value:.1e}")).collect();
        println!("{backend}: {}", errors.join(" "));
        if !keeps(&worst) {
            failures.push(format!("{backend}: {worst:?}, wanted at most {TOLERANCES:?}"));
        }
        let map = |index: usize| {
            let Shape { n, h, w, c } = outputs[index].shape();
            let values = outputs[index].to_nhwc().into_owned();
            FeatureMap::new("head", [n, h, w, c], values).expect("finite")
        };
        let heads = Heads::new([257, 257], map(0), map(1), None).expect("a PoseNet");
        let pose = single(&heads);
        let near = pose.keypoints.iter().zip(PARTS);
        let hits = near.filter(|(k, [x, y])| (k.x - x).hypot(k.y - y) <= 0.1 * HEIGHT).count();
        println!("{backend}: {hits} of 17 parts within a tenth of the height");
        if hits < 15 {
            failures.push(format!("{backend}: {hits} of 17 parts, wanted at least 15: {pose:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn running_without_blocking_and_profiling_give_the_same_run() {
    let graph = tflite::from_bytes(FILE).expect("the bundled network");
    let input = input(false);
    for (backend, context) in contexts() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let outputs = pollster::block_on(session.run_async(&[("image", &input)])).expect("a run");
        assert_eq!(outputs, session.run(&[("image", &input)]).expect("a run"), "{backend}");
        let profile = session.profile(&[("image", &input)]).expect("a profile");
        // A step that runs several nodes has all their names.
        let steps = profile.steps.iter().map(|timed| &timed.step).filter(|step| !step.inserted);
        let mut run: Vec<&str> = steps.flat_map(|step| step.name.split(" + ")).collect();
        let mut wanted: Vec<&str> = graph.nodes().iter().map(|node| node.name()).collect();
        run.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(run, wanted, "{backend}");
        assert!(profile.steps.iter().all(|timed| !timed.time.is_zero()), "{backend}:\n{profile}");
    }
}

#[test]
fn another_picture_is_distinguished() {
    let graph = tflite::from_bytes(FILE).expect("the bundled network");
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
    let worst = differences(&session.run(&[("image", &input(true))]).expect("a run"));
    assert!(worst.iter().zip(TOLERANCES).all(|(&worst, limit)| worst > 10.0 * limit), "{worst:?}");
}

#[test]
fn the_file_is_small_and_has_the_public_names() {
    assert!(FILE.len() <= 1_500_000, "{} bytes", FILE.len());
    let graph = tflite::from_bytes(FILE).expect("the bundled network");
    let names: Vec<_> = graph.outputs().iter().map(|&value| graph.name(value).expect("a name")).collect();
    let wanted = ["heatmap", "offset", "displacement_fwd", "displacement_bwd"];
    assert_eq!(names, wanted.map(|head| format!("MobilenetV1/{head}_2/BiasAdd")));
}
