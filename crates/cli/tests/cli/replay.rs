//! `diptych run --replay-out` and `diptych replay`.

use crate::network::small_network;
use diptych::{Model, Weights, with_random_weights};
use std::path::Path;
use std::process::{Command, Output};

const KEY: &str = "diptych.replay";

fn diptych(words: &[&str], file: &Path) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_diptych")).args(words).arg(file).output();
    command.expect("the program starts")
}

/// One run of the model on the CPU that is kept in `file`.
fn kept(model: &Path, words: &[&str], file: &Path) -> Output {
    let model = model.to_str().expect("a path");
    diptych(
        &[&["run", model, "--backend", "cpu", "--runs", "1"][..], words, &["--replay-out"]].concat(),
        file,
    )
}

fn record(model: &Path, words: &[&str], file: &Path) {
    let output = kept(model, words, file);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What `diptych replay` prints, and whether it succeeds.
fn replay(file: &Path) -> (bool, String) {
    let output = diptych(&["replay", "--backend", "cpu"], file);
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (output.status.success(), text.concat())
}

/// The file with other metadata.
fn rewrite(file: &Path, change: impl Fn(&str) -> String) {
    let bytes = std::fs::read(file).expect("the file");
    let length = u64::from_le_bytes(*bytes.first_chunk().expect("a length")) as usize;
    let mut header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).expect("a header");
    let saved = header["__metadata__"][KEY].as_str().expect("metadata").to_owned();
    header["__metadata__"][KEY] = change(&saved).into();
    let header = header.to_string();
    let parts = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &bytes[8 + length..]];
    std::fs::write(file, parts.concat()).expect("written");
}

#[test]
fn a_run_is_repeated_from_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.safetensors");
    record(&small_network(folder.path()), &[], &file);
    let (fine, text) = replay(&file);
    assert!(fine && text.contains("0.00e0"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("every checked step is within its bound; ")), "{text}");
    assert!(text.contains("with and without rewrites the results differ by"), "{text}");
    // A step that was off where the run was recorded, and what its result was there.
    let saved = Weights::open(&file).expect("safetensors").metadata()[KEY].clone();
    let saved: serde_json::Value = serde_json::from_str(&saved).expect("JSON");
    let step = &saved["steps"][3];
    rewrite(&file, |_| {
        let mut saved = saved.clone();
        saved["steps"][3]["beyond"] = true.into();
        saved["steps"][3]["deviation"] = "7.5 of the bound".into();
        saved.to_string()
    });
    let (fine, text) = replay(&file);
    let name = step["name"].as_str().expect("a name");
    assert!(!fine && text.contains(&format!("the results part at {name:?}")), "{text}");
    assert!(text.contains("is off by 7.5 of the bound"), "{text}");
    assert!(text.contains("\nbeyond their bounds are 1 of "), "{text}");
    let place = step["writes"][0].as_u64().expect("a value");
    let tensor = Weights::open(&file)
        .expect("safetensors")
        .bytes(&format!("value/{place}"))
        .expect("a tensor")
        .to_vec();
    let mut bytes = std::fs::read(&file).expect("the file");
    let at = bytes.windows(64).rposition(|part| part == &tensor[..64]).expect("the tensor");
    bytes[at..at + 4].copy_from_slice(&1e6f32.to_le_bytes());
    std::fs::write(&file, bytes).expect("written");
    let (_, text) = replay(&file);
    assert!(text.contains("1.00e6"), "{text}");
}

#[test]
fn what_was_known_is_known_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let [model, file] = ["product.onnx", "run"].map(|name| folder.path().join(name));
    std::fs::write(&model, crate::onnx::product()).expect("written");
    let model = model.to_str().expect("a path");
    // JSON has no such number.
    let words = ["run", model, "--backend", "cpu", "--runs", "1", "--value", "k=inf,2", "--replay-out"];
    let output = diptych(&words, &file);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let kept = Weights::open(&file).expect("safetensors");
    assert_eq!(kept.get("known/k").expect("a tensor").to_nhwc()[..], [f32::INFINITY, 2.0]);
    let (fine, text) = replay(&file);
    assert!(fine && text.contains("\ny ") && text.contains("0.00e0"), "{text}");
}

#[test]
fn one_step_is_repeated_with_what_it_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let [all, one] = ["all", "one"].map(|name| folder.path().join(name));
    let model = small_network(folder.path());
    record(&model, &[], &all);
    let saved = Weights::open(&all).expect("safetensors").metadata()[KEY].clone();
    let saved: serde_json::Value = serde_json::from_str(&saved).expect("JSON");
    let name = saved["steps"][5]["name"].as_str().expect("a name");
    record(&model, &["--replay-node", name], &one);
    let values =
        Weights::open(&one).expect("safetensors").names().filter(|name| name.starts_with("value/")).count();
    assert_eq!(values, 2);
    let (fine, text) = replay(&one);
    assert!(fine && text.contains("0.00e0") && text.contains("checked are 1 of 1 steps "), "{text}");
    let missing = kept(&model, &["--replay-node", "none"], &one);
    let text = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(!missing.status.success() && text.contains("found no step \"none\""), "{text}");
}

#[test]
fn a_file_without_the_models_weights_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.safetensors");
    let model = small_network(folder.path());
    record(&model, &["--random-weights"], &file);
    let own = std::fs::read(model).expect("the model");
    let kept = Weights::open(&file).expect("safetensors").bytes("model").expect("a model").to_vec();
    assert_eq!(kept, with_random_weights(&own, 0).expect("other weights"));
    assert_eq!(kept.len(), own.len());
    let [kept, own] =
        [kept, own].map(|bytes| Model::from_bytes(&bytes, &Default::default()).expect("a model"));
    let mut compared = 0;
    for (kept_node, node) in kept.graph.nodes().iter().zip(own.graph.nodes()) {
        for (&(_, kept_value), &(_, value)) in kept_node.inputs().iter().zip(node.inputs()) {
            let tensors = [(&kept, kept_value), (&own, value)]
                .map(|(model, value)| model.graph.tensor(value).expect("a value"));
            let [Some(kept_tensor), Some(tensor)] = tensors else { continue };
            if tensor.dims().elements() < 8 {
                continue;
            }
            let (one, other) = (kept_tensor.to_nhwc(), tensor.to_nhwc());
            let same = one.iter().zip(other.iter()).filter(|(one, other)| one == other).count();
            assert!(
                same * 10 < one.len(),
                "{}: {same} of {} weights are the model's",
                node.name(),
                one.len()
            );
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared} constants");
    let (fine, text) = replay(&file);
    assert!(fine && text.contains("with random weights"), "{text}");
}

#[test]
fn what_is_no_replay_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.safetensors");
    std::fs::write(&file, b"nothing").expect("written");
    let (fine, text) = replay(&file);
    assert!(!fine && text.contains("wanted a header"), "{text}");
    let header = br#"{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    std::fs::write(&file, [&(header.len() as u64).to_le_bytes()[..], header, &[0; 4]].concat())
        .expect("written");
    let (fine, text) = replay(&file);
    assert!(!fine && text.contains("run --replay-out writes"), "{text}");
    record(&small_network(folder.path()), &[], &file);
    rewrite(&file, |_| r#"{"format":3}"#.to_owned());
    let (fine, text) = replay(&file);
    assert!(!fine && text.contains("found format 3, wanted 2"), "{text}");
}
