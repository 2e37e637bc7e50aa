//! `diptych run` and `diptych inspect` on models of integers: exact from file to file.

use crate::{npy, onnx};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

fn diptych(command: &str, model: &Path, words: &[&str]) -> Output {
    let mut started = Command::new(env!("CARGO_BIN_EXE_diptych"));
    started
        .arg(command)
        .arg(model)
        .args(["--backend", "cpu"])
        .args(words)
        .output()
        .expect("the program starts")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn words(values: [i64; 2]) -> Vec<u8> {
    values.map(i64::to_le_bytes).concat()
}

#[test]
fn ids_of_64_bits_go_in_and_come_out_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let [model, x, k, dump] = ["sum.onnx", "x.npy", "k.npy", "dump"].map(|name| folder.path().join(name));
    std::fs::write(&model, onnx::sum(onnx::INT64)).expect("written");
    npy::write_bytes(&x, "<i8", &[2], &words([1 << 53, -5]));
    npy::write_bytes(&k, "<i8", &[2], &words([1, 7]));
    let [x, k] = [("x", &x), ("k", &k)].map(|(name, path)| format!("{name}={}", path.display()));
    let given = ["--input", &x, "--input", &k];
    let printed =
        text(&diptych("run", &model, &[&given[..], &["--dump", dump.to_str().expect("text")]].concat()));
    assert!(printed.starts_with("0, y, 2 i64, from 2 to 9007199254740993, mean "), "{printed}");
    let written = std::fs::read(dump.join("0.npy")).expect("an output");
    assert!(String::from_utf8_lossy(&written).contains("'descr': '<i8'"));
    assert_eq!(written[128..], words([(1 << 53) + 1, 2]));

    let report: Value =
        serde_json::from_str(&text(&diptych("run", &model, &[&given[..], &["--json"]].concat())))
            .expect("JSON");
    assert_eq!(report["outputs"][0]["max"], json!((1i64 << 53) + 1), "{report}");
    for port in [&report["inputs"][0], &report["inputs"][1], &report["outputs"][0]] {
        assert_eq!(port["dtype"], "i64", "{port}");
    }
}

#[test]
fn truths_are_written_as_truths() {
    let folder = tempfile::tempdir().expect("a folder");
    let [model, x, k, dump] = ["greater.onnx", "x.npy", "k.npy", "dump"].map(|name| folder.path().join(name));
    std::fs::write(&model, onnx::greater()).expect("written");
    // Narrower integers, and floats that are whole, are taken for those of 64 bits.
    npy::write_bytes(&x, "|u1", &[2], &[200, 3]);
    npy::write(&k, &[2], &[5.0, 5.0]);
    let [x, k] = [("x", &x), ("k", &k)].map(|(name, path)| format!("{name}={}", path.display()));
    let words = ["--input", &x, "--input", &k, "--dump", dump.to_str().expect("text"), "--top", "1"];
    let printed = text(&diptych("run", &model, &words));
    assert!(printed.starts_with("0, y, 2 bool, from 0 to 1, mean 0.5"), "{printed}");
    assert!(printed.contains("\n   class 0: 1\n"), "{printed}");
    let written = std::fs::read(dump.join("0.npy")).expect("an output");
    assert!(String::from_utf8_lossy(&written).contains("'descr': '|b1'"));
    assert_eq!(written[128..], [1, 0]);
}

#[test]
fn random_inputs_of_integers_are_whole_and_types_are_inspected() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("greater.onnx");
    std::fs::write(&model, onnx::greater()).expect("written");
    let report: Value =
        serde_json::from_str(&text(&diptych("run", &model, &["--json", "--runs", "1"]))).expect("JSON");
    assert_eq!(report["inputs"][0]["source"], "random");
    let inspected = text(&diptych("inspect", &model, &[]));
    for line in ["\"x\" 2 i64", "\"k\" 2 i64", "\"y\" 2 bool"] {
        assert!(inspected.contains(line), "{inspected}");
    }
    let inspected: Value =
        serde_json::from_str(&text(&diptych("inspect", &model, &["--json"]))).expect("JSON");
    assert_eq!(
        (&inspected["inputs"][0]["dtype"], &inspected["outputs"][0]["dtype"]),
        (&json!("i64"), &json!("bool"))
    );
}

#[test]
fn what_is_no_integer_or_no_type_is_refused_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let [model, x] = ["sum.onnx", "x.npy"].map(|name| folder.path().join(name));
    std::fs::write(&model, onnx::sum(onnx::INT64)).expect("written");
    let refused = |descr: &str, data: &[u8]| {
        npy::write_bytes(&x, descr, &[2], data);
        let output = diptych("run", &model, &["--input", &format!("x={}", x.display())]);
        assert_eq!(output.status.code(), Some(1), "{descr}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let halves = [1.0f32, 2.5].map(f32::to_le_bytes).concat();
    let errors = refused("<f4", &halves);
    assert!(errors.contains("input \"x\"") && errors.contains("2.5 at element 1"), "{errors}");
    let errors = refused("<c8", &[0; 16]);
    assert!(errors.contains("input \"x\"") && errors.contains("elements of type '<c8'"), "{errors}");
    let errors = refused("<u8", &[255; 16]);
    assert!(errors.contains("18446744073709551615") && errors.contains("int64"), "{errors}");
}
