//! Models that other people trained, from the shared folder, against ONNX Runtime's outputs.
//!
//! `DIPTYCH_MODELS` runs those alone whose names contain it.

use crate::golden;
use diptych::{Backend, Context, HostTensor, LoadOptions, Model, Session, SessionOptions};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The files, with inputs that are known when they are read; the goldens are in folders of their names.
const MODELS: [(&str, &[&str]); 6] = [
    ("ch_PP-OCRv4_det_infer", &[]),
    ("ch_ppocr_mobile_v2.0_cls_infer", &[]),
    ("mnist", &[]),
    ("silero_vad_16k_op15", &["sr"]),
    ("version-RFB-320_simplified", &[]),
    ("yunet_n_dynamic", &[]),
];

/// What may be off whatever the magnitude: ONNX Runtime's sigmoid is that far from the exact one, and outputs of
/// `yunet_n_dynamic` are sigmoids of at most 4e-5.
const LEAST: f64 = 1.5e-7;

/// Tensors of a folder by number and name: files `I.NAME.{kind}.npy`.
fn files(folder: &Path, kind: &str) -> BTreeMap<usize, (String, PathBuf)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder of goldens") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if let Some(stem) = name.strip_suffix(&format!(".{kind}.npy"))
            && let Some((index, name)) = stem.split_once('.')
        {
            found.insert(index.parse().expect("a number"), (name.to_owned(), path));
        }
    }
    found
}

fn check(context: &Context, folder: &Path, name: &str, known: &[&str]) -> Result<(), String> {
    let golden = folder.join("golden").join(name);
    let mut options = LoadOptions::default();
    let mut feeds: Vec<(String, HostTensor)> = Vec::new();
    for (name, path) in files(&golden, "input").into_values() {
        let tensor = golden::tensor(&path)?;
        if known.contains(&name.as_str()) {
            options.values.insert(name, tensor);
            continue;
        }
        for (axis, &extent) in tensor.dims().extents().iter().enumerate() {
            options.dimensions.insert(format!("{name}.{axis}"), extent);
        }
        feeds.push((name, tensor));
    }
    let start = Instant::now();
    let path = folder.join(format!("{name}.onnx"));
    let model = Model::load(path, &options).map_err(|error| error.to_string())?;
    let loaded = start.elapsed();
    let session = Session::new(context, &model.graph, SessionOptions::default());
    let mut session = session.map_err(|error| error.to_string())?;
    let made = start.elapsed();
    let feeds: Vec<(&str, &HostTensor)> =
        feeds.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let outputs = session.run(&feeds).map_err(|error| error.to_string())?;
    let mut errors = Vec::new();
    for (index, (wanted_name, path)) in files(&golden, "output") {
        let (port, output) = (&model.outputs[index], &outputs[index]);
        let plain = |name: &str| name.replace(['/', ':'], "_");
        assert!(plain(&port.name).starts_with(&plain(&wanted_name)[..1]), "{} for {wanted_name}", port.name);
        errors.push(golden::error(output, &path, LEAST)?);
    }
    println!(
        "{name} on {}: {} ({} nodes, {} steps, loaded in {loaded:.0?}, made in {made:.0?})",
        context.info().backend,
        golden::within(&errors)?,
        model.graph.nodes().len(),
        session.steps().len()
    );
    Ok(())
}

fn every_model(backend: Backend) {
    let Some(folder) = golden::folder("models/onnx") else { return };
    golden::every_model(backend, &folder, "onnx", MODELS, |context, folder, name, known| {
        check(context, folder, name, known)
    });
}

#[test]
fn models_on_the_cpu() {
    every_model(Backend::Cpu);
}

#[cfg(feature = "wgpu")]
#[test]
fn models_on_wgpu() {
    every_model(Backend::Wgpu);
}

#[cfg(feature = "opencl")]
#[test]
fn models_on_opencl() {
    every_model(Backend::OpenCl);
}
