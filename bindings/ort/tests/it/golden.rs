//! Networks that others trained, against ONNX Runtime's own outputs.

use crate::npy::Array;
use crate::on;
use ort::session::{Session, SessionInputValue};
use ort::value::{Tensor, TensorElementType, ValueType};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The folder of models that are not in the repository.
fn shared() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("DIPTYCH_SHARED").map_or(own, PathBuf::from);
    let found = folder.join("models/onnx").is_dir();
    if !found {
        eprintln!("skipped: no models in {}", folder.display());
    }
    found.then_some(folder)
}

fn values(array: &Array) -> SessionInputValue<'static> {
    let shape = array.extents.clone();
    let bytes = &array.bytes;
    let integers = || bytes.as_chunks().0.iter().map(|chunk| i64::from_le_bytes(*chunk)).collect::<Vec<_>>();
    let narrow = || bytes.as_chunks().0.iter().map(|chunk| i32::from_le_bytes(*chunk)).collect::<Vec<_>>();
    match array.dtype.as_str() {
        "<f4" => Tensor::from_array((shape, array.floats())).expect("a tensor").into(),
        "<i8" => Tensor::from_array((shape, integers())).expect("a tensor").into(),
        "<i4" => Tensor::from_array((shape, narrow())).expect("a tensor").into(),
        "|u1" => Tensor::from_array((shape, bytes.clone())).expect("a tensor").into(),
        "|b1" => {
            let flags: Vec<bool> = bytes.iter().map(|&byte| byte != 0).collect();
            Tensor::from_array((shape, flags)).expect("a tensor").into()
        }
        other => panic!("no test has arrays of {other}"),
    }
}

/// The arrays of a network: their names, in the order of the files.
fn arrays(folder: &Path, end: &str) -> Vec<(String, Array)> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let mut found: Vec<(usize, String, PathBuf)> = files
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_suffix(end)?;
            let (number, name) = name.split_once('.')?;
            Some((number.parse().ok()?, name.to_owned(), path.clone()))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, name, path)| (name, Array::read(&path))).collect()
}

fn agrees(model: &str, mut session: Session, folder: &Path, bound: f32) {
    let inputs: Vec<(Cow<'_, str>, SessionInputValue<'_>)> = arrays(folder, ".input.npy")
        .iter()
        .map(|(name, array)| (name.clone().into(), values(array)))
        .collect();
    let outputs = session.run(inputs).expect("a run");
    for (name, wanted) in arrays(folder, ".output.npy") {
        // The names of the files have no slashes.
        let own = outputs.keys().find(|own| own.replace('/', "_") == name).expect("an output");
        let (shape, found) = outputs[own].try_extract_tensor::<f32>().expect("floats");
        assert_eq!(**shape, *wanted.extents, "{model}: {name}");
        let largest = wanted.floats().iter().fold(1.0, |largest: f32, value| largest.max(value.abs()));
        for (found, wanted) in found.iter().zip(wanted.floats()) {
            assert!(
                (found - wanted).abs() <= bound * largest,
                "{model}: {name}: {found} instead of {wanted}"
            );
        }
    }
}

#[test]
fn digits_are_as_by_onnx_runtime() {
    let Some(shared) = shared() else { return };
    let file = shared.join("models/onnx/mnist.onnx");
    for device in ["cpu", "wgpu", "opencl"] {
        let session = on(device).commit_from_file(&file).expect("a session");
        agrees("mnist", session, &shared.join("models/onnx/golden/mnist"), 1e-4);
    }
}

#[test]
fn speech_with_a_state_is_as_by_onnx_runtime() {
    let Some(shared) = shared() else { return };
    let session = on("cpu").commit_from_file(shared.join("models/onnx/silero_vad_16k_op15.onnx"));
    let session = session.expect("a session");
    let types: Vec<String> =
        session.inputs().iter().map(|input| format!("{} {}", input.name(), input.dtype())).collect();
    assert!(types.iter().any(|own| own == "sr Tensor<i64>()"), "{types:?}");
    agrees("silero", session, &shared.join("models/onnx/golden/silero_vad_16k_op15"), 1e-3);
}

#[test]
fn open_extents_are_as_by_onnx_runtime() {
    let Some(shared) = shared() else { return };
    let session = on("cpu").commit_from_file(shared.join("models/onnx/ch_ppocr_mobile_v2.0_cls_infer.onnx"));
    let session = session.expect("a session");
    let ValueType::Tensor { ty, shape, .. } = session.inputs()[0].dtype() else {
        panic!("a tensor");
    };
    assert_eq!(*ty, TensorElementType::Float32);
    assert_eq!(shape[0], -1);
    agrees("cls", session, &shared.join("models/onnx/golden/ch_ppocr_mobile_v2.0_cls_infer"), 1e-3);
}

#[test]
fn a_file_of_tensorflow_lite_runs_too() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/posenet/data/posenet_figures.tflite");
    let mut session = on("cpu").commit_from_file(file).expect("a session");
    let ValueType::Tensor { shape, .. } = session.inputs()[0].dtype() else {
        panic!("a tensor");
    };
    let extents: Vec<i64> = shape.iter().map(|extent| (*extent).max(1)).collect();
    let picture =
        Tensor::from_array((extents.clone(), vec![0.5f32; extents.iter().product::<i64>() as usize]));
    let outputs = session.run(ort::inputs![picture.expect("a tensor")]).expect("a run");
    assert_ne!(outputs.len(), 0);
}
