//! Models that other people trained, from the shared folder, against TensorFlow Lite's own outputs.
//!
//! `DIPTYCH_MODELS` runs those alone whose names contain it.
#![cfg(feature = "tflite")]

use diptych::tflite::{LoadOptions, Model};
use diptych::{Backend, Context, HostTensor, Session, SessionOptions, tflite};
use std::path::Path;
use std::time::Instant;

mod golden;

#[path = "../posenet/npy.rs"]
mod npy;

mod absent;

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

/// The largest error of each output, relative to its golden's largest magnitude, or what is wrong.
fn errors(model: &Model, session: &mut Session, folder: &Path) -> Result<Vec<f64>, String> {
    let mut inputs = Vec::with_capacity(model.inputs.len());
    for (index, port) in model.inputs.iter().enumerate() {
        let tensor = golden::tensor(&folder.join(format!("input{index}.npy")))?;
        assert_eq!(tensor.dims(), port.dims, "input {index}");
        inputs.push(tensor);
    }
    let named: Vec<(&str, &HostTensor)> =
        model.inputs.iter().zip(&inputs).map(|(port, tensor)| (port.name.as_str(), tensor)).collect();
    let outputs = session.run(&named).map_err(|error| error.to_string())?;
    let error = |(index, output): (usize, &HostTensor)| {
        let kinds = ["xnnpack", "dequantised"].map(|kind| folder.join(format!("output{index}.{kind}.npy")));
        let path = kinds.iter().find(|path| path.exists()).ok_or(format!("no golden of output {index}"))?;
        golden::error(output, path, 0.0)
    };
    outputs.iter().enumerate().map(error).collect()
}

fn check(context: &Context, folder: &Path, name: &str, (): ()) -> Result<(), String> {
    let start = Instant::now();
    let path = folder.join(format!("{name}.tflite"));
    let golden = folder.join("golden").join(name);
    // These goldens are of weights that stand for floats, and of inputs that are not rounded at the run.
    let dequantize = golden.join("output0.dequantised.npy").exists();
    let options = LoadOptions { dequantize, ..Default::default() };
    let model = Model::load(path, &options).map_err(|error| error.to_string())?;
    let loaded = start.elapsed();
    let session = Session::new(context, &model.graph, SessionOptions::default());
    let mut session = session.map_err(|error| error.to_string())?;
    let made = start.elapsed();
    for inputs in [golden.clone(), golden.join("photo")] {
        if !inputs.join("input0.npy").exists() {
            continue;
        }
        let errors = errors(&model, &mut session, &inputs)?;
        let what = inputs.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        println!(
            "{name} {what} on {}: {} ({} nodes, {} steps, loaded in {loaded:.0?}, made in {made:.0?})",
            context.info().backend,
            golden::within(&errors).map_err(|error| format!("{what}: {error}"))?,
            model.graph.nodes().len(),
            session.steps().len()
        );
    }
    Ok(())
}

fn every_model(backend: Backend) {
    let Some(folder) = golden::folder("models") else { return };
    golden::every_model(backend, &folder, "tflite", MODELS.map(|name| (name, ())), check);
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
    let Some(folder) = golden::folder("models") else { return };
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
