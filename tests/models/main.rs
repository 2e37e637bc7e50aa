//! Models that other people trained, from the shared folder, against TensorFlow Lite's own outputs.
//!
//! `DIPTYCH_MODELS` runs those alone whose names contain it.
#![cfg(feature = "tflite")]

use diptych::tflite::{LoadOptions, Model};
use diptych::{Backend, Context, HostTensor, Session, SessionOptions, tflite};
use std::path::{Path, PathBuf};
use std::time::Instant;

#[path = "../posenet/npy.rs"]
mod npy;

/// The files; the goldens are in folders of their names.
const MODELS: [&str; 16] = [
    "deeplabv3_257_mv_gpu",
    "dtln_1",
    "espcn_d2s",
    "face_detection_short_range",
    "gender_lite",
    "hand_landmark_lite",
    "kws_ref",
    "mobilenet_v1_0.25_224_keras_f32",
    "mtcnn_onet",
    "pose_detection",
    "selfie_segmentation",
    "style_transfer_f16_384",
    "unet_deconv",
    "vit_tiny_4blk",
    "yunet_f16",
    "yunet_int8_weights",
];

/// The largest error of an output, relative to its largest magnitude.
const TOLERANCE: f64 = 1e-3;

/// The folder of the models, if it is there.
fn folder() -> Option<PathBuf> {
    let root = std::env::var_os("DIPTYCH_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let folder = root.join("models");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: {} is not there", folder.display());
    None
}

/// The models that are there and asked for.
fn models(folder: &Path) -> Vec<&'static str> {
    let only = std::env::var("DIPTYCH_MODELS").unwrap_or_default();
    let there = |name: &&str| {
        let path = folder.join(format!("{name}.tflite"));
        if !path.exists() {
            println!("skipped: {} is not there", path.display());
        }
        path.exists() && name.contains(&only)
    };
    MODELS.into_iter().filter(there).collect()
}

/// The tensor of a file, in the dimensions of `like`.
fn tensor(path: &Path, dims: diptych::Dims) -> HostTensor {
    let (shape, values) = npy::read(path);
    assert_eq!(shape, dims.extents(), "{}", path.display());
    let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
    HostTensor::new(dims, values).expect("as many values as the shape has")
}

/// The largest error of each output, relative to its golden's largest magnitude, or what is wrong.
fn errors(model: &Model, session: &mut Session, golden: &Path) -> Result<Vec<f64>, String> {
    let inputs: Vec<HostTensor> = (0..model.inputs.len())
        .map(|index| tensor(&golden.join(format!("input{index}.npy")), model.inputs[index].dims))
        .collect();
    let named: Vec<(&str, &HostTensor)> =
        model.inputs.iter().zip(&inputs).map(|(port, tensor)| (port.name.as_str(), tensor)).collect();
    let outputs = session.run(&named).map_err(|error| error.to_string())?;
    let error = |(index, output): (usize, &HostTensor)| {
        let kinds = ["xnnpack", "dequantised"].map(|kind| golden.join(format!("output{index}.{kind}.npy")));
        let path = kinds.iter().find(|path| path.exists()).ok_or(format!("no golden of output {index}"))?;
        let (shape, wanted) = npy::read(path);
        if shape != output.dims().extents() {
            return Err(format!("output {index}: found {}, wanted {shape:?}", output.dims()));
        }
        let largest = wanted.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
        let found = output.to_nhwc();
        let off = found.iter().zip(&wanted).map(|(&found, &wanted)| (f64::from(found) - wanted).abs());
        // A NaN must not pass for a small difference.
        let worst = off.fold(0.0, |worst, off| if off <= worst { worst } else { off });
        Ok(worst / largest)
    };
    outputs.iter().enumerate().map(error).collect()
}

fn check(context: &Context, folder: &Path, name: &str) -> Result<(), String> {
    let start = Instant::now();
    let path = folder.join(format!("{name}.tflite"));
    let model = Model::load(path, &LoadOptions::default()).map_err(|error| error.to_string())?;
    let loaded = start.elapsed();
    let session = Session::new(context, &model.graph, SessionOptions::default());
    let mut session = session.map_err(|error| error.to_string())?;
    let made = start.elapsed();
    let golden = folder.join("golden").join(name);
    for inputs in [golden.clone(), golden.join("photo")] {
        if !inputs.join("input0.npy").exists() {
            continue;
        }
        let errors = errors(&model, &mut session, &inputs)?;
        let told: Vec<String> = errors.iter().map(|error| format!("{error:.1e}")).collect();
        let what = inputs.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        println!(
            "{name} {what} on {}: {} ({} nodes, {} steps, loaded in {loaded:.0?}, made in {made:.0?})",
            context.info().backend,
            told.join(" "),
            model.graph.nodes().len(),
            session.steps().len()
        );
        if let Some(index) = errors.iter().position(|error| error.is_nan() || *error > TOLERANCE) {
            return Err(format!("{what}: output {index} is {} off", errors[index]));
        }
    }
    Ok(())
}

fn every_model(backend: Backend) {
    let Some(folder) = folder() else { return };
    let context = match Context::new(backend) {
        Ok(context) => context,
        Err(error) if std::env::var("DIPTYCH_REQUIRE_DEVICES").is_ok_and(|value| value == "1") => {
            panic!("{backend} is required: {error}")
        }
        Err(error) => return println!("skipping {backend}: {error}"),
    };
    let failures: Vec<String> = models(&folder)
        .into_iter()
        .filter_map(|name| check(&context, &folder, name).err().map(|error| format!("{name}: {error}")))
        .inspect(|failure| println!("FAILED {failure}"))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn on_the_cpu() {
    every_model(Backend::Cpu);
}

#[cfg(feature = "wgpu")]
#[test]
fn on_wgpu() {
    every_model(Backend::Wgpu);
}

#[cfg(feature = "opencl")]
#[test]
fn on_opencl() {
    every_model(Backend::OpenCl);
}

/// Names, dimensions and metadata of what is there.
#[test]
fn ports_are_those_of_the_file() {
    let Some(folder) = folder() else { return };
    let path = folder.join("gender_lite.tflite");
    if !path.exists() {
        return println!("skipped: {} is not there", path.display());
    }
    let options = LoadOptions { dimensions: [("batch".to_owned(), 3)].into(), ..Default::default() };
    let model = Model::load(&path, &options).expect("a model whose batch is open");
    assert_eq!(model.inputs[0].dims.extents(), [3, 128, 128, 3]);
    assert_eq!(model.outputs[0].dims.extents(), [3, 2]);
    let other = model.graph.with_dimensions(&[("batch", 5)]).expect("another batch");
    assert_eq!(other.dims(other.outputs()[0]).expect("an output").extents(), [5, 2]);
    assert_eq!(tflite::load(&path).expect("the same").dimensions().get("batch"), Some(&1));
}
