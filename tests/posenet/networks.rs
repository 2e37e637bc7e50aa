//! The main job: both PoseNets on every backend, against outputs computed in float64.
//!
//! Reads `$DIPTYCH_SHARED/posenet` (default `../shared`) and says so where it is absent. A backend
//! that is missing is skipped with a line, or fails with `DIPTYCH_REQUIRE_DEVICES=1`.

use crate::npy;
use diptych::{
    Backend, Context, HostTensor, MemoryUse, Precision, Session, SessionOptions, Shape, WorkGroup, tflite,
};
use diptych_decode::posenet::{Heads, single};
use diptych_decode::{FeatureMap, Pose, picture, skeleton};
use std::path::{Path, PathBuf};

const MODELS: [&str; 2] =
    ["posenet_mobilenet_v1_100_257x257_f32", "posenet_mobilenet_v1_075_257x257_os16_f32"];
const INPUTS: [&str; 3] = ["pakutaso_person", "random1234", "test_couple"];
const OUTPUTS: [&str; 4] = ["heatmaps", "offsets", "fwd", "bwd"];

/// Whether `scripts/test --full` asks for what takes long here, where the library is not optimised.
fn is_full() -> bool {
    std::env::var("DIPTYCH_CONFORMANCE").is_ok_and(|asked| asked == "full")
}

/// Largest difference from the float64 outputs: what a published float32 run is within.
const TOLERANCE: f64 = 2e-3;
const HEATMAP_TOLERANCE: f64 = 3e-4;

fn folder() -> Option<PathBuf> {
    let root = std::env::var_os("DIPTYCH_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let folder = root.join("posenet");
    if folder.is_dir() {
        return Some(folder);
    }
    crate::absent::say(&folder);
    None
}

fn context(backend: Backend) -> Option<Context> {
    match Context::new(backend) {
        Ok(context) => Some(context),
        Err(error) if std::env::var_os("DIPTYCH_REQUIRE_DEVICES").is_some() => {
            panic!("{backend} is required: {error}")
        }
        Err(error) => {
            println!("skipped {backend}: {error}");
            None
        }
    }
}

fn backends() -> impl Iterator<Item = (Backend, Context)> {
    [Backend::Cpu, Backend::OpenCl, Backend::Wgpu]
        .into_iter()
        .filter(|backend| match backend {
            Backend::Wgpu => cfg!(feature = "wgpu"),
            Backend::OpenCl => cfg!(feature = "opencl"),
            _ => true,
        })
        .filter_map(|backend| context(backend).map(|context| (backend, context)))
}

fn input_of(golden: &Path) -> HostTensor {
    let (shape, data) = npy::read(&golden.join("input.npy"));
    let shape = Shape::nhwc(shape[0], shape[1], shape[2], shape[3]);
    HostTensor::new(shape, data.into_iter().map(|value| value as f32).collect::<Vec<f32>>())
        .expect("a picture")
}

/// The single pose in the outputs, in pixels of the network's input.
fn pose(outputs: &[HostTensor]) -> Pose {
    let map = |index: usize| {
        let Shape { n, h, w, c } = outputs[index].shape();
        FeatureMap::new(OUTPUTS[index], [n, h, w, c], outputs[index].to_nhwc().into_owned()).expect("finite")
    };
    single(&Heads::new([257, 257], map(0), map(1), None).expect("a PoseNet"))
}

/// Whether `value` keeps the limit; a NaN does not.
fn within(value: f64, limit: f64) -> bool {
    value <= limit
}

/// The largest distance of a part from where `keypoints.json` has it, in pixels.
fn distance(pose: &Pose, golden: &Path) -> f64 {
    const NAMES: [&str; skeleton::PARTS] = [
        "nose", "lEye", "rEye", "lEar", "rEar", "lSho", "rSho", "lElb", "rElb", "lWri", "rWri", "lHip",
        "rHip", "lKne", "rKne", "lAnk", "rAnk",
    ];
    let text = std::fs::read_to_string(golden.join("keypoints.json")).expect("keypoints");
    let object: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let parts = pose.keypoints.iter().zip(NAMES).map(|(found, name)| {
        let wanted = [0, 1].map(|axis| object[name][axis].as_f64().expect("a number"));
        (f64::from(found.x) - wanted[0]).hypot(f64::from(found.y) - wanted[1])
    });
    parts.fold(0.0, |worst, distance| if distance <= worst { worst } else { distance })
}

/// The largest absolute difference of each output from its golden.
fn differences(outputs: &[HostTensor], golden: &Path) -> [f64; 4] {
    std::array::from_fn(|index| {
        let (_, wanted) = npy::read(&golden.join(format!("{}.f64.npy", OUTPUTS[index])));
        let found = outputs[index].to_nhwc();
        assert_eq!(found.len(), wanted.len(), "{}", OUTPUTS[index]);
        found
            .iter()
            .zip(&wanted)
            .map(|(&found, &wanted)| (f64::from(found) - wanted).abs())
            // A NaN must not pass for a small difference.
            .fold(0.0, |worst, difference| if difference <= worst { worst } else { difference })
    })
}

fn check(
    model: &str,
    inputs: &[&str],
    options: &SessionOptions,
    backend: Backend,
    context: &Context,
    folder: &Path,
) -> Vec<String> {
    let graph = tflite::load(folder.join(format!("{model}.tflite"))).expect("the model");
    let mut session = Session::new(context, &graph, options.clone()).expect("a session");
    let mut failures = Vec::new();
    for input in inputs {
        let golden = folder.join("golden").join(model).join(input);
        let outputs = session.run(&[("sub_2", &input_of(&golden))]).expect("a run");
        let worst = differences(&outputs, &golden);
        println!("{backend} {model} {input}: {}", worst.map(|worst| format!("{worst:.1e}")).join(" "));
        let pixels = distance(&pose(&outputs), &golden);
        if !within(pixels, 0.5) {
            failures.push(format!("{backend} {model} {input}: a part is {pixels} pixels off"));
        }
        for (index, &worst) in worst.iter().enumerate() {
            let tolerance = if index == 0 { HEATMAP_TOLERANCE } else { TOLERANCE };
            if worst.is_nan() || worst > tolerance {
                failures.push(format!("{backend} {model} {input} {}: {worst:e}", OUTPUTS[index]));
            }
        }
    }
    failures
}

#[test]
fn every_backend_computes_what_float64_computes() {
    let Some(folder) = folder() else { return };
    let mut failures = Vec::new();
    for (backend, context) in backends() {
        println!("{}", context.info());
        // The other network has the same kernels, and other weights.
        let few = [(MODELS[0], &INPUTS[..1])];
        let all = [(MODELS[0], &INPUTS[..]), (MODELS[1], &INPUTS[..1])];
        for &(model, inputs) in if is_full() { &all[..] } else { &few[..] } {
            failures.extend(check(model, inputs, &SessionOptions::default(), backend, &context, &folder));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_fixed_work_group_gives_the_same_network() {
    let Some(folder) = folder() else { return };
    let mut failures = Vec::new();
    // A size for each API: texts with work-groups of all sizes are the conformance table's.
    for (backend, context) in backends() {
        let size = match backend {
            Backend::Wgpu if is_full() => [1, 1, 1],
            Backend::OpenCl => [8, 4, 8],
            _ => continue,
        };
        let options = SessionOptions { work_group: WorkGroup::Fixed(size), ..Default::default() };
        let session = check(MODELS[0], &INPUTS[..1], &options, backend, &context, &folder);
        failures.extend(session.into_iter().map(|failure| format!("{size:?} {failure}")));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// From a file to the person's parts; that the backends agree is shown above.
#[test]
fn a_photograph_gives_the_person() {
    let Some(folder) = folder() else { return };
    let Some(context) = context(Backend::Cpu) else { return };
    let graph = tflite::load(folder.join(format!("{}.tflite", MODELS[0]))).expect("the model");
    let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
    let photographs = ["test_couple", "pakutaso_person"];
    for photograph in &photographs[..if is_full() { 2 } else { 1 }] {
        let file = folder.join("images").join(format!("{photograph}.jpg"));
        let pixels = picture::Picture::open(&file).and_then(|picture| picture.input([257, 257]));
        let input = HostTensor::new(Shape::nhwc(1, 257, 257, 3), pixels.expect("a photograph"));
        let outputs = session.run(&[("sub_2", &input.expect("a tensor"))]).expect("a run");
        let golden = folder.join("golden").join(MODELS[0]).join(photograph);
        let pixels = distance(&pose(&outputs), &golden);
        println!("{photograph}.jpg: parts within {pixels:.2} pixels");
        assert!(within(pixels, 2.0), "{photograph}: a part is {pixels} pixels off");
    }
}

/// Half storage rounds every feature map and weight to 11 bits. The sum of that over thirty layers
/// has no useful bound, so the test is what a user sees: the parts stay where they are.
#[test]
fn half_storage_keeps_the_person() {
    let Some(folder) = folder() else { return };
    for (backend, context) in backends().filter(|(backend, _)| *backend != Backend::Cpu) {
        let graph = tflite::load(folder.join(format!("{}.tflite", MODELS[0]))).expect("the model");
        let options = SessionOptions { precision: Precision::F16Storage, ..Default::default() };
        let mut session = Session::new(&context, &graph, options).expect("a session");
        let golden = folder.join("golden").join(MODELS[0]).join(INPUTS[0]);
        let outputs = session.run(&[("sub_2", &input_of(&golden))]).expect("a run");
        let pixels = distance(&pose(&outputs), &golden);
        println!("{backend} f16 storage: parts within {pixels:.2} pixels");
        assert!(pixels <= 2.0, "{backend}: a part is {pixels} pixels off");
    }
}

#[test]
fn the_memory_plan_shares_buffers() {
    let Some(folder) = folder() else { return };
    let graph = tflite::load(folder.join(format!("{}.tflite", MODELS[0]))).expect("the model");
    for (backend, context) in backends() {
        let session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let MemoryUse { planned, unshared, least, .. } = session.memory();
        println!("{backend}: {planned} of {unshared} bytes, {least} at least");
        assert!(planned * 2 < unshared, "{backend}: {planned} of {unshared} bytes");
        assert!(least <= planned, "{backend}: {planned} of {least} bytes");
    }
}

#[test]
fn a_wrong_input_is_an_error_that_names_it() {
    let Some(folder) = folder() else { return };
    let graph = tflite::load(folder.join(format!("{}.tflite", MODELS[0]))).expect("the model");
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
    let small = HostTensor::new(Shape::nhwc(1, 2, 2, 3), vec![0.0; 12]).expect("a tensor");
    let text = |result: diptych::Result<Vec<HostTensor>>| result.expect_err("wrong").to_string();
    let shape = text(session.run(&[("sub_2", &small)]));
    assert!(shape.contains("1x2x2x3") && shape.contains("1x257x257x3"), "{shape}");
    let name = text(session.run(&[("image", &small)]));
    assert!(name.contains("\"image\"") && name.contains("\"sub_2\""), "{name}");
    let missing = text(session.run(&[]));
    assert!(missing.contains("sub_2"), "{missing}");
}
